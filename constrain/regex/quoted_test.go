package regex

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// spellings draws texts that look like JSON strings, many of them wrong in one place.
func spellings(t *rapid.T) string {
	part := rapid.SampledFrom([]string{"a", "b", "z", "é", "€", "😀", "\x7f", "\x01", "\t", `\n`, `\t`, `\"`, `\\`, `\/`, `\u0061`, `\u00E9`, `\u00e9`,
		`\u20ac`, `\ud83d\ude00`, `\uD83D\uDE00`, `\ud83d`, `\ude00`, `\ud83dx`, `\ud83d\n`, `\u12`, `\x`, `"`, "\xc3", "\xa9", "\xff", "\xf0\x9f", `\u0000`, `\b\f\r`})
	w := `"` + strings.Join(rapid.SliceOfN(part, 0, 6).Draw(t, "parts"), "")
	if rapid.IntRange(0, 9).Draw(t, "close") > 0 {
		w += `"`
	}
	return w
}

// decode decodes a JSON string as package encoding/json does, but for what that package repairs: lone surrogates and bytes that
// are not UTF-8.
func decode(w string) (text string, ok bool) {
	if !utf8.ValidString(w) || !strings.HasPrefix(w, `"`) || json.Unmarshal([]byte(w), &text) != nil {
		return "", false
	}
	repaired := strings.Count(text, "\uFFFD") - strings.Count(w, "\uFFFD") - strings.Count(strings.ToLower(w), `\ufffd`)
	return text, repaired == 0
}

// needless finds escapes of characters that need none.
var needless = regexp.MustCompile(`^(?:[^\\]|\\[^u]|\\u00(?:[01]|7[fF]|[89a-fA-F])|\\u(?:[1-9a-fA-F]|0[1-9a-fA-F]))*?\\u00(?:[2-6]|7[0-9a-eA-E])`)

// TestQuoted compares JSON strings with package encoding/json, and partial ones with what can follow.
func TestQuoted(t *testing.T) {
	t.Run("any escape", func(t *testing.T) { testQuoted(t, New(Limits{}), func(string) bool { return true }) })
	t.Run("plain", func(t *testing.T) {
		s := New(Limits{})
		s.PlainQuotes()
		testQuoted(t, s, func(w string) bool { return !needless.MatchString(w) })
	})
}

func testQuoted(t *testing.T, s *Store, may func(string) bool) {
	bodies := map[string]ID{
		"any":      s.Repeat(s.AnyRune(), 0, -1),
		"bytes":    s.all,
		"three":    s.Repeat(s.AnyRune(), 0, 3),
		"letters":  s.Repeat(s.Runes(Range{'a', 'z'}, Range{'é', 'é'}), 0, -1),
		"words":    s.Or(s.Literal("a"), s.Literal("ab"), s.Literal("a\n"), s.Literal("€"), s.Literal("😀"), s.Literal("\x01")),
		"one":      s.Literal("😀😀"),
		"not word": s.And(s.Repeat(s.AnyRune(), 0, -1), s.Not(s.Or(s.Literal("a"), s.Literal("é")))),
		"empty":    Epsilon,
	}
	for name, body := range bodies {
		id, parts := s.Quoted(body), s.Concat(s.Literal(`"`), Escaped(s, body), s.Literal(`"`))
		rapid.Check(t, func(t *rapid.T) {
			s.Refuel()
			w := spellings(t)
			text, ok := decode(w)
			if got, want := s.Matches(parts, w), s.Matches(id, w); got != want {
				t.Fatalf("%s: %q between quotes: %v, want %v", name, w, got, want)
			}
			if got, want := s.Matches(id, w), ok && may(w) && s.Matches(body, text); got != want {
				t.Fatalf("%s: %q: %v, want %v", name, w, got, want)
			}
			d := id
			for i := 0; i < len(w) && d != Nothing; i++ {
				if d = s.Derive(d, w[i]); d == Nothing {
					break
				}
				rest, ok := s.Example(d)
				text, valid := decode(w[:i+1] + rest)
				if !ok || !valid || !may(w[:i+1]+rest) || !s.Matches(body, text) {
					t.Fatalf("%s: %q is begun, and ends as %q: %v %v", name, w[:i+1], rest, ok, valid)
				}
			}
		})
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
}

// TestQuotedDead has partial escapes that no character of the body completes.
func TestQuotedDead(t *testing.T) {
	s := New(Limits{})
	digits := s.Quoted(s.Repeat(s.Runes(Range{'0', '9'}), 1, -1))
	faces := s.Quoted(s.Runes(Range{0x1F600, 0x1F64F}))
	for _, c := range []struct {
		name string
		id   ID
		dead string // the last byte is the first that is wrong
	}{
		{"escape of a digit", digits, `"\n`},
		{"escape of a letter", digits, `"\u01`},
		{"escape of ten", digits, `"\u003a`},
		{"early end", digits, `""`},
		{"no surrogate", digits, `"\ud`},
		{"other plane", faces, `"\ud84`},
		{"other low", faces, `"\ud83d\uded`},
		{"lone low", faces, `"\udc`},
		{"short escape", faces, `"\n`},
		{"second face", faces, `"😀\`},
		{"not a pair", faces, `"\ud83dx`},
	} {
		d := c.id
		for i := range len(c.dead) - 1 {
			d = s.Derive(d, c.dead[i])
		}
		if d == Nothing {
			t.Errorf("%s: dead before %q", c.name, c.dead)
		}
		if d = s.Derive(d, c.dead[len(c.dead)-1]); d != Nothing {
			t.Errorf("%s: %q lives: %s", c.name, c.dead, s.Describe(d))
		}
	}
}

// TestQuotedAlgebra checks that unions, intersections and complements of JSON strings are those of their bodies.
func TestQuotedAlgebra(t *testing.T) {
	s := New(Limits{})
	a, b := s.Repeat(s.Runes(Range{'a', 'm'}), 0, 5), s.Repeat(s.Runes(Range{'k', 'z'}), 2, 9)
	text := s.Repeat(s.AnyRune(), 0, -1)
	for name, pair := range map[string][2]ID{
		"and": {s.And(s.Quoted(a), s.Quoted(b)), s.Quoted(s.And(a, b))},
		"or":  {s.Or(s.Quoted(a), s.Quoted(b)), s.Quoted(s.Or(a, b))},
		"not": {s.And(s.Quoted(text), s.Not(s.Quoted(a))), s.Quoted(s.And(text, s.Not(a)))},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %s is not %s", name, s.Describe(pair[0]), s.Describe(pair[1]))
		}
	}
}

// TestQuotedNested quotes a text again and again, as arguments of calls in arguments of calls are: each time, the strings of the last
// time are texts.
func TestQuotedNested(t *testing.T) {
	s := New(Limits{})
	id, text := s.Repeat(s.Runes(Range{'a', 'z'}, Range{'é', 'é'}), 1, 9), "déjà"
	text = strings.ReplaceAll(text, "à", "a")
	for n := range 9 {
		id = s.Quoted(id)
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		text = string(raw)
		if !s.Matches(id, text) || s.Matches(id, text+" ") || s.Matches(id, text[:len(text)-1]) {
			t.Errorf("%d times: %d bytes are refused: %v", n+1, len(text), s.Err())
		}
		d := id
		for i := range len(text) {
			if d = s.Derive(d, text[i]); d == Nothing {
				t.Fatalf("%d times: byte %d is refused: %v", n+1, i, s.Err())
			}
		}
	}
	t.Logf("%d nodes, %d fuel", s.used, s.fuel)
}
