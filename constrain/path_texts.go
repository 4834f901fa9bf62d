package constrain

import (
	"fmt"
	"slices"
	"sort"
)

// textEnd stands behind each text of the arena. It is no byte of a text: a text never holds 0xff.
const textEnd = 0xff

// PathTexts is a set of texts as a [PathMachine]: a tree of the beginnings that several of them share, behind which each text is
// a place in its bytes. A state is a node of the tree, or behind the nodes a place in the arena. It takes the bytes of
// the texts, 6 bytes for each, and 9 for each shared beginning. A step is a binary search among the branches of a node.
// Texts is immutable.
type PathTexts struct {
	arena []byte   // the texts, sorted, each with textEnd
	rows  []uint32 // by node: where its branches begin
	to    []uint32 // the state behind a branch
	by    []byte   // its byte; textEnd: the text ends here
	count int
}

// PathNewTexts returns the set of texts; equal ones are one. Errors: [ErrPathEmpty], also for an empty text; [ErrPathTooMany]; a
// text that holds the byte 0xff.
func PathNewTexts(texts []string) (*PathTexts, error) {
	total := 0
	for i, text := range texts {
		if text == "" {
			return nil, fmt.Errorf("paths: text %d: %w", i, ErrPathEmpty)
		}
		for at := range len(text) {
			if text[at] == textEnd {
				return nil, fmt.Errorf("paths: text %d: byte 0xff at %d; a text is UTF-8", i, at)
			}
		}
		total += len(text)
	}
	if err := checkSize(len(texts), total); err != nil {
		return nil, err
	}
	sorted := slices.Clone(texts)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	m := &PathTexts{count: len(sorted), arena: make([]byte, 0, total+len(sorted))}
	starts := make([]uint32, len(sorted))
	for i, text := range sorted {
		starts[i] = uint32(len(m.arena))
		m.arena = append(append(m.arena, text...), textEnd)
	}
	m.build(sorted, starts)
	return m, nil
}

// Held returns the memory of the texts in bytes, about.
func (m *PathTexts) Held() int { return cap(m.arena) + 4*(cap(m.rows)+cap(m.to)) + cap(m.by) }

// A span is the texts from..to-1, more than one, whose first depth bytes are the same.
type span struct{ from, to, depth int }

// build makes the nodes, breadth first, one for each beginning that several texts share. Where one text is left, a state
// is a place in the arena; the nodes' numbers lie below those of places, so that places are numbered once all nodes are.
func (m *PathTexts) build(sorted []string, starts []uint32) {
	queue := []span{{0, len(sorted), 0}}
	var leaves []int // branches whose state is a place
	for n := 0; n < len(queue); n++ {
		s := queue[n]
		m.rows = append(m.rows, uint32(len(m.by)))
		for at := s.from; at < s.to; {
			run := span{at, at + 1, s.depth + 1}
			if len(sorted[at]) == s.depth {
				m.by, m.to = append(m.by, textEnd), append(m.to, 0)
				at++
				continue
			}
			b := sorted[at][s.depth]
			run.to = at + sort.Search(s.to-at, func(i int) bool { return sorted[at+i][s.depth] > b })
			m.by = append(m.by, b)
			if run.to == at+1 {
				leaves = append(leaves, len(m.to))
				m.to = append(m.to, starts[at]+uint32(run.depth))
			} else {
				m.to = append(m.to, uint32(len(queue)))
				queue = append(queue, run)
			}
			at = run.to
		}
	}
	m.rows = append(m.rows, uint32(len(m.by)))
	for _, i := range leaves {
		m.to[i] += uint32(len(queue))
	}
	m.rows, m.to, m.by = slices.Clip(m.rows), slices.Clip(m.to), slices.Clip(m.by)
}

// Len returns the number of different texts.
func (m *PathTexts) Len() int { return m.count }

// Memory returns how many bytes the set takes.
func (m *PathTexts) Memory() int { return cap(m.arena) + 4*cap(m.rows) + 4*cap(m.to) + cap(m.by) }

// row returns the branches of a node; ok is false for a place in the arena.
func (m *PathTexts) row(state int) (from, to int, ok bool) {
	if state >= len(m.rows)-1 {
		return 0, 0, false
	}
	return int(m.rows[state]), int(m.rows[state+1]), true
}

// Step implements [PathMachine].
func (m *PathTexts) Step(state int, b byte) (next int, alive bool) {
	if b == textEnd {
		return 0, false
	}
	from, to, ok := m.row(state)
	if !ok {
		at := state - (len(m.rows) - 1)
		return state + 1, at < len(m.arena) && m.arena[at] == b
	}
	// textEnd, which comes first where a text ends, would be the largest byte.
	if from < to && m.by[from] == textEnd {
		from++
	}
	i, ok := slices.BinarySearch(m.by[from:to], b)
	if !ok {
		return 0, false
	}
	return int(m.to[from+i]), true
}

// Final implements [PathMachine].
func (m *PathTexts) Final(state int) bool {
	if from, to, ok := m.row(state); ok {
		return from < to && m.by[from] == textEnd
	}
	at := state - (len(m.rows) - 1)
	return at < len(m.arena) && m.arena[at] == textEnd
}

// Bytes returns the bytes that may follow a state, ascending. The slice is the set's.
func (m *PathTexts) Bytes(state int) []byte {
	from, to, ok := m.row(state)
	if !ok {
		from = state - (len(m.rows) - 1)
		if from >= len(m.arena) || m.arena[from] == textEnd {
			return nil
		}
		return m.arena[from : from+1]
	}
	if from < to && m.by[from] == textEnd {
		from++
	}
	return m.by[from:to]
}
