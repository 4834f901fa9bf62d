package diffuse

import "grove/internal/options"

// window runs phases of passes (Window-Diffusion). The first pass of a phase runs all rows. The others run the first masks, and the tokens that they became, and see besides
// all tokens and the next masks; what lies behind these is hidden.
type window struct {
	masks  int // that the passes of a phase see
	active int // of these, that a pass runs
	every  int // passes of a phase
	pass   int // of the phase

	were []bool // by place of the text: masks at the phase's beginning
	live []bool // places that have run in the phase, and run on
	far  []bool // places that are hidden
}

func openWindow(o *options.Options) cache {
	c := &window{masks: o.Int("masks", 64, 1, MostLength), active: o.Int("active", 16, 1, MostLength), every: o.Int("every", 32, 1, MostLength)}
	if c.active > c.masks {
		o.Fail("active is %d; it must be at most masks, %d", c.active, c.masks)
	}
	return c
}

func (*window) reach() reach { return runsSome }

func (c *window) plan(g *Generator, entry bool, uses []use) int {
	if entry || c.pass == c.every || c.pass > 0 && !c.follow(g, len(uses)) {
		c.pass = 0
	}
	if c.pass++; c.pass == 1 {
		c.were = c.were[:0]
		for place := range uses {
			c.were = append(c.were, g.masked(place))
		}
		return len(uses)
	}
	for place := range uses {
		switch {
		case c.far[place]:
			uses[place] = hidden
		case c.live[place] || c.pass == 2 && c.were[place] && !g.masked(place): // what the first pass fixed has no keys as a token yet
		case g.s.Shift && place+1 < len(uses) && c.live[place+1] && g.masked(place+1): // it gives a token
		default:
			uses[place] = seen
		}
	}
	return len(uses)
}

// follow makes the first masks of the block live, and in the second pass of a phase hides those that are far. It reports whether a mask is live.
func (c *window) follow(g *Generator, places int) bool {
	if c.pass == 1 {
		c.far, c.live = make([]bool, places), make([]bool, places)
		for place, n := len(g.prompt)+g.first, 0; place < places; place++ {
			if g.masked(place) {
				c.far[place] = n >= c.masks
				n++
			}
		}
	}
	n := 0
	for place := len(g.prompt) + g.first; place < len(g.prompt)+g.end && n < c.active; place++ {
		if g.masked(place) && !c.far[place] {
			c.live[place] = true
			n++
		}
	}
	return n > 0
}
