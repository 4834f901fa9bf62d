package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"grove/compute/output"
	"grove/diffuse"
	"grove/engine/step"
	"grove/forest"
)

// Board runs the passes of a canvas of masked diffusion, as a text of its own: it is a [diffuse.Board]. Its passes share steps with all other work. Rows live for a
// pass alone but for those that are kept. Close gives its place back. It is for one goroutine.
type Board struct {
	e        *Engine
	trunk    step.Trunk
	branches [][]diffuse.Row
	keep     int
	tokens   int             // that the text may have
	first    []int           // by branch: of its rows in the pass
	results  []output.Result // of the last pass
	store    output.Arena
	kept     []int // places of the rows that are kept, by index
}

// OpenBoard opens the board of a text of so many tokens at most. Errors: a model that is none of masked diffusion, [ErrContext] with both numbers, [ErrBusy].
func (e *Engine) OpenBoard(tokens int) (*Board, error) {
	info := e.steps.Model.Info()
	switch {
	case info.Diffusion == nil:
		return nil, fmt.Errorf("engine: %s is no model of masked diffusion", info.Arch)
	case tokens > e.Context():
		return nil, fmt.Errorf("engine: a prompt and a canvas of %d tokens: %w of %d tokens", tokens, ErrContext, e.Context())
	}
	b := &Board{e: e, tokens: tokens}
	if err := e.steps.Open(&b.trunk, e.steps.MaxOpen); err != nil {
		return nil, err
	}
	b.trunk.Pinned, b.trunk.Terms.Salt = true, rand.Text() // keys of rows that saw later rows serve no other text
	return b, nil
}

// Close gives the board's place back.
func (b *Board) Close() error { return b.trunk.Close() }

// Pass implements [diffuse.Board].
func (b *Board) Pass(ctx context.Context, branches [][]diffuse.Row, keep int) error {
	n := 0
	for _, rows := range branches {
		n += len(rows)
	}
	if most := b.e.steps.Chunk; n > most {
		return fmt.Errorf("engine: a pass of %d rows: a step has %d at most", n, most)
	}
	b.branches, b.keep = branches, keep
	return b.trunk.Do(ctx, b)
}

// Logits implements [diffuse.Board].
func (b *Board) Logits(branch, i int) []float32 { return b.results[b.first[branch]+i].Logits }

// Drop implements [diffuse.Board].
func (b *Board) Drop(gone func(place int) bool) error {
	b.e.steps.Lock()
	defer b.e.steps.Unlock()
	if b.trunk.Seq < 0 {
		return nil
	}
	var stay []int32 // indices of the trunk
	places := b.kept[:0]
	for at, place := range b.kept {
		if !gone(place) {
			stay, places = append(stay, int32(at)), append(places, place)
		}
	}
	b.kept = places
	return b.e.steps.Cache.Retain(b.trunk.Seq, stay)
}

// Need implements [step.Job].
func (b *Board) Need() (step.Need, error) {
	n := step.Need{PageTokens: b.tokens, WindowTokens: b.tokens}
	for _, rows := range b.branches {
		n.Rows += len(rows)
	}
	return n, nil
}

// Place implements [step.Job].
func (b *Board) Place(st *step.Step) error {
	b.first = b.first[:0]
	placed, kept := 0, b.trunk.Len()
	for n, rows := range b.branches {
		b.first = append(b.first, placed)
		for i, r := range rows {
			row := forest.Row{ID: r.ID, Parent: forest.Trunk, Block: 1 + n, Shift: r.Place - (kept + i), Want: forest.Want{Logits: r.Want}}
			if i > 0 {
				row.Parent = st.Placed(placed - 1).Node
			}
			if _, err := st.Add(row); err != nil {
				return err
			}
			placed++
		}
	}
	return nil
}

// Take implements [step.Job].
func (b *Board) Take(st *step.Step) (done bool, err error) {
	b.results = b.results[:0]
	b.store.Reset()
	n, floats := 0, 0
	for _, rows := range b.branches {
		for range rows {
			floats += len(st.Result(n).Logits)
			n++
		}
	}
	b.store.Reserve(floats, 0, 0)
	for i := range n {
		b.results = append(b.results, b.store.Keep(st.Result(i)))
	}
	cache := b.e.steps.Cache
	if b.keep > 0 {
		err = cache.Commit(b.trunk.Seq, st.Placed(b.keep-1).Node)
		for _, r := range b.branches[0][:b.keep] {
			b.kept = append(b.kept, r.Place)
		}
	}
	return true, errors.Join(err, cache.Drop(b.trunk.Seq, forest.Trunk))
}

// Rows implements [diffuse.Board].
func (b *Board) Rows() int { return b.e.steps.Chunk }
