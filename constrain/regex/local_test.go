package regex

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// counted returns a random expression with counts that are large beside a few bytes.
func countedExpr(t *rapid.T, s *Store, depth int) ID {
	ops := 8
	if depth == 0 {
		ops = 2
	}
	sub := func() ID { return countedExpr(t, s, depth-1) }
	switch rapid.IntRange(0, ops-1).Draw(t, "op") {
	case 0:
		return s.Literal(rapid.StringMatching(`[abc]{0,3}`).Draw(t, "literal"))
	case 1:
		return s.Bytes(set(rapid.SampledFrom([]string{"a", "b", "ab", "bc", "abc"}).Draw(t, "set")))
	case 2:
		return s.Concat(sub(), sub())
	case 3:
		return s.Or(sub(), sub())
	case 4:
		return s.And(sub(), sub())
	case 5:
		return s.Not(sub())
	}
	lo := rapid.SampledFrom([]int{0, 0, 1, 2, 5, 9, 17}).Draw(t, "min")
	return s.Repeat(sub(), lo, lo+rapid.SampledFrom([]int{-18, 0, 1, 7, 11, 15, 30}).Draw(t, "more"))
}

// TestLocal compares the texts that Local says to be alike: which of them begin a string, and which are one.
func TestLocal(t *testing.T) {
	changed := 0
	rapid.Check(t, func(t *rapid.T) {
		s := New(Limits{})
		id := countedExpr(t, s, 4)
		n := rapid.IntRange(1, 5).Draw(t, "n")
		quoted := rapid.Bool().Draw(t, "quoted")
		alphabet := "abc"
		if quoted {
			id = s.Quoted(s.And(id, s.Repeat(s.Bytes(set("abc\n")), 0, -1)))
			alphabet = "abc\"\\nu006"
			for range rapid.IntRange(0, 4).Draw(t, "begun") {
				id = s.Derive(id, "\"\\u006a"[rapid.IntRange(0, 6).Draw(t, "byte")])
			}
		}
		if s.IsEmpty(id) {
			return
		}
		local := s.Local(id, n)
		if local != id {
			changed++
		}
		var compare func(x, y ID, w string)
		compare = func(x, y ID, w string) {
			if (x == Nothing) != (y == Nothing) || s.Nullable(x) != s.Nullable(y) {
				t.Fatalf("%q of %s and %s: begins %v %v, is one %v %v", w, s.Describe(id), s.Describe(local), x != Nothing, y != Nothing, s.Nullable(x), s.Nullable(y))
			}
			for i := 0; i < len(alphabet) && len(w) < n && x != Nothing; i++ {
				compare(s.Derive(x, alphabet[i]), s.Derive(y, alphabet[i]), w+alphabet[i:i+1])
			}
		}
		compare(id, local, "")
		if s.Err() != nil {
			t.Skip(s.Err())
		}
	})
	t.Logf("%d expressions had another one", changed)
	if changed < 5 {
		t.Errorf("only %d expressions had another one", changed)
	}
}

// TestLocalShared: the places within a long text of limited length have the same expression, until its end is near.
func TestLocalShared(t *testing.T) {
	s := New(Limits{})
	text := s.And(s.Repeat(s.AnyRune(), 3, 1000), s.Repeat(s.Runes(Range{'a', 'z'}, Range{' ', ' '}), 0, -1), s.Not(s.Concat(s.allText, s.Literal("end"))))
	for name, id := range map[string]ID{
		"counted": s.Repeat(s.Runes(Range{'a', 'z'}, Range{'é', 'é'}, Range{' ', ' '}), 1, 1000),
		"groups":  s.Repeat(s.Concat(s.Repeat(s.Bytes(set("abcdefghijklmnopqrstuvwxyz")), 1, 500), s.Literal(" ")), 20, 900),
		"text":    text,
		"quoted":  s.Concat(s.Literal("{"), s.Quoted(text), s.Literal("}")),
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		d := id
		if name == "quoted" {
			d = s.Derive(s.Derive(d, '{'), '"')
		}
		seen := map[ID]bool{}
		for range 800 {
			next := s.Derive(d, "abcdefgh "[rng.IntN(9)])
			if next == Nothing {
				next = s.Derive(d, 'x')
			}
			d = next
			seen[s.Local(d, 64)] = true
		}
		t.Logf("%s: %d expressions", name, len(seen))
		if d == Nothing || len(seen) > 45 || s.Err() != nil {
			t.Errorf("%s: %d expressions, ends with %s, %v", name, len(seen), s.Describe(d), s.Err())
		}
	}
}
