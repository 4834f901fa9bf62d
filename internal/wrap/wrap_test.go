package wrap

import (
	"strings"
	"testing"
)

// TestWrap breaks lines between words.
func TestWrap(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"words", "one two three four", "one two\nthree four"},
		{"exact", "one twotwo three", "one twotwo\nthree"},
		{"long word", "a abcdefghijklmnop b", "a\nabcdefghijklmnop b"},
		{"lines", "a\n\n  b c\n", "a\n\n  b c\n"},
		{"space at the break", "12345678   90", "12345678\n90"},
		{"space at the end of a line", "ab   \nc", "ab\nc"},
		{"wide", "日本語のテキスト", "日本語のテ\nキスト"},
		{"wide and narrow", "ab 日本語 cd", "ab 日本語\ncd"},
		{"accents take no room", "e\u0301e\u0301e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301e\u0301", "e\u0301e\u0301e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301e\u0301"},
		{"control characters", "a\x1b[2Jb\a", "a\ufffd[2Jb\ufffd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &Writer{width: 10}
			var b strings.Builder
			for _, r := range c.text {
				w.rune(&b, r)
			}
			w.flush(&b)
			if got := b.String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
