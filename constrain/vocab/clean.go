package vocab

import (
	"unicode/utf8"

	"grove/internal/text/token"
)

// Levels is the largest number of code points by which tokens of clean text are told apart. Longer ones are alike.
const Levels = 32

// restLevels are the numbers of code points for which there is a trie of the other tokens.
var restLevels = [...]int{8, 16, Levels, Levels + 1}

type rest struct {
	level int
	trie  Trie
}

// clean returns the number of code points of a text that is clean, at most Levels + 1, and 0 for one that is not: code points
// from U+0020 on without U+007F, the double quote and the backslash. The last one may lack bytes.
func clean(text []byte) int {
	n := 0
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size <= 1 {
			if utf8.FullRune(text) {
				return 0 // not UTF-8, rather than the beginning of a code point
			}
			size = len(text)
		} else if r < 0x20 || r == 0x7f || r == '"' || r == '\\' {
			return 0
		}
		text = text[size:]
		n++
	}
	return min(n, Levels+1)
}

// slice finds the tokens of clean text.
func (v *Vocabulary) slice(order []token.ID) error {
	levels := make([]uint8, len(order))
	for i := range v.clean {
		v.clean[i] = make([]uint64, v.Words())
	}
	for i, id := range order {
		if n := clean(v.Bytes(id)); n > 0 {
			levels[i] = uint8(n)
			v.clean[n][id>>6] |= 1 << (id & 63)
		}
	}
	for n := 1; n < len(v.clean); n++ {
		for i, w := range v.clean[n-1] {
			v.clean[n][i] |= w
		}
	}
	for _, level := range restLevels {
		var other []token.ID
		for i, id := range order {
			if levels[i] == 0 || int(levels[i]) > level {
				other = append(other, id)
			}
		}
		t, err := v.build(other)
		if err != nil {
			return err
		}
		v.rests = append(v.rests, rest{level, t})
	}
	return nil
}

// Clean returns the bitset of the tokens of the trie that are clean text of at most n code points; all of them where n is
// beyond [Levels]. The slice is the vocabulary's.
func (v *Vocabulary) Clean(n int) []uint64 { return v.clean[min(max(n, 0), Levels+1)] }

// Rest returns a trie that has all tokens but those of Clean(level), for the largest level up to n that has such a trie; 0
// and the trie of all tokens where there is none. Beyond [Levels] there is no clean token in it.
func (v *Vocabulary) Rest(n int) (level int, t Trie) {
	t = v.full
	for _, r := range v.rests {
		if r.level <= n {
			level, t = r.level, r.trie
		}
	}
	return level, t
}
