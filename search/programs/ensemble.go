// ensemble.go draws an answer byte by byte, from the mean of what the model and its guides expect, whatever their vocabularies (Exact Byte-Level Probabilities from
// Tokenized Language Models, 2024). It is lossy.

package programs

import (
	"context"
	"errors"
	"fmt"

	"grove/internal/engine"
	"grove/internal/options"
	"grove/search"
	"grove/search/bytewise"
)

func init() {
	search.Register(search.Info{
		Name: "ensemble", Paper: "Exact Byte-Level Probabilities from Tokenized Language Models, 2024", Options: "weight=0.5,beam=0",
		Open: func(o *options.Options) search.Program {
			return ensemble{o.Float("weight", .5, 0, 1), o.Int("beam", 0, 0, 64)}
		},
	})
}

type ensemble struct {
	weight float64 // of the model; the guides share the rest
	beam   int     // ways of writing the text that count, of all; 0: those that the tokenizers write, exactly
}

// beamThreshold is the part of the likeliest way's probability below which a beam drops a way.
const beamThreshold = .05

// view returns the view of bytes behind a sequence.
func (e ensemble) view(words *bytewise.Vocabulary, s *engine.Sequence) *bytewise.TreeView {
	if e.beam == 0 {
		return bytewise.OpenTree(words, s)
	}
	return bytewise.TreeBeam(words, s, bytewise.Beam{Width: e.beam, Threshold: beamThreshold})
}

// Samples implements [search.Program].
func (ensemble) Samples() int { return 1 }

// Combines implements [search.Combining]: the tokens are not those that drafts would be verified by.
func (ensemble) Combines() bool { return true }

// Check implements [search.Program].
func (ensemble) Check(p *search.Problem) error {
	if len(p.Guides) == 0 {
		return errors.New("search: ensemble: it needs a guide, and no model is open as one; add one (--guide MODEL, Options.Guides)")
	}
	for i := range p.Guides {
		if _, err := p.Guides[i].Words(); err != nil {
			return fmt.Errorf("search: ensemble: guide %d (%s): %w", i+1, p.Guides[i].Name, err)
		}
	}
	return p.CheckBytes("ensemble")
}

// Run implements [search.Program].
func (e ensemble) Run(ctx context.Context, p *search.Problem) (r *search.Result, err error) {
	words, err := p.Words()
	if err != nil {
		return nil, err
	}
	draw := search.Bytes{Views: []*bytewise.TreeView{e.view(words, p.First)}, Weights: []float64{e.weight}}
	for i := range p.Guides {
		g := &p.Guides[i]
		s, fault := g.OpenText(ctx, p)
		if fault != nil {
			return nil, fault
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		if words, err = g.Words(); err != nil {
			return nil, err
		}
		draw.Views, draw.Weights = append(draw.Views, e.view(words, s)), append(draw.Weights, (1-e.weight)/float64(len(p.Guides)))
	}
	return draw.Draw(ctx, p)
}
