package terminal

import (
	"slices"
	"unicode"

	"github.com/ergochat/readline"
)

// words are the editor's commands for words. Those of the library know the letters of English alone.
type words struct{ glyphs *glyphs }

// wordKeys are the keys of the commands, and the characters that stand for them in the line until edit has run them. These
// are of no use in a text.
var wordKeys = map[rune]rune{
	readline.CharCtrlW: 0xfffe0, readline.MetaBackspace: 0xfffe1, readline.MetaDelete: 0xfffe2,
	readline.MetaBackward: 0xfffe3, readline.MetaForward: 0xfffe4,
}

// filter is called with each key.
func (w *words) filter(key rune) (rune, bool) {
	if r, ok := wordKeys[key]; ok {
		return r, true
	}
	return key, true
}

// edit is called with the line after each key.
func (w *words) edit(line []rune, at int, key rune) ([]rune, int, bool) {
	if at == 0 || at > len(line) || line[at-1] != key {
		return nil, 0, false
	}
	for of, r := range wordKeys {
		if r == key {
			line, at = slices.Delete(line, at-1, at), at-1
			line, at = w.run(of, line, at)
			return line, at, true
		}
	}
	return nil, 0, false
}

// run runs the command of a key.
func (w *words) run(key rune, line []rune, at int) ([]rune, int) {
	switch key {
	case readline.MetaBackward:
		return line, w.before(line, at)
	case readline.MetaForward:
		return line, w.behind(line, at)
	case readline.MetaDelete:
		return slices.Delete(line, at, w.behind(line, at)), at
	}
	begin := w.before(line, at)
	return slices.Delete(line, begin, at), begin
}

// before returns where the word before a place begins.
func (w *words) before(line []rune, at int) int {
	for at > 0 && !w.letter(line[at-1]) {
		at--
	}
	for at > 0 && w.letter(line[at-1]) {
		at--
	}
	return at
}

// behind returns where the word behind a place ends.
func (w *words) behind(line []rune, at int) int {
	for at < len(line) && !w.letter(line[at]) {
		at++
	}
	for at < len(line) && w.letter(line[at]) {
		at++
	}
	return at
}

// letter reports whether a glyph is part of a word.
func (w *words) letter(glyph rune) bool {
	for _, r := range w.glyphs.text([]rune{glyph}) {
		return unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	return false
}
