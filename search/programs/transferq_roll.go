package programs

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"grove/internal/engine"
	"grove/internal/text/token"
	"grove/search"
)

// rollout is a token and what the guide has drawn behind it.
type rollout struct {
	ids     []token.ID
	logprob float64 // by the guide
	tail    float64 // the same without the first token
	offset  float64 // the guide's own reward, times weight, where that is taken off
}

// roll lets the guide continue each token, as often as rollouts says: those of the first token come first. They draw side by side, as many at a time as slots are free,
// by sample indices that no other draw of the answer has, so that they are independent of it and of each other.
func (w *transferqWalk) roll(ctx context.Context, ids []token.ID) (all []rollout, err error) {
	samples, err := w.branch(ctx, w.base, len(ids)*w.rollouts, func(turn *search.Samples, before int) error {
		for i := range turn.All {
			if err := turn.Follow(ctx, i, ids[(before+i)/w.rollouts]); err != nil {
				return err
			}
		}
		return turn.DrawAll()
	})
	for i := range samples {
		all = append(all, rollout{ids: samples[i].IDs(), logprob: samples[i].Logprob(), tail: tail(&samples[i])})
		w.figures["rolled_tokens"] += float64(len(samples[i].Drawn))
	}
	w.figures["rollouts"] += float64(len(samples))
	return all, err
}

// offset computes the guide's own reward of what each rollout has behind its first token, times weight: the logarithm of its probability by the guide over that by the model.
// Tilted by it, the model would draw as the guide does.
func (w *transferqWalk) offset(ctx context.Context, rolled []rollout) error {
	samples, err := w.branch(ctx, w.p.First, len(rolled), func(turn *search.Samples, before int) error {
		var all sync.WaitGroup
		errs := make([]error, len(turn.All))
		for i := range turn.All {
			all.Go(func() {
				for _, id := range rolled[before+i].ids {
					errs[i] = cmp.Or(errs[i], turn.Follow(ctx, i, id))
				}
			})
		}
		all.Wait()
		return errors.Join(errs...)
	})
	for i := range samples {
		rolled[i].offset = rolled[i].tail - tail(&samples[i])
	}
	return err
}

// tail returns the sum of the logarithms of the probabilities of a sample's tokens behind the first.
func tail(s *search.Sample) float64 {
	if len(s.Drawn) == 0 { // the context has no place for it
		return 0
	}
	return s.Logprob() - float64(s.Drawn[0].Logprob)
}

// branch makes n samples behind a sequence, with the function that draws those of a turn, of which the function is told how many came before. The sequence is as before afterwards.
func (w *transferqWalk) branch(ctx context.Context, s *engine.Sequence, n int, draw func(turn *search.Samples, before int) error) ([]search.Sample, error) {
	text, of := s.Len(), *w.p
	of.First, of.Index, of.MaxTokens = s, search.SpareIndex(w.p.Index, w.taken), w.length+1
	if left := w.p.MaxTokens - len(w.drawn); w.p.MaxTokens > 0 {
		of.MaxTokens = min(of.MaxTokens, left)
	}
	of.Ender = func() func(engine.SampledToken) bool {
		ends := w.p.Ender()
		for _, d := range w.drawn {
			ends(d)
		}
		return ends
	}
	w.taken += n
	samples, err := search.Turns(ctx, &of, n, func(turn *search.Samples, before []search.Sample) error { return draw(turn, len(before)) })
	s.SetSampleIndex(w.p.Index)
	return samples, errors.Join(err, s.Truncate(text))
}

// reward rates a rollout.
func (w *transferqWalk) reward(ctx context.Context, r *rollout) (float64, error) {
	switch {
	case len(r.ids) == 0:
		return 0, engine.ErrContext
	case w.by == "sum":
		return r.logprob, nil
	case w.by == "mean":
		return r.logprob / float64(len(r.ids)), nil
	}
	before := search.Sample{Drawn: w.drawn}
	return w.scores.Of(ctx, w.p.Text(append(before.IDs(), r.ids...)))
}
