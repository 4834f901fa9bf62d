package method

import (
	"slices"

	"grove/internal/text/token"
)

// Index finds n-grams of one length in a text that grows. The text is kept outside. Make it with [NewIndex]; it is
// for one goroutine.
type Index struct {
	n      int
	table  []Found // by hash; one without an end is empty
	used   int
	behind int // n-grams that end before this place are in the table
}

// Found is the result of a search for an n-gram.
type Found struct {
	End   int32 // the place behind its first occurrence
	Count int32 // occurrences
	Mixed bool  // they are not all followed by the same token
}

// NewIndex makes an index of n-grams of n tokens.
func NewIndex(n int) *Index { return &Index{n: n, table: make([]Found, 1024)} }

// Reset forgets the text.
func (x *Index) Reset() {
	clear(x.table)
	x.used, x.behind = 0, 0
}

// Cover indexes the n-grams of text that a token follows; text is what it was at the last call, with more behind
// it. The n-gram at the very end stays out, so that it does not find itself.
func (x *Index) Cover(text []token.ID) {
	for end := max(x.behind, x.n); end < len(text); end++ {
		if 2*x.used >= len(x.table) {
			x.grow(text)
		}
		at := x.place(text, text[end-x.n:end])
		m := &x.table[at]
		if m.Count == 0 {
			*m = Found{End: int32(end)}
			x.used++
		}
		m.Count++
		m.Mixed = m.Mixed || text[m.End] != text[end]
	}
	x.behind = max(x.behind, len(text))
}

// Find returns what the indexed text has of the n-gram at the end of key; the Count is 0 where it has none.
func (x *Index) Find(text, key []token.ID) Found {
	if len(key) < x.n {
		return Found{}
	}
	return x.table[x.place(text, key[len(key)-x.n:])]
}

// place returns the slot of an n-gram: its own, or the empty one for it.
func (x *Index) place(text, key []token.ID) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, id := range key {
		h = (h ^ uint64(uint32(id))) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	mask := uint64(len(x.table) - 1)
	for at := h & mask; ; at = (at + 1) & mask {
		end := int(x.table[at].End)
		if x.table[at].Count == 0 || slices.Equal(text[end-x.n:end], key) {
			return at
		}
	}
}

// grow doubles the table.
func (x *Index) grow(text []token.ID) {
	old := x.table
	x.table = make([]Found, 2*len(old))
	for _, m := range old {
		if m.Count > 0 {
			x.table[x.place(text, text[int(m.End)-x.n:m.End])] = m
		}
	}
}
