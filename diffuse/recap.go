package diffuse

import "grove/internal/options"

// recap groups the passes of the policy static (ReCAP). The first pass of a group runs all rows. It chooses the places of all passes of the group, which are the surest, and
// fixes its own; the others run these places alone, and fix the next ones by what the first ones became.
type recap struct {
	plain int // passes of a block before the first group
	more  int // passes of a group behind the first
	pass  int // of the block
	left  int // of the group
	group []int
}

func openRecap(o *options.Options) cache {
	return &recap{plain: o.Int("plain", 0, 0, MostLength), more: o.Int("more", 1, 0, MostLength)}
}

func (*recap) reach() reach { return runsSome }

func (c *recap) plan(g *Generator, entry bool, uses []use) int {
	if entry {
		c.pass, c.left = 0, 0
	}
	c.pass++
	if c.left == 0 {
		c.group = c.group[:0]
		if c.pass > c.plain {
			c.left = c.more
		}
		return allIf(c.left > 0, uses)
	}
	if len(c.group) == 0 {
		c.choose(g)
	}
	c.left--
	mark(uses, 0, len(uses), seen)
	for _, at := range c.group {
		place := len(g.prompt) + at
		uses[place] = run
		if g.s.Shift && place > 0 {
			uses[place-1] = run
		}
	}
	return allIf(c.left > 0, uses)
}

// choose makes the group of what the pass before fixed and of the surest of the other masks, by what it gave: as many as the next passes fix.
func (c *recap) choose(g *Generator) {
	due := 0
	for i := range c.left {
		due += max(1, counts(g.view.End-g.view.First, g.view.Pass+i, g.view.Passes))
	}
	v := g.view
	v.Masked = v.places(nil, true)
	c.group = append(c.group, best(&v, due, scoreOf(g.policy.(*static).order, &v))...)
	for at := g.first; at < g.end; at++ {
		if g.canvas[at].ID != g.s.Mask && g.canvas[at].Pass == g.pass-1 {
			c.group = append(c.group, at)
		}
	}
}
