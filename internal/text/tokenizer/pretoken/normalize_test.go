package pretoken

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"grove/internal/hftest"
)

func TestBert(t *testing.T) {
	all := Bert{Clean: true, Ideographs: true, Accents: true, Lower: true}
	cased := Bert{Clean: true, Ideographs: true}
	for _, c := range []struct {
		name string
		b    Bert
		text string
		want string
	}{
		{"case", all, "HeLLo ÀÉ İıß", "hello ae iıß"},
		{"kept", cased, "HeLLo ÀÉ", "HeLLo ÀÉ"},
		{"lower without accents", Bert{Lower: true}, "ÀÉİ", "àéi\u0307"},
		{"accents without lower", Bert{Accents: true}, "ÀÉ\u0301x", "AEx"},
		{"control", all, "a\x00b\u200bc\u00add\ufffde\x7ff", "abcdef"},
		{"white", all, "a\tb\nc\rd\u00a0e\u3000f", "a b c d e f"},
		{"no UTF-8", all, "a\xffb\xe2\x82c", "abc"},
		{"ideographs", all, "ab中文c", "ab 中  文 c"},
		{"not ideographs", cased, "あハ한", "あハ한"},
		{"Hangul without accents", all, "한", "\u1112\u1161\u11ab"},
		{"marks that have width stay", all, "क\u093f", "क\u093f"},
		{"nothing", Bert{}, "A\u0301\t中", "A\u0301\t中"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.b.Normalize(c.text); got != c.want {
				t.Errorf("%q becomes %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func TestSpaces(t *testing.T) {
	for text, want := range map[string]string{
		"": "", " ": " ", "  ": "_", "a  b   c d": "a_b_c d", "   a": "_a", "a  ": "a_",
	} {
		if got := ReplaceSpaces(text, "_"); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"": "", " \t": "", "a": " a", "  a\n\nb\u3000c ": " a b c", "▁a ▁": " a ",
	} {
		if got := SpaceFields(text); got != want {
			t.Errorf("fields of %q: %q, want %q", text, got, want)
		}
	}
	if SpaceBefore("") != "" || SpaceBefore(" a") != " a" || SpaceBefore("a") != " a" {
		t.Error("a space before text")
	}
	if got := StripAccents("e\u0301क\u093f"); got != "eक" {
		t.Errorf("marks: %q", got)
	}
}

func TestCharsmap(t *testing.T) {
	m, err := NewCharsmap(hftest.Charsmap(map[string]string{
		"ﬁ": "fi", "\t": " ", "Ａ": "A", "ab": "X", "abc": "Y", "a\u0301": "á", "gone": "", "½": "1/2",
	}))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"": "", "plain": "plain", "ﬁx\tＡ": "fix A", "ab": "X", "abc": "Y", "abd a": "Xd a", "a\u0301b": "áb", "x gone y": "x  y",
		"½½": "1/21/2", "a\x00b": "a\x00b", "\xffab\xe2": "\xffX\xe2", "ab\xef\xbc": "X\xef\xbc",
	} {
		if got := m.Normalize(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	empty, err := NewCharsmap(nil)
	if got := empty.Normalize("ﬁ"); got != "ﬁ" || err != nil {
		t.Errorf("an empty map: %q, %v", got, err)
	}
	for _, b := range [][]byte{{1}, {0, 0, 0, 0, 0}, {4, 0, 0, 0, 1, 2, 3, 4}, {3, 0, 0, 0, 1, 2, 3, 0}, {255, 255, 255, 255, 0}, {4, 0, 0, 0, 1, 2, 3, 4, 'x'}} {
		if _, err := NewCharsmap(b); err == nil || !strings.HasPrefix(err.Error(), "tokenizer: ") {
			t.Errorf("%v: %v", b, err)
		}
	}
}

// TestCharsmapRandom: at each place the longest rule replaces, for random rules.
func TestCharsmapRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chars := rapid.RuneFrom([]rune("abé中"))
		rules := rapid.MapOfN(rapid.StringOfN(chars, 1, 3, -1), rapid.StringOfN(chars, 0, 3, -1), 1, 8).Draw(t, "rules")
		m, err := NewCharsmap(hftest.Charsmap(rules))
		if err != nil {
			t.Fatal(err)
		}
		text := rapid.StringOf(chars).Draw(t, "text")
		var want strings.Builder
		for rest := text; rest != ""; {
			best := ""
			for from := range rules {
				if strings.HasPrefix(rest, from) && len(from) > len(best) {
					best = from
				}
			}
			if best == "" {
				best = string([]rune(rest)[:1])
				want.WriteString(best)
			} else {
				want.WriteString(rules[best])
			}
			rest = rest[len(best):]
		}
		if got := m.Normalize(text); got != want.String() {
			t.Fatalf("%q becomes %q, want %q", text, got, want.String())
		}
	})
}

// FuzzCharsmap: no map makes reading or using it panic.
func FuzzCharsmap(f *testing.F) {
	f.Add([]byte{8, 0, 0, 0, 0, 4, 0, 0, 'a', 5, 0, 0, 'x', 0}, "aab")
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		m, err := NewCharsmap(b)
		if err != nil {
			return
		}
		if got := m.Normalize(text); len(got) > len(text)*(len(b)+1) {
			t.Fatalf("%d bytes of %d", len(got), len(text))
		}
	})
}
