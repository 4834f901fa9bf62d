// best.go draws several samples of an answer and takes the best of them (best-of-n): by the mean or the sum of the logarithms of the
// probabilities that the model gives to their tokens, or by a function of the library's caller. It is lossy.
//
// The answer depends on the prompt, the settings and the seed alone, as far as the scorer does: the samples are drawn side by side, or in
// turns where fewer slots are free.

package programs

import (
	"context"
	"errors"
	"math"

	"grove/internal/options"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "best", Paper: "best-of-n sampling", Options: "n=4,by=mean",
		Open: func(o *options.Options) search.Program {
			return bestBest{o.Int("n", 4, 2, 64), o.Word("by", "mean", "sum", "score")}
		},
	})
}

type bestBest struct {
	samples int
	by      string
}

// Samples implements [search.Program].
func (b bestBest) Samples() int { return b.samples }

// Rates implements [search.Rater].
func (b bestBest) Rates() bool { return b.by == "score" }

// Check implements [search.Program].
func (b bestBest) Check(p *search.Problem) error {
	if err := p.Fit("best", b.samples); err != nil {
		return err
	}
	if b.Rates() && p.Scorer == nil {
		return errors.New("search: best: nothing scores the answers; by=score needs the scorer of a program in Go; use by=mean or by=sum")
	}
	return p.Differs("best")
}

// Run implements [search.Program]. Of samples with equal scores the first is taken.
func (b bestBest) Run(ctx context.Context, p *search.Problem) (*search.Result, error) {
	all, err := search.Turns(ctx, p, b.samples, func(turn *search.Samples, _ []search.Sample) error { return turn.DrawAll() })
	if err != nil {
		return nil, err
	}
	r, scored := &search.Result{}, 0
	for i := range all {
		r.Attempts = append(r.Attempts, all[i].Attempt())
	}
	if b.Rates() {
		if scored, err = rate(ctx, p, r.Attempts); err != nil {
			return nil, err
		}
		r.Figures = map[string]float64{"scored": float64(scored)}
	}
	if scored == 0 { // by what the model says, where nothing else does
		for i := range r.Attempts {
			r.Attempts[i].Score = likelihood(r.Attempts[i], b.by == "sum")
		}
	}
	at := choose(r.Attempts, scored > 0)
	r.Tokens, r.Index = all[at].Drawn, all[at].Index
	return r, nil
}

// rate asks the scorer for the scores of attempts, and returns how many it gave. A failure is kept as the attempt's fault.
func rate(ctx context.Context, p *search.Problem, all []search.Attempt) (scored int, err error) {
	scores := search.NewScores(p)
	for i := range all {
		a := &all[i]
		if a.Score, a.Fault, err = scores.Rate(ctx, p.Text(a.IDs)); err != nil {
			return scored, err
		}
		if a.Fault == "" {
			scored++
		} else {
			a.Score = 0
		}
	}
	return scored, nil
}

// likelihood returns the logarithm of an attempt's probability, or its mean over the tokens.
func likelihood(a search.Attempt, sum bool) float64 {
	if sum {
		return a.Logprob
	}
	return a.Logprob / float64(max(1, a.Tokens))
}

// choose returns the first attempt with the highest score; with scored, of those that have one.
func choose(all []search.Attempt, scored bool) (at int) {
	most := math.Inf(-1)
	at = -1
	for i, a := range all {
		if !(scored && a.Fault != "") && (at < 0 || a.Score > most) {
			at, most = i, a.Score
		}
	}
	return at
}
