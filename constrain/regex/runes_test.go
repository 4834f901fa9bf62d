package regex

import (
	"fmt"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// borders are code points at which the encoding changes.
var borders = []rune{0, 0x7F, 0x80, 0xFF, 0x7FF, 0x800, 0xFFF, 0x1000, 0xD7FF, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0xFFFFF, 0x100000, 0x10FFFF}

// TestRunes compares sets of code points with package unicode/utf8, near the ends of their ranges and elsewhere.
func TestRunes(t *testing.T) {
	point := rapid.OneOf(rapid.SampledFrom(borders), rapid.Int32Range(0, utf8.MaxRune), rapid.Int32Range(0, 0x900))
	rapid.Check(t, func(t *rapid.T) {
		s := New(Limits{})
		var ranges []Range
		for range rapid.IntRange(1, 5).Draw(t, "ranges") {
			lo, hi := point.Draw(t, "lo"), point.Draw(t, "hi")
			ranges = append(ranges, Range{min(lo, hi), max(lo, hi)})
		}
		id := s.Runes(ranges...)
		probe := func(r rune) {
			if r < 0 || r > utf8.MaxRune || !utf8.ValidRune(r) {
				return
			}
			want := false
			for _, x := range ranges {
				want = want || x.Lo <= r && r <= x.Hi
			}
			if got := s.Matches(id, string(r)); got != want {
				t.Fatalf("%x holds %U: %v, want %v", ranges, r, got, want)
			}
		}
		for _, x := range ranges {
			for d := rune(-2); d <= 2; d++ {
				probe(x.Lo + d)
				probe(x.Hi + d)
			}
		}
		for _, r := range borders {
			probe(r)
		}
		for range 50 {
			probe(point.Draw(t, "probe"))
		}
	})
}

// TestRunesInvalid checks that sets of code points hold no bytes that are not UTF-8.
func TestRunesInvalid(t *testing.T) {
	s := New(Limits{})
	id := s.AnyRune()
	for a := range 256 {
		for b := range 256 {
			for _, w := range []string{string([]byte{byte(a)}), string([]byte{byte(a), byte(b)}), string([]byte{byte(a), byte(b), 0x80}),
				string([]byte{byte(a), byte(b), 0xBF}), string([]byte{byte(a), byte(b), 0x80, 0x80}), string([]byte{byte(a), byte(b), 0xBF, 0xBF})} {
				if got, want := s.Matches(id, w), utf8.ValidString(w) && utf8.RuneCountInString(w) == 1; got != want {
					t.Fatalf("%x: %v, want %v", w, got, want)
				}
			}
		}
	}
	for name, id := range map[string]ID{
		"surrogates": s.Runes(Range{0xD800, 0xDFFF}), "none": s.Runes(), "turned": s.Runes(Range{'z', 'a'}), "beyond": s.Runes(Range{0x110000, 0x7FFFFFFF}), "below": s.Runes(Range{-5, -1}),
	} {
		if id != Nothing {
			t.Errorf("%s: %s", name, s.Describe(id))
		}
	}
	if got := fmt.Sprint(s.First(s.AnyRune()).Len()); got != "179" {
		t.Errorf("%s bytes can begin a character, want 179", got)
	}
}
