package constrain

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
)

// PathArrow stands between the names of a path.
const PathArrow = " -> "

// The bounds of a graph: triples, bytes of a name, hops.
const (
	PathMaxTriples = 1 << 24
	PathMaxName    = 1 << 12
	PathMaxHops    = 8
)

// PathTriple is an edge of a knowledge graph.
type PathTriple struct{ Head, Relation, Tail string }

// PathGraph is the set of the paths of a knowledge graph as a [PathMachine]: "head -> relation -> tail -> relation -> tail",
// of one hop or more, from given entities, each with the closing marker behind it (Graph-constrained Reasoning, 2024).
// Paths are not listed: a state is a place in the text of an edge, so that the set takes the memory of the graph,
// whatever the number of hops. A step is a binary search among an entity's edges. Graph is safe for concurrent use.
type PathGraph struct {
	hops   int
	close  string
	starts []int32  // entities that a path may begin at, by name
	names  []string // of entities
	from   []int32  // by entity, its first row, and one more
	rows   []row

	mu    sync.Mutex
	sets  [][]place // what several readings of a text have in common
	known map[string]int
}

// A row is an edge: the text behind its head's arrow, "relation -> tail".
type row struct {
	text       string
	head, tail int32
}

// A place is where a path stands, packed: its kind; the hops that are left, of a row its own among them; a row, an
// entity or a start; the bytes that were read of its text. Of rows or starts that begin alike it is the first.
type place int64

const (
	inStart place = iota // in the name of the first entity
	inRow
	inArrow // behind an entity
	inClose // in the closing marker
	inSet   // several places
)

func placeOf(kind place, hops, which int32, n int) place {
	return kind<<58 | place(hops)<<54 | place(which)<<24 | place(n)
}

func (p place) kind() place  { return p >> 58 }
func (p place) hops() int32  { return int32(p >> 54 & 15) }
func (p place) which() int32 { return int32(p >> 24 & (1<<30 - 1)) }
func (p place) read() int    { return int(p & (1<<24 - 1)) }

// PathNewGraph returns the paths of 1 to hops edges from the given entities, each with closing behind it. Entities without
// an edge are left out. Errors: no path ([ErrPathEmpty]), a bound ([ErrPathTooMany]), hops out of range, a name that is empty or
// holds the arrow, the closing marker or the byte 0xff.
func PathNewGraph(triples []PathTriple, entities []string, hops int, closing string) (*PathGraph, error) {
	switch {
	case hops < 1 || hops > PathMaxHops:
		return nil, fmt.Errorf("paths: %d hops; from 1 to %d", hops, PathMaxHops)
	case len(triples) > PathMaxTriples:
		return nil, fmt.Errorf("paths: %d triples; at most %d: %w", len(triples), PathMaxTriples, ErrPathTooMany)
	case strings.IndexByte(closing, textEnd) >= 0:
		return nil, fmt.Errorf("paths: the closing marker %q holds byte 0xff; a text is UTF-8", closing)
	}
	g := &PathGraph{hops: hops, close: closing, known: map[string]int{}}
	if err := g.addRows(triples); err != nil {
		return nil, err
	}
	for _, name := range entities {
		if id, ok := slices.BinarySearch(g.names, name); ok && g.from[id] < g.from[id+1] {
			g.starts = append(g.starts, int32(id))
		}
	}
	slices.Sort(g.starts)
	if g.starts = slices.Compact(g.starts); len(g.starts) == 0 {
		return nil, fmt.Errorf("paths: none of %d entities has an edge: %w", len(entities), ErrPathEmpty)
	}
	return g, nil
}

// addRows makes names and rows of the triples.
func (g *PathGraph) addRows(triples []PathTriple) error {
	for i, t := range triples {
		for _, name := range []string{t.Head, t.Relation, t.Tail} {
			if err := g.checkName(name); err != nil {
				return fmt.Errorf("paths: triple %d: %w", i, err)
			}
		}
		g.names = append(g.names, t.Head, t.Tail)
	}
	slices.Sort(g.names)
	g.names = slices.Clip(slices.Compact(g.names))
	for _, t := range triples {
		head, _ := slices.BinarySearch(g.names, t.Head)
		tail, _ := slices.BinarySearch(g.names, t.Tail)
		g.rows = append(g.rows, row{t.Relation + PathArrow + t.Tail, int32(head), int32(tail)})
	}
	slices.SortFunc(g.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.head, b.head), strings.Compare(a.text, b.text))
	})
	g.rows = slices.Clip(slices.Compact(g.rows))
	g.from = make([]int32, len(g.names)+1)
	for _, r := range g.rows {
		g.from[r.head+1]++
	}
	for i := range g.names {
		g.from[i+1] += g.from[i]
	}
	return nil
}

func (g *PathGraph) checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("an empty name: %w", ErrPathEmpty)
	case len(name) > PathMaxName:
		return fmt.Errorf("a name of %d bytes; at most %d: %w", len(name), PathMaxName, ErrPathTooMany)
	case strings.Contains(name, PathArrow), g.close != "" && strings.Contains(name, g.close), strings.IndexByte(name, textEnd) >= 0:
		return fmt.Errorf("the name %q holds %q, %q or byte 0xff, which are no part of names", name, PathArrow, g.close)
	}
	return nil
}

// Step implements [PathMachine].
func (g *PathGraph) Step(state int, b byte) (next int, alive bool) {
	var space [8]place
	all := space[:0]
	for _, p := range g.places(place(state)) {
		all = g.step(all, p, b)
	}
	switch len(all) {
	case 0:
		return 0, false
	case 1:
		return int(all[0]), true
	}
	return g.set(all), true
}

// Final implements [PathMachine].
func (g *PathGraph) Final(state int) bool {
	for _, p := range g.places(place(state)) {
		switch p.kind() {
		case inClose:
			if p.read() == len(g.close) {
				return true
			}
		case inRow:
			if g.close == "" && p.read() == len(g.rows[p.which()].text) {
				return true
			}
		}
	}
	return false
}

// places returns the places of a state.
func (g *PathGraph) places(p place) []place {
	if p.kind() != inSet {
		return []place{p}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sets[p.which()]
}

// set returns the state of several places.
func (g *PathGraph) set(all []place) int {
	slices.Sort(all)
	all = slices.Compact(all)
	key := fmt.Sprint(all)
	g.mu.Lock()
	defer g.mu.Unlock()
	i, ok := g.known[key]
	if !ok {
		i = len(g.sets)
		g.sets = append(g.sets, slices.Clone(all))
		g.known[key] = i
	}
	return int(placeOf(inSet, 0, int32(i), 0))
}

// step appends the places behind a byte to dst.
func (g *PathGraph) step(dst []place, p place, b byte) []place {
	n, which := p.read(), p.which()
	switch p.kind() {
	case inStart:
		entity := g.starts[which]
		if len(g.names[entity]) == n {
			dst = g.step(dst, placeOf(inArrow, int32(g.hops), entity, 0), b)
		}
		if i, ok := find(which, int32(len(g.starts)), n, b, func(i int32) string { return g.names[g.starts[i]] }); ok {
			dst = append(dst, placeOf(inStart, 0, i, n+1))
		}
	case inRow:
		r := g.rows[which]
		if len(r.text) == n {
			if p.hops() > 1 && g.from[r.tail] < g.from[r.tail+1] {
				dst = g.step(dst, placeOf(inArrow, p.hops()-1, r.tail, 0), b)
			}
			dst = g.step(dst, placeOf(inClose, 0, 0, 0), b)
		}
		if i, ok := find(which, g.from[r.head+1], n, b, func(i int32) string { return g.rows[i].text }); ok {
			dst = append(dst, placeOf(inRow, p.hops(), i, n+1))
		}
	case inArrow:
		switch {
		case PathArrow[n] != b:
		case n+1 < len(PathArrow):
			dst = append(dst, placeOf(inArrow, p.hops(), which, n+1))
		default:
			dst = append(dst, placeOf(inRow, p.hops(), g.from[which], 0))
		}
	case inClose:
		if n < len(g.close) && g.close[n] == b {
			dst = append(dst, placeOf(inClose, 0, 0, n+1))
		}
	}
	return dst
}

// find returns the first of the sorted texts from..to-1 that begins with the n bytes that text from begins with, and
// then b.
func find(from, to int32, n int, b byte, text func(int32) string) (int32, bool) {
	begin := text(from)[:n]
	i := from + int32(sort.Search(int(to-from), func(i int) bool {
		t := text(from + int32(i))
		if c := strings.Compare(t[:min(n, len(t))], begin); c != 0 {
			return c > 0
		}
		return len(t) > n && t[n] >= b
	}))
	if i == to {
		return 0, false
	}
	t := text(i)
	return i, len(t) > n && t[:n] == begin && t[n] == b
}
