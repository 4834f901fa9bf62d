// arbitrage.go lets a smaller model, which is a guide, write an answer step by step, and the model write those steps anew at which it is expected to be better by enough (after
// Arbitrage, whose router is trained; here the model's own probabilities or a scorer route). It is lossy.

package programs

import (
	"bytes"
	"context"
	"errors"
	"math"

	"grove/internal/options"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "arbitrage", Paper: "Arbitrage, 2025, with a router that is not trained", Options: "guide=1,step=paragraph,threshold=0.5,by=odds,length=512",
		Open: func(o *options.Options) search.Program {
			a := arbitrage{
				guide: o.Int("guide", 1, 1, 16), end: "\n\n", by: o.Word("by", "odds", "probability", "score", "advantage"),
				threshold: o.Float("threshold", .5, -1e6, 1e6), length: o.Int("length", 512, 1, 1<<20),
			}
			if o.Word("step", "paragraph", "line") == "line" {
				a.end = "\n"
			}
			return a
		},
	})
}

type arbitrage struct {
	guide     int
	end       string // of a step
	by        string
	threshold float64
	length    int // tokens that a step may have
}

// Samples implements [search.Program].
func (arbitrage) Samples() int { return 1 }

// Combines implements [search.Combining].
func (arbitrage) Combines() bool { return true }

// Rates implements [search.Rater].
func (a arbitrage) Rates() bool { return a.by == "score" || a.by == "advantage" }

// Check implements [search.Program].
func (a arbitrage) Check(p *search.Problem) error {
	if a.Rates() && p.Scorer == nil {
		return errors.New("search: arbitrage: nothing scores the steps; by=score and by=advantage need the scorer of a program in Go; use by=odds or by=probability")
	}
	return p.Guided("arbitrage", a.guide)
}

// Run implements [search.Program].
func (a arbitrage) Run(ctx context.Context, p *search.Problem) (r *search.Result, err error) {
	draft, err := p.Guides[a.guide-1].Open(ctx, p, p.Answer())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, draft.Close()) }()
	of := *p
	of.First = draft
	w := &arbitrageWalk{arbitrage: a, p: p, figures: map[string]float64{"steps": 0, "routed": 0, "kept_tokens": 0, "model_tokens": 0, "discarded_tokens": 0, "unscored": 0}}
	if w.model, err = search.Fork(ctx, p, 0, 1); err != nil {
		return nil, err
	}
	if w.draft, err = search.Fork(ctx, &of, 0, 1); err != nil {
		return nil, err
	}
	if a.Rates() {
		w.scores = search.NewScores(p)
	}
	if r, err = w.model.First(w.figures, func() error { return w.step(ctx) }); err == nil {
		r.Figures["draft_share"] = r.Figures["kept_tokens"] / float64(max(1, len(r.Tokens)))
	}
	return r, err
}

// arbitrageWalk is an answer on its way, by both models.
type arbitrageWalk struct {
	arbitrage
	p            *search.Problem
	model, draft *search.Samples // of one sample, with the same tokens between steps
	scores       *search.Scores  // nil: nothing is asked
	figures      map[string]float64
}

// step writes a step: the guide's, or in its place the model's.
func (w *arbitrageWalk) step(ctx context.Context) error {
	model, draft := &w.model.All[0], &w.draft.All[0]
	from := len(model.Drawn)
	if err := w.write(w.draft, from); err != nil {
		return err
	}
	if len(draft.Drawn) <= from { // the guide's context has no place
		model.Full = true
		return nil
	}
	if err := w.model.FollowAll(ctx, 0, draft.IDs()[from:]); err != nil {
		return err
	}
	kept, n := model.Drawn, len(model.Drawn)-from
	w.figures["steps"]++
	switch advantage, err := w.advantage(ctx, from); {
	case err != nil:
		return err
	case advantage < w.threshold:
		w.figures["kept_tokens"] += float64(n)
		return w.model.Rewind(0, kept)
	}
	w.figures["routed"]++
	w.figures["discarded_tokens"] += float64(n)
	if w.by != "advantage" { // which has let the model write
		if err := w.again(from); err != nil {
			return err
		}
	}
	w.figures["model_tokens"] += float64(len(model.Drawn) - from)
	return w.draft.Rewind(0, model.Drawn)
}

// write lets a model write a step behind so many tokens.
func (w *arbitrageWalk) write(of *search.Samples, from int) error {
	one, text := &of.All[0], []byte(nil)
	for !one.Ended && !one.Full && len(one.Drawn)-from < w.length && !bytes.Contains(text, []byte(w.end)) {
		drew := len(one.Drawn)
		if _, err := of.Draw(); err != nil {
			return err
		}
		for _, d := range one.Drawn[drew:] {
			var err error
			if text, err = w.p.Piece(text, d.ID, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// again lets the model write the step itself that the guide has written.
func (w *arbitrageWalk) again(from int) error {
	if err := w.model.Rewind(0, w.model.All[0].Drawn[:from]); err != nil {
		return err
	}
	return w.write(w.model, from)
}

// advantage returns by how much the model's own step is expected to be better than the guide's, which it has behind so many tokens: 1 less the mean of the probabilities that it gives to the guide's tokens
// (of their logarithms), by itself or over the guide's own, 1 at most; 1 less the score of the text with that step; or what the score gains with its own, which it has then. Infinity: nothing
// scores the step.
func (w *arbitrageWalk) advantage(ctx context.Context, from int) (float64, error) {
	one := &w.model.All[0]
	if w.scores == nil {
		sum := 0.0
		for _, d := range one.Drawn[from:] {
			sum += float64(d.Logprob)
		}
		for i := from; w.by == "odds" && i < len(one.Drawn); i++ {
			sum -= float64(w.draft.All[0].Drawn[i].Logprob)
		}
		return 1 - min(1, math.Exp(sum/float64(max(1, len(one.Drawn)-from)))), nil
	}
	guide, err := w.scores.Of(ctx, w.p.Text(one.IDs()))
	best := 1.0
	if w.by == "advantage" {
		if err := w.again(from); err != nil {
			return 0, err
		}
		if err == nil {
			best, err = w.scores.Of(ctx, w.p.Text(one.IDs()))
		}
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if err != nil {
		w.figures["unscored"]++
		return math.Inf(1), nil
	}
	return best - guide, nil
}
