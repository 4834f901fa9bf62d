package regex

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestFree compares with texts drawn at random: so many clean code points go on. exact: one more does not, always.
func TestFree(t *testing.T) {
	s := New(Limits{})
	text := s.Repeat(s.AnyRune(), 0, -1)
	word := s.Literal("name")
	names := s.Or(word, s.Literal("kind"), s.Literal("größe"))
	noLine := s.Runes(Range{0, '\n' - 1}, Range{'\n' + 1, 0x10FFFF})
	behind := func(id ID, text string) ID {
		for i := range len(text) {
			id = s.Derive(id, text[i])
		}
		return id
	}
	for name, c := range map[string]struct {
		id    ID
		want  int
		exact bool
	}{
		"nothing":           {Nothing, 0, false},
		"word":              {word, 0, true},
		"text":              {text, math.MaxInt, true},
		"to 7":              {s.Repeat(s.AnyRune(), 2, 7), 7, true},
		"bytes":             {s.Not(Nothing), math.MaxInt, true},
		"letters":           {s.Repeat(s.Runes(Range{'a', 'z'}), 0, -1), 0, true},
		"no line end":       {s.Repeat(noLine, 1, -1), math.MaxInt, true},
		"string":            {behind(s.Quoted(text), `"`), math.MaxInt, true},
		"unopened":          {s.Quoted(text), 0, true},
		"string to 9":       {behind(s.Quoted(s.Repeat(s.AnyRune(), 0, 12)), `"aé"`[:4]), 10, true},
		"other names":       {behind(s.Quoted(s.And(text, s.Not(names))), `"na`), math.MaxInt, true},
		"other short names": {behind(s.Quoted(s.And(s.Repeat(s.AnyRune(), 0, 20), s.Not(names))), `"n`), 19, true},
		"too short":         {behind(s.Quoted(s.And(s.Repeat(s.AnyRune(), 0, 4), s.Not(names))), `"n`), 0, false},
		"escape":            {behind(s.Quoted(text), `"\`), 0, true},
		"two strings":       {behind(s.Concat(s.Quoted(text), s.Literal(","), s.Quoted(word)), `"x`), math.MaxInt, true},
		"either":            {s.Or(word, s.Repeat(s.AnyRune(), 0, 3)), 3, false},
		"begins":            {s.Concat(s.Repeat(s.AnyRune(), 3, 3), s.Repeat(s.AnyRune(), 0, 2), s.Literal("x")), 5, false},
	} {
		got := s.Free(c.id)
		if got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			at := c.id
			n := 0
			for ; n < min(got, 40) && at != Nothing; n++ {
				at = behind(at, string([]rune("name kigrößx\U0001F600~")[rng.IntN(14)]))
			}
			if at == Nothing && got > 0 {
				t.Errorf("%s: a text of %d code points does not go on", name, n)
			}
			if got > 0 && got < 40 && c.exact && s.Derive(at, 'x') != Nothing {
				t.Errorf("%s: a text of %d code points goes on", name, n)
			}
		}
	}
	if s.Err() != nil {
		t.Error(s.Err())
	}
}
