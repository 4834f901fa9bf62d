// Package vote draws several samples of an answer and takes one whose final answer is the most common among them (Self-Consistency Improves
// Chain of Thought Reasoning in Language Models, 2022). It is lossy.
//
// The answer depends on the prompt, the settings and the seed alone: the samples are drawn side by side, or in turns where fewer slots are free.
package vote

import (
	"context"
	"math"

	"grove/internal/options"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "vote", Paper: "Self-Consistency, 2022", Options: "n=4,answer=number,weigh=count",
		Open: func(o *options.Options) search.Program {
			return vote{o.Int("n", 4, 2, 64), extractors[o.Word("answer", "number", "line", "boxed", "text")], o.Word("weigh", "count", "likelihood") == "likelihood"}
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
	at, votes := count(r.Attempts, v.weighed)
	r.Tokens, r.Index = all[at].Drawn, all[at].Index
	r.Figures = map[string]float64{"votes": float64(votes)}
	return r, nil
}

// count returns the first attempt with the answer that has the most votes, and how many attempts give it; of equal ones the answer that
// comes first. It sets the attempts' weights. An attempt without an answer has no vote; where none has one, the first attempt is taken.
func count(all []search.Attempt, weighed bool) (at, votes int) {
	sums, total := map[string]float64{}, 0.0
	for i := range all {
		if all[i].Answer == "" {
			continue
		}
		all[i].Weight = 1
		if weighed {
			all[i].Weight = math.Exp(all[i].Logprob / float64(max(1, all[i].Tokens)))
		}
		sums[all[i].Answer] += all[i].Weight
		total += all[i].Weight
	}
	for i := range all {
		if sums[all[i].Answer] > sums[all[at].Answer] {
			at = i
		}
	}
	for i := range all {
		if all[i].Answer != "" {
			all[i].Weight /= total
			if all[i].Answer == all[at].Answer {
				votes++
			}
		}
	}
	return at, votes
}
