package module

import (
	"context"
	"errors"

	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
)

// trunk follows a text in a sequence of a draft module: the rows of the text, whose features the target has given, are the sequence's trunk. It keeps the features of
// tokens that are no rows yet. It is for one goroutine.
//
// Features come with the rows that the target runs while the text drafts: what the cache gave of a prompt has none. The trunk then begins behind it. It
// begins anew behind what is dropped where a text outgrows the module's context, and where more features wait than the module's window.
type trunk struct {
	grow.Rows
	module *method.Module
	branch method.Branch // nil: it is not open
	text   *method.History

	first    int       // place in the text of the feature that the trunk's first row has; [grow.None]: no feature is known
	known    int       // rows of the trunk
	features []float32 // of the tokens of the text from place first+known on, that are no rows yet
	width    int       // of a feature
	window   int       // features that wait at most, of a text that is not drafted for
	ahead    int       // a row has the token so many places further on than the one behind its feature's; see [Predictors] and, for -1, [Adapter]
	rest     int       // the last features, which rows of drafts have
	rows     []method.Row
	keep     int // tokens of the vocabulary that are drafted
}

// newTrunk returns a trunk in a module for a target's vocabulary.
func newTrunk(m *method.Module, vocabulary int) trunk {
	return trunk{module: m, width: m.FeatureWidth(), window: m.Window(), Rows: grow.Rows{Size: m.Size(), Base: grow.None, Cost: m.LayerCost}, keep: vocabulary}
}

// Begin begins a text, none of whose features are known.
func (s *trunk) Begin(h *method.History) error {
	s.text = h
	return s.beginAt(grow.None)
}

// beginAt makes a trunk without rows begin at a place of the text.
func (s *trunk) beginAt(first int) error {
	s.first, s.known, s.features, s.Live = first, 0, s.features[:0], s.Live[:0]
	if s.branch == nil {
		return nil
	}
	return s.branch.Truncate(0)
}

// waiting returns for how many tokens features wait.
func (s *trunk) waiting() int { return len(s.features) / s.width }

// keepLast makes a trunk without rows begin with the last n features that wait.
func (s *trunk) keepLast(n int) error {
	passed, all := s.waiting()-n, s.features
	if err := s.beginAt(s.first + s.known + passed); err != nil {
		return err
	}
	s.features = append(s.features, all[passed*s.width:]...)
	return nil
}

// Committed takes the features of an update of the text.
func (s *trunk) Committed(r method.Update) error {
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
func (s *trunk) take(at int, row *method.RowResult) error {
	ok, err := s.expects(at)
	if ok {
		s.features, _ = s.module.Feature(s.features, row)
	}
	return err
}

// expects reports whether the next feature is that of the token at a place of the text, and makes room for it.
func (s *trunk) expects(at int) (bool, error) {
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

// ready makes a round begin: it opens the sequence, and drops the rows that hang from its trunk. The trunk begins anew where the new rows and further ones do not fit the module's
// context. It returns false where there is nothing to draft from: the features of the last tokens are not known, fewer than least wait for their rows, or no slot is free.
func (s *trunk) ready(least, further int) (bool, error) {
	n := s.waiting() - s.rest
	if n < least || s.first+s.known+n+1+s.ahead != len(s.text.IDs()) {
		return false, nil
	}
	if ok, err := s.fresh(); !ok {
		return false, err
	}
	if s.known+n+further <= s.Size.Context {
		return true, nil
	}
	n = min(n, (s.Size.Context+1)/2)
	err := s.keepLast(n + s.rest)
	return n >= least && err == nil, err
}

// fresh opens the sequence where it is not open, and drops the rows that hang from its trunk; false: no slot is free.
func (s *trunk) fresh() (ok bool, err error) {
	if s.branch == nil {
		b, err := s.module.Open()
		if errors.Is(err, method.ErrBusy) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		s.branch, s.Trunk = b, b
	}
	s.Live = s.Live[:0]
	err = s.branch.Drop()
	return err == nil, err
}

// tokens returns the tokens of the rows that the features which wait are for.
func (s *trunk) tokens() []token.ID { return s.text.IDs()[s.first+s.known+1+s.ahead:] }

// feature returns the i-th of the features that wait.
func (s *trunk) feature(i int) []float32 { return s.features[i*s.width:][:s.width] }

// extend runs the rows of a pass and commits the first n; none runs where one fails.
func (s *trunk) extend(ctx context.Context, n int) error {
	if err := s.Rows.Grow(ctx, s.rows); err != nil {
		return errors.Join(err, s.branch.Drop())
	}
	if n == 0 {
		return nil
	}
	return s.branch.Commit(s.Rows.Result(n - 1).Node)
}

// passed makes the rows of the first n features that wait the trunk's, which are run.
func (s *trunk) passed(n int) {
	s.known, s.features = s.known+n, s.features[:copy(s.features, s.features[n*s.width:])]
}

// trim gives the room of a prompt's features back.
func (s *trunk) trim() {
	if cap(s.features) > method.MaxLive*s.width {
		s.features = append([]float32(nil), s.features...)
	}
}

// BeginRound implements [Growing]: a round begins with Root.
func (s *trunk) BeginRound(*method.Tree) bool { return true }

// Held returns the room that the trunk has made.
func (s *trunk) Held() method.Memory { return method.Memory{Logits: s.HeldBytes() + 4*cap(s.features)} }

// Close gives the sequence back.
func (s *trunk) Close() error {
	if s.branch == nil {
		return nil
	}
	return s.branch.Close()
}
