package engine

import (
	"context"

	"grove/forest"
	"grove/method"
)

// Runner returns the engine as a draft model for another engine's methods.
func (e *Engine) Runner() method.Runner { return runner{e} }

type runner struct{ e *Engine }

// Vocabulary implements [method.Runner].
func (r runner) Vocabulary() int { return r.e.vocab }

// Context implements [method.Runner].
func (r runner) Context() int { return r.e.Context() }

// Chunk implements [method.Runner].
func (r runner) Chunk() int { return r.e.chunk }

// Branch implements [method.Runner].
func (r runner) Branch() (method.Branch, error) {
	seq, err := r.e.openSeq(context.Background(), false)
	if err != nil {
		return nil, err
	}
	return &branch{e: r.e, seq: seq}, nil
}

type branch struct {
	e      *Engine
	seq    forest.Seq
	nodes  []forest.Node
	logits [][]float32
	store  []float32
	subset []int32
}

// Trim implements [method.Trimmer].
func (b *branch) Trim(groups []int32) { b.subset = groups }

// Len implements [method.Branch].
func (b *branch) Len() int {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	return b.e.cache.Forest.Len(b.seq)
}

// Run implements [method.Branch].
func (b *branch) Run(ctx context.Context, rows []method.BranchRow) ([]forest.Node, [][]float32, error) {
	e := b.e
	e.mu.Lock()
	defer e.mu.Unlock()
	b.nodes, b.logits, b.store = b.nodes[:0], b.logits[:0], b.store[:0]
	for _, r := range rows {
		if r.After > 0 {
			r.Parent = b.nodes[r.After-1]
		}
		node, err := e.exec.Step.Add(forest.Row{Seq: b.seq, Parent: r.Parent, ID: r.ID, Want: forest.Want{Logits: r.Logits, Subset: b.subset}})
		if err != nil {
			e.exec.Step.Abort()
			return nil, nil, err
		}
		b.nodes = append(b.nodes, node)
	}
	if err := e.pass(ctx); err != nil {
		return nil, nil, err
	}
	e.exec.Step.Reset()
	for i := range rows {
		b.store = append(b.store, e.exec.Result(i).Logits...)
	}
	at := 0
	for i := range rows {
		n := len(e.exec.Result(i).Logits)
		b.logits = append(b.logits, b.store[at:at+n])
		at += n
	}
	return b.nodes, b.logits, nil
}

// Commit implements [method.Branch].
func (b *branch) Commit(n forest.Node) error {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	path, err := b.e.cache.Forest.Path(b.seq, n)
	if err != nil {
		return err
	}
	length := b.e.cache.Forest.Len(b.seq) + len(path)
	if err := b.e.reserve(b.seq, nil, length, length); err != nil {
		return err
	}
	return b.e.cache.Commit(b.seq, n)
}

// Drop implements [method.Branch].
func (b *branch) Drop() error {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	return b.e.cache.Drop(b.seq, forest.Trunk)
}

// Truncate implements [method.Branch].
func (b *branch) Truncate(n int) error {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	return b.e.cache.Truncate(b.seq, n)
}

// Close implements [method.Branch].
func (b *branch) Close() error { return b.e.closeSeq(b.seq) }
