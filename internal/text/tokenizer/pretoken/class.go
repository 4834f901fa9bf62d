// Package pretoken prepares text for a tokenizer's model: it normalises characters and cuts text into words, with code for known
// patterns and regular expressions for others.
package pretoken

import (
	"unicode"
	"unicode/utf8"
)

// class is a set of kinds of characters. A character has one kind; Han characters also have the kind han.
type class uint16

const (
	upper    class = 1 << iota // \p{Lu}, \p{Lt}
	lower                      // \p{Ll}
	caseless                   // \p{Lm}, \p{Lo}
	number                     // \p{N}
	white                      // \s
	mark                       // \p{M}
	punct                      // \p{P}
	sign                       // \p{S}
	rest                       // control characters, unassigned ones and so on
	han                        // \p{Han}

	end    class = 0 // of the text
	letter       = upper | lower | caseless
	other        = mark | punct | sign | rest // [^\s\p{L}\p{N}]
)

// firstHan is below every Han character.
const firstHan = 0x2E80

var ascii = func() (cs [utf8.RuneSelf]class) {
	for r := range cs {
		cs[r] = kindOf(rune(r))
	}
	return cs
}()

func classOf(r rune) class {
	if uint32(r) < utf8.RuneSelf {
		return ascii[r]
	}
	c := kindOf(r)
	if r >= firstHan && unicode.Is(unicode.Han, r) {
		c |= han
	}
	return c
}

func kindOf(r rune) class {
	switch {
	case unicode.IsLetter(r):
		if unicode.In(r, unicode.Lu, unicode.Lt) {
			return upper
		} else if unicode.Is(unicode.Ll, r) {
			return lower
		}
		return caseless
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return white
	case unicode.IsMark(r):
		return mark
	case unicode.IsPunct(r):
		return punct
	case unicode.IsSymbol(r):
		return sign
	}
	return rest
}

// next returns the class and the length of the character at text[i:]. A byte that is not UTF-8 counts as U+FFFD, a symbol.
func next(text string, i int) (class, int) {
	if i >= len(text) {
		return end, 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		return ascii[b], 1
	}
	r, n := utf8.DecodeRuneInString(text[i:])
	return classOf(r), n
}

const noLimit = int(^uint(0) >> 1)

// run returns the end of the run of characters of class c at text[i], of at most limit characters.
func run(text string, i int, c class, limit int) int {
	for ; limit > 0; limit-- {
		got, n := next(text, i)
		if got&c == 0 {
			break
		}
		i += n
	}
	return i
}

// set is a set of characters: [...] of a pattern.
type set func(r rune) bool

func (c class) set() set { return func(r rune) bool { return classOf(r)&c != 0 } }

// ranges returns the set of the characters listed in spec; a-b is a range.
func ranges(spec string) set {
	var low [utf8.RuneSelf]bool
	var high [][2]rune
	rs := []rune(spec)
	for i := 0; i < len(rs); i++ {
		lo, hi := rs[i], rs[i]
		if i+2 < len(rs) && rs[i+1] == '-' {
			hi = rs[i+2]
			i += 2
		}
		for r := lo; r <= min(hi, utf8.RuneSelf-1); r++ {
			low[r] = true
		}
		if hi >= utf8.RuneSelf {
			high = append(high, [2]rune{lo, hi})
		}
	}
	return func(r rune) bool {
		if uint32(r) < utf8.RuneSelf {
			return low[r]
		}
		for _, h := range high {
			if h[0] <= r && r <= h[1] {
				return true
			}
		}
		return false
	}
}

// runOf returns the end of the run of characters of the set at text[i], of at most limit characters.
func (in set) runOf(text string, i, limit int) int {
	for ; limit > 0 && i < len(text); limit-- {
		r, n := utf8.DecodeRuneInString(text[i:])
		if !in(r) {
			break
		}
		i += n
	}
	return i
}
