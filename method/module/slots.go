package module

import (
	"context"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
)

// Slots is a [Source] of a module whose rows of a token are a block of slots (SpecBlock, 2026). A slot gives the logits of one token: the first those behind the block's
// token, each other one those behind the token of the slot before. Further blocks hang from slots of others. Blocks of the text are the trunk's; the last one lives until the next round, so that
// blocks may hang from any of its slots. It is for one goroutine.
type Slots struct {
	Source
	size  int
	last  forest.Node // the last slot of the text's last block
	lives bool        // the block hangs from the trunk
}

// Slot is a block to run: behind a live row, with a token.
type Slot struct {
	Row int // in Live
	ID  token.ID
}

// NewSlots returns a source of a module for a target's vocabulary. Its sequence is opened by the first round for which a slot of the module's engine is free.
func NewSlots(m *method.Module, vocabulary int) *Slots {
	s := &Slots{Source: *NewSource(m, vocabulary), size: m.Block.Size}
	s.Size.Context /= s.size // tokens
	s.window = min(s.window, max(1, s.Size.Context))
	s.Like.Want = forest.Want{Logits: true, State: true, Hidden: forest.Layers{}.With(s.Size.Layers - 1)}
	return s
}

// Root runs the blocks of the tokens of the text that are new. Those of the last one are the first rows of Live, and the results from 0 on. It returns false where there is nothing to draft
// from: features are not known, or no sequence is free.
func (s *Slots) Root(ctx context.Context) (bool, error) {
	if s.Size.Rows < s.size || s.Size.Context < 2 {
		return false, nil
	}
	if s.lives && s.known > 0 {
		if err := s.branch.Commit(s.last); err != nil {
			return false, err
		}
	}
	s.lives = false
	s.forget()
	if ok, err := s.ready(1, 0); !ok {
		return false, err
	}
	return true, s.followSlots(ctx)
}

// followSlots runs the blocks of the tokens of the text that are new, and makes them the trunk's, but for the last one.
func (s *Slots) followSlots(ctx context.Context) error {
	for ids := s.tokens(); len(ids) > 0; ids = s.tokens() {
		n := min(len(ids), s.Size.Rows/s.size)
		end, done := n == len(ids), n
		if end {
			done--
		}
		s.rows = s.rows[:0]
		for i := range n {
			s.add(s.known+i, len(s.rows), forest.Trunk, ids[i], s.feature(i), i == len(ids)-1)
		}
		if err := s.extend(ctx, done*s.size); err != nil {
			return err
		}
		s.last, s.lives, s.offset = s.Rows.Result(n*s.size-1).Node, end, done*s.size
		s.passed(n)
	}
	s.trim()
	s.keepBlock(0, grow.None)
	return nil
}

// add adds the rows of a block of a token to the next pass. It hangs from an earlier row of the pass, counted from 1, or from a live one; at is the place of the text's block from which
// its places count. last: what its slots give is wanted.
func (s *Slots) add(at, after int, parent forest.Node, id token.ID, vector []float32, last bool) {
	for k := range s.size {
		row := forest.Row{ID: token.ID(k), Shift: at + 1 - at*s.size}
		if k == 0 {
			row.ID, row.Vector, row.Parent = id, vector, parent
		} else {
			after = len(s.rows)
		}
		if last {
			row.Want = s.Like.Want
		}
		s.rows = append(s.rows, method.Row{Row: row, After: after})
	}
}

// keepBlock adds the slots of the block whose results begin at a place to the live rows, and keeps what they gave.
func (s *Slots) keepBlock(at, parent int) {
	for k := range s.size {
		r := s.Result(at + k)
		if k > 0 {
			parent = len(s.Live) - 1
		}
		s.Live, s.own = append(s.Live, grow.LiveRow{Parent: parent, Node: r.Node}), append(s.own, r.Hidden[0]...)
	}
}

// Behind runs blocks behind slots, in one pass. They are the next rows of Live, and the results from 0 on.
func (s *Slots) Behind(ctx context.Context, blocks []Slot) error {
	s.rows = s.rows[:0]
	for _, b := range blocks {
		s.add(s.known-1, 0, s.Live[b.Row].Node, b.ID, s.own[b.Row*s.Size.Width:][:s.Size.Width], true)
	}
	if err := s.Grow(ctx, s.rows); err != nil {
		return err
	}
	for i, b := range blocks {
		s.keepBlock(i*s.size, b.Row)
	}
	return nil
}

// Blocks returns how many blocks the next pass may have.
func (s *Slots) Blocks() int { return s.Rows.Room() / s.size }

// Slots returns how many slots a block has.
func (s *Slots) Slots() int { return s.size }
