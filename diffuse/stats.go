package diffuse

import (
	"math"

	"grove/internal/kernel"
)

// Stats says how a canvas was filled, or is so far.
type Stats struct {
	Passes      int
	Rows        int     // of these passes
	Information float64 // in nats, of the tokens: the sum of -ln P, of the probabilities that they had when they were fixed
	// Bound is the fewest passes that fix as much by the policy's rule (From Bits to Rounds, 2025); 0: the rule has no such bound. Tokens that a pass fixes although the rule does
	// not, because none is sure, can make the passes fewer.
	Bound int
	Fixed []int // by place: the pass that fixed it, from 0; -1: it is a mask
}

// Stats returns how the canvas was filled so far.
func (g *Generator) Stats() Stats {
	s := Stats{Passes: g.pass, Rows: g.rows, Fixed: make([]int, len(g.canvas))}
	for at, p := range g.canvas {
		if s.Fixed[at] = p.Pass; p.ID != g.s.Mask {
			s.Information -= kernel.Log64(max(p.P, math.SmallestNonzeroFloat64))
		}
	}
	if b, ok := g.policy.(bounded); ok && b.nats() > 0 {
		s.Bound = int(math.Ceil(s.Information / b.nats()))
	}
	return s
}
