package grow

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"grove/compute"
	"grove/method"
	"grove/text/token"
)

// Trim picks the part of a draft model's vocabulary that its head computes, by how frequent tokens were in the texts
// so far (VocabTrim, Goel et al. 2025; FR-Spec, Zhao et al. 2025). Tokens that no text had yet are taken in the order
// of ids, in which vocabularies list merges by frequency. It is safe for concurrent use.
type Trim struct {
	keep int // groups

	mu     sync.Mutex
	counts []uint32 // by group of tokens; those that end an answer have the most
	total  uint32
	order  []int32 // scratch
}

// forgetAfter is how many tokens are counted before all counts are halved.
const forgetAfter = 1 << 20

// NewTrim makes a trim of e's draft model that keeps e.DraftVocab tokens; nil where that is all.
func NewTrim(e method.Env) *Trim {
	vocabulary := e.Draft.Size().Vocabulary
	if e.DraftVocab <= 0 || e.DraftVocab >= vocabulary {
		return nil
	}
	groupsOf := func(n int) int { return (n + compute.SubsetGroup - 1) / compute.SubsetGroup }
	t := &Trim{keep: groupsOf(e.DraftVocab), counts: make([]uint32, groupsOf(vocabulary))}
	if _, own := e.Words.Tokenizers(); own != nil {
		for id := range token.ID(min(own.Size(), vocabulary)) {
			if own.IsEOG(id) {
				t.counts[id/compute.SubsetGroup] = math.MaxUint32
			}
		}
	}
	return t
}

// pick appends the groups that a new text begins with to dst, ascending.
func (t *Trim) pick(dst []int32) []int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.order = t.order[:0]
	for g := range t.counts {
		t.order = append(t.order, int32(g))
	}
	slices.SortStableFunc(t.order, func(a, b int32) int { return cmp.Compare(t.counts[b], t.counts[a]) })
	dst = append(dst, t.order[:t.keep]...)
	slices.Sort(dst)
	return dst
}

// learn counts tokens of a text and adds their groups to those of the text, ascending.
func (t *Trim) learn(groups []int32, ids []token.ID) []int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		g := int32(id / compute.SubsetGroup)
		if int(g) >= len(t.counts) {
			continue
		}
		if at, ok := slices.BinarySearch(groups, g); !ok {
			groups = slices.Insert(groups, at, g)
		}
		if t.counts[g] < math.MaxUint32 {
			t.counts[g]++
			t.total++
		}
	}
	if t.total >= forgetAfter {
		t.total = 0
		for g, n := range t.counts {
			if n < math.MaxUint32 {
				t.counts[g] = n / 2
				t.total += n / 2
			}
		}
	}
	return groups
}
