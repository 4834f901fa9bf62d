// transferq.go tilts each draw by what a reward expects of the tokens that are likely there (Transfer Q*): a guide, which is aligned to some reward already, continues each of
// them for a few tokens, and the reward of these texts estimates the token's value. It is lossy.

package programs

import (
	"context"
	"errors"
	"math"

	"grove/internal/engine"
	"grove/internal/options"
	"grove/internal/text/token"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "transferq", Paper: "Transfer Q*, 2024", Options: "guide=1,k=4,length=5,rollouts=1,weight=1,by=mean,transfer=direct",
		Open: func(o *options.Options) search.Program {
			t := transfer{
				guide: o.Int("guide", 1, 1, 16), k: o.Int("k", 4, 1, 64), length: o.Int("length", 5, 0, 4096), rollouts: o.Int("rollouts", 1, 1, 64),
				by: o.Word("by", "mean", "sum", "score"), indirect: o.Word("transfer", "direct", "indirect") == "indirect",
			}
			if o.Has("alpha") { // in place of weight
				t.weight = 1 / o.Float("alpha", 1, 1e-6, 1e6)
			} else {
				t.weight = o.Float("weight", 1, 0, 1e6)
			}
			return t
		},
	})
}

type transfer struct {
	guide, k, length, rollouts int
	by                         string
	indirect                   bool
	weight                     float64 // of a value in a logit: 1/alpha
}

// Samples implements [search.Program].
func (transfer) Samples() int { return 1 }

// Slots implements [search.Wide]: the rollouts of a token are drawn at a time, as far as that is faster.
func (t transfer) Slots() int { return min(t.k*t.rollouts, 16) }

// Combines implements [search.Combining].
func (transfer) Combines() bool { return true }

// Rates implements [search.Rater].
func (t transfer) Rates() bool { return t.by == "score" }

// Check implements [search.Program].
func (t transfer) Check(p *search.Problem) error {
	if t.Rates() && p.Scorer == nil {
		return errors.New("search: transferq: nothing scores the texts; by=score needs the scorer of a program in Go; use by=mean or by=sum")
	}
	return p.Guided("transferq", t.guide)
}

// Run implements [search.Program].
func (t transfer) Run(ctx context.Context, p *search.Problem) (r *search.Result, err error) {
	base, err := p.Guides[t.guide-1].Open(ctx, p, p.Answer())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	w := &transferqWalk{transfer: t, p: p, base: base, figures: map[string]float64{"rollouts": 0, "rolled_tokens": 0, "unscored": 0}}
	if t.Rates() {
		w.scores = search.NewScores(p)
	}
	if err := p.Combiner.Join(p.First); err != nil {
		return nil, err
	}
	p.Combiner.Combine = w.tilt
	if r, err = p.DrawOne(ctx, w.next); err == nil {
		r.Figures = w.figures
	}
	return r, err
}

// transferqWalk draws an answer's tokens.
type transferqWalk struct {
	transfer
	p       *search.Problem
	base    *engine.Sequence
	scores  *search.Scores // nil: nothing is asked
	drawn   []engine.SampledToken
	values  map[token.ID]float64 // of the next token's candidates; nil: they are not known
	taken   int                  // sample indices of rollouts
	figures map[string]float64
}

// next draws a token.
func (w *transferqWalk) next(ctx context.Context) (d engine.SampledToken, err error) {
	if w.values = nil; w.weight > 0 && w.scores.Lost() == nil {
		candidates, err := w.p.First.Likeliest(ctx, w.k)
		if err != nil {
			return d, err
		}
		var ids []token.ID
		for _, c := range candidates {
			if !math.IsInf(float64(c.Logprob), -1) {
				ids = append(ids, c.ID)
			}
		}
		if len(ids) > 1 {
			if w.values, err = w.value(ctx, ids); err != nil {
				return d, err
			}
		}
	}
	if d, err = w.p.Combiner.Next(ctx); err != nil {
		return d, err
	}
	w.drawn = append(w.drawn, d)
	return d, w.base.Follow(d.ID)
}

// tilt adds the candidates' values to their logits, and forbids all other tokens.
func (w *transferqWalk) tilt(logits []float32, _ [][]float32) {
	if w.values == nil {
		return
	}
	for id, l := range logits {
		v, ok := w.values[token.ID(id)]
		if !ok {
			logits[id] = float32(math.Inf(-1))
			continue
		}
		logits[id] = l + float32(w.weight*v)
	}
}

// value estimates the values of tokens that may come next by rollouts of the guide; nil: nothing could be scored.
func (w *transferqWalk) value(ctx context.Context, ids []token.ID) (map[token.ID]float64, error) {
	rolled, err := w.roll(ctx, ids)
	if err == nil && w.indirect {
		err = w.offset(ctx, rolled)
	}
	if err != nil {
		return nil, err
	}
	rewards := make([][]float64, len(ids))
	for i := range rolled {
		reward, err := w.reward(ctx, &rolled[i])
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			w.figures["unscored"]++
			continue
		}
		rewards[i/w.rollouts] = append(rewards[i/w.rollouts], reward-rolled[i].offset/w.weight)
	}
	return w.estimate(ids, rewards), nil
}

// estimate returns the values of tokens from the rewards of their rollouts: their mean, or, where the guide's own reward is taken from them, the logarithm of the mean of exp(weight*reward),
// over weight. A token without rewards has the mean of the others' values; nil: none has a value above minus infinity.
func (t transfer) estimate(ids []token.ID, rewards [][]float64) map[token.ID]float64 {
	values, sum, n := map[token.ID]float64{}, 0.0, 0
	for i, id := range ids {
		if len(rewards[i]) == 0 {
			continue
		}
		values[id] = t.mean(rewards[i])
		if !math.IsInf(values[id], -1) {
			sum += values[id]
			n++
		}
	}
	if n == 0 {
		return nil
	}
	for _, id := range ids {
		if _, ok := values[id]; !ok {
			values[id] = sum / float64(n)
		}
	}
	return values
}

// mean returns the value of a token's rewards.
func (t transfer) mean(rewards []float64) (v float64) {
	logs := make([]float64, len(rewards))
	for i, r := range rewards {
		logs[i] = t.weight * r
		v += r / float64(len(rewards))
	}
	if t.indirect {
		return search.LogMean(logs) / t.weight
	}
	return v
}
