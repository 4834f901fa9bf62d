package constrain

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// PathMaxSubstring is how many bytes a text may have whose parts are a set.
const PathMaxSubstring = 1 << 22

// PathSubstring is the set of all parts of a text as a [PathMachine]: what stands in the text, from any byte to any other, and
// the empty text. It takes at most 40 bytes for each of the text's, and making it takes time in proportion to the text.
// Substring is immutable.
type PathSubstring struct{ s *suffixes }

// PathNewSubstring returns the set of the parts of a text. Errors: [ErrPathTooMany]; a text that holds the byte 0xff.
func PathNewSubstring(text string) (*PathSubstring, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	symbols := make([]int32, len(text))
	for i := range len(text) {
		symbols[i] = int32(text[i])
	}
	return &PathSubstring{newSuffixes(symbols)}, nil
}

func checkText(text string) error {
	if len(text) > PathMaxSubstring {
		return fmt.Errorf("paths: a text of %d bytes for its parts; at most %d: %w", len(text), PathMaxSubstring, ErrPathTooMany)
	}
	if i := strings.IndexByte(text, textEnd); i >= 0 {
		return fmt.Errorf("paths: the text has byte 0xff at %d; a text is UTF-8", i)
	}
	return nil
}

// Step implements [PathMachine].
func (m *PathSubstring) Step(state int, b byte) (next int, alive bool) {
	from, to := m.s.row(uint32(state))
	i, ok := slices.BinarySearch(m.s.by[from:to], int32(b))
	if !ok {
		return 0, false
	}
	return int(m.s.to[int(from)+i]), true
}

// Final implements [PathMachine].
func (m *PathSubstring) Final(int) bool { return true }

// PathWords is the set of those parts of a text that begin and end where a word or what stands between words does, as a
// [PathMachine]. A word is a run of letters, digits, underscores and bytes beyond ASCII. The empty text is one of them.
// Words is immutable.
type PathWords struct {
	s      *suffixes // its symbols are numbers of chunks
	chunks []string  // words and what stands between them, sorted
	owner  []uint32  // of each branch, the state
}

// PathNewWords returns the set of the parts of a text in words. Errors are those of [PathNewSubstring].
func PathNewWords(text string) (*PathWords, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	chunks := split(text)
	m := &PathWords{chunks: slices.Clone(chunks)}
	slices.Sort(m.chunks)
	m.chunks = slices.Compact(m.chunks)
	symbols := make([]int32, len(chunks))
	for i, chunk := range chunks {
		n, _ := slices.BinarySearch(m.chunks, chunk)
		symbols[i] = int32(n)
	}
	m.s = newSuffixes(symbols)
	m.owner = make([]uint32, len(m.s.by))
	for state := range len(m.s.rows) - 1 {
		for i := m.s.rows[state]; i < m.s.rows[state+1]; i++ {
			m.owner[i] = uint32(state)
		}
	}
	return m, nil
}

// split returns the words of a text and what stands between them.
func split(text string) (chunks []string) {
	for from, at := 0, 1; from < len(text); at++ {
		if at == len(text) || isWord(text[at]) != isWord(text[from]) {
			chunks = append(chunks, text[from:at])
			from = at
		}
	}
	return chunks
}

func isWord(b byte) bool {
	return b >= 0x80 || b == '_' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}

// A state of Words is 0, or a place in a chunk: the first branch whose chunk begins with the bytes so far, and how many
// these are. Since chunks alternate in kind, a byte of the other kind ends the chunk, and no other does.
const placeBits = 24

// at returns the branch, its chunk, and how many bytes of it a state stands behind.
func (m *PathWords) at(state int) (i uint32, chunk string, n int) {
	i, n = uint32(state>>placeBits), state&(1<<placeBits-1)
	if int(i) < len(m.s.by) {
		chunk = m.chunks[m.s.by[i]]
	}
	return i, chunk, n
}

// Step implements [PathMachine].
func (m *PathWords) Step(state int, b byte) (next int, alive bool) {
	i, chunk, n := m.at(state)
	if chunk == "" {
		return 0, false // the text is empty
	}
	from, to := m.s.row(m.owner[i])
	from = max(from, i)
	if n > 0 && isWord(b) != isWord(chunk[0]) {
		if len(chunk) > n {
			return 0, false
		}
		from, to = m.s.row(m.s.to[i])
		n = 0
	}
	found := int(from) + sort.Search(int(to-from), func(k int) bool {
		other := m.chunks[m.s.by[int(from)+k]]
		if c := strings.Compare(other[:min(n, len(other))], chunk[:n]); c != 0 {
			return c > 0
		}
		return len(other) > n && other[n] >= b
	})
	if found == int(to) {
		return 0, false
	}
	other := m.chunks[m.s.by[found]]
	if len(other) <= n || other[:n] != chunk[:n] || other[n] != b {
		return 0, false
	}
	return found<<placeBits | (n + 1), true
}

// Final implements [PathMachine].
func (m *PathWords) Final(state int) bool {
	_, chunk, n := m.at(state)
	return n == 0 || len(chunk) == n
}
