package diffuse

import (
	"context"
	"slices"
)

// mostDrafts is more states of a canvas than a pass verifies with profit.
const mostDrafts = 64

// draftable returns an error where the passes of settings, with the policy and the cache that they name, cannot be drafted.
func (s *Settings) draftable(p Policy, c cache) error {
	_, counts := p.(*static)
	switch {
	case s.Drafts < 0 || s.Drafts > mostDrafts:
		return s.fault("drafts", "%d drafts of a canvas; there may be 0 (off) to %d", s.Drafts, mostDrafts)
	case s.Drafts == 0:
		return nil
	case !counts || s.Passes != s.Length:
		return s.fault("drafts", "drafts of a canvas (FreeDave) verify the policy static with a step for each token; choose it and as many steps, or no drafts")
	}
	switch c.(type) {
	case plain, prefix, dual, *blockKeys:
		return nil
	}
	return s.fault("drafts", "drafts of a canvas (FreeDave) with the cache %s, which changes from step to step; choose none, prefix or dual", s.Cache)
}

// stepDrafts is FreeDave (Wu et al. 2025): what is known of the canvas, as it is, drafts the states of the next static steps, a pass runs the canvas in all of these, and the
// states that static decoding comes through are taken. So the tokens, and the order in which they are fixed, are those of static decoding, at every temperature: a draw has the
// random numbers of its step.
func (g *Generator) stepDrafts(ctx context.Context) error {
	left := g.left()
	g.to = g.end
	g.arrange(false)
	k := min(g.s.Drafts, left, max(1, g.board.Rows()/len(g.order)))
	if left == 1 {
		g.take(g.draft(g.canvas, g.proposals, 1)[0], 1)
		return nil
	}
	drafts := g.draft(g.canvas, g.proposals, k)
	if err := g.run(ctx, 0, drafts); err != nil {
		return err
	}
	g.pass++
	gave := make([][]Proposal, k)
	for j := range drafts {
		gave[j] = make([]Proposal, len(g.canvas))
		if err := g.proposeAt(j, g.step+1+j, drafts[j], gave[j]); err != nil {
			return err
		}
	}
	best := 1
	for best < k && g.follows(drafts[best-1], gave[best-1], drafts[best:]) {
		best++
	}
	g.take(drafts[best-1], best)
	g.proposals = gave[best-1]
	g.view.Proposals = g.proposals
	return nil
}

// draft returns the states of n static steps by proposals: each has one place more.
func (g *Generator) draft(canvas []Place, by []Proposal, n int) (drafts [][]Place) {
	for range n {
		next := slices.Clone(canvas)
		if at := g.surest(canvas, by); at >= 0 {
			next[at] = Place{ID: by[at].ID, P: by[at].P, Pass: g.pass, Likely: by[at].Likely}
		}
		drafts, canvas = append(drafts, next), next
	}
	return drafts
}

// surest returns the place that a static step fixes, -1 where none is left.
func (g *Generator) surest(canvas []Place, by []Proposal) int {
	v := g.view
	v.Canvas, v.Proposals = canvas, by
	v.Masked = v.places(nil, true)
	if first := best(&v, 1, scoreOf(g.policy.(*static).order, &v)); len(first) == 1 {
		return first[0]
	}
	return -1
}

// follows reports whether the static step behind a state, by its own proposals, gives the next one. The token has the probability that it has there, in all drafts from that on.
func (g *Generator) follows(canvas []Place, by []Proposal, drafts [][]Place) bool {
	at := g.surest(canvas, by)
	if at < 0 || drafts[0][at].ID != by[at].ID {
		return false
	}
	for _, d := range drafts {
		d[at].P, d[at].Likely = by[at].P, by[at].Likely
	}
	return true
}

// take makes a state, so many steps on, the canvas.
func (g *Generator) take(canvas []Place, steps int) {
	for at := g.first; at < g.end; at++ {
		if g.canvas[at].ID == g.s.Mask && canvas[at].ID != g.s.Mask {
			g.canvas[at] = canvas[at]
			g.masks--
		}
	}
	g.step += steps
	g.view.Pass += steps
}
