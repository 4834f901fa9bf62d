package diffuse

import (
	"slices"
	"strconv"
	"strings"
)

// ahead is what a generator reads of places behind the block, besides: how long the block is to be, and whether the text is known, or where it ends.
type ahead struct {
	delimiter float64   // the probability of a delimiter from which on a block ends behind it (AdaBlock, 2025); 0: blocks have one length
	gaps      []float64 // between the two likeliest logits, by thirds of the steps, from which on all masks become tokens (Prophet, 2025); nil: never
	cut       bool      // the canvas ends behind the first token that ends the text (Learn2PD, 2025)
}

// look reads what the settings say of places behind the block, with the cache that they name.
func (s *Settings) look(c cache) (a ahead, err error) {
	if s.Blocks != "" {
		name, option, given := strings.Cut(s.Blocks, ":")
		if a.delimiter = 0.3; given {
			a.delimiter, err = strconv.ParseFloat(option, 64)
		}
		switch {
		case name != "adaptive" || err != nil || !(a.delimiter > 0 && a.delimiter <= 1):
			return a, s.fault("blocks", "blocks %.40q; use adaptive or adaptive:P, the probability of a delimiter, above 0 and at most 1", s.Blocks)
		case len(s.Delimiters) == 0:
			return a, s.fault("blocks", "blocks %q: the vocabulary has no token of a line's end, behind which a block could end", s.Blocks)
		}
	}
	switch s.Early {
	case "":
	case "prophet":
		a.gaps = []float64{7.5, 5, 2.5}
	case "end":
		a.cut = true
	default:
		return a, s.fault("early", "early %.40q is not known; use prophet (all masks become tokens once they are sure) or end (the canvas ends where the text does)", s.Early)
	}
	if a.delimiter == 0 && a.gaps == nil && !a.cut {
		return a, nil
	}
	if (a.gaps != nil || a.cut) && c.reach() != runsAll {
		return a, s.fault("cache", "early ends read all of the canvas, which the cache %s does not run; choose none or prefix", s.Cache)
	}
	if s.Drafts > 0 {
		return a, s.fault("drafts", "%d drafts of a canvas with adaptive blocks or an early end; choose one of them", s.Drafts)
	}
	return a, nil
}

// window returns the end of the places in which a delimiter may end the block: a quarter of the canvas.
func (g *Generator) window() int { return min(g.first+max(1, len(g.canvas)/4), len(g.canvas)) }

// read returns the end of the places whose proposals are read.
func (g *Generator) readTo(entry bool) int {
	_, explores := g.policy.(explorer)
	switch {
	case g.ahead.gaps != nil || g.ahead.cut || explores:
		return len(g.canvas)
	case entry && g.ahead.delimiter > 0:
		return max(g.end, g.window())
	}
	return g.end
}

// endBlock makes the block end behind the surest delimiter of the window, where one is sure enough.
func (g *Generator) endBlock() {
	at := -1
	for place := g.first; place < g.window(); place++ {
		p := &g.proposals[place]
		if slices.Contains(g.s.Delimiters, p.ID) && p.P >= g.ahead.delimiter && (at < 0 || p.P > g.proposals[at].P) {
			at = place
		}
	}
	if at >= 0 {
		g.end = at + 1
		g.begin()
	}
}

// known reports whether the masks of the canvas are so sure that all become tokens.
func (g *Generator) known() bool {
	if g.ahead.gaps == nil {
		return false
	}
	sum, n := 0.0, 0
	for at, p := range g.canvas {
		if p.ID == g.s.Mask {
			sum, n = sum+g.proposals[at].Gap, n+1
		}
	}
	third := min(2, 3*(g.step+1)/(g.s.Passes+1))
	return n > 0 && sum >= float64(n)*g.ahead.gaps[third]
}

// finish makes all masks tokens.
func (g *Generator) finish() {
	for at, p := range g.canvas {
		if p.ID == g.s.Mask {
			g.fix(at, &g.proposals[at])
		}
	}
	g.first, g.end = len(g.canvas), len(g.canvas)
	g.pass++
	g.step++
}

// cutAt returns how long the canvas is where the text ends: behind the first token that was fixed and ends it, or else behind the mask that is the surest to.
func (g *Generator) cutAt() int {
	n, surest := len(g.canvas), 0.0
	for at, p := range g.canvas {
		switch {
		case p.ID != g.s.Mask && g.s.Ends(p.ID):
			return at + 1
		case p.ID == g.s.Mask && g.s.Ends(g.proposals[at].ID) && g.proposals[at].P > surest:
			n, surest = at+1, g.proposals[at].P
		}
	}
	return n
}

// cut ends the canvas behind n places.
func (g *Generator) cut(n int) {
	for _, p := range g.canvas[n:] {
		if p.ID == g.s.Mask {
			g.masks--
		}
	}
	g.canvas, g.proposals = g.canvas[:n], g.proposals[:n]
	g.first, g.end = min(g.first, n), min(g.end, n)
	g.view.Canvas, g.view.Proposals, g.view.End = g.canvas, g.proposals, min(g.view.End, n)
}
