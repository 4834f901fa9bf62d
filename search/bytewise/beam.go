package bytewise

import (
	"cmp"
	"context"
	"math"
	"slices"

	"grove/constrain/vocab"
	"grove/internal/text/token"
)

// Beam makes a view that sums over all sequences of tokens, valid or not, and keeps the likeliest alone. Its distribution is approximate, and the better the wider it is.
type Beam struct {
	Width     int     // beginnings of tokens that are kept
	Threshold float64 // those with less than this part of the likeliest one's probability are dropped
}

// Beam returns a view with a beam behind a text at which a model's paths begin.
func (v *Vocabulary) Beam(m Model, b Beam) *View {
	w := v.New(m, nil)
	w.tree.any, w.beam = true, &b
	return w
}

// prune keeps the likeliest heads of a beam.
func (w *View) prune(ctx context.Context) error {
	if w.beam == nil {
		return nil
	}
	if err := w.tree.compute(ctx, w.heads, false); err != nil {
		return err
	}
	type weighed struct {
		head
		log float64
	}
	all := make([]weighed, len(w.heads))
	for i, h := range w.heads {
		all[i] = weighed{h, h.n.log + math.Log(w.tree.below(h))}
	}
	slices.SortStableFunc(all, func(a, b weighed) int { return cmp.Compare(b.log, a.log) })
	least := all[0].log + math.Log(w.beam.Threshold)
	w.heads = w.heads[:0:0]
	for _, h := range all[:min(len(all), w.beam.Width)] {
		if h.log >= least {
			w.heads = append(w.heads, h.head)
		}
	}
	return nil
}

// heal returns the heads behind a byte that no head of a beam goes on with: the beginning of a token at each is cut into whole tokens, the longest
// first, until what is left with the byte begins a token.
func (t *tree) heal(heads []head, b byte) (next []head) {
	for _, h := range heads {
		n, rest := h.n, append(t.spelled(h.at), b)
		for {
			at, end, id := t.longest(rest)
			if at >= 0 && t.v.trie[at].Size() > 1 {
				next = append(next, head{n, at})
			}
			if id == vocab.None || at >= 0 && end < len(rest) {
				break
			}
			n, rest = t.follow(n, token.ID(id)), rest[end:]
			if len(rest) == 0 {
				next = append(next, head{n, 0})
			}
			if at >= 0 {
				break
			}
		}
	}
	return next
}

// spelled returns the bytes that lead to a place of the trie.
func (t *tree) spelled(at int) (text []byte) {
	trie := t.v.trie
	for depth := trie[at].Depth(); depth > 0; at-- {
		if trie[at].Depth() == depth {
			text = append(text, trie[at].Byte())
			depth--
		}
	}
	slices.Reverse(text)
	return text
}

// longest returns the place to which a text leads, -1 where it begins no token, and the longest token that the text begins with and the bytes of that.
func (t *tree) longest(text []byte) (at, end int, id uint32) {
	id = vocab.None
	for i, b := range text {
		if at = t.child(at, b); at < 0 {
			break
		}
		if found := t.v.trie[at].Token(); found != vocab.None {
			end, id = i+1, found
		}
	}
	return at, end, id
}
