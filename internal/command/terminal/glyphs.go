package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"golang.org/x/text/width"

	"grove/internal/command/harmless"
)

// glyphs gives each character that a person sees, which may be several runes, one rune: the line editor moves over, deletes
// and measures runes. A character of one rune whose columns the editor counts as terminals do is its own glyph. Others get
// a stand-in of their width: runes of plane 15 take one column, those of the end of plane 3 two.
type glyphs struct {
	glyph  map[string]rune // of a character
	meant  map[rune]string // the character of a stand-in
	shown  map[rune]string // what the terminal gets for it
	narrow rune            // the next stand-ins
	wide   rune
}

// The stand-ins.
const (
	firstNarrow, lastNarrow rune = 0xf0000, 0xfffdf // wordKeys are behind them
	firstWide, lastWide     rune = 0x34000, 0x3fffd
)

func newGlyphs() *glyphs {
	return &glyphs{map[string]rune{}, map[rune]string{}, map[rune]string{}, firstNarrow, firstWide}
}

// of returns the glyphs of a text. Where the stand-ins are used up, the runes of the text stand for themselves.
func (g *glyphs) of(text string) (all []rune) {
	for state := -1; text != ""; {
		var cluster string
		var columns int
		cluster, text, columns, state = uniseg.FirstGraphemeClusterInString(text, state)
		if r, ok := g.one(cluster, columns); ok {
			all = append(all, r)
		} else {
			all = append(all, []rune(cluster)...)
		}
	}
	return all
}

// one returns the glyph of a character.
func (g *glyphs) one(cluster string, columns int) (rune, bool) {
	r, size := utf8.DecodeRuneInString(cluster)
	if size == len(cluster) && measuredAlike(r, columns) {
		return r, true
	}
	if r, ok := g.glyph[cluster]; ok {
		return r, true
	}
	next, last := &g.narrow, lastNarrow
	if columns > 1 {
		next, last = &g.wide, lastWide
	}
	if *next > last {
		return 0, false
	}
	r = *next
	*next++
	g.glyph[cluster], g.meant[r], g.shown[r] = r, cluster, visible(cluster, columns)
	return r, true
}

// measuredAlike reports whether the editor gives a rune as many columns as a terminal. Stand-ins stand for themselves only.
func measuredAlike(r rune, columns int) bool {
	switch {
	case r >= firstNarrow && r <= 0xfffff, r >= firstWide && r <= lastWide:
		return false
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cc, unicode.Cf), r == utf8.RuneError:
		return false
	}
	kind := width.LookupRune(r).Kind()
	isWide := kind == width.EastAsianWide || kind == width.EastAsianFullwidth
	return isWide && columns == 2 || !isWide && columns == 1
}

// visible returns what a terminal shows for a character: itself, a picture of a control character, and something of one
// column for a character without any.
func visible(cluster string, columns int) string {
	switch cluster {
	case "\n", "\r\n":
		return "↵"
	case "\t":
		return "→"
	}
	cluster = harmless.Text(cluster)
	if columns == 0 && uniseg.StringWidth(cluster) == 0 {
		return string(unicode.ReplacementChar)
	}
	return cluster
}

// text returns the text that glyphs stand for.
func (g *glyphs) text(all []rune) string { return replace(string(all), g.meant) }

// show returns what a terminal gets for an output with glyphs.
func (g *glyphs) show(output string) string { return replace(output, g.shown) }

func replace(text string, by map[rune]string) string {
	var b strings.Builder
	for _, r := range text {
		if s, ok := by[r]; ok {
			b.WriteString(s)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
