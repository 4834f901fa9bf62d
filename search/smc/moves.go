package smc

import (
	"context"
	"errors"
	"math"
	"slices"

	"grove/search"
)

// resample copies samples in place of others, as their weights say, and lets each make its moves.
func (r *run) resample(ctx context.Context, w []float64) error {
	from, err := r.b.Resample(w, r.rng.Float64())
	if err != nil {
		return err
	}
	r.logZ += r.logWeight()
	next := make([]particle, r.n)
	for i, k := range from {
		next[i] = r.all[k]
		next[i].weight = 0
	}
	copy(r.all, next)
	r.counts["resamplings"]++
	for range r.moves {
		if err := r.move(ctx); err != nil {
			return err
		}
	}
	return nil
}

// move draws the last block of each sample anew, and keeps it with the probability min(1, new reward / old reward): a step of Metropolis and
// Hastings, which leaves the distribution of the samples as it is.
func (r *run) move(ctx context.Context) error {
	moves := make([]bool, r.n)
	for i := range moves {
		moves[i] = len(r.b.All[i].Drawn) > r.all[i].from
	}
	kept := r.b.Vary(moves, &r.taken)
	next, err := r.propose(ctx, moves, kept)
	rejects := make([]bool, r.n)
	for i, m := range moves {
		u := r.rng.Float64()
		switch {
		case !m:
		case err != nil || math.Log(u) >= next[i].value+next[i].ahead-r.all[i].value-r.all[i].ahead:
			rejects[i] = true
		default:
			r.all[i] = next[i]
			r.counts["accepted"]++
		}
		if m {
			r.counts["moves"]++
		}
		r.b.All[i].Seq.SetSampleIndex(r.b.All[i].Index)
	}
	r.let(nil)
	return errors.Join(err, r.b.Restore(kept, rejects))
}

// propose draws the last block of samples anew, and returns their particles.
func (r *run) propose(ctx context.Context, moves []bool, kept []search.Sample) ([]particle, error) {
	for i, m := range moves {
		if m {
			if err := r.b.Rewind(i, kept[i].Drawn[:r.all[i].from]); err != nil {
				return nil, err
			}
		}
	}
	r.let(moves)
	if err := r.draw(r.block); err != nil {
		return nil, err
	}
	next := slices.Clone(r.all)
	for i, m := range moves {
		if m {
			if err := r.value(ctx, i, &next[i]); err != nil {
				return nil, err
			}
		}
	}
	return next, r.lookAhead(ctx, next, moves)
}

// let lets those samples draw of which some is true; nil: all.
func (r *run) let(some []bool) {
	for i := range r.b.All {
		r.b.All[i].Waits = some != nil && !some[i]
	}
}

// lookAhead sets what rollouts expect behind those samples of which some is true and that go on: the logarithm of the mean of their
// further rewards.
func (r *run) lookAhead(ctx context.Context, all []particle, some []bool) error {
	if r.rollouts == 0 {
		return nil
	}
	looks := make([]bool, r.n)
	for i := range looks {
		s := &r.b.All[i]
		looks[i] = some[i] && !s.Ended && !s.Full && !math.IsInf(all[i].value, -1)
	}
	r.let(looks)
	defer r.let(nil)
	further := make([][]float64, r.n)
	for range r.rollouts {
		kept := r.b.Vary(looks, &r.taken)
		err := r.draw(r.horizon)
		for i, look := range looks {
			if look && err == nil {
				var q particle
				err = r.value(ctx, i, &q)
				further[i] = append(further[i], q.value-all[i].value)
				r.counts["rollouts"]++
			}
		}
		if err = errors.Join(err, r.b.Restore(kept, looks)); err != nil {
			return err
		}
	}
	for i, look := range looks {
		if look { // no positive number is wrong, and 0 would be for good
			all[i].ahead = max(search.LogMean(further[i]), math.Log(leastAhead))
		}
	}
	return nil
}

// leastAhead is what rollouts expect at least.
const leastAhead = 1e-6

// logWeight returns the logarithm of the mean weight since the last resampling.
func (r *run) logWeight() float64 {
	logs := make([]float64, r.n)
	for i, q := range r.all {
		logs[i] = q.weight
	}
	return search.LogMean(logs)
}

// result chooses the answer.
func (r *run) result() *search.Result {
	w, _ := r.shares() // some sample has weight
	at := search.Choose(w, r.rng.Float64())
	for i := range w {
		if r.best && w[i] > 0 && r.all[i].value > r.all[at].value {
			at = i
		}
	}
	r.counts["effective"], r.counts["log_normaliser"] = search.Effective(w), r.logZ+r.logWeight()
	out := &search.Result{Tokens: r.b.All[at].Drawn, Index: r.b.All[at].Index, Figures: r.counts}
	for i := range r.b.All {
		a := r.b.All[i].Attempt()
		if a.Weight, a.Fault = w[i], r.all[i].fault; !math.IsInf(r.all[i].value, -1) {
			a.Score = r.all[i].value
		}
		out.Attempts = append(out.Attempts, a)
	}
	return out
}
