package regex

import (
	"cmp"
	"slices"
	"sync"
	"unicode"
)

// patternSet is a set of code points: sorted ranges that neither overlap nor touch. Sets are never changed.
type patternSet []Range

var everything = patternSet{{Lo: 0, Hi: unicode.MaxRune}}

// one is the set of one character.
func one(r rune) patternSet { return patternSet{{Lo: r, Hi: r}} }

// normal sorts ranges and joins those that overlap or touch; it keeps the slice.
func normal(ranges patternSet) patternSet {
	slices.SortFunc(ranges, func(a, b Range) int { return cmp.Compare(a.Lo, b.Lo) })
	out := ranges[:0]
	for _, r := range ranges {
		if n := len(out); n > 0 && r.Lo <= out[n-1].Hi+1 {
			out[n-1].Hi = max(out[n-1].Hi, r.Hi)
			continue
		}
		out = append(out, r)
	}
	return out
}

// union joins sets.
func union(sets ...patternSet) patternSet { return normal(slices.Concat(sets...)) }

// not is the complement.
func (s patternSet) not() patternSet {
	var out patternSet
	next := rune(0)
	for _, r := range s {
		if r.Lo > next {
			out = append(out, Range{Lo: next, Hi: r.Lo - 1})
		}
		next = r.Hi + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, Range{Lo: next, Hi: unicode.MaxRune})
	}
	return out
}

// and is the intersection.
func (s patternSet) and(o patternSet) patternSet {
	var out patternSet
	for i, j := 0, 0; i < len(s) && j < len(o); {
		lo, hi := max(s[i].Lo, o[j].Lo), min(s[i].Hi, o[j].Hi)
		if lo <= hi {
			out = append(out, Range{Lo: lo, Hi: hi})
		}
		if s[i].Hi < o[j].Hi {
			i++
		} else {
			j++
		}
	}
	return out
}

// has reports whether the set holds a character.
func (s patternSet) has(r rune) bool {
	_, found := slices.BinarySearchFunc(s, r, func(g Range, r rune) int {
		switch {
		case g.Hi < r:
			return -1
		case g.Lo > r:
			return 1
		}
		return 0
	})
	return found
}

// of is the set of Unicode's tables.
func of(tables ...*unicode.RangeTable) patternSet {
	var out patternSet
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			out = append(out, Range{Lo: lo, Hi: hi})
			return
		}
		for r := lo; r <= hi; r += stride {
			out = append(out, Range{Lo: r, Hi: r})
		}
	}
	for _, t := range tables {
		for _, r := range t.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return normal(out)
}

// folding lists the characters that have another case, in order.
var folding = sync.OnceValue(func() (all []rune) {
	for r := range rune(0x1F000) { // no character above has cases
		if unicode.SimpleFold(r) != r {
			all = append(all, r)
		}
	}
	return all
})

// folded adds the other cases of all characters.
func (s patternSet) folded() patternSet {
	var out patternSet
	for _, r := range folding() {
		if s.has(r) {
			for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
				out = append(out, Range{Lo: o, Hi: o})
			}
		}
	}
	return union(s, out)
}

// The classes that escapes name.
var (
	digitASCII = patternSet{{Lo: '0', Hi: '9'}}
	wordASCII  = patternSet{{Lo: '0', Hi: '9'}, {Lo: 'A', Hi: 'Z'}, {Lo: '_', Hi: '_'}, {Lo: 'a', Hi: 'z'}}
	spaceASCII = patternSet{{Lo: '\t', Hi: '\r'}, {Lo: ' ', Hi: ' '}}
	newline    = one('\n')
	ecmaBreaks = patternSet{{Lo: '\n', Hi: '\n'}, {Lo: '\r', Hi: '\r'}, {Lo: 0x2028, Hi: 0x2029}}
	horizontal = union(of(unicode.Zs), one('\t'), one(0x180e))

	digitUnicode = sync.OnceValue(func() patternSet { return of(unicode.Nd) })
	spaceUnicode = sync.OnceValue(func() patternSet { return of(unicode.White_Space) })
	spaceECMA    = sync.OnceValue(func() patternSet {
		return union(of(unicode.Zs), ecmaBreaks, patternSet{{Lo: '\t', Hi: '\r'}}, one(0xfeff))
	})
	wordUnicode = sync.OnceValue(func() patternSet {
		return union(alphabetic(), of(unicode.M, unicode.Nd, unicode.Pc, unicode.Join_Control))
	})
	alphabetic = sync.OnceValue(func() patternSet { return of(unicode.L, unicode.Nl, unicode.Other_Alphabetic) })
)

// posix are the classes of POSIX, in ASCII.
var posix = map[string]patternSet{
	"alnum":  {{Lo: '0', Hi: '9'}, {Lo: 'A', Hi: 'Z'}, {Lo: 'a', Hi: 'z'}},
	"alpha":  {{Lo: 'A', Hi: 'Z'}, {Lo: 'a', Hi: 'z'}},
	"ascii":  {{Lo: 0, Hi: 0x7f}},
	"blank":  {{Lo: '\t', Hi: '\t'}, {Lo: ' ', Hi: ' '}},
	"cntrl":  {{Lo: 0, Hi: 0x1f}, {Lo: 0x7f, Hi: 0x7f}},
	"digit":  digitASCII,
	"graph":  {{Lo: '!', Hi: '~'}},
	"lower":  {{Lo: 'a', Hi: 'z'}},
	"print":  {{Lo: ' ', Hi: '~'}},
	"punct":  {{Lo: '!', Hi: '/'}, {Lo: ':', Hi: '@'}, {Lo: '[', Hi: '`'}, {Lo: '{', Hi: '~'}},
	"space":  spaceASCII,
	"upper":  {{Lo: 'A', Hi: 'Z'}},
	"word":   wordASCII,
	"xdigit": {{Lo: '0', Hi: '9'}, {Lo: 'A', Hi: 'F'}, {Lo: 'a', Hi: 'f'}},
}
