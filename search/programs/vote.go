// vote.go draws several samples of an answer and takes one whose final answer is the most common among them (Self-Consistency Improves
// Chain of Thought Reasoning in Language Models, 2022). It is lossy.
//
// The answer depends on the prompt, the settings and the seed alone: the samples are drawn side by side, or in turns where fewer slots are free.

package programs

import (
	"context"

	"grove/internal/options"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "vote", Paper: "Self-Consistency, 2022", Options: "n=4,answer=number,weigh=count",
		Open: func(o *options.Options) search.Program {
			return vote{o.Int("n", 4, 2, 64), search.Extractors[o.Word("answer", "number", "line", "boxed", "text")], o.Word("weigh", "count", "likelihood") == "likelihood"}
		},
	})
}

type vote struct {
	samples int
	extract func(text string) string
	weighed bool // a vote counts as much as its sample's tokens are likely in the mean
}

// Samples implements [search.Program].
func (v vote) Samples() int { return v.samples }

// Check implements [search.Program].
func (v vote) Check(p *search.Problem) error {
	if err := p.Fit("vote", v.samples); err != nil {
		return err
	}
	return p.Differs("vote")
}

// Run implements [search.Program].
func (v vote) Run(ctx context.Context, p *search.Problem) (*search.Result, error) {
	all, err := search.Turns(ctx, p, v.samples, func(turn *search.Samples, _ []search.Sample) error { return turn.DrawAll() })
	if err != nil {
		return nil, err
	}
	r := &search.Result{}
	for i := range all {
		a := all[i].Attempt()
		a.Answer = v.extract(p.Text(a.IDs))
		r.Attempts = append(r.Attempts, a)
	}
	at, votes := search.Vote(r.Attempts, v.weighed)
	r.Tokens, r.Index = all[at].Drawn, all[at].Index
	r.Figures = map[string]float64{"votes": float64(votes)}
	return r, nil
}
