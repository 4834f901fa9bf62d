// suffixes_tree.go counts the suffixes of texts in a compressed tree, and drafts by the counts (SuffixDecoding, Oliaro et al. 2024).

package text

import "grove/internal/text/token"

// SuffixDeepest bounds the tokens of a suffix that the tree holds.
const SuffixDeepest = 64

const (
	suffixesRoot = 0
	suffixesNone = -1
)

// suffixesNode stands for a run of tokens behind its parent's. Its label is a place in the text, of the newest suffix that passes through all
// of it.
type suffixesNode struct {
	start                     int   // of the label in the text
	length                    int32 // of the label; 0: the root's
	count                     int32 // suffixes that pass through it or end at its end
	id                        token.ID
	parent, first, next, prev int32 // children by count, the largest first; of equal ones the one that had it first. The first's prev is the last
}

// SuffixTree is a compressed tree of all suffixes of some texts, [SuffixDeepest] tokens of each at most, with counts. Every suffix ends at the end of
// a node, and no child has the count of its parent: what the tree holds depends on the texts alone. It does not hold the texts. It takes
// at most 120 bytes for each token, and keeps its storage. It is for one goroutine.
type SuffixTree struct {
	text   []token.ID
	base   int
	nodes  []suffixesNode
	free   int32   // a list by next
	table  []int32 // children by parent and first token; 0: empty, the root is nobody's child
	used   int
	active []int32 // where the suffixes of the text that grows end, the longest first
}

// NewSuffixTree makes a tree of no text.
func NewSuffixTree() *SuffixTree {
	t := &SuffixTree{table: make([]int32, 64), active: make([]int32, 0, SuffixDeepest)}
	t.Reset()
	return t
}

// Reset forgets all texts.
func (t *SuffixTree) Reset() {
	t.nodes = append(t.nodes[:0], suffixesNode{parent: suffixesNone, first: suffixesNone, next: suffixesNone, prev: suffixesNone, id: token.None})
	t.free, t.used, t.active = suffixesNone, 0, t.active[:0]
	clear(t.table)
}

// Use says where the texts are, behind each other: text is the tokens from the place base on. It holds all that the tree was given and has
// not forgotten; the caller does not change it.
func (t *SuffixTree) Use(text []token.ID, base int) { t.text, t.base = text, base }

// End ends the text that grows: what follows is another one.
func (t *SuffixTree) End() { t.active = t.active[:0] }

// at returns a token of the text.
func (t *SuffixTree) at(place int) token.ID { return t.text[place-t.base] }

// slot returns the place in the table of a child, or the empty one for it.
func (t *SuffixTree) slot(parent int32, id token.ID) int {
	mask := len(t.table) - 1
	for at := t.home(parent, id); ; at = (at + 1) & mask {
		if c := t.table[at]; c == 0 || t.nodes[c].parent == parent && t.nodes[c].id == id {
			return at
		}
	}
}

func (t *SuffixTree) home(parent int32, id token.ID) int {
	h := (uint64(uint32(parent))<<32 | uint64(uint32(id))) * 0x9e3779b97f4a7c15
	return int(h>>24) & (len(t.table) - 1)
}

// child returns the child of a node whose label begins with a token; 0: there is none.
func (t *SuffixTree) child(parent int32, id token.ID) int32 { return t.table[t.slot(parent, id)] }

// enter puts a node into the table.
func (t *SuffixTree) enter(n int32) {
	if t.used++; 2*t.used > len(t.table) {
		old := t.table
		t.table = make([]int32, 2*len(old))
		for _, c := range old {
			if c != 0 {
				t.table[t.slot(t.nodes[c].parent, t.nodes[c].id)] = c
			}
		}
	}
	t.table[t.slot(t.nodes[n].parent, t.nodes[n].id)] = n
}

// leave takes a node out of the table, and moves up those behind it that were put further for it.
func (t *SuffixTree) leave(n int32) {
	t.used--
	mask := len(t.table) - 1
	hole := t.slot(t.nodes[n].parent, t.nodes[n].id)
	for at := (hole + 1) & mask; t.table[at] != 0; at = (at + 1) & mask {
		c := &t.nodes[t.table[at]]
		if (at-t.home(c.parent, c.id))&mask >= (at-hole)&mask {
			t.table[hole], hole = t.table[at], at
		}
	}
	t.table[hole] = 0
}

// create makes a node for the token at a place.
func (t *SuffixTree) create(parent int32, place int, count int32) int32 {
	n := suffixesNode{start: place, length: 1, count: count, id: t.at(place), parent: parent, first: suffixesNone, next: suffixesNone, prev: suffixesNone}
	if at := t.free; at != suffixesNone {
		t.free = t.nodes[at].next
		t.nodes[at] = n
		return at
	}
	t.nodes = append(t.nodes, n)
	return int32(len(t.nodes) - 1)
}

func (t *SuffixTree) drop(n int32) { t.nodes[n].next, t.free = t.free, n }

// insert puts a node among its siblings, behind all whose count is not smaller.
func (t *SuffixTree) insert(n int32) {
	x := &t.nodes[n]
	p := &t.nodes[x.parent]
	if p.first == suffixesNone {
		p.first, x.next, x.prev = n, suffixesNone, n
		return
	}
	head, before := p.first, p.first
	if t.nodes[t.nodes[head].prev].count >= x.count {
		before = suffixesNone
	}
	for before != suffixesNone && t.nodes[before].count >= x.count {
		before = t.nodes[before].next
	}
	x.next = before
	switch before {
	case suffixesNone:
		x.prev = t.nodes[head].prev
		t.nodes[x.prev].next, t.nodes[head].prev = n, n
	case head:
		x.prev, p.first = t.nodes[head].prev, n
		t.nodes[head].prev = n
	default:
		x.prev = t.nodes[before].prev
		t.nodes[x.prev].next, t.nodes[before].prev = n, n
	}
}

// remove takes a node from its siblings.
func (t *SuffixTree) remove(n int32) {
	x := t.nodes[n]
	p := &t.nodes[x.parent]
	if p.first == n {
		p.first = x.next
	} else {
		t.nodes[x.prev].next = x.next
	}
	switch {
	case x.next != suffixesNone:
		t.nodes[x.next].prev = x.prev
	case p.first != suffixesNone:
		t.nodes[p.first].prev = x.prev
	}
}

// count adds to a node's count.
func (t *SuffixTree) count(n, by int32) {
	t.remove(n)
	t.nodes[n].count += by
	t.insert(n)
}

// replace gives a node that has no place the one of another, which has none then: the parent and the siblings.
func (t *SuffixTree) replace(old, n int32) {
	o, x := &t.nodes[old], &t.nodes[n]
	t.leave(old)
	x.id, x.parent, x.next, x.prev = o.id, o.parent, o.next, o.prev
	p := &t.nodes[o.parent]
	if x.prev == old {
		x.prev = n // an only child
	}
	switch {
	case x.next != suffixesNone:
		t.nodes[x.next].prev = n
	case p.first != old:
		t.nodes[p.first].prev = n
	}
	if p.first == old {
		p.first = n
	} else {
		t.nodes[x.prev].next = n
	}
	t.enter(n)
}

// Extend adds a token at the end of the text that grows, at a place: a new one behind [SuffixTree.End].
func (t *SuffixTree) Extend(place int) {
	if len(t.active) == SuffixDeepest {
		copy(t.active, t.active[1:])
		t.active = t.active[:SuffixDeepest-1]
	}
	t.active = append(t.active, suffixesRoot)
	id := t.at(place)
	for i, n := range t.active {
		n = t.step(n, id, place)
		t.active[i] = n
		t.nodes[n].start = place + 1 - int(t.nodes[n].length)
	}
}

// step lengthens a suffix that ends at a node by a token, and returns where it ends.
func (t *SuffixTree) step(n int32, id token.ID, place int) int32 {
	x := &t.nodes[n]
	c := t.child(n, id)
	if c == 0 {
		if n != suffixesRoot && x.first == suffixesNone && x.count == 1 {
			x.length++ // the suffix alone ends here
			return n
		}
		c = t.create(n, place, 1)
		t.insert(c)
		t.enter(c)
		return c
	}
	y := &t.nodes[c]
	switch {
	case n != suffixesRoot && y.count == x.count-1 && y.length == 1: // all others go on to the child: the two are one
		t.leave(c)
		y.length, y.count = x.length+1, x.count
		t.replace(n, c)
		t.drop(n)
		return c
	case n != suffixesRoot && y.count == x.count-1:
		t.leave(c)
		y.start, y.length = y.start+1, y.length-1
		y.id = t.at(y.start)
		t.enter(c)
		x.length++
		return n
	case y.length == 1:
		t.count(c, 1)
		return c
	}
	m := t.create(n, place, y.count)
	t.replace(c, m)
	y = &t.nodes[c]
	y.start, y.length = y.start+1, y.length-1
	y.id, y.parent = t.at(y.start), m
	t.insert(c)
	t.enter(c)
	t.count(m, 1)
	return m
}

// Forget takes the oldest text out, the tokens from one place to another. No text grows meanwhile.
func (t *SuffixTree) Forget(from, to int) {
	var path [SuffixDeepest]int32
	for ; from < to; from++ {
		n, depth, end := int32(suffixesRoot), 0, min(from+SuffixDeepest, to)
		for place := from; place < end; place += int(t.nodes[n].length) {
			n = t.child(n, t.at(place))
			t.count(n, -1)
			path[depth] = n
			depth++
		}
		for ; depth > 0; depth-- {
			t.tidy(path[depth-1])
		}
	}
}

// tidy removes a node that no suffix passes, and makes one of a node and a child to which all go on.
func (t *SuffixTree) tidy(n int32) {
	x := t.nodes[n]
	c := x.first
	switch {
	case x.count == 0:
		t.remove(n)
		t.leave(n)
		t.drop(n)
	case c != suffixesNone && t.nodes[c].count == x.count:
		y := &t.nodes[c]
		t.leave(c)
		y.start, y.length = y.start-int(x.length), y.length+x.length
		t.replace(n, c)
		t.drop(n)
	}
}
