// Package smc is sequential Monte Carlo (Sampling for Quality: Training-Free Reward-Guided LLM Decoding via Sequential Monte Carlo, 2026): samples draw
// side by side and are weighed by a reward after each block of tokens; those with little weight are replaced by copies of the
// others. With many samples the answer is distributed as p(x) Psi(x), where p is the distribution of the draw and Psi the reward;
// the normaliser's estimate is unbiased with any number. It is lossy.
package smc

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"grove/internal/options"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "smc", Paper: "Sampling for Quality, 2026", Options: "n=8,block=16,power=1,threshold=0.5,moves=0,rollouts=0,horizon=32,pick=draw",
		Open: func(o *options.Options) search.Program {
			return smc{
				n: o.Int("n", 8, 2, 64), block: o.Int("block", 16, 1, 1<<20), power: o.Float("power", 1, .01, 100), threshold: o.Float("threshold", .5, 0, 1),
				moves: o.Int("moves", 0, 0, 16), rollouts: o.Int("rollouts", 0, 0, 16), horizon: o.Int("horizon", 32, 1, 1<<20), best: o.Word("pick", "draw", "best") == "best",
			}
		},
	})
}

type smc struct {
	n, block          int
	power             float64 // the reward's own part: the probability of each token to this power, less 1
	threshold         float64 // samples are resampled where they are worth less than this part of n; 1: always
	moves             int     // that each sample makes behind a resampling
	rollouts, horizon int     // that look ahead, and their tokens
	best              bool    // the answer is the sample with the highest reward
}

// Samples implements [search.Program].
func (s smc) Samples() int { return s.n }

// Rates implements [search.Rater].
func (s smc) Rates() bool { return true }

// Check implements [search.Program].
func (s smc) Check(p *search.Problem) error {
	if err := p.Fit("smc", s.n); err != nil {
		return err
	}
	if p.Scorer == nil && s.power == 1 {
		return errors.New("search: smc: nothing weighs the answers; set power to another number than 1, or the scorer of a program in Go")
	}
	return p.Differs("smc")
}

// A run is a search on its way. Particle i is sample i.
type run struct {
	smc
	p      *search.Problem
	b      *search.Samples
	rng    *rand.Rand
	scores *search.Scores // nil: the power alone weighs
	all    []particle
	taken  int     // sample indices besides those of the samples
	logZ   float64 // of the resamplings so far
	counts map[string]float64
}

// A particle is what is known of a sample. Numbers are logarithms.
type particle struct {
	weight float64 // since the last resampling
	value  float64 // the reward of the text so far
	ahead  float64 // the reward that is expected behind it
	from   int     // tokens before the last block
	fault  string  // why it has no weight
}

// Run implements [search.Program].
func (s smc) Run(ctx context.Context, p *search.Problem) (*search.Result, error) {
	b, err := search.ForkAll(ctx, p, "smc", s.n)
	if err != nil {
		return nil, err
	}
	b.Weigh = s.power != 1
	r := &run{smc: s, p: p, b: b, rng: p.Rand(), all: make([]particle, s.n), counts: map[string]float64{}}
	if p.Scorer != nil {
		r.scores = search.NewScores(p)
	}
	err = r.run(ctx)
	if lost := r.scores != nil && r.scores.Lost(); lost && errors.Is(err, search.ErrScorer) {
		for i := range r.all {
			if r.all[i].fault == "" {
				r.all[i].fault = err.Error() // what there is, is kept
			}
		}
		err = nil
	}
	if err = errors.Join(err, b.Close()); err != nil {
		return nil, err
	}
	return r.result(), nil
}

// run draws until all samples have ended.
func (r *run) run(ctx context.Context) error {
	for {
		for i := range r.all {
			r.all[i].from = len(r.b.All[i].Drawn)
		}
		if err := r.draw(r.block); err != nil {
			return err
		}
		if err := r.weigh(ctx); err != nil {
			return err
		}
		w, err := r.shares()
		if err != nil {
			return err
		}
		worth := search.Effective(w)
		if least, ok := r.counts["least_effective"]; !ok || worth < least {
			r.counts["least_effective"] = worth
		}
		switch {
		case !r.goOn():
			return nil
		case r.threshold == 1 || worth < r.threshold*float64(r.n):
			if err := r.resample(ctx, w); err != nil {
				return err
			}
		}
	}
}

// goOn reports whether a sample goes on.
func (r *run) goOn() bool {
	for i := range r.b.All {
		if s := &r.b.All[i]; !s.Ended && !s.Full {
			return true
		}
	}
	return false
}

// draw draws up to n tokens for each sample that goes on and does not wait.
func (r *run) draw(n int) error {
	for range n {
		if drew, err := r.b.Draw(); err != nil || !drew {
			return err
		}
	}
	return nil
}

// weigh multiplies the weights by the rewards of the last block. Where the scorer does not return in time, all stay as they are.
func (r *run) weigh(ctx context.Context) error {
	next, some := slices.Clone(r.all), make([]bool, r.n)
	for i := range next {
		some[i] = len(r.b.All[i].Drawn) > next[i].from && !math.IsInf(next[i].weight, -1) // else it has ended before, or is dead
		if some[i] {
			if err := r.value(ctx, i, &next[i]); err != nil {
				return err
			}
		}
	}
	if err := r.lookAhead(ctx, next, some); err != nil {
		return err
	}
	for i := range next {
		if old := &r.all[i]; some[i] {
			next[i].weight = old.weight + next[i].value + next[i].ahead - old.value - old.ahead
		}
	}
	copy(r.all, next)
	return nil
}

// value sets the reward of a sample's text. A scorer that fails gives no weight.
func (r *run) value(ctx context.Context, i int, q *particle) error {
	q.value, q.ahead, q.fault = 0, 0, ""
	for _, p := range r.b.All[i].Probs {
		if r.power != 1 {
			q.value += (r.power - 1) * math.Log(p)
		}
	}
	if r.scores == nil {
		return nil
	}
	score, err := r.scores.Of(ctx, r.p.Text(r.b.All[i].IDs()))
	switch {
	case err != nil && (r.scores.Lost() || ctx.Err() != nil):
		return err
	case err != nil:
		score, q.fault = math.Inf(-1), err.Error()
	case math.IsInf(score, -1):
		q.fault = "search: smc: its reward is 0"
	}
	q.value += score
	return nil
}

// shares returns the weights as parts of 1.
func (r *run) shares() ([]float64, error) {
	logs, alive := make([]float64, r.n), false
	for i, q := range r.all {
		logs[i] = q.weight
		alive = alive || !math.IsInf(q.weight, -1)
	}
	if !alive {
		return nil, errors.New("search: smc: no sample has any weight: " + r.all[0].fault)
	}
	return search.Shares(logs), nil
}
