// anchored.go draws from a model as long as that stays close to a safe one, which is a guide (Anchored Decoding): the divergence of what it draws by from
// the safe model's distribution, summed over an answer, never exceeds a budget that grows with each token. It is lossy.

package programs

import (
	"context"
	"errors"
	"math"

	"grove/internal/engine"
	"grove/internal/options"
	"grove/internal/stat"
	"grove/internal/text/tokenizer"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "anchored", Paper: "Anchored Decoding, 2026", Options: "guide=1,k=0.15,debt=5",
		Open: func(o *options.Options) search.Program {
			return anchored{o.Int("guide", 1, 1, 16), o.Float("k", .15, 0, 1e6), o.Int("debt", 5, 0, 1000)}
		},
	})
}

type anchored struct {
	guide  int
	k      float64 // nats that a token adds to the budget
	prompt int     // the tokens of the prompt that the debt is the mean of
}

// Samples implements [search.Program].
func (anchored) Samples() int { return 1 }

// Slots implements [search.Wide]: the debt is that of a text beside the answer's.
func (a anchored) Slots() int { return 1 + min(a.prompt, 1) }

// Combines implements [search.Combining].
func (anchored) Combines() bool { return true }

// Check implements [search.Program].
func (a anchored) Check(p *search.Problem) error {
	if p.Greedy {
		return errors.New("search: anchored: the temperature is 0, where two models agree or diverge without bound; it must be above 0")
	}
	return p.Guided("anchored", a.guide)
}

// Run implements [search.Program].
func (a anchored) Run(ctx context.Context, p *search.Problem) (r *search.Result, err error) {
	guide := &p.Guides[a.guide-1]
	safe, err := guide.Open(ctx, p, p.Answer())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, safe.Close()) }()
	b := budget{perToken: a.k}
	if b.debt, err = a.debt(ctx, p, guide); err != nil {
		return nil, err
	}
	w := &anchoredWalk{risky: p.First, safe: safe, budget: &b}
	if r, err = p.DrawOne(ctx, w.next); err != nil {
		return nil, err
	}
	r.Figures = map[string]float64{
		"spent": b.spent, "accrued": b.accrued(), "debt": b.debt, "safe": float64(b.tokens[ofSafe]), "fused": float64(b.tokens[ofBoth]), "risky": float64(b.tokens[ofRisky]),
	}
	return r, nil
}

// debt returns what the prompt has spent of the budget before the answer begins: the mean of its largest log-ratios of the models' own probabilities, those
// above 0. Control tokens do not count.
func (a anchored) debt(ctx context.Context, p *search.Problem, guide *search.Guide) (float64, error) {
	if a.prompt == 0 || len(p.Prompt) < 2 {
		return 0, nil
	}
	ratios, sign := make([]float64, len(p.Prompt)), 1.0
	for _, e := range []*engine.Engine{p.First.Engine(), guide.Engine} {
		at := 0
		err := e.Logits(ctx, p.Prompt[:len(p.Prompt)-1], 0, func(row []float32) error {
			at++
			ratios[at] += sign * (float64(row[p.Prompt[at]]) - stat.LogSumExp(row))
			return nil
		})
		if err != nil {
			return 0, err
		}
		sign = -1
	}
	for i, id := range p.Prompt {
		if guide.Tokenizer.Type(id) == tokenizer.Control || math.IsNaN(ratios[i]) {
			ratios[i] = 0
		}
	}
	return debtOf(ratios[1:], a.prompt), nil
}

// anchoredWalk draws an answer's tokens.
type anchoredWalk struct {
	risky, safe *engine.Sequence
	budget      *budget
	p, q        []float64 // of the risky and of the safe model
	fused       []float64
}

// next draws a token: the one that the risky or the safe model draws by itself, or one between them with the same noise.
func (w *anchoredWalk) next(ctx context.Context) (d engine.SampledToken, err error) {
	if err := w.compute(ctx); err != nil {
		return d, err
	}
	for len(w.q) < len(w.p) { // one of the models has padding
		w.q = append(w.q, 0)
	}
	switch w.budget.spend(&w.fused, w.q[:len(w.p)], w.p) {
	case ofRisky:
		if d, err = w.risky.Next(ctx); err != nil {
			return d, err
		}
		return d, w.safe.Follow(d.ID)
	case ofSafe:
		if d, err = w.safe.Next(ctx); err != nil {
			return d, err
		}
		if d, err = w.risky.Describe(ctx, d.ID); err != nil {
			return d, err
		}
		return d, w.risky.Follow(d.ID)
	}
	if d, err = w.risky.Describe(ctx, w.risky.Pick(w.fused)); err != nil {
		return d, err
	}
	if err = w.risky.Follow(d.ID); err != nil {
		return d, err
	}
	return d, w.safe.Follow(d.ID)
}

// compute computes the distributions by which the models draw, at the same time.
func (w *anchoredWalk) compute(ctx context.Context) (err error) {
	done := make(chan error, 1)
	go func() {
		var err error
		w.q, err = w.safe.Probs(ctx, w.q)
		done <- err
	}()
	w.p, err = w.risky.Probs(ctx, w.p)
	return errors.Join(err, <-done)
}
