package text

import "grove/internal/text/token"

// SuffixPlace is the end of a run of tokens in a tree. It is valid until the tree changes.
type SuffixPlace struct{ node, into int32 }

// SuffixDraft is a token that may follow.
type SuffixDraft struct {
	ID     token.ID
	Parent int32   // an earlier draft; -1: the run of tokens
	Depth  int32   // 0: right behind the run
	Share  float32 // of the occurrences of what is before it
}

// Suffix returns where the last n tokens of the text that grows end; false where it has no such suffix, or nothing follows one.
func (t *SuffixTree) Suffix(n int) (SuffixPlace, bool) {
	if n < 1 || n > len(t.active) {
		return SuffixPlace{}, false
	}
	at := t.active[len(t.active)-n]
	return SuffixPlace{at, t.nodes[at].length}, t.nodes[at].first != suffixesNone
}

// Find returns where a run of tokens, one or more, ends; false where no text has it.
func (t *SuffixTree) Find(ids []token.ID) (p SuffixPlace, ok bool) {
	for i := 0; i < len(ids); {
		if p.node = t.child(p.node, ids[i]); p.node == 0 {
			return SuffixPlace{}, false
		}
		x := &t.nodes[p.node]
		for p.into = 0; p.into < x.length && i < len(ids); p.into, i = p.into+1, i+1 {
			if t.at(x.start+int(p.into)) != ids[i] {
				return SuffixPlace{}, false
			}
		}
	}
	return p, true
}

// Count returns how often a run of tokens occurs in the texts.
func (t *SuffixTree) Count(ids []token.ID) int {
	p, ok := t.Find(ids)
	if !ok || len(ids) == 0 {
		return 0
	}
	return int(t.nodes[p.node].count)
}

// Chain appends the tokens that follow a run most often, most at most, as long as the product of their shares is not below least, and
// returns the sum of the products: the tokens that are expected to be right. Where two follow equally often, the one that did first counts.
func (t *SuffixTree) Chain(dst []SuffixDraft, p SuffixPlace, most int, least float32) (drafts []SuffixDraft, score float32) {
	product := float32(1)
	for i := range most {
		share := float32(1)
		if p.into == t.nodes[p.node].length {
			c := t.nodes[p.node].first
			if c == suffixesNone {
				break
			}
			share = float32(t.nodes[c].count) / float32(t.nodes[p.node].count)
			p = SuffixPlace{node: c}
		}
		if product *= share; product < least {
			break
		}
		dst = append(dst, SuffixDraft{t.at(t.nodes[p.node].start + int(p.into)), int32(i) - 1, int32(i), share})
		score += product
		p.into++
	}
	return dst, score
}

// openSuffixes is a draft of [SuffixTree.Branch] that is not taken yet.
type openSuffixes struct {
	SuffixDraft
	product float32
	behind  SuffixPlace
}

// SuffixBranches has what [SuffixTree.Branch] needs besides the tree.
type SuffixBranches struct{ open []openSuffixes }

// Branch is Chain for a tree of drafts: of all that may follow, it takes the one whose product is the largest again and again.
func (t *SuffixTree) Branch(dst []SuffixDraft, b *SuffixBranches, p SuffixPlace, most int, least float32) (drafts []SuffixDraft, score float32) {
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
		dst = append(dst, o.SuffixDraft)
		score += o.product
		t.expand(b, o.behind, int32(i), o.Depth+1, o.product, least)
	}
	return dst, score
}

// expand opens the drafts behind a place.
func (t *SuffixTree) expand(b *SuffixBranches, p SuffixPlace, parent, depth int32, product, least float32) {
	x := &t.nodes[p.node]
	if p.into < x.length {
		d := SuffixDraft{t.at(x.start + int(p.into)), parent, depth, 1}
		b.open = append(b.open, openSuffixes{d, product, SuffixPlace{p.node, p.into + 1}})
		return
	}
	for c := x.first; c != suffixesNone; c = t.nodes[c].next {
		y := &t.nodes[c]
		share := float32(y.count) / float32(x.count)
		if product*share < least {
			return // the next ones are rarer
		}
		b.open = append(b.open, openSuffixes{SuffixDraft{y.id, parent, depth, share}, product * share, SuffixPlace{c, 1}})
	}
}
