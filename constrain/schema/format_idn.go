package schema

import (
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"grove/constrain/regex"
)

const (
	maxWide  = 7  // letters beyond ASCII in a label: Punycode writes each in at most 7 characters
	maxLabel = 14 // characters of a label that has some: 4 for xn--, 49 and 7 for those of ASCII make no more than 63
	maxParts = 3  // labels of such a name: three of 63 stay below 253
)

// letters are letters beyond ASCII that IDNA 2008 allows anywhere in a label, written from left to right, none of which
// joins with another under normalisation: of Latin, Greek, Cyrillic, kana, Han and Hangul.
var letters = sync.OnceValue(func() (all []regex.Range) {
	for _, block := range []regex.Range{{Lo: 0x80, Hi: 0x24f}, {Lo: 0x370, Hi: 0x52f}, {Lo: 0x1e00, Hi: 0x1fff}, {Lo: 0x3041, Hi: 0x30fa}} {
		for r := block.Lo; r <= block.Hi; r++ {
			if text := string(r); unicode.In(r, unicode.Ll, unicode.Lo) && stable(r) && norm.NFC.PropertiesString(text).CCC() == 0 {
				all = append(all, regex.Range{Lo: r, Hi: r})
			}
		}
	}
	return append(all, regex.Range{Lo: 0x4e00, Hi: 0x9fcc}, regex.Range{Lo: 0xac00, Hi: 0xd7a3})
})

// stable says whether a small letter, or one without cases, of the blocks in letters stays itself when it is normalised and its case is
// folded (section 2.2 of RFC 5892): ß becomes ss, the final sigma a sigma, and an iota below a vowel a letter of its own.
func stable(r rune) bool {
	const iotaBelow = "\u0345"
	return norm.NFKC.String(string(r)) == string(r) && r != 'ß' && r != 'ς' && !strings.Contains(norm.NFD.String(string(r)), iotaBelow)
}

// internationalName is the names of hosts whose labels may have letters beyond ASCII.
func (m *maker) internationalName() regex.ID {
	wide := m.s.Runes(letters()...)
	plain := m.whole(`[0-9a-z-]*`)
	label := m.s.And(
		m.s.Concat(m.s.Repeat(m.s.Concat(plain, wide), 1, maxWide), plain),
		m.s.Repeat(m.s.AnyRune(), 1, maxLabel),
		m.s.Not(m.whole(`-.*|.*-|..--.*`)),
	)
	label = m.s.Or(label, m.label())
	name := m.s.Concat(label, m.s.Repeat(m.s.Concat(m.s.Literal("."), label), 0, maxParts-1))
	return m.s.Or(name, m.hostname())
}
