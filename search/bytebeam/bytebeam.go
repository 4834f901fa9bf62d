// Package bytebeam draws an answer byte by byte, from a beam over the ways in which tokens write the text (genlm-bytes, 2025): all sequences of tokens count, not only
// those that the tokenizer would write. It is lossy.
package bytebeam

import (
	"context"

	"grove/bytewise"
	"grove/bytewise/tree"
	"grove/internal/options"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "bytebeam", Paper: "genlm-bytes: byte-level beams with adaptive healing, 2025", Options: "k=5,threshold=0.05",
		Open: func(o *options.Options) search.Program {
			return beam{bytewise.Beam{Width: o.Int("k", 5, 1, 64), Threshold: o.Float("threshold", .05, 0, 1)}}
		},
	})
}

type beam struct{ bytewise.Beam }

// Samples implements [search.Program].
func (beam) Samples() int { return 1 }

// Combines implements [search.Combining]: the tokens are not those that drafts would be verified by.
func (beam) Combines() bool { return true }

// Check implements [search.Program].
func (beam) Check(p *search.Problem) error { return p.CheckBytes("bytebeam") }

// Run implements [search.Program].
func (b beam) Run(ctx context.Context, p *search.Problem) (*search.Result, error) {
	words, err := p.Words()
	if err != nil {
		return nil, err
	}
	draw := search.Bytes{Views: []*tree.View{tree.Beam(words, p.First, b.Beam)}, Weights: []float64{1}}
	return draw.Draw(ctx, p)
}
