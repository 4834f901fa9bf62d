// groups.go is diverse beam search with groups of one beam (Diverse Beam Search, 2016), as Graph-constrained Reasoning
// uses it to get several paths of a knowledge graph: each group goes on with the likeliest token, less a penalty for
// each group before it that took the same token at the same place. The answer is that of the group whose tokens are
// likeliest in the mean; all answers are among the attempts. Nothing is random. It is lossy.

package programs

import (
	"context"
	"errors"
	"math"
	"sync"

	"grove/internal/engine"
	"grove/internal/options"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "groups", Paper: "Diverse Beam Search, 2016; Graph-constrained Reasoning, 2024", Options: "n=4,penalty=1",
		Open: func(o *options.Options) search.Program {
			return groups{o.Int("n", 4, 2, 64), o.Float("penalty", 1, 0, 100)}
		},
	})
}

type groups struct {
	n       int
	penalty float64
}

// Samples implements [search.Program].
func (g groups) Samples() int { return g.n }

// Check implements [search.Program].
func (g groups) Check(p *search.Problem) error {
	return p.Fit("groups", g.n)
}

// Run implements [search.Program].
func (g groups) Run(ctx context.Context, p *search.Problem) (*search.Result, error) {
	b, err := search.ForkAll(ctx, p, g.n)
	if err != nil {
		return nil, err
	}
	scores := make([]float64, g.n)
	for more := true; more && err == nil; {
		more, err = g.step(ctx, b, scores)
	}
	if err = errors.Join(err, b.Close()); err != nil {
		return nil, err
	}
	return groupsResult(b, scores), nil
}

// step gives each group that goes on a token, the first group first, and reports whether there was one.
func (g groups) step(ctx context.Context, b *search.Samples, scores []float64) (more bool, err error) {
	lists, errs := make([][]sample.Token, g.n), make([]error, g.n)
	var work sync.WaitGroup
	for i := range b.All {
		if s := &b.All[i]; s.GoesOn() {
			more = true
			work.Go(func() { lists[i], errs[i] = s.Seq.Likeliest(ctx, g.n) })
		}
	}
	work.Wait()
	taken := map[token.ID]int{}
	for i := range b.All {
		s := &b.All[i]
		if errors.Is(errs[i], engine.ErrContext) {
			s.Full = true
			continue
		}
		if errs[i] != nil || len(lists[i]) == 0 {
			err = errors.Join(err, errs[i])
			continue
		}
		best := lists[i][pick(lists[i], taken, g.penalty)]
		taken[best.ID]++
		scores[i] += float64(best.Logprob)
		err = errors.Join(err, b.Follow(ctx, i, best.ID))
	}
	return more, err
}

// pick returns the place of the token with the highest score, its logarithm less the penalty for each group that took
// it. Among as many candidates as there are groups one was taken by none, so that no other token can win.
func pick(list []sample.Token, taken map[token.ID]int, penalty float64) (best int) {
	score := func(t sample.Token) float64 { return float64(t.Logprob) - penalty*float64(taken[t.ID]) }
	for i, t := range list {
		if score(t) > score(list[best]) {
			best = i
		}
	}
	return best
}

// groupsResult chooses the answer.
func groupsResult(b *search.Samples, scores []float64) *search.Result {
	best, most := 0, math.Inf(-1)
	for i := range b.All {
		if mean := scores[i] / float64(max(1, len(b.All[i].Drawn))); mean > most {
			best, most = i, mean
		}
	}
	r := &search.Result{Tokens: b.All[best].Drawn, Index: b.All[best].Index}
	for i := range b.All {
		a := search.Attempt{Index: b.All[i].Index, Tokens: len(b.All[i].Drawn), Ended: b.All[i].Ended}
		for _, d := range b.All[i].Drawn {
			a.IDs = append(a.IDs, d.ID)
		}
		r.Attempts = append(r.Attempts, a)
	}
	return r
}
