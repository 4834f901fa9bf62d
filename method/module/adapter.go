package module

import (
	"context"
	"errors"

	"grove/method"
	"grove/method/grow"
)

// Adapter is a [grow.LogitSource] of a module that reads the target's stream behind its first layers, and of these layers (Kangaroo, Liu et al. 2024).
// A draft's row runs them on the text's own trunk, where the verifying step takes it further, and the stream that they give is the one input of
// the module's row. It is for one goroutine.
//
// The streams of the tokens before the text's last one are those that the target's rows gave in rounds, whoever drafted them. The text's last token
// runs here, and its row of the module stays: so the trunk has no more rows than the text has tokens, and none of a draft. Where streams are missing,
// such as those of a prompt that the cache had, the trunk begins anew with the text's last token.
type Adapter struct {
	*Source
	exit *grow.Exit
}

// NewAdapter returns a source of a module on the own trunk of texts of the target. Its sequence is opened by the first round for which a slot
// is free.
func NewAdapter(own method.Trunk, target method.Size, m *method.Module) *Adapter {
	s := &Adapter{NewSource(m, target.Vocabulary), grow.NewExit(own, target, m.Taps[0])}
	s.exit.NoHead, s.exit.Like.Want = true, m.Wants().Rows
	s.given, s.ahead = s.ran, -1
	return s
}

// ran returns the stream that the i-th row of the last pass on the text's own trunk gave.
func (s *Adapter) ran(i int) []float32 { return s.exit.Result(i).Hidden[0] }

// BeginRound begins the tree of a round behind the text. It returns false where no row can be run behind it.
func (s *Adapter) BeginRound(t *method.Tree) bool { return s.exit.Begin(t, s.text) }

// Root implements [grow.LogitSource]. There are no logits where the text is longer than the module's context, and while no slot is free.
func (s *Adapter) Root(ctx context.Context) (bool, error) {
	ids := s.text.IDs()
	if ok, err := s.fresh(); !ok {
		return false, err
	}
	if err := s.end(len(ids) - 1); err != nil {
		return false, err
	}
	if s.known+s.waiting() >= s.Size.Context {
		return false, nil
	}
	if ok, err := s.exit.Root(ctx); !ok || err != nil {
		return false, err
	}
	s.features = append(s.features, s.ran(0)...)
	if err := s.follow(ctx); err != nil {
		return false, errors.Join(err, s.beginAt(len(ids)-1))
	}
	return true, nil
}

// end makes the rows and the features those of the first n tokens of the text, or of none where some are missing.
func (s *Adapter) end(n int) error {
	if s.waiting() == 0 && s.known > 0 && s.first+s.known == n+1 { // the text is that of the last round
		err := s.branch.Truncate(s.known - 1)
		if s.known = s.branch.Len(); err != nil {
			return err
		}
	}
	if s.first != grow.None && s.first+s.known+s.waiting() == n {
		return nil
	}
	return s.beginAt(n)
}

// Expand implements [grow.LogitSource].
func (s *Adapter) Expand(ctx context.Context, t *method.Tree, drafts []int) error {
	if err := s.exit.Expand(ctx, t, drafts); err != nil {
		return err
	}
	return s.Source.Expand(ctx, t, drafts)
}

// Room implements [grow.LogitSource].
func (s *Adapter) Room() (drafts, depth int) {
	drafts, depth = s.exit.Room()
	d, deep := s.Source.Room()
	return min(drafts, d), min(depth, deep)
}

// Ran implements [method.Counter]: passes on the target and on the module.
func (s *Adapter) Ran() method.Ran { return s.Source.Ran().Add(s.exit.Ran()) }
