package suffixes

import "grove/text/token"

// Place is the end of a run of tokens in a tree. It is valid until the tree changes.
type Place struct{ node, into int32 }

// Draft is a token that may follow.
type Draft struct {
	ID     token.ID
	Parent int32   // an earlier draft; -1: the run of tokens
	Depth  int32   // 0: right behind the run
	Share  float32 // of the occurrences of what is before it
}

// Suffix returns where the last n tokens of the text that grows end; false where it has no such suffix, or nothing follows one.
func (t *Tree) Suffix(n int) (Place, bool) {
	if n < 1 || n > len(t.active) {
		return Place{}, false
	}
	at := t.active[len(t.active)-n]
	return Place{at, t.nodes[at].length}, t.nodes[at].first != none
}

// Find returns where a run of tokens, one or more, ends; false where no text has it.
func (t *Tree) Find(ids []token.ID) (p Place, ok bool) {
	for i := 0; i < len(ids); {
		if p.node = t.child(p.node, ids[i]); p.node == 0 {
			return Place{}, false
		}
		x := &t.nodes[p.node]
		for p.into = 0; p.into < x.length && i < len(ids); p.into, i = p.into+1, i+1 {
			if t.at(x.start+int(p.into)) != ids[i] {
				return Place{}, false
			}
		}
	}
	return p, true
}

// Count returns how often a run of tokens occurs in the texts.
func (t *Tree) Count(ids []token.ID) int {
	p, ok := t.Find(ids)
	if !ok || len(ids) == 0 {
		return 0
	}
	return int(t.nodes[p.node].count)
}

// Chain appends the tokens that follow a run most often, most at most, as long as the product of their shares is not below least, and
// returns the sum of the products: the tokens that are expected to be right. Where two follow equally often, the one that did first counts.
func (t *Tree) Chain(dst []Draft, p Place, most int, least float32) (drafts []Draft, score float32) {
	product := float32(1)
	for i := range most {
		share := float32(1)
		if p.into == t.nodes[p.node].length {
			c := t.nodes[p.node].first
			if c == none {
				break
			}
			share = float32(t.nodes[c].count) / float32(t.nodes[p.node].count)
			p = Place{node: c}
		}
		if product *= share; product < least {
			break
		}
		dst = append(dst, Draft{t.at(t.nodes[p.node].start + int(p.into)), int32(i) - 1, int32(i), share})
		score += product
		p.into++
	}
	return dst, score
}

// open is a draft of [Tree.Branch] that is not taken yet.
type open struct {
	Draft
	product float32
	behind  Place
}

// Branches has what [Tree.Branch] needs besides the tree.
type Branches struct{ open []open }

// Branch is Chain for a tree of drafts: of all that may follow, it takes the one whose product is the largest again and again.
func (t *Tree) Branch(dst []Draft, b *Branches, p Place, most int, least float32) (drafts []Draft, score float32) {
	b.open = b.open[:0]
	t.expand(b, p, -1, 0, 1, least)
	for i := range most {
		if len(b.open) == 0 {
			break
		}
		best := 0
		for k := range b.open {
			if b.open[k].product > b.open[best].product {
				best = k
			}
		}
		o := b.open[best]
		b.open = append(b.open[:best], b.open[best+1:]...)
		dst = append(dst, o.Draft)
		score += o.product
		t.expand(b, o.behind, int32(i), o.Depth+1, o.product, least)
	}
	return dst, score
}

// expand opens the drafts behind a place.
func (t *Tree) expand(b *Branches, p Place, parent, depth int32, product, least float32) {
	x := &t.nodes[p.node]
	if p.into < x.length {
		d := Draft{t.at(x.start + int(p.into)), parent, depth, 1}
		b.open = append(b.open, open{d, product, Place{p.node, p.into + 1}})
		return
	}
	for c := x.first; c != none; c = t.nodes[c].next {
		y := &t.nodes[c]
		share := float32(y.count) / float32(x.count)
		if product*share < least {
			return // the next ones are rarer
		}
		b.open = append(b.open, open{Draft{y.id, parent, depth, share}, product * share, Place{c, 1}})
	}
}
