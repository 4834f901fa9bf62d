// Package module drafts with draft modules, small models of trained weights that read the target's states ([method.Module]).
//
// A [Source] runs a module's rows behind a text whose features the target has given; [Heads], [Block], [Slots] and [Adapter] are sources of modules with heads, with blocks of
// drafts, and on the target's own first layers. [Drafter] grows trees with what gives logits behind each draft, [Product] with what gives a list of candidates for each
// depth: a method is one of these with its shape.
package module

import (
	"context"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
)

// Source is a [grow.LogitSource] of a draft module that drafts token by token: EAGLE's, or a predictor of the model's file. A row of the module has a token and
// the feature of the token before it. The rows of the text are the trunk; a draft's row hangs from it and has, for its feature, what its parent's row gave. It is
// dropped behind the round, whether its token is accepted or not: then the target's own feature is there. It is for one goroutine.
type Source struct {
	trunk
	own    []float32             // what live rows gave: the text's last row first, and then those of Live
	given  func(i int) []float32 // if it is not nil, the feature of the i-th row of a pass of drafts, in place of what its parent's gave
	feeds  *Source               // if it is not nil, what rows of the text give is a feature of its rows
	behind []method.Row          // mask rows that run behind the text's last row, in its pass
	offset int                   // place of Logits(0) in the last pass
	places grow.Places           // of drafts in Live
	dense  []float32             // the logits of a row by the target's tokens, where the module drafts some of these
}

// NewSource returns a source of a module for a target's vocabulary. Its sequence is opened by the first round for which a slot is free.
func NewSource(m *method.Module, vocabulary int) *Source {
	s := &Source{trunk: newTrunk(m, vocabulary)}
	if m.Vocabulary != nil {
		s.dense = make([]float32, vocabulary)
	}
	s.Like.Want = s.want()
	return s
}

// want lists what a row that is drafted behind gives. Behind a module's context hang blocks, which give all that is wanted.
func (s *Source) want() forest.Want {
	if b := s.module.Block; b != nil {
		return forest.Want{Logits: b.Follows}
	}
	w := forest.Want{Logits: true, State: s.module.FeedsState}
	if !s.module.FeedsState {
		w.Hidden = forest.Layers{}.With(s.Size.Layers - 1)
	}
	return w
}

// Root implements [grow.LogitSource]: it runs the rows of the text that are new. There are none to draft from where the features of the last
// tokens are not known, and while no slot is free.
func (s *Source) Root(ctx context.Context) (bool, error) {
	least := 1
	if s.ahead > 0 { // no draft reads what the text's last row gave
		least = 0
	}
	s.forget()
	if ok, err := s.ready(least, len(s.behind)); !ok {
		return false, err
	}
	return true, s.follow(ctx)
}

// forget drops what the rows of the last round gave.
func (s *Source) forget() {
	if s.own == nil {
		s.own = make([]float32, 0, (1+s.Size.MostLive())*s.Size.Width)
	}
	s.own, s.places = s.own[:0], s.places[:0]
}

// follow makes rows of the tokens of the text that are new, and of the features before them, the trunk's. The last features stay, for rows of drafts.
func (s *Source) follow(ctx context.Context) error {
	for ids := s.tokens(); len(ids) > 0; ids = s.tokens() {
		n := min(len(ids), s.Size.Rows)
		if n == len(ids) {
			n = min(n, s.Size.Rows-len(s.behind))
		}
		s.rows, s.offset = s.rows[:0], n-1
		for i := range n {
			s.rows = append(s.rows, method.Row{Row: forest.Row{ID: ids[i], Vector: s.feature(i), Transient: i < n-1, Want: forest.Want{State: s.feeds != nil}}, After: i})
		}
		if n == len(ids) && s.ahead <= 0 {
			s.rows[n-1].Want = s.Like.Want
			for i, row := range s.behind {
				row.After = n + i
				s.rows = append(s.rows, row)
			}
		}
		if err := s.extend(ctx, n); err != nil {
			return err
		}
		if err := s.feed(n); err != nil {
			return err
		}
		s.passed(n)
	}
	s.trim()
	switch {
	case s.ahead > 0:
		s.own = s.own[:s.Size.Width]
	case s.module.Block == nil:
		s.keepOwn(1)
	}
	return nil
}

// feed gives what the last n rows of the text gave to the source that reads it.
func (s *Source) feed(n int) error {
	for i := 0; i < n && s.feeds != nil; i++ {
		ok, err := s.feeds.expects(s.first + s.known + i)
		if err != nil {
			return err
		}
		if ok {
			s.feeds.features = append(s.feeds.features, s.Rows.Result(i).State...)
		}
	}
	return nil
}

// Grow runs rows as they are; Logits and Result return what they give. They are not added to Live.
func (s *Source) Grow(ctx context.Context, rows []method.Row) error {
	s.offset = 0
	return s.Rows.Grow(ctx, rows)
}

// Result returns the result of the i-th row of the last pass, or, for 0 behind Root, of the text's last row.
func (s *Source) Result(i int) *method.Result { return s.Rows.Result(s.offset + i) }

// State implements [grow.LogitSource].
func (s *Source) State(i int) []float32 { return s.Result(i).State }

// keepOwn keeps what the last n rows gave, as the features of drafts behind them.
func (s *Source) keepOwn(n int) {
	for i := range n {
		if r := s.Result(i); s.module.FeedsState {
			s.own = append(s.own, r.State...)
		} else {
			s.own = append(s.own, r.Hidden[0]...)
		}
	}
}

// Expand implements [grow.LogitSource].
func (s *Source) Expand(ctx context.Context, t *method.Tree, drafts []int) error {
	s.rows = s.rows[:0]
	live, width := len(s.Live), s.Size.Width
	for _, at := range drafts {
		n := &t.Nodes()[at]
		l, feature, row := grow.LiveRow{ID: n.ID, Parent: grow.None}, 0, method.Row{Row: s.Like}
		if n.Parent != method.Root {
			l.Parent = s.places[n.Parent]
			feature, row.Parent = 1+l.Parent, s.Live[l.Parent].Node
		}
		if row.ID = n.ID; s.given != nil {
			row.Vector = s.given(len(s.rows))
		} else {
			row.Vector = s.own[feature*width:][:width]
		}
		s.rows, s.Live = append(s.rows, row), append(s.Live, l)
		s.places.Set(at, len(s.Live)-1)
	}
	if err := s.Grow(ctx, s.rows); err != nil {
		return err
	}
	for i := range drafts {
		s.Live[live+i].Node = s.Result(i).Node
	}
	if s.given == nil {
		s.keepOwn(len(drafts))
	}
	return nil
}

// Logits implements [grow.LogitSource].
func (s *Source) Logits(i int) []float32 {
	logits := s.Result(i).Logits
	if s.dense == nil {
		return logits[:s.keep]
	}
	return Spread(s.dense, logits, s.module.Vocabulary)
}

// Room implements [grow.LogitSource].
func (s *Source) Room() (drafts, depth int) { return s.Rows.Room(), s.Size.Context - s.known }

// Held returns the room that the source has made.
func (s *Source) Held() method.Memory {
	r := s.trunk.Held()
	r.Logits += 4 * cap(s.own)
	return r
}

// Memory returns what the source takes for passes of so many rows: in the model, and of the features of rows that a round commits, of rows that live and of those of a pass.
func (s *Source) Memory(rows int) method.Memory {
	r := grow.PassMemory(s.Size, rows, false)
	r.Logits += 4 * (method.MaxLive*s.width + (1+s.Size.MostLive()+rows)*s.Size.Width)
	return r
}

// Spread writes the logits of some ids of a vocabulary to dst, and returns it: the others are masked.
func Spread(dst, logits []float32, ids []token.ID) []float32 {
	for i := range dst {
		dst[i] = compute.Masked
	}
	for i, id := range ids {
		dst[id] = logits[i]
	}
	return dst
}
