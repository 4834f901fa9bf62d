package engine

import (
	"context"
	"fmt"

	"grove/internal/compute"
	"grove/internal/engine/step"
	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/method"
)

// grow is the job that runs rows for a drafter, on a sequence of its own or on the text's own trunk. The rows live on. It is the
// [method.Trunk] that the drafter sees.
type grow struct {
	t       *step.Trunk
	e       *Engine
	s       *Sequence // whose own trunk it is; nil: a branch
	behind  int       // tokens of the text that the own trunk lacks
	rows    []method.Row
	results []method.Result
	store   compute.OutputArena
}

// Len implements [method.Trunk].
func (g *grow) Len() int {
	if g.s != nil {
		return len(g.s.text) - 1
	}
	g.e.steps.Lock()
	defer g.e.steps.Unlock()
	return g.t.Len()
}

// Grow implements [method.Trunk].
func (g *grow) Grow(ctx context.Context, rows []method.Row) ([]method.Result, error) {
	if g.s != nil && !g.t.Caller().Busy.Load() {
		return nil, fmt.Errorf("engine: a drafter grows rows on the text's own trunk while it does not draft")
	}
	return g.run(ctx, rows)
}

// run runs rows and returns what they gave, until the next call.
func (g *grow) run(ctx context.Context, rows []method.Row) ([]method.Result, error) {
	if most := g.e.steps.Chunk; len(rows) > most {
		return nil, fmt.Errorf("engine: growing %d rows: a step has %d at most", len(rows), most)
	}
	g.rows = rows
	err := g.t.Do(ctx, g)
	if g.rows = nil; err == step.ErrUnread {
		err = fmt.Errorf("engine: %w", method.ErrPreempted)
	}
	return g.results, err
}

// Drop implements [method.Trunk].
func (g *grow) Drop() error {
	g.e.steps.Lock()
	defer g.e.steps.Unlock()
	if g.t.Seq < 0 {
		return nil
	}
	if s := g.s; s != nil && s.drafts != nil {
		if err := s.settle(); err != nil { // else what the last round accepted would be dropped
			return err
		}
		s.drafts.Tree.DropLive()
	}
	return g.e.steps.Cache.Drop(g.t.Seq, forest.Trunk)
}

// HeldBytes returns the room of what the rows of passes gave.
func (g *grow) HeldBytes() int { return g.store.Bytes() }

// Need implements [step.Job].
func (g *grow) Need() (step.Need, error) {
	if g.s != nil {
		if err := g.s.settle(); err != nil {
			return step.Need{}, err
		}
	}
	n := g.t.Len()
	if g.s != nil && n != len(g.s.text)-g.behind {
		return step.Need{}, fmt.Errorf("engine: %w", method.ErrPreempted)
	}
	if g.s != nil && g.behind == 0 {
		n += len(g.rows) // what is adopted is committed without waiting
	}
	return step.Need{Rows: len(g.rows), PageTokens: n, WindowTokens: n}, nil
}

// Place implements [step.Job].
func (g *grow) Place(st *step.Step) error {
	if f := g.e.steps.Cache.Forest; g.behind > 0 && f.Live(g.t.Seq)+len(g.rows) > g.e.limits.Drafts {
		return forest.ErrScratch // rows that drafters leave, and drafts that run besides, are as many as there is room for
	}
	for _, r := range g.rows {
		if r.After > 0 {
			r.Parent = st.Placed(r.After - 1).Node
		}
		if _, err := st.Add(r.Row); err != nil {
			return err
		}
	}
	return nil
}

// Take implements [step.Job].
func (g *grow) Take(st *step.Step) (done bool, err error) {
	g.results = g.results[:0]
	g.store.Reset()
	floats, tops, hidden := 0, 0, 0
	for i := range g.rows {
		r := st.Result(i)
		floats += len(r.Logits) + len(r.State)
		for _, h := range r.Hidden {
			floats += len(h)
		}
		tops, hidden = tops+len(r.Top), hidden+len(r.Hidden)
	}
	g.store.Reserve(floats, tops, hidden)
	for i := range g.rows {
		g.results = append(g.results, method.Result{Node: st.Placed(i).Node, Result: g.store.Keep(st.Result(i))})
	}
	return true, nil
}

// Model returns the engine as a model for methods: the second model of another engine's, or the target of its own.
func (e *Engine) Model() method.Model { return grown{e} }

type grown struct{ e *Engine }

// Size implements [method.Model].
func (g grown) Size() method.Size {
	e, info := g.e, g.e.steps.Model.Info()
	var canvas *method.Canvas
	if d := info.Diffusion; d != nil && d.Mask != token.None {
		canvas = &method.Canvas{Mask: d.Mask, Shift: d.Shift, Block: d.Block}
	}
	return method.Size{
		Vocabulary: e.vocab, Layers: e.steps.Cache.Forest.Layers(), Width: info.Width, Context: e.Context(), Rows: e.steps.Chunk, Live: e.limits.Drafts,
		AttentionShare: info.AttentionShare, Canvas: canvas,
	}
}

// Open implements [method.Model].
func (g grown) Open() (method.Branch, error) {
	if err := g.e.CheckSource("a draft's text has none"); err != nil {
		return nil, err
	}
	b := &branch{grow: grow{e: g.e}}
	b.t = &b.trunk
	if err := g.e.steps.OpenNow(b.t); err != nil {
		return nil, err
	}
	return b, nil
}

// branch is a sequence that a drafter owns.
type branch struct {
	grow
	trunk step.Trunk
}

// Commit implements [method.Branch].
func (b *branch) Commit(n forest.Node) error {
	m, seq := &b.e.steps, b.trunk.Seq
	m.Lock()
	defer m.Unlock()
	path, err := m.Cache.Forest.Path(seq, n)
	if err != nil {
		return err
	}
	length := b.trunk.Len() + len(path)
	if err := m.Reserve(&b.trunk, func() error { return m.Cache.Reserve(seq, length, length) }); err != nil {
		return err
	}
	return m.Cache.Commit(seq, n)
}

// Truncate implements [method.Branch].
func (b *branch) Truncate(n int) error {
	b.e.steps.Lock()
	defer b.e.steps.Unlock()
	_, err := b.e.steps.Cache.Rewind(b.trunk.Seq, n)
	return err
}

// Close implements [method.Branch].
func (b *branch) Close() error { return b.trunk.Close() }
