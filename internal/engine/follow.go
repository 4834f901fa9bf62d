package engine

import (
	"context"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/method"
)

// FollowAll appends tokens that were drawn elsewhere, and returns each as Next does one that it draws: all are computed in a pass, or in as many as their logits need. The sequence
// drafts nothing. Errors are those of [Sequence.Append]; the tokens before the pass that failed have been appended.
func (s *Sequence) FollowAll(ctx context.Context, ids []token.ID) (all []SampledToken, err error) {
	pinned := s.trunk.Pinned
	defer func() {
		s.e.steps.Lock()
		defer s.e.steps.Unlock()
		s.trunk.Pinned = pinned // others take the sequence's slot and pages again
		s.e.steps.Notify()
	}()
	for len(ids) > 0 {
		n := min(len(ids), s.e.steps.Chunk, logitsRows)
		if err := s.e.fits(ids[:n], len(s.text)); err != nil {
			return all, err
		}
		if err := s.hold(ctx, len(s.text)+n); err != nil {
			return all, err
		}
		rows := make([]method.Row, n)
		for i := range rows {
			rows[i] = method.Row{Row: forest.Row{ID: ids[i], Want: forest.Want{Logits: true}}, After: i}
		}
		results, err := s.growBehind(ctx, rows)
		if err != nil {
			return all, err
		}
		state, logits := s.state(), s.logits
		for i, id := range ids[:n] {
			d, err := s.answer.describe(s.chain, state, logits, len(s.text)+i, id)
			if err != nil {
				return all, err
			}
			all, state, logits = append(all, d), s.chain.Next(state, id), results[i].Logits
		}
		if err := s.adopt(results[n-1].Node, ids[:n], logits); err != nil {
			return all, err
		}
		s.chain.Append(ids[:n], false)
		ids = ids[n:]
	}
	return all, nil
}
