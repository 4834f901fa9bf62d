package diffuse

import (
	"fmt"
	"strconv"
	"strings"
)

// A cache says which rows a pass runs, and which of them later passes see as they are. It writes the places of the text to g.order.
type cache interface {
	// plan plans a pass; entry says that it is the first of a block. It returns whether what is kept is dropped before, and how many of the pass's first rows are kept.
	plan(g *Generator, entry bool) (clear bool, keep int)
}

// CacheInfo describes a way to keep keys.
type CacheInfo struct{ Name, Paper, Grade string }

// Caches are the ways to keep keys of earlier passes. All but the first change what rows see, and so the answer: they are lossy.
var Caches = []CacheInfo{
	{"none", "every pass runs all rows", "exact"},
	{"prefix", "Fast-dLLM, Wu et al. 2025: keys before the block are those of its first pass", "lossy"},
	{"dual", "Fast-dLLM, Wu et al. 2025: keys before and behind the block are those of its first pass", "lossy"},
	{"delayed:N", "dKV-Cache, Ma et al. 2025: keys of a token are kept one pass after it was fixed; every N-th pass runs all rows", "lossy"},
}

// openCache returns the cache that a text names; "" is none.
func openCache(text string) (cache, error) {
	name, option, has := strings.Cut(text, ":")
	switch {
	case (name == "" || name == "none") && !has:
		return plain{}, nil
	case name == "prefix" && !has:
		return prefix{}, nil
	case name == "dual" && !has:
		return dual{}, nil
	case name == "delayed":
		n := 4
		if has {
			var err error
			if n, err = strconv.Atoi(option); err != nil || n < 1 || n > 1<<16 {
				return nil, fmt.Errorf("diffuse: cache delayed:%.40s; N must be a number of passes from 1 to %d", option, 1<<16)
			}
		}
		return &delayed{every: n}, nil
	}
	return nil, fmt.Errorf("diffuse: cache %.40q is not known; these are: none, prefix, dual, delayed, delayed:N", text)
}

// span adds the places from first to end of the text to the order.
func (g *Generator) span(first, end int) {
	for place := first; place < end; place++ {
		g.order = append(g.order, place)
	}
}

// bounds returns the places of the text from which on the block's tokens are given, up to its end: a row before the block gives its first token where heads are shifted.
func (g *Generator) bounds() (first, end, total int) {
	p := len(g.prompt)
	if first = p + g.first; g.s.Shift && first > 0 {
		first--
	}
	return first, p + g.end, p + len(g.canvas)
}

type plain struct{}

func (plain) plan(g *Generator, _ bool) (bool, int) {
	g.order = g.order[:0]
	g.span(0, len(g.prompt)+len(g.canvas))
	return false, 0
}

type prefix struct{}

func (prefix) plan(g *Generator, entry bool) (bool, int) {
	first, _, total := g.bounds()
	g.order = g.order[:0]
	if !entry {
		g.span(first, total)
		return false, 0
	}
	g.span(0, total)
	return true, first
}

type dual struct{}

func (dual) plan(g *Generator, entry bool) (bool, int) {
	first, end, total := g.bounds()
	g.order = g.order[:0]
	if !entry {
		g.span(first, end)
		return false, 0
	}
	g.span(0, first)
	g.span(end, total)
	g.span(first, end)
	return true, total - (end - first)
}

// delayed keeps what has been a token for a pass: its keys change most in the pass behind that which fixed it.
type delayed struct {
	every int
	pass  int    // of the block
	kept  []bool // by place of the text
}

func (c *delayed) plan(g *Generator, entry bool) (clear bool, keep int) {
	total := len(g.prompt) + len(g.canvas)
	if entry {
		c.pass = 0
	}
	if clear = c.pass <= 1 || c.pass%c.every == 0; clear {
		c.kept = make([]bool, total)
	}
	g.order = g.order[:0]
	var run []int // and not kept
	for place := range total {
		switch known := place < len(g.prompt) || g.canvas[place-len(g.prompt)].ID != g.s.Mask; {
		case c.kept[place]:
		case known && !c.gives(g, place):
			g.order = append(g.order, place) // what is to be kept goes first
			c.kept[place] = true
		default:
			run = append(run, place)
		}
	}
	keep = len(g.order)
	g.order = append(g.order, run...)
	c.pass++
	return clear, keep
}

// gives reports whether the row of a place gives a token that is wanted, and must run.
func (c *delayed) gives(g *Generator, place int) bool {
	for _, gives := range g.gives(place) {
		if to := gives - len(g.prompt); gives != place && to >= 0 && to < len(g.canvas) && g.canvas[to].ID == g.s.Mask {
			return true
		}
	}
	return false
}
