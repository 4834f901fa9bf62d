// suffix.go drafts by counts of what followed the suffixes of the text, in the text itself and in past answers (SuffixDecoding,
// Oliaro et al. 2024). Of all suffixes the one whose draft promises the most tokens wins.

package text

import (
	"context"
	"math/bits"

	"grove/internal/text/token"
	"grove/method"
)

func init() {
	for _, tree := range []bool{false, true} {
		i := method.Info{
			Name: "suffix", Paper: "SuffixDecoding, 2024", Kind: method.KindText, Grade: method.Exact, Lasting: true, Replays: true,
			NotAuto: "suffix-tree drafts the same",
			Open:    func(method.Env) (method.Method, error) { return &suffix{past: newAnswers(maxTokens), tree: tree}, nil },
		}
		if tree {
			i.Name, i.Paper, i.Auto, i.NotAuto = "suffix-tree", "SuffixDecoding: trees, 2024", true, ""
		}
		method.Register(i)
	}
}

const (
	least = 0.1 // the probability of a draft, of those that are tried
	piece = 1024
)

// suffix is the past answers of the texts of a salt. What is learned of their drafts ([method.Info.Lasting]) is how often they are accepted.
type suffix struct {
	past *answers
	tree bool // drafts are trees, not chains
}

// NewDrafter implements [method.Method].
func (s *suffix) NewDrafter(method.Trunk) (method.Drafter, error) {
	return &suffixDrafter{of: s, own: NewSuffixTree()}, nil
}

type suffixDrafter struct {
	of       *suffix
	history  *method.History
	own      *SuffixTree
	answer   []token.ID // what the past answers do not have yet
	branches SuffixBranches
	places   []int // in the tree, of the drafts

	best   []SuffixDraft // of the round so far
	score  float32
	length int  // of the suffix
	past   bool // they are of past answers
	next   []SuffixDraft
}

// Begin implements [method.Drafter]. Of a text that was cut the engine tells the answer anew.
func (d *suffixDrafter) Begin(h *method.History) error {
	d.history, d.answer = h, d.answer[:0]
	d.own.Reset()
	d.extend(len(h.IDs()))
	return nil
}

// extend adds the last n tokens of the text.
func (d *suffixDrafter) extend(n int) {
	ids := d.history.IDs()
	d.own.Use(ids, 0)
	for at := len(ids) - n; at < len(ids); at++ {
		d.own.Extend(at)
	}
}

// Committed implements [method.Drafter].
func (d *suffixDrafter) Committed(r method.Update) {
	d.extend(len(r.IDs))
	for ids := r.IDs; len(ids) > 0; {
		n := min(len(ids), piece-len(d.answer))
		d.answer, ids = append(d.answer, ids[:n]...), ids[n:]
		if len(d.answer) == piece {
			d.of.past.add(d.answer)
			d.answer = d.answer[:0]
		}
	}
}

// Close implements [method.Closer]: the answer becomes a past one.
func (d *suffixDrafter) Close() error {
	d.of.past.add(d.answer)
	d.answer = d.answer[:0]
	return nil
}

// Draft implements [method.Drafter]: of equal scores the longer suffix wins, and the text itself before past answers. A suffix of n tokens
// drafts n tokens at most, so that its score is no larger.
func (d *suffixDrafter) Draft(_ context.Context, t *method.Tree) error {
	d.best, d.score, d.length, d.past = d.best[:0], 0, 0, false
	n := 0
	for ; n < SuffixDeepest; n++ {
		if _, ok := d.own.Suffix(n + 1); !ok {
			break // nothing follows a longer one either
		}
	}
	for ; float32(n) > d.score; n-- {
		p, _ := d.own.Suffix(n)
		d.try(d.own, p, n, false)
	}
	d.of.past.match(d)
	d.places = d.places[:0]
	for _, draft := range d.best {
		at := method.Root
		if draft.Parent >= 0 {
			if at = d.places[draft.Parent]; at == method.Root {
				d.places = append(d.places, method.Root)
				continue
			}
		}
		class, belief := suffixClassOf(d.past, d.length+int(draft.Depth), draft.Share)
		d.places = append(d.places, t.Add(at, draft.ID, class, belief))
	}
	return nil
}

// try drafts behind a suffix of n tokens, and keeps the drafts if they promise more than others.
func (d *suffixDrafter) try(from *SuffixTree, p SuffixPlace, n int, past bool) {
	var score float32
	if d.of.tree {
		d.next, score = from.Branch(d.next[:0], &d.branches, p, n, least)
	} else {
		d.next, score = from.Chain(d.next[:0], p, n, least)
	}
	if score > d.score {
		d.score, d.length, d.past = score, n, past
		d.best, d.next = d.next, d.best
	}
}

// suffixClassOf sorts drafts by where they are from, by the tokens that match if those before are accepted, and by how often they followed.
func suffixClassOf(past bool, match int, share float32) (class int, belief float32) {
	long := min(bits.Len(uint(match-1)), len(suffixBeliefs)-1)
	class = long
	for _, limit := range []float32{0.3, 0.6, 0.9} {
		if share > limit {
			class += len(suffixBeliefs)
		}
	}
	if past {
		class += 4 * len(suffixBeliefs)
	}
	return class, min(share, suffixBeliefs[long])
}

// suffixBeliefs are how often a draft behind 1, 2, 4, 8, ... tokens that match is accepted, before anything is known.
var suffixBeliefs = [8]float32{0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.9, 0.9}
