// beam.go is beam search: the n likeliest beginnings of answers go on side by side, and the answer is the likeliest that has ended, by
// the sum of the logarithms of its tokens' probabilities over a power of its length (Google's Neural Machine Translation System, 2016,
// without its coverage). Nothing is random. It is lossy. One beam is greedy decoding.
//
// Ends are handled as transformers and vLLM do: of the 2n likeliest continuations of all beams, those that end an answer are finished where
// they are among the first n, and the first n others are the beams of the next step.

package programs

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"grove/internal/engine"
	"grove/internal/options"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "beam", Paper: "beam search", Options: "n=4,length=1,early=false",
		Open: func(o *options.Options) search.Program {
			return beamBeam{o.Int("n", 4, 1, 64), o.Float("length", 1, -10, 10), o.Word("early", "false", "true", "never")}
		},
	})
}

type beamBeam struct {
	n      int
	length float64 // the power of the length by which a sum is divided
	early  string  // when a search with n finished answers ends
}

// Samples implements [search.Program].
func (b beamBeam) Samples() int { return b.n }

// Check implements [search.Program].
func (b beamBeam) Check(p *search.Problem) error {
	if b.n == 1 {
		return nil
	}
	return p.Fit("beam", b.n)
}

// A beamRun is a search on its way. Beam i is sample i.
type beamRun struct {
	beamBeam
	p     *search.Problem
	beams *search.Samples
	live  []bool
	sums  []float64 // of the beams
	done  []answer  // finished, the best first; n at most
	steps int
}

// An answer is finished.
type answer struct {
	drawn []engine.SampledToken
	score float64
	ended bool
}

// A beamChoice is a beam with one more token.
type beamChoice struct {
	beam int
	id   token.ID
	sum  float64
}

// Run implements [search.Program].
func (b beamBeam) Run(ctx context.Context, p *search.Problem) (*search.Result, error) {
	beams, err := search.ForkAll(ctx, p, b.n)
	if err != nil {
		return nil, err
	}
	r := &beamRun{beamBeam: b, p: p, beams: beams, live: make([]bool, b.n), sums: make([]float64, b.n)}
	if r.live[0] = beams.All[0].GoesOn(); !r.live[0] { // the context has no place; the other beams are the same
		r.finish(nil, 0, false)
	}
	for more := r.live[0]; more && err == nil; r.steps++ {
		more, err = r.step(ctx)
	}
	if err = errors.Join(err, beams.Close()); err != nil {
		return nil, err
	}
	return r.result(), nil
}

// step gives the beams a token each, and reports whether any goes on.
func (r *beamRun) step(ctx context.Context) (more bool, err error) {
	all, err := r.continuations(ctx)
	if err != nil {
		return false, err
	}
	var next []beamChoice
	for rank, c := range all[:min(len(all), 2*r.n)] {
		switch {
		case len(next) == r.n:
		case !r.p.Ends(c.id):
			next = append(next, c)
		case rank < r.n:
			s := &r.beams.All[c.beam]
			d, err := s.Seq.Describe(ctx, c.id)
			if err != nil {
				return false, err
			}
			r.finish(append(slices.Clone(s.Drawn), d), c.sum, true)
		}
	}
	if err := r.follow(ctx, next); err != nil {
		return false, err
	}
	return r.goesOn(), nil
}

// continuations returns the likeliest of all beams, the best first: enough for a step.
func (r *beamRun) continuations(ctx context.Context) (all []beamChoice, err error) {
	lists, errs := make([][]sample.Token, r.n), make([]error, r.n)
	var work sync.WaitGroup
	for i := range r.beams.All {
		if r.live[i] {
			work.Go(func() { lists[i], errs[i] = r.beams.All[i].Seq.Likeliest(ctx, 2*r.n) })
		}
	}
	work.Wait()
	for i, list := range lists {
		for _, t := range list {
			all = append(all, beamChoice{i, t.ID, r.sums[i] + float64(t.Logprob)})
		}
	}
	slices.SortStableFunc(all, func(a, b beamChoice) int { return cmp.Compare(b.sum, a.sum) })
	return all, errors.Join(errs...)
}

// follow makes the choices the beams. The first choice of a beam stays in its place, the others get the places of beams that have none.
func (r *beamRun) follow(ctx context.Context, next []beamChoice) error {
	place, taken := make([]int, len(next)), make([]bool, r.n)
	for k, c := range next {
		if place[k] = -1; !taken[c.beam] {
			place[k], taken[c.beam] = c.beam, true
		}
	}
	for k, c := range next {
		if place[k] >= 0 {
			continue
		}
		place[k] = slices.Index(taken, false)
		taken[place[k]] = true
		if err := r.beams.Copy(place[k], c.beam); err != nil {
			return err
		}
	}
	clear(r.live)
	for k, c := range next {
		at := place[k]
		if err := r.beams.Follow(ctx, at, c.id); err != nil {
			return err
		}
		s := &r.beams.All[at]
		if r.sums[at] = c.sum; !s.GoesOn() {
			r.finish(s.Drawn, c.sum, s.Ended)
		}
		r.live[at] = s.GoesOn()
	}
	return nil
}

// finish keeps an answer, where it is among the best n.
func (r *beamRun) finish(drawn []engine.SampledToken, sum float64, ended bool) {
	r.done = append(r.done, answer{slices.Clone(drawn), r.score(sum, len(drawn)), ended})
	slices.SortStableFunc(r.done, func(a, b answer) int { return cmp.Compare(b.score, a.score) })
	r.done = r.done[:min(len(r.done), r.n)]
}

// score is what answers are compared by.
func (b beamBeam) score(sum float64, tokens int) float64 {
	return sum / math.Pow(float64(max(1, tokens)), b.length)
}

// goesOn reports whether there are beams, and the search is to go on with them: there are fewer than n finished answers, or a
// beam may become better than the worst of these. "false" takes its score as it is, "never" the best that it can reach.
func (r *beamRun) goesOn() bool {
	best, tokens := math.Inf(-1), 0
	for i, live := range r.live {
		if live && r.sums[i] > best {
			best, tokens = r.sums[i], len(r.beams.All[i].Drawn)
		}
	}
	switch {
	case tokens == 0 || len(r.done) < r.n:
		return tokens > 0
	case r.early == "true":
		return false
	case r.early == "never" && r.length > 0:
		if tokens = r.p.MaxTokens; tokens == 0 {
			return true // as long as the context holds: there is hardly a bound
		}
	}
	return r.score(best, tokens) > r.done[r.n-1].score
}

// result gives the finished answers, the best first.
func (r *beamRun) result() *search.Result {
	out := &search.Result{Tokens: r.done[0].drawn, Index: r.p.Index, Figures: map[string]float64{"steps": float64(r.steps)}}
	for i, a := range r.done {
		s := search.Sample{Index: r.p.Index + i, Drawn: a.drawn, Ended: a.ended}
		attempt := s.Attempt()
		attempt.Score = a.score
		out.Attempts = append(out.Attempts, attempt)
	}
	return out
}
