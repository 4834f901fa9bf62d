// board.go runs the passes of canvases as jobs of an engine's steps.

package fill

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"grove/diffuse"
	"grove/internal/compute"
	"grove/internal/engine"
	"grove/internal/engine/step"
	"grove/internal/forest"
	"grove/internal/text/token"
)

// Board runs the passes of a canvas of masked diffusion, as a text of its own: it is a [diffuse.TextBoard]. Its passes share steps with all other work. Rows live for a
// pass alone but for those that are kept. Close gives its place back. It is for one goroutine.
type Board struct {
	steps    *step.Maker
	trunk    step.Trunk
	branches [][]diffuse.Row
	keep     int
	tokens   int              // that the text may have
	named    bool             // what is kept of blocks serves other texts
	first    []int            // by branch: of its rows in the pass
	results  []compute.Result // of the last pass
	store    compute.OutputArena
	kept     []place // of the rows that are kept, by index
	read     text
	saved    saved
}

// place is a token at a place of the text.
type place struct {
	at int
	id token.ID
}

// OpenBoard opens the board of a canvas behind a prompt of so many tokens, by settings that were checked. Errors: a model that is none of masked diffusion, [engine.ErrContext] with
// both numbers, [engine.ErrBusy].
func OpenBoard(e *engine.Engine, s *diffuse.Settings, prompt int, t engine.Terms) (*Board, error) {
	steps, tokens := e.Steps(), prompt+s.Places(prompt)
	info := steps.Model.Info()
	if err := errors.Join(e.Closed(), t.Check()); err != nil {
		return nil, err
	}
	switch {
	case info.Diffusion == nil:
		return nil, fmt.Errorf("engine: %s is no diffusion model", info.Arch)
	case tokens > e.Context():
		return nil, fmt.Errorf("engine: a prompt and a canvas of %d tokens: %w of %d tokens", tokens, engine.ErrContext, e.Context())
	}
	b := &Board{steps: steps, tokens: tokens, named: s.Lasts() && !t.Private}
	if err := steps.Open(&b.trunk, steps.MaxOpen); err != nil {
		return nil, err
	}
	b.trunk.Pinned, b.trunk.Terms = true, t
	switch {
	case b.named:
		b.trunk.Terms.Block = s.Block
	case info.Diffusion.Renoise == nil || t.Private:
		b.trunk.Terms.Salt = rand.Text() // keys of rows that saw later rows serve no other text
	}
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
	if most := b.steps.Chunk; n > most {
		return fmt.Errorf("engine: a pass of %d rows: a step has %d at most", n, most)
	}
	b.branches, b.keep = branches, keep
	return b.trunk.Do(ctx, b)
}

// Reuse implements [diffuse.Board].
func (b *Board) Reuse(ctx context.Context, ids []token.ID) (kept int, err error) {
	if !b.named {
		return 0, nil
	}
	if kept, err = b.restore(ctx, ids); err == nil && kept == 0 {
		err = b.trunk.Do(ctx, &reuse{b, ids, &kept})
	}
	for at, id := range ids[:kept] {
		b.kept = append(b.kept, place{at, id})
	}
	b.read.reused += kept
	return kept, err
}

// reuse is the job that takes over the pages that the cache has of a board's text. It runs no rows.
type reuse struct {
	b    *Board
	ids  []token.ID
	kept *int
}

// Need implements [step.Job].
func (j *reuse) Need() (n step.Need, err error) {
	*j.kept, err = j.b.steps.Cache.Reuse(j.b.trunk.Seq, j.ids)
	return n, err
}

// Place implements [step.Job].
func (*reuse) Place(*step.Step) error { return nil }

// Take implements [step.Job].
func (*reuse) Take(*step.Step) (bool, error) { return true, nil }

// Logits implements [diffuse.Board].
func (b *Board) Logits(branch, i int) []float32 { return b.results[b.first[branch]+i].Logits }

// Drop implements [diffuse.Board].
func (b *Board) Drop(gone func(place int) bool) error {
	b.steps.Lock()
	defer b.steps.Unlock()
	if b.trunk.Seq < 0 {
		return nil
	}
	var stay []int32 // indices of the trunk
	places := b.kept[:0]
	for i, p := range b.kept {
		if !gone(p.at) {
			stay, places = append(stay, int32(i)), append(places, p)
		}
	}
	b.kept = places
	return b.steps.Cache.Retain(b.trunk.Seq, stay)
}

// Need implements [step.Job].
func (b *Board) Need() (step.Need, error) {
	n := step.Need{PageTokens: b.tokens}
	for _, rows := range b.branches {
		n.Rows += len(rows)
	}
	n.WindowTokens = b.window(b.keep)
	return n, nil
}

// Place implements [step.Job].
func (b *Board) Place(st *step.Step) error {
	b.first = b.first[:0]
	placed, kept, block := 0, b.trunk.Len(), 0
	for _, rows := range b.branches {
		b.first = append(b.first, placed)
		for i, r := range rows {
			if i == 0 || r.Block != rows[i-1].Block {
				block++
			}
			row := forest.Row{ID: r.ID, Parent: forest.Trunk, Block: block, Named: b.named, Shift: r.Place - (kept + i), Prior: r.Prior, Want: forest.Want{Logits: r.Want}}
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
	cache := b.steps.Cache
	if b.keep > 0 {
		err = cache.Commit(b.trunk.Seq, st.Placed(b.keep-1).Node)
		for _, r := range b.branches[0][:b.keep] {
			b.kept = append(b.kept, place{r.Place, r.ID})
		}
	}
	return true, errors.Join(err, cache.Drop(b.trunk.Seq, forest.Trunk))
}

// Rows implements [diffuse.Board].
func (b *Board) Rows() int { return b.steps.Chunk }
