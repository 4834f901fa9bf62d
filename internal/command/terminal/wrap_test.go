package terminal

import (
	"bytes"
	"strings"
	"testing"
)

// TestWrapper breaks lines between words, whatever the pieces.
func TestWrapper(t *testing.T) {
	const family = "👨‍👩‍👧"
	for _, c := range []struct{ name, text, want string }{
		{"words", "one two three four", "one two\nthree four\n"},
		{"exact", "one twotwo three", "one twotwo\nthree\n"},
		{"long word", "a abcdefghijklmnop b", "a\nabcdefghijklmnop b\n"},
		{"lines", "a\n\n  b c\n", "a\n\n  b c\n\n"},
		{"line ends of Windows", "a\r\nb", "a\nb\n"},
		{"space at the break", "12345678   90", "12345678\n90\n"},
		{"space at the end of a line", "ab   \nc", "ab\nc\n"},
		{"much space", strings.Repeat(" ", 50) + "a", strings.Repeat(" ", 9) + "a\n"},
		{"tabs", "\ta\tb", "        a\nb\n"},
		{"wide", "日本語のテキスト", "日本語のテ\nキスト\n"},
		{"wide at an odd margin", "a日本語のテ", "a日本語の\nテ\n"},
		{"wide and narrow", "ab 日本語 cd", "ab 日本語\ncd\n"},
		{"accents take no room", "e\u0301e\u0301e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301e\u0301", "e\u0301e\u0301e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301e\u0301\n"},
		{"emoji of several runes", "abcde " + family + " x", "abcde\n" + family + " x\n"},
		{"control characters", "a\x1b[2Jb\a\u009b\x7f", "a␛[2Jb␇\ufffd␡\n"},
		{"bytes that are no UTF-8", "a\xff\xfeb", "a\ufffd\ufffdb\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var whole, pieces strings.Builder
			for b, n := range map[*strings.Builder]int{&whole: len(c.text), &pieces: 1} {
				w := &Wrapper{out: b, size: func() (bool, int) { return true, 10 }}
				for rest := []rune(c.text); len(rest) > 0; rest = rest[min(n, len(rest)):] {
					text := string(rest[:min(n, len(rest))])
					if n > 1 {
						text, rest = c.text, nil
					}
					if err := w.Text(text); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.End(); err != nil {
					t.Fatal(err)
				}
			}
			if got := whole.String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := pieces.String(); got != c.want {
				t.Errorf("in pieces: got %q, want %q", got, c.want)
			}
		})
	}
}

// TestWrapperWidths breaks lines on terminals narrower than a word or a character, and on one whose width changes.
func TestWrapperWidths(t *testing.T) {
	write := func(exact bool, widths ...int) string {
		var b strings.Builder
		at := 0
		w := &Wrapper{out: &b, exact: exact, size: func() (bool, int) { return true, widths[at] }}
		for at = range widths {
			if err := w.Text("abc def 日本 "); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.End(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, got, want string
	}{
		{"no bound", write(false, 0), "abc def 日本\n"},
		{"one column", write(true, 1), "a\nb\nc\nd\ne\nf\n日\n本\n"},
		{"two columns", write(true, 2), "ab\nc\nde\nf\n日\n本\n"},
		{"two columns, broken by the terminal", write(false, 2), "abc\ndef\n日\n本\n"},
		{"another width in the middle", write(false, 20, 4), "abc def 日本\nabc\ndef\n日本\n"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
}

// TestWrapperElsewhere changes nothing where there is no terminal.
func TestWrapperElsewhere(t *testing.T) {
	const text = "a\x1b[2J\xff  \r\n\tb"
	var b strings.Builder
	w := &Wrapper{out: &b, size: func() (bool, int) { return false, 0 }}
	for i := range len(text) {
		if err := w.Text(text[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != text+"\n" {
		t.Errorf("got %q", got)
	}
}

// FuzzWrap writes hostile texts to a terminal, in pieces: nothing controls it, and lines break between columns.
func FuzzWrap(f *testing.F) {
	f.Add("one two three\n\x1b[2J\tfour", 10, 3)
	f.Add("日本語👨‍👩‍👧\r\n\u2028\u009b5m", 7, 1)
	f.Add(strings.Repeat("x", 300)+"\xff\xfe", 20, 7)
	f.Fuzz(func(t *testing.T, text string, columns, piece int) {
		if columns < 4 || columns > 300 || piece < 1 || len(text) > 1<<14 {
			t.Skip()
		}
		var out bytes.Buffer
		w := &Wrapper{out: &out, size: func() (bool, int) { return true, columns }}
		for rest := text; rest != ""; rest = rest[min(piece, len(rest)):] {
			if err := w.Text(rest[:min(piece, len(rest))]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.End(); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.String() {
			if r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029') {
				t.Errorf("the terminal gets %q of %q", r, text)
			}
		}
	})
}
