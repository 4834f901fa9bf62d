// Package harmless keeps texts of strangers (files, templates, servers, names of files) from controlling a terminal.
package harmless

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns a text without characters that control a terminal: pictures of the control characters (␛ for ESC) replace them, and
// U+FFFD those beyond ASCII and bytes that are no UTF-8. Line ends and tabs stay.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return picture(r)
	}, text)
}

// Line is [Text] for a name, a cell of a table or a message: line ends and tabs become pictures, too, and characters that turn the
// direction of what follows U+FFFD.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return picture(r)
	}, text)
}

// JSON returns a writer of JSON to w with escapes for what [Line] replaces and package json leaves as it is. A write has whole characters.
func JSON(w io.Writer) io.Writer { return escaper{w} }

type escaper struct{ w io.Writer }

// Write implements [io.Writer].
func (e escaper) Write(b []byte) (int, error) {
	var out []byte
	for _, r := range string(b) {
		if r >= 0x7f && r != unicode.ReplacementChar && Line(string(r)) != string(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	if _, err := e.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// picture returns what stands for a character that controls a terminal, and other characters as they are.
func picture(r rune) rune {
	switch {
	case r < ' ':
		return '␀' + r
	case r == 0x7f:
		return '␡'
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return unicode.ReplacementChar
	}
	return r
}
