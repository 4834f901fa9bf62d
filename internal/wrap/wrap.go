// Package wrap breaks the lines of a text that arrives in pieces, for a terminal.
package wrap

import (
	"io"
	"strings"
	"unicode"
)

// Writer writes a text that arrives in pieces. To a terminal, it writes lines that break between words and replaces control
// characters; elsewhere it changes nothing. It is for one goroutine.
type Writer struct {
	out      io.Writer
	terminal bool
	width    int // columns; 0: lines are not broken
	column   int
	word     []rune // that is not written yet
	wide     int    // columns of the word
	space    []rune // before the word
}

// New returns a Writer that writes to out.
func New(out io.Writer) *Writer { return &Writer{out: out} }

// Begin starts a text. width is the number of columns of the terminal; 0: unknown.
func (w *Writer) Begin(terminal bool, width int) {
	w.terminal, w.width = terminal, width
	w.column, w.wide, w.word, w.space = 0, 0, nil, nil
}

// Text writes the next piece of the text.
func (w *Writer) Text(text string) error {
	if !w.terminal {
		_, err := io.WriteString(w.out, text)
		return err
	}
	var b strings.Builder
	for _, r := range text {
		w.rune(&b, r)
	}
	_, err := io.WriteString(w.out, b.String())
	return err
}

// rune adds a character.
func (w *Writer) rune(b *strings.Builder, r rune) {
	n := columns(r)
	switch {
	case r == '\n':
		w.flush(b)
		b.WriteByte('\n')
		w.column, w.space = 0, nil
	case r == ' ' || r == '\t':
		w.flush(b)
		w.space = append(w.space, ' ')
	case unicode.IsControl(r):
		w.rune(b, unicode.ReplacementChar)
	case n == 2: // a line can break on both sides
		w.flush(b)
		w.word, w.wide = append(w.word, r), 2
		w.flush(b)
	default:
		w.word, w.wide = append(w.word, r), w.wide+n
	}
}

// flush writes the word, on a new line if it does not fit the present one.
func (w *Writer) flush(b *strings.Builder) {
	if len(w.word) == 0 {
		return
	}
	if w.width > 0 && w.column > 0 && w.column+len(w.space)+w.wide > w.width {
		b.WriteByte('\n')
		w.column, w.space = 0, nil
	}
	b.WriteString(string(w.space) + string(w.word))
	w.column += len(w.space) + w.wide
	if w.width > 0 && w.column > w.width {
		w.column = (w.column-1)%w.width + 1 // the terminal breaks a word that is longer than a line
	}
	w.word, w.wide, w.space = w.word[:0], 0, w.space[:0]
}

// End writes the last word and the end of the line.
func (w *Writer) End() error {
	var b strings.Builder
	w.flush(&b)
	b.WriteByte('\n')
	_, err := io.WriteString(w.out, b.String())
	return err
}

// wideRunes are the blocks of East Asian characters and of pictures, which take two columns.
var wideRunes = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x2e80, Hi: 0x303e, Stride: 1}, {Lo: 0x3041, Hi: 0x4dbf, Stride: 1},
		{Lo: 0x4e00, Hi: 0xa4cf, Stride: 1}, {Lo: 0xa960, Hi: 0xa97f, Stride: 1}, {Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, {Lo: 0xff00, Hi: 0xff60, Stride: 1},
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1}, {Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1},
		{Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}

// columns returns the columns that a character takes on a terminal.
func columns(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wideRunes, r):
		return 2
	}
	return 1
}
