// bytebeam.go draws an answer byte by byte, from a beam over the ways in which tokens write the text (genlm-bytes, 2025): all sequences of tokens count, not only
// those that the tokenizer would write. It is lossy.

package programs

import (
	"context"

	"grove/internal/options"
	"grove/search"
	"grove/search/bytewise"
)

func init() {
	search.Register(search.Info{
		Name: "bytebeam", Paper: "genlm-bytes: byte-level beams with adaptive healing, 2025", Options: "k=5,threshold=0.05",
		Open: func(o *options.Options) search.Program {
			return bytebeamBeam{bytewise.Beam{Width: o.Int("k", 5, 1, 64), Threshold: o.Float("threshold", .05, 0, 1)}}
		},
	})
}

type bytebeamBeam struct{ bytewise.Beam }

// Samples implements [search.Program].
func (bytebeamBeam) Samples() int { return 1 }

// Combines implements [search.Combining]: the tokens are not those that drafts would be verified by.
func (bytebeamBeam) Combines() bool { return true }

// Check implements [search.Program].
func (bytebeamBeam) Check(p *search.Problem) error { return p.CheckBytes("bytebeam") }

// Run implements [search.Program].
func (b bytebeamBeam) Run(ctx context.Context, p *search.Problem) (*search.Result, error) {
	words, err := p.Words()
	if err != nil {
		return nil, err
	}
	draw := search.Bytes{Views: []*bytewise.TreeView{bytewise.TreeBeam(words, p.First, b.Beam)}, Weights: []float64{1}}
	return draw.Draw(ctx, p)
}
