package programs

import (
	"context"
	"errors"
	"math"
	"slices"

	"grove/search"
)

// resample copies samples in place of others, as their weights say, and lets each make its moves.
func (r *smcRun) resample(ctx context.Context) error {
	from, err := r.b.Resample(r.weights, r.rng.Float64())
	if err != nil {
		return err
	}
	before := slices.Clone(r.all)
	for i, k := range from {
		r.all[i] = before[k]
	}
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
func (r *smcRun) move(ctx context.Context) error {
	moves := make([]bool, r.n)
	for i := range moves {
		moves[i] = len(r.b.All[i].Drawn) > r.all[i].from
	}
	kept := r.b.Vary(moves)
	next, err := r.propose(ctx, moves, kept)
	rejects := make([]bool, r.n)
	for i, m := range moves {
		u := r.rng.Float64()
		if !m {
			continue
		}
		r.counts["moves"]++
		if rejects[i] = err != nil || math.Log(u) >= next[i].reward()-r.all[i].reward(); !rejects[i] {
			r.all[i] = next[i]
			r.counts["accepted"]++
		}
		r.b.All[i].Seq.SetSampleIndex(r.b.All[i].Index)
	}
	r.b.Let(nil)
	return errors.Join(err, r.b.Restore(kept, rejects))
}

// propose draws the last block of samples anew, and returns their particles.
func (r *smcRun) propose(ctx context.Context, moves []bool, kept []search.Sample) ([]particle, error) {
	for i, m := range moves {
		if m {
			if err := r.b.Rewind(i, kept[i].Drawn[:r.all[i].from]); err != nil {
				return nil, err
			}
		}
	}
	r.b.Let(moves)
	if err := r.b.DrawUpTo(r.block); err != nil {
		return nil, err
	}
	next := slices.Clone(r.all)
	return next, r.value(ctx, next, moves)
}

// lookAhead sets what rollouts expect behind those samples of which some is true and that go on: the logarithm of the mean of their
// further rewards.
func (r *smcRun) lookAhead(ctx context.Context, all []particle, some []bool) error {
	looks := make([]bool, r.n)
	for i := range looks {
		looks[i] = some[i] && r.b.All[i].GoesOn() && !math.IsInf(all[i].value, -1)
	}
	further := make([][]float64, r.n)
	for range r.rollouts {
		err := r.b.Aside(looks, func() error {
			err := r.b.DrawUpTo(r.horizon)
			for i := 0; i < r.n && err == nil; i++ {
				if looks[i] {
					var value float64
					value, _, err = r.rate(ctx, i)
					further[i] = append(further[i], value-all[i].value)
					r.counts["rollouts"]++
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	const least = 1e-6 // no positive number is wrong, and 0 would be for good
	for i, look := range looks {
		if look {
			all[i].ahead = max(search.LogMean(further[i]), math.Log(least))
		}
	}
	return nil
}
