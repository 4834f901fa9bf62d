// awrs.go draws answers side by side under a check that weighs them, and resamples them by their weights: sequential
// Monte Carlo over adaptive weighted rejection sampling (Fast Controlled Generation from Language Models with Adaptive
// Weighted Rejection Sampling, 2025). Masking token by token prefers beginnings behind which little is legal; here
// answers whose tokens left much of the model's probability are copied in place of the others, so that with more
// samples the answer's distribution comes near the model's own, given that the text is legal. It is lossy.

package programs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"grove/constrain"
	"grove/internal/options"
	"grove/internal/sample"
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
	b, err := search.ForkAll(ctx, p, a.samples)
	if err != nil {
		return nil, err
	}
	c := newCloud(b, p.Rand())
	chosen, err := c.run()
	if err = errors.Join(err, b.Close()); err != nil {
		return nil, err
	}
	r := &search.Result{Tokens: b.All[chosen].Drawn, Index: b.All[chosen].Index}
	for i, w := range c.weights.Shares() {
		s := &b.All[i]
		r.Attempts = append(r.Attempts, search.Attempt{Index: s.Index, Tokens: len(s.Drawn), Ended: s.Ended, Weight: w})
	}
	return r, nil
}

// A cloud is samples with weights.
type cloud struct {
	b       *search.Samples
	weights *search.Weights
	base    []float64 // what its sequence said of its weight when the samples were last made equal
	rng     *rand.Rand
}

func newCloud(b *search.Samples, rng *rand.Rand) *cloud {
	c := &cloud{b, search.NewWeights(len(b.All)), make([]float64, len(b.All)), rng}
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
		w := c.weights.Shares()
		switch {
		case !drew:
			return search.Choose(w, c.rng.Float64()), nil
		case search.Effective(w) < float64(len(w))/2:
			if err := c.resample(); err != nil {
				return 0, err
			}
		}
	}
}

// weigh reads the weights behind a step. It returns an error that is not of the constraint, or the errors of all samples.
func (c *cloud) weigh(errs []error) error {
	for i, err := range errs {
		switch {
		case dies(err):
			c.weights.Logs[i] = math.Inf(-1)
		case err != nil:
			return errors.Join(errs...)
		case !math.IsInf(c.weights.Logs[i], -1):
			w, _ := c.b.All[i].Seq.LogWeight()
			c.weights.Logs[i] = w - c.base[i]
		}
	}
	if !c.weights.Alive() {
		return fmt.Errorf("search: awrs: no sample has a legal token: %w", errors.Join(errs...))
	}
	return nil
}

// dies reports whether an error says that nothing legal follows a sample.
func dies(err error) bool {
	return errors.Is(err, constrain.ErrNothingLegal) || errors.Is(err, constrain.ErrRejects) || errors.Is(err, sample.ErrAllMasked) ||
		errors.Is(err, constrain.ErrConstraint)
}

// resample copies samples in place of others, as their weights say, and makes the weights equal.
func (c *cloud) resample() error {
	if _, err := c.b.Resample(c.weights, c.rng.Float64()); err != nil {
		return err
	}
	for i := range c.base {
		c.base[i], _ = c.b.All[i].Seq.LogWeight()
	}
	return nil
}
