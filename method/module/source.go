// Package module drafts with draft modules, small models of trained weights that read the target's states ([method.Module]).
//
// A [Source] runs a module's rows behind a text whose features the target has given; [Heads], [Block] and [Adapter] are sources of modules with heads, with blocks of
// drafts, and on the target's own first layers. [Drafter] grows trees with what gives logits behind each draft, [Product] with what gives a list of candidates for each
// depth: a method is one of these with its shape.
package module

import (
	"context"
	"errors"

	"grove/compute"
	"grove/forest"
	"grove/method"
	"grove/method/grow"
	"grove/text/token"
)

// Source is a [grow.LogitSource] of a draft module that drafts token by token: EAGLE's, or a predictor of the model's file. A row of the module has a token and
// the feature of the token before it. The rows of the text, whose features the target has given, are the trunk of a sequence of the module; a draft's row
// hangs from it and has, for its feature, what its parent's row gave. It is dropped behind the round, whether its token is accepted or not: then the
// target's own feature is there. It is for one goroutine.
//
// Features come with the rows that the target runs while the text drafts: what the cache gave of a prompt has none. The trunk then begins behind it. It
// begins anew behind what is dropped where a text outgrows the module's context, and where more features wait than the module's window.
type Source struct {
	grow.Rows
	module *method.Module
	branch method.Branch // nil: it is not open
	text   *method.History

	first    int                   // place in the text of the feature that the trunk's first row has; [grow.None]: no feature is known
	known    int                   // rows of the trunk
	features []float32             // of the tokens of the text from place first+known on, that are no rows yet
	width    int                   // of a feature
	window   int                   // features that wait at most, of a text that is not drafted for
	own      []float32             // what live rows gave: the text's last row first, and then those of Live
	given    func(i int) []float32 // if it is not nil, the feature of the i-th row of a pass of drafts, in place of what its parent's gave

	ahead int     // a row has the token so many places further on; see [Predictors]
	rest  int     // the last features, which rows of drafts have
	feeds *Source // if it is not nil, what rows of the text give is a feature of its rows

	rows   []method.Row
	behind []method.Row // mask rows that run behind the text's last row, in its pass
	offset int          // place of Logits(0) in the last pass
	places []int        // by place in the tree: in Live
	keep   int          // tokens of the vocabulary that are drafted
	dense  []float32    // the logits of a row by the target's tokens, where the module drafts some of these
}

// NewSource returns a source of a module for a target's vocabulary. Its sequence is opened by the first round for which a slot is free.
func NewSource(m *method.Module, vocabulary int) *Source {
	s := &Source{module: m, width: m.FeatureWidth(), window: m.Window(), Rows: grow.Rows{Size: m.Size(), Base: grow.None, Cost: m.LayerCost}, keep: vocabulary}
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

// Begin begins a text, none of whose features are known.
func (s *Source) Begin(h *method.History) error {
	s.text = h
	return s.beginAt(grow.None)
}

// beginAt makes a trunk without rows begin at a place of the text.
func (s *Source) beginAt(first int) error {
	s.first, s.known, s.features, s.Live = first, 0, s.features[:0], s.Live[:0]
	if s.branch == nil {
		return nil
	}
	return s.branch.Truncate(0)
}

// waiting returns for how many tokens features wait.
func (s *Source) waiting() int { return len(s.features) / s.width }

// keepLast makes a trunk without rows begin with the last n features that wait.
func (s *Source) keepLast(n int) error {
	passed, all := s.waiting()-n, s.features
	if err := s.beginAt(s.first + s.known + passed); err != nil {
		return err
	}
	s.features = append(s.features, all[passed*s.width:]...)
	return nil
}

// Committed takes the features of an update of the text.
func (s *Source) Committed(r method.Update) error {
	ids := s.text.IDs()
	for i := range r.Rows {
		row := &r.Rows[i]
		if at := int(row.At); row.Accepted && at < len(ids) && ids[at] == row.ID {
			if err := s.take(at, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// take adds the feature of the token at a place of the text.
func (s *Source) take(at int, row *method.RowResult) error {
	ok, err := s.expects(at)
	if ok {
		s.features, _ = s.module.Feature(s.features, row)
	}
	return err
}

// expects reports whether the next feature is that of the token at a place of the text, and makes room for it.
func (s *Source) expects(at int) (bool, error) {
	next := s.first + s.known + s.waiting()
	switch {
	case s.first == grow.None || at > next: // what lies between has no features
		return true, s.beginAt(at)
	case at < next: // the target has run the row again
		return false, nil
	case s.waiting() == 2*s.window:
		return true, s.keepLast(s.window)
	}
	return true, nil
}

// Root implements [grow.LogitSource]: it runs the rows of the text that are new. There are none to draft from where the features of the last
// tokens are not known, and while no slot is free.
func (s *Source) Root(ctx context.Context) (bool, error) {
	ids, n := s.text.IDs(), s.waiting()-s.rest
	if n < 0 || n == 0 && s.ahead == 0 || s.first+s.known+n+1+s.ahead != len(ids) {
		return false, nil
	}
	if ok, err := s.fresh(); !ok {
		return false, err
	}
	if s.known+n+len(s.behind) > s.Size.Context {
		if err := s.keepLast(min(n, (s.Size.Context+1)/2) + s.rest); err != nil {
			return false, err
		}
	}
	return true, s.follow(ctx, ids[s.first+s.known+1+s.ahead:])
}

// fresh opens the sequence where it is not open, and drops the rows that hang from its trunk; false: no slot is free.
func (s *Source) fresh() (ok bool, err error) {
	if s.branch == nil {
		b, err := s.module.Open()
		if errors.Is(err, method.ErrBusy) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		s.branch, s.Trunk, s.own = b, b, make([]float32, 0, (1+s.Size.MostLive())*s.Size.Width)
	}
	s.Live, s.own, s.places = s.Live[:0], s.own[:0], s.places[:0]
	err = s.branch.Drop()
	return err == nil, err
}

// follow makes rows of the tokens of the text that are new, and of the features before them, the trunk's. The last features stay, for rows of drafts.
func (s *Source) follow(ctx context.Context, ids []token.ID) error {
	features := s.features
	for len(ids) > 0 {
		n := min(len(ids), s.Size.Rows)
		if n == len(ids) {
			n = min(n, s.Size.Rows-len(s.behind))
		}
		s.rows, s.offset = s.rows[:0], n-1
		for i := range n {
			s.rows = append(s.rows, method.Row{Row: forest.Row{ID: ids[i], Vector: features[i*s.width:][:s.width], Transient: i < n-1}, After: i})
			if s.feeds != nil {
				s.rows[i].Want.State = true
			}
		}
		if n == len(ids) && s.ahead == 0 {
			s.rows[n-1].Want = s.Like.Want
			for i, row := range s.behind {
				row.After = n + i
				s.rows = append(s.rows, row)
			}
		}
		if err := s.extend(ctx, n); err != nil {
			s.features = append(s.features[:0], features...)
			return err
		}
		if err := s.feed(n); err != nil {
			return err
		}
		ids, features, s.known = ids[n:], features[n*s.width:], s.known+n
	}
	if cap(s.features) > method.MaxLive*s.width {
		s.features = nil // a prompt's
	}
	s.features = append(s.features[:0], features[:s.rest*s.width]...)
	switch {
	case s.ahead > 0: // no draft reads what the text's last row gave
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

// extend runs rows and commits the first n.
func (s *Source) extend(ctx context.Context, n int) error {
	if err := s.Rows.Grow(ctx, s.rows); err != nil {
		return errors.Join(err, s.branch.Drop())
	}
	return s.branch.Commit(s.Rows.Result(n - 1).Node)
}

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
		for len(s.places) <= at {
			s.places = append(s.places, grow.None)
		}
		s.places[at] = len(s.Live) - 1
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
	return method.Memory{Logits: s.HeldBytes() + 4*(cap(s.features)+cap(s.own))}
}

// Memory returns what the source takes for passes of so many rows: in the model, and of the features of rows that a round commits, of rows that live and of those of a pass.
func (s *Source) Memory(rows int) method.Memory {
	r := grow.PassMemory(s.Size, rows, false)
	r.Logits += 4 * (method.MaxLive*s.width + (1+s.Size.MostLive()+rows)*s.Size.Width)
	return r
}

// BeginRound implements [Growing]: a round begins with Root.
func (s *Source) BeginRound(*method.Tree) bool { return true }

// Close gives the sequence back.
func (s *Source) Close() error {
	if s.branch == nil {
		return nil
	}
	return s.branch.Close()
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
