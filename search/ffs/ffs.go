// Package ffs is First Finish Search: several samples of an answer go on side by side, the first that ends is the
// answer, and the others are cancelled (First Finish Search: Efficient Test-Time Scaling in Large Language Models,
// 2025). Short traces of reasoning models are right more often than long ones, which is what it goes by. The samples
// draw in lockstep, so that the answer depends on prompt, settings and seed alone: the sample with the fewest tokens,
// of equal ones the first. It is lossy.
package ffs

import (
	"context"
	"errors"
	"fmt"

	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "ffs", Paper: "First Finish Search, 2025", Options: "n=4",
		Open: func(o search.Options) (search.Program, error) {
			n, err := o.Int("n", 4, 2, 64)
			return ffs{n}, err
		},
	})
}

type ffs struct{ samples int }

// Check implements [search.Program].
func (f ffs) Check(p *search.Problem) error {
	if f.samples > p.Slots {
		return fmt.Errorf("search: ffs: %d samples; n must be from 2 to %d, the texts that are computed at a time", f.samples, p.Slots)
	}
	if p.Greedy {
		return errors.New("search: ffs: samples of temperature 0 are all the same; the temperature must be above 0")
	}
	return nil
}

// Run implements [search.Program]. Where no sample ends by itself, the first one is the answer.
func (f ffs) Run(ctx context.Context, p *search.Problem) (r *search.Result, err error) {
	b, err := search.Fork(ctx, p, f.samples)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	for {
		if err := b.Draw(); err != nil {
			return nil, err
		}
		full := true
		for i := range b.All {
			if b.All[i].Ended {
				b.All[i].Seq.CancelSiblings()
				return b.Result(i), nil
			}
			full = full && b.All[i].Full
		}
		if full {
			return b.Result(0), nil
		}
	}
}
