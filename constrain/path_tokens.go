package constrain

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"grove/internal/text/token"
)

// ErrPathTooMany means that a set has more entries, or longer ones, than this package reads.
var ErrPathTooMany = errors.New("the set is too large")

// ErrPathEmpty means that a set has no entry, or an empty one.
var ErrPathEmpty = errors.New("the set has no text")

// The bounds of a set: entries, and tokens or bytes of all of them together.
const (
	PathMaxEntries = 1 << 22
	PathMaxSymbols = 1 << 28
)

// PathTokens is a set of token sequences: the prefixes of all of them as compressed rows (STATIC: Vectorizing the Trie,
// 2026). A state is 0 before the first token; the state of the token v behind it is v + 1; states of longer prefixes
// follow, level by level in the order of the sequences. A row of the state s is packed[indptr[s]:indptr[s+1]], by
// token. The rows take 8 bytes an edge and 4 a state. A step is a binary search in one row, so that its cost depends on
// the branches of a state, not on the size of the set. Tokens is immutable.
type PathTokens struct {
	first     []token.ID // of the start, ascending
	alone     []uint64   // of these, a bit for those that are a sequence alone, without one that goes on
	indptr    []uint32
	packed    []edge
	vocab     int
	branching []int // the most branches of a state, level by level
	entries   int
}

// An edge is a token that may follow, and the state behind it: done where no sequence goes on.
type edge struct{ id, next int32 }

const (
	// end stands for the end of a sequence that is the beginning of another.
	end = -1
	// done is the state behind a whole sequence.
	done = 0
)

// PathNewTokens returns the set of the sequences of tokens below vocab; equal ones are one. It does not keep them. Errors:
// [ErrPathEmpty], [ErrPathTooMany], a token that is not of the vocabulary.
func PathNewTokens(vocab int, sequences [][]token.ID) (*PathTokens, error) {
	total := 0
	for i, seq := range sequences {
		if len(seq) == 0 {
			return nil, fmt.Errorf("paths: sequence %d has no token: %w", i, ErrPathEmpty)
		}
		for _, id := range seq {
			if id < 0 || int(id) >= vocab {
				return nil, fmt.Errorf("paths: sequence %d: token %d; the vocabulary has %d", i, id, vocab)
			}
		}
		total += len(seq)
	}
	if err := checkSize(len(sequences), total); err != nil {
		return nil, err
	}
	sorted := slices.Clone(sequences)
	slices.SortFunc(sorted, slices.Compare)
	sorted = slices.CompactFunc(sorted, slices.Equal)
	t := &PathTokens{vocab: vocab, entries: len(sorted), alone: make([]uint64, (vocab+63)/64)}
	t.build(sorted)
	return t, nil
}

func checkSize(entries, symbols int) error {
	switch {
	case entries == 0:
		return fmt.Errorf("paths: %w", ErrPathEmpty)
	case entries > PathMaxEntries:
		return fmt.Errorf("paths: %d entries; at most %d: %w", entries, PathMaxEntries, ErrPathTooMany)
	case symbols > PathMaxSymbols:
		return fmt.Errorf("paths: entries of %d tokens or bytes; at most %d: %w", symbols, PathMaxSymbols, ErrPathTooMany)
	}
	return nil
}

// A group is the sequences from..to-1, which begin alike, and the state behind that beginning.
type group struct{ from, to, state int32 }

// build makes the rows level by level.
func (t *PathTokens) build(sorted [][]token.ID) {
	next := int32(t.vocab + 1) // the next state without a number
	level := []group{{0, int32(len(sorted)), 0}}
	var below []group
	for depth := 0; len(level) > 0; depth++ {
		widest := 0
		below = below[:0]
		for _, g := range level {
			width, at := 0, g.from
			if t.openRow(g.state); len(sorted[at]) == depth {
				t.packed = append(t.packed, edge{end, done})
				width, at = 1, at+1
			}
			for at < g.to {
				run := group{at, at + 1, 0}
				id := sorted[at][depth]
				for run.to < g.to && sorted[run.to][depth] == id {
					run.to++
				}
				last := run.to == at+1 && len(sorted[at]) == depth+1
				if run.state = t.addEdge(depth, id, last, &next); !last {
					below = append(below, run)
				}
				width, at = width+1, run.to
			}
			widest = max(widest, width)
		}
		t.branching = append(t.branching, widest)
		level, below = below, level
	}
	t.openRow(next)
	t.packed, t.indptr = slices.Clip(t.packed), slices.Clip(t.indptr)
}

// openRow gives a state the edges that follow, and those before it that have no row an empty one.
func (t *PathTokens) openRow(state int32) {
	for int32(len(t.indptr)) <= state {
		t.indptr = append(t.indptr, uint32(len(t.packed)))
	}
}

// addEdge adds a token to the row that is open and returns the state behind it.
func (t *PathTokens) addEdge(depth int, id token.ID, last bool, next *int32) int32 {
	if depth == 0 {
		t.first = append(t.first, id)
		if last {
			t.alone[id/64] |= 1 << (id % 64)
			return done
		}
		return int32(id) + 1
	}
	to := int32(done)
	if !last {
		to = *next
		*next++
	}
	t.packed = append(t.packed, edge{int32(id), to})
	return to
}

// Len returns the number of different sequences.
func (t *PathTokens) Len() int { return t.entries }

// Bytes returns how much memory the rows take.
func (t *PathTokens) Bytes() int {
	return 8*cap(t.packed) + 4*cap(t.indptr) + 4*cap(t.first) + 8*cap(t.alone)
}

// Begin appends the tokens that a sequence may begin with, ascending, to dst.
func (t *PathTokens) Begin(dst []token.ID) []token.ID { return append(dst, t.first...) }

// First returns the state behind the first token of a sequence; whole means that no sequence goes on.
func (t *PathTokens) First(id token.ID) (state int, whole, ok bool) {
	if _, ok = slices.BinarySearch(t.first, id); !ok {
		return 0, false, false
	}
	if t.alone[id/64]>>(id%64)&1 != 0 {
		return done, true, true
	}
	return int(id) + 1, false, true
}

// Step returns the state behind a token that follows a state of First or Step; whole means that no sequence goes on.
func (t *PathTokens) Step(state int, id token.ID) (next int, whole, ok bool) {
	row := t.row(state)
	i := sort.Search(len(row), func(i int) bool { return row[i].id >= int32(id) })
	if id < 0 || i == len(row) || row[i].id != int32(id) {
		return 0, false, false
	}
	return int(row[i].next), row[i].next == done, true
}

// Ends reports whether a sequence ends at a state of First or Step from which others go on.
func (t *PathTokens) Ends(state int) bool {
	row := t.row(state)
	return len(row) > 0 && row[0].id == end
}

// row returns the edges of a state.
func (t *PathTokens) row(state int) []edge {
	if state <= 0 || state >= len(t.indptr)-1 || state > math.MaxInt32 {
		return nil
	}
	return t.packed[t.indptr[state]:t.indptr[state+1]]
}
