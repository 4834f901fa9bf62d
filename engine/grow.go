package engine

import (
	"context"
	"fmt"

	"grove/compute"
	"grove/forest"
	"grove/method"
)

// grow is the job that runs rows for a drafter, on a sequence of its own or on the text's own trunk. The rows live on.
type grow struct {
	t       *trunk
	s       *Sequence // whose own trunk it is; nil: a branch
	behind  int       // tokens of the text that the own trunk lacks
	rows    []method.Row
	results []method.Result
	store   compute.Kept
}

// run runs rows and returns what they gave, until the next call.
func (g *grow) run(ctx context.Context, rows []method.Row) ([]method.Result, error) {
	if most := g.t.e.chunk; len(rows) > most {
		return nil, fmt.Errorf("engine: growing %d rows: a step has %d at most", len(rows), most)
	}
	g.rows = rows
	err := g.t.do(ctx, g)
	if g.rows = nil; err == errUnread {
		err = fmt.Errorf("engine: %w", method.ErrLost)
	}
	return g.results, err
}

func (g *grow) begin() error {
	if g.s != nil {
		return g.s.settle()
	}
	return nil
}

func (g *grow) need() (need, error) {
	n := g.t.length()
	if g.s != nil && n != len(g.s.text)-g.behind {
		return need{}, fmt.Errorf("engine: %w", method.ErrLost)
	}
	if g.s != nil && g.behind == 0 {
		n += len(g.rows) // a canvas is committed without waiting
	}
	return need{rows: len(g.rows), ahead: n, near: n}, nil
}

func (g *grow) place(st *step) error {
	for _, r := range g.rows {
		if r.After > 0 {
			r.Parent = st.placed(r.After - 1).Node
		}
		if _, err := st.add(r.Row); err != nil {
			return err
		}
	}
	return nil
}

func (g *grow) take(st *step) (done bool, err error) {
	g.results = g.results[:0]
	g.store.Reset()
	for i := range g.rows {
		g.results = append(g.results, method.Result{Node: st.placed(i).Node, Result: g.store.Keep(st.result(i))})
	}
	return true, nil
}

func (*grow) simpler() bool { return false }

// Model returns the engine as a model for methods: the second model of another engine's, or the target of its own.
func (e *Engine) Model() method.Model { return grown{e} }

type grown struct{ e *Engine }

// Size implements [method.Model].
func (g grown) Size() method.Size {
	e := g.e
	return method.Size{
		Vocabulary: e.vocab, Layers: e.cache.Forest.Layers(), Width: e.model.Info().Width, Context: e.Context(), Rows: e.chunk,
	}
}

// Open implements [method.Model].
func (g grown) Open() (method.Branch, error) {
	if err := g.e.Reads("a draft's text has none"); err != nil {
		return nil, err
	}
	b := &branch{}
	b.grow.t, b.bursts = &b.trunk, true
	if err := g.e.openNow(&b.trunk); err != nil {
		return nil, err
	}
	return b, nil
}

// branch is a sequence that a drafter owns.
type branch struct {
	trunk
	grow grow
}

// Len implements [method.Trunk].
func (b *branch) Len() int {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	return b.length()
}

// Grow implements [method.Trunk].
func (b *branch) Grow(ctx context.Context, rows []method.Row) ([]method.Result, error) {
	return b.grow.run(ctx, rows)
}

// Drop implements [method.Trunk].
func (b *branch) Drop() error {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	return b.e.cache.Drop(b.seq, forest.Trunk)
}

// Commit implements [method.Branch].
func (b *branch) Commit(n forest.Node) error {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	path, err := b.e.cache.Forest.Path(b.seq, n)
	if err != nil {
		return err
	}
	length := b.length() + len(path)
	if err := b.e.reserve(&b.trunk, func() error { return b.e.cache.Reserve(b.seq, length, length) }); err != nil {
		return err
	}
	return b.e.cache.Commit(b.seq, n)
}

// Truncate implements [method.Branch].
func (b *branch) Truncate(n int) error {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	_, err := b.e.cache.Rewind(b.seq, n)
	return err
}

// Close implements [method.Branch].
func (b *branch) Close() error { return b.close() }

// own is the text's own trunk as a drafter sees it.
type own struct{ s *Sequence }

// Len implements [method.Trunk].
func (o own) Len() int { return len(o.s.text) - 1 }

// Grow implements [method.Trunk].
func (o own) Grow(ctx context.Context, rows []method.Row) ([]method.Result, error) {
	if !o.s.caller.Busy.Load() {
		return nil, fmt.Errorf("engine: a drafter grows rows on the text's own trunk while it does not draft")
	}
	return o.s.grow.run(ctx, rows)
}

// Drop implements [method.Trunk].
func (o own) Drop() error {
	o.s.e.mu.Lock()
	defer o.s.e.mu.Unlock()
	if o.s.seq < 0 {
		return nil
	}
	return o.s.e.cache.Drop(o.s.seq, forest.Trunk)
}
