// Package awrs draws answers side by side under a check that weighs them, and resamples them by their weights: sequential
// Monte Carlo over adaptive weighted rejection sampling (Fast Controlled Generation from Language Models with Adaptive
// Weighted Rejection Sampling, 2025). Masking token by token prefers beginnings behind which little is legal; here
// answers whose tokens left much of the model's probability are copied in place of the others, so that with more
// samples the answer's distribution comes near the model's own, given that the text is legal. It is lossy.
package awrs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"grove/internal/options"
	"grove/sample"
	"grove/sample/constrain"
	"grove/sample/constrain/reject"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "awrs", Paper: "Adaptive Weighted Rejection Sampling, 2025", Options: "n=4",
		Open: func(o *options.Options) search.Program { return awrs{o.Int("n", 4, 2, 64)} },
	})
}

type awrs struct{ samples int }

// Samples implements [search.Program].
func (a awrs) Samples() int { return a.samples }

// Check implements [search.Program].
func (a awrs) Check(p *search.Problem) error {
	if err := p.Fit("awrs", a.samples); err != nil {
		return err
	}
	if err := p.Differs("awrs"); err != nil {
		return err
	}
	if !p.Weighed {
		return errors.New("search: awrs: nothing weighs the answers; it needs a constraint that is a check with weights")
	}
	return nil
}

// Run implements [search.Program]. A sample behind which nothing is legal dies; where all die, their errors are
// returned.
func (a awrs) Run(ctx context.Context, p *search.Problem) (*search.Result, error) {
	b, err := search.ForkAll(ctx, p, "awrs", a.samples)
	if err != nil {
		return nil, err
	}
	c := newCloud(b)
	chosen, err := c.run()
	if err = errors.Join(err, b.Close()); err != nil {
		return nil, err
	}
	r := &search.Result{Tokens: b.All[chosen].Drawn, Index: b.All[chosen].Index}
	for i, w := range shares(c.logs) {
		s := &b.All[i]
		r.Attempts = append(r.Attempts, search.Attempt{Index: s.Index, Tokens: len(s.Drawn), Ended: s.Ended, Weight: w})
	}
	return r, nil
}

// A cloud is samples with weights.
type cloud struct {
	b    *search.Samples
	logs []float64 // the logarithms of the weights; minus infinity: the sample is dead
	base []float64 // what its sequence said of its weight when the samples were last made equal
}

func newCloud(b *search.Samples) *cloud {
	c := &cloud{b, make([]float64, len(b.All)), make([]float64, len(b.All))}
	for i := range b.All {
		c.base[i], _ = b.All[i].Seq.LogWeight()
	}
	return c
}

// run draws until all samples have ended, and returns the one that is chosen by the weights.
func (c *cloud) run() (chosen int, err error) {
	for {
		drew, errs := c.b.Step()
		if err := c.weigh(errs); err != nil {
			return 0, err
		}
		w := shares(c.logs)
		switch {
		case !drew:
			return choose(w, c.rng().Float64()), nil
		case effective(w) < float64(len(w))/2:
			if err := c.resample(); err != nil {
				return 0, err
			}
		}
	}
}

// weigh reads the weights behind a step. It returns an error that is not of the constraint, or the errors of all samples.
func (c *cloud) weigh(errs []error) error {
	alive := false
	for i, err := range errs {
		switch {
		case dies(err):
			c.logs[i] = math.Inf(-1)
		case err != nil:
			return errors.Join(errs...)
		case !math.IsInf(c.logs[i], -1):
			w, _ := c.b.All[i].Seq.LogWeight()
			c.logs[i], alive = w-c.base[i], true
		}
	}
	if !alive {
		return fmt.Errorf("search: awrs: no sample has a legal token: %w", errors.Join(errs...))
	}
	return nil
}

// dies reports whether an error says that nothing legal follows a sample.
func dies(err error) bool {
	return errors.Is(err, reject.ErrNothingLegal) || errors.Is(err, reject.ErrRejects) || errors.Is(err, sample.ErrAllMasked) ||
		errors.Is(err, constrain.ErrConstraint)
}

// rng returns random numbers that depend on the tokens of all samples, and so on the seed alone.
func (c *cloud) rng() *rand.Rand {
	h := fnv.New64a()
	for i := range c.b.All {
		for _, d := range c.b.All[i].Drawn {
			_ = binary.Write(h, binary.LittleEndian, int32(d.ID))
		}
		_ = binary.Write(h, binary.LittleEndian, int32(-1))
	}
	return rand.New(rand.NewPCG(h.Sum64(), 0x61777273))
}

// resample copies samples in place of others, as their weights say, and makes the weights equal.
func (c *cloud) resample() error {
	copies := systematic(shares(c.logs), c.rng().Float64())
	from := 0
	for to, n := range copies {
		if n > 0 {
			continue
		}
		for copies[from] < 2 {
			from++
		}
		copies[from]--
		if err := c.b.Copy(to, from); err != nil {
			return err
		}
	}
	for i := range c.logs {
		c.logs[i] = 0
		c.base[i], _ = c.b.All[i].Seq.LogWeight()
	}
	return nil
}

// shares returns the weights, which sum to 1.
func shares(logs []float64) []float64 {
	most, sum := math.Inf(-1), 0.0
	for _, l := range logs {
		most = max(most, l)
	}
	w := make([]float64, len(logs))
	for i, l := range logs {
		w[i] = math.Exp(l - most)
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w
}

// effective returns how many samples of equal weights are worth as much.
func effective(w []float64) float64 {
	sum := 0.0
	for _, v := range w {
		sum += v * v
	}
	return 1 / sum
}

// systematic returns how many copies each sample gets: of the points u, u+1, ... the ones in its part of the sum.
func systematic(w []float64, u float64) []int {
	n := float64(len(w))
	copies, sum, given := make([]int, len(w)), 0.0, 0
	for i, v := range w {
		sum += v * n
		for given < len(w) && u+float64(given) < sum {
			copies[i], given = copies[i]+1, given+1
		}
	}
	for ; given < len(w); given++ { // the sum is a little less than n
		copies[choose(w, .5)]++
	}
	return copies
}

// choose returns the sample in whose part of the sum a number from 0 to 1 lies.
func choose(w []float64, u float64) int {
	last := 0
	for i, v := range w {
		if v > 0 {
			last = i
		}
		if u -= v; u < 0 {
			return i
		}
	}
	return last
}
