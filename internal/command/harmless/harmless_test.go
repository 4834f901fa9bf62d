package harmless_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"grove/internal/command/harmless"
)

func TestHarmless(t *testing.T) {
	for _, tt := range []struct{ name, text, want, line string }{
		{"plain", "Zürich 你好 👩‍🚀", "Zürich 你好 👩‍🚀", "Zürich 你好 👩‍🚀"},
		{"escape", "a\x1b]0;b\a\x7f", "a␛]0;b␇␡", "a␛]0;b␇␡"},
		{"line ends and tabs", "a\tb\r\nc", "a\tb␍\nc", "a␉b␍␊c"},
		{"beyond ASCII", "\u009b2J\u0085\u2028", "�2J��", "�2J��"},
		{"no UTF-8", "\x9b2J\xff", "�2J�", "�2J�"},
		{"directions", "a\u202eb", "a\u202eb", "a�b"},
	} {
		if got := harmless.Text(tt.text); got != tt.want {
			t.Errorf("%s: the text is %q, want %q", tt.name, got, tt.want)
		}
		if got := harmless.Line(tt.text); got != tt.line {
			t.Errorf("%s: the line is %q, want %q", tt.name, got, tt.line)
		}
	}
}

// TestJSON: what a program reads is what was written, and nothing in it controls a terminal.
func TestJSON(t *testing.T) {
	const text = "a\x1b]0;b\a\x7f\u009b2J\u202e\u2028 Zürich \ufffd👩‍🚀"
	var b bytes.Buffer
	if err := json.NewEncoder(harmless.JSON(&b)).Encode(text); err != nil {
		t.Fatal(err)
	}
	if line := strings.TrimSuffix(b.String(), "\n"); harmless.Line(line) != line || !strings.Contains(line, "Zürich \ufffd👩") {
		t.Errorf("the JSON is %q", line)
	}
	var back string
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || back != text {
		t.Errorf("%q, %v", back, err)
	}
}

// FuzzHarmless looks for control characters in harmless texts.
func FuzzHarmless(f *testing.F) {
	f.Add("a\x1b]0;b\a\x9b\u009b\r\n\t")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range harmless.Line(text) {
			if unicode.IsControl(r) {
				t.Errorf("the line of %q has %U", text, r)
			}
		}
		for _, r := range harmless.Text(text) {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Errorf("the text of %q has %U", text, r)
			}
		}
	})
}
