package diffuse

import (
	"context"
	"slices"
)

// stepTrials runs a branch of the canvas for each trial of the pass before, and goes on with the one that the policy judges best: its token is fixed, and what its branch gave is
// what the policy chooses by.
func (g *Generator) stepTrials(ctx context.Context) error {
	tried := g.decision.Try
	g.to = g.readTo(false)
	g.arrange(false)
	canvases, views := make([][]Place, len(tried)), make([]View, len(tried))
	for i, t := range tried {
		canvases[i] = slices.Clone(g.canvas)
		canvases[i][t.At] = Place{ID: t.ID, P: t.P, Pass: g.pass}
	}
	if err := g.run(ctx, 0, canvases); err != nil {
		return err
	}
	for i, canvas := range canvases {
		v := &views[i]
		*v = g.view
		v.Canvas, v.Proposals = canvas, make([]Proposal, len(canvas))
		if err := g.proposeAt(i, g.step, canvas, v.Proposals); err != nil {
			return err
		}
		v.Masked = v.places(nil, true)
	}
	best := g.policy.(explorer).Judge(tried, views)
	copy(g.canvas, canvases[best])
	copy(g.proposals, views[best].Proposals)
	g.masks--
	return g.decide()
}
