package grow

import (
	"slices"
	"sync"

	"grove/internal/text/token"
	"grove/method"
	"grove/method/vocabulary"
)

// Trim picks the part of a draft model's vocabulary that its head computes, by how frequent tokens were in the texts
// so far (VocabTrim, Goel et al. 2025; FR-Spec, Zhao et al. 2025). It is safe for concurrent use.
type Trim struct {
	choose func(coverage []float64) int // how many groups are kept; nil: keep

	mu       sync.Mutex
	keep     int // groups
	known    int // tokens that keep was chosen by
	counts   vocabulary.Frequencies
	coverage []float64 // scratch
}

// NewTrim makes a trim of e's draft model that keeps e.DraftVocab tokens, or as many as e.VocabChoice chooses; nil where that is all.
func NewTrim(e method.Env) *Trim {
	size := e.Draft.Size().Vocabulary
	groups := vocabulary.Groups(size)
	t := &Trim{keep: min(vocabulary.Groups(max(0, e.DraftVocab)), groups)}
	switch c := e.VocabChoice; {
	case e.DraftVocab == method.AutoVocab && c != nil:
		t.choose, t.known = c.Groups, -1
		t.counts = vocabulary.New(size, c.Counts)
	case e.DraftVocab <= 0 || e.DraftVocab >= size:
		return nil
	default:
		t.counts = vocabulary.New(size, nil)
	}
	if _, own := e.VocabMap.Tokenizers(); own != nil {
		for id := range token.ID(min(own.Size(), size)) {
			if own.IsEOG(id) {
				t.counts.Always(id)
			}
		}
	}
	return t
}

// Kept returns how many groups of tokens texts begin with now.
func (t *Trim) Kept() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keep
}

// pick appends the groups that a new text begins with to dst, ascending.
func (t *Trim) pick(dst []int32) []int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	order := t.counts.Order()
	if n := t.counts.Total(); t.choose != nil && (n < t.known || n > t.known+t.known/4) {
		t.coverage = t.counts.Coverage(t.coverage[:0], t.counts.Unseen())
		t.keep, t.known = min(max(1, t.choose(t.coverage)), len(order)), n
	}
	dst = append(dst, order[:t.keep]...)
	slices.Sort(dst)
	return dst
}

// learn counts tokens of a text and adds their groups to those of the text, ascending.
func (t *Trim) learn(groups []int32, ids []token.ID) []int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		g := int32(id / vocabulary.Group)
		if !t.counts.Count(id) {
			continue
		}
		if at, ok := slices.BinarySearch(groups, g); !ok {
			groups = slices.Insert(groups, at, g)
		}
	}
	t.counts.Forget()
	return groups
}
