// ffs.go is First Finish Search: several samples of an answer are drawn side by side, and the first that ends is the
// answer (First Finish Search: Efficient Test-Time Scaling in Large Language Models, 2025). The short traces of a
// reasoning model are right more often than its long ones. It is lossy.
//
// The answer depends on the prompt, the settings and the seed alone: it is the sample with the fewest tokens, of equal
// ones that with the lowest index. Where fewer slots are free than there are samples, the samples are drawn in turns,
// each as far as it can still win, with the same result.

package programs

import (
	"context"

	"grove/internal/options"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "ffs", Paper: "First Finish Search, 2025", Options: "n=4",
		Open: func(o *options.Options) search.Program { return ffs{o.Int("n", 4, 2, 64)} },
	})
}

type ffs struct{ samples int }

// Samples implements [search.Program].
func (f ffs) Samples() int { return f.samples }

// Check implements [search.Program].
func (f ffs) Check(p *search.Problem) error {
	if err := p.Fit("ffs", f.samples); err != nil {
		return err
	}
	return p.Differs("ffs")
}

// Run implements [search.Program]. Where no sample ends by itself, the first one is the answer.
func (f ffs) Run(ctx context.Context, p *search.Problem) (*search.Result, error) {
	all, err := search.Turns(ctx, p, f.samples, func(b *search.Samples, before []search.Sample) error {
		if i := first(before); len(before) > 0 && before[i].Ended {
			b.MaxTokens = len(before[i].Drawn)
		}
		return race(b)
	})
	if err != nil {
		return nil, err
	}
	return ffsResult(all, first(all)), nil
}

// race draws until a sample has ended, or all are full.
func race(b *search.Samples) error {
	for {
		drew, err := b.Draw()
		if err != nil || !drew {
			return err
		}
		for i := range b.All {
			if b.All[i].Ended {
				return nil
			}
		}
	}
}

// first returns the sample that ended by itself with the fewest tokens; 0 where none did.
func first(all []search.Sample) int {
	best := 0
	for i := range all {
		if all[i].Ended && (!all[best].Ended || len(all[i].Drawn) < len(all[best].Drawn)) {
			best = i
		}
	}
	return best
}

// ffsResult returns the answer, and the samples as they were when it ended: with as many tokens.
func ffsResult(all []search.Sample, best int) *search.Result {
	r := &search.Result{Tokens: all[best].Drawn, Index: all[best].Index}
	for i := range all {
		n := min(len(all[i].Drawn), len(all[best].Drawn))
		r.Attempts = append(r.Attempts, search.Attempt{Index: all[i].Index, Tokens: n, Ended: all[i].Ended && n == len(all[i].Drawn)})
	}
	return r
}
