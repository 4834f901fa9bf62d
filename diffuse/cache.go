package diffuse

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"grove/internal/options"
)

// use is what a pass does with a place of the text.
type use uint8

const (
	run    use = iota // its row runs
	seen              // the rows see the keys that an earlier pass gave
	hidden            // the rows do not see it
)

// reach says which places from the block's beginning on every pass of a cache runs.
type reach int

const (
	runsSome  reach = iota // some of the block's
	runsBlock              // those of the block
	runsAll                // those of the block, and all behind it
)

// A cache says what each pass does with each place of the text. It has the state of one canvas. The first pass of a block runs all places.
type cache interface {
	// plan fills the uses of the places in, which are all run; entry says that the pass is the first of a block. The keys of rows before the place that it
	// returns are kept for later passes. What a pass only sees was kept before.
	plan(g *Generator, entry bool, uses []use) (keep int)
	// reach returns the places that every pass runs.
	reach() reach
}

// CacheInfo describes a way to keep keys.
type CacheInfo struct {
	Name, Paper, Grade string
	Options            string // name=default, with commas between, or the letter of a number
	open               func(text string) (cache, error)
}

// Caches are the ways to keep keys of earlier passes. Those that change what rows see, and so the answer, are lossy.
var Caches = []CacheInfo{
	{Name: "none", Paper: "every pass runs all rows", Grade: "exact", open: plainly(plain{})},
	{Name: blocks, Paper: "BD3-LM, Arriola et al. 2025: keys of finished blocks, of models whose rows see no later block", Grade: "exact", open: func(text string) (cache, error) { return plainly(&blockKeys{})(text) }},
	{Name: "prefix", Paper: "Fast-dLLM, Wu et al. 2025: keys before the block are those of its first pass", Grade: "lossy", open: plainly(prefix{})},
	{Name: "dual", Paper: "Fast-dLLM, Wu et al. 2025: keys before and behind the block are those of its first pass", Grade: "lossy", open: plainly(dual{})},
	{Name: "delayed", Paper: "dKV-Cache, Ma et al. 2025: keys of a token are kept one pass after it was fixed; every N-th pass runs all rows", Grade: "lossy", Options: "N", open: openDelayed},
	{Name: "vicinity", Paper: "dInfer, Ma et al. 2025: dual, but the places near the block run too", Grade: "lossy", Options: "before=16, behind=16, warm=4, every=0", open: chosen(openVicinity)},
	{Name: "window", Paper: "Window-Diffusion, 2026: the first masks run, and masks far behind them are hidden", Grade: "lossy", Options: "masks=64, active=16, every=32", open: chosen(openWindow)},
	{Name: "recap", Paper: "ReCAP, 2025: passes come in groups, of which the first runs all rows and chooses the places that the others run", Grade: "lossy", Options: "plain=0, more=1", open: chosen(openRecap)},
}

// openCache returns the cache that a text names; "" is none.
func openCache(text string) (cache, error) {
	name, text, _ := strings.Cut(text, ":")
	name = cmp.Or(name, "none")
	var names []string
	for _, c := range Caches {
		if c.Name == name {
			opened, err := c.open(text)
			if err != nil {
				return nil, fmt.Errorf("diffuse: cache %s: %w; its options are: %s", name, err, cmp.Or(c.Options, "none"))
			}
			return opened, nil
		}
		names = append(names, c.Name)
	}
	return nil, fmt.Errorf("diffuse: cache %.40q is not known; these are: %s%s", name, strings.Join(names, ", "), options.NearHint(name, names))
}

// plainly opens a cache without options.
func plainly(c cache) func(string) (cache, error) {
	return func(text string) (cache, error) {
		if text != "" {
			return nil, fmt.Errorf("option %.40q is not known", text)
		}
		return c, nil
	}
}

// chosen opens a cache with options.
func chosen(open func(o *options.Options) cache) func(string) (cache, error) {
	return func(text string) (cache, error) {
		o := options.Parse(text, ",")
		c := open(o)
		return c, o.Err()
	}
}

// arrange makes the plan of a pass: its uses, and its rows.
func (g *Generator) arrange(entry bool) (keep int) {
	g.clearUses()
	keep = g.cache.plan(g, entry, g.uses)
	g.list()
	return keep
}

// clearUses makes all places run.
func (g *Generator) clearUses() {
	n := len(g.prompt) + len(g.canvas)
	g.uses = slices.Grow(g.uses[:0], n)[:n]
	clear(g.uses)
}

// list lists the places whose rows the pass runs.
func (g *Generator) list() {
	g.order = g.order[:0]
	for place, u := range g.uses {
		if u == run {
			g.order = append(g.order, place)
		}
	}
}

// allIf returns the place before which a pass keeps keys, where it keeps those of all its rows or of none.
func allIf(keep bool, uses []use) int {
	if keep {
		return len(uses)
	}
	return 0
}

// mark sets the uses of the places from first to end.
func mark(uses []use, first, end int, u use) {
	for place := max(0, first); place < min(end, len(uses)); place++ {
		uses[place] = u
	}
}

// bounds returns the places of the text from which on the block's tokens are given, up to its end: a row before the block gives its first token where heads are shifted.
func (g *Generator) bounds() (first, end int) {
	p := len(g.prompt)
	if first = p + g.first; g.s.Native > 0 {
		first = g.blockStart()
	}
	if g.s.Shift && first > 0 {
		first--
	}
	return first, p + g.end
}

// masked reports whether a place of the text is a mask.
func (g *Generator) masked(place int) bool {
	return place >= len(g.prompt) && g.canvas[place-len(g.prompt)].ID == g.s.Mask
}

type plain struct{}

func (plain) plan(g *Generator, _ bool, uses []use) int {
	if _, end := g.bounds(); g.s.Native > 0 {
		mark(uses, end, len(uses), hidden)
	}
	return 0
}

func (plain) reach() reach { return runsAll }

type prefix struct{}

func (prefix) reach() reach { return runsAll }

func (prefix) plan(g *Generator, entry bool, uses []use) int {
	if first, _ := g.bounds(); !entry {
		mark(uses, 0, first, seen)
	}
	return allIf(entry, uses)
}

type dual struct{}

func (dual) reach() reach { return runsBlock }

func (dual) plan(g *Generator, entry bool, uses []use) int {
	if first, end := g.bounds(); !entry {
		mark(uses, 0, first, seen)
		mark(uses, end, len(uses), seen)
	}
	return allIf(entry, uses)
}

// vicinity is dual with the places near the block, which run in each pass too.
type vicinity struct {
	before, behind int
	warm           int // passes of the canvas that run all rows
	every          int // passes of a block of which the first runs all rows; 0: all of the block
	pass           int
	ofBlock        int
}

func openVicinity(o *options.Options) cache {
	return &vicinity{before: o.Int("before", 16, 0, MostLength), behind: o.Int("behind", 16, 0, MostLength), warm: o.Int("warm", 4, 0, MostLength), every: o.Int("every", 0, 0, MostLength)}
}

func (*vicinity) reach() reach { return runsBlock }

func (c *vicinity) plan(g *Generator, entry bool, uses []use) int {
	if entry {
		c.ofBlock = 0
	}
	whole := c.pass < c.warm || c.ofBlock == 0 || c.every > 0 && c.ofBlock%c.every == 0
	c.pass++
	c.ofBlock++
	if first, end := g.bounds(); !whole {
		mark(uses, 0, first-c.before, seen)
		mark(uses, end+c.behind, len(uses), seen)
	}
	return allIf(whole, uses)
}

// delayed keeps what has been a token for a pass: its keys change most in the pass behind that which fixed it.
type delayed struct {
	every int
	pass  int    // of the block
	token []bool // by place of the text: its row ran as a token
}

func openDelayed(text string) (cache, error) {
	n, err := strconv.Atoi(cmp.Or(text, "4"))
	if err != nil || n < 1 || n > MostLength {
		return nil, fmt.Errorf("the number N is %.40q; it must be a whole number of passes from 1 to %d", text, MostLength)
	}
	return &delayed{every: n}, nil
}

func (*delayed) reach() reach { return runsSome }

func (c *delayed) plan(g *Generator, entry bool, uses []use) int {
	if entry {
		c.pass = 0
	}
	if c.pass <= 1 || c.pass%c.every == 0 {
		c.token = make([]bool, len(uses))
	}
	c.pass++
	for place := range uses {
		if known := !g.masked(place); c.token[place] && known && !g.givesMask(place) {
			uses[place] = seen
		} else {
			c.token[place] = known
		}
	}
	return len(uses)
}

// givesMask reports whether the row of a place gives the token of a mask behind it.
func (g *Generator) givesMask(place int) bool {
	return g.s.Shift && place+1 < len(g.prompt)+len(g.canvas) && g.masked(place+1)
}
