package regex

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// set returns the set of the bytes of a text.
func set(text string) (t Set) {
	for i := range len(text) {
		t.Add(text[i], text[i])
	}
	return t
}

// TestDerive has the examples of derivatives that papers use.
func TestDerive(t *testing.T) {
	s := New(Limits{})
	xy, z := s.Bytes(set("xy")), s.Literal("z")
	for _, c := range []struct {
		name string
		id   ID
		by   byte
		want ID
	}{
		{"[xy]z by x", s.Concat(xy, z), 'x', z},
		{"[xy]z by z", s.Concat(xy, z), 'z', Nothing},
		{"[xy]+ by y", s.Repeat(xy, 1, -1), 'y', s.Repeat(xy, 0, -1)},
		{"abc by a", s.Literal("abc"), 'a', s.Literal("bc")},
		{"a{1000} by a", s.Repeat(s.Literal("a"), 1000, 1000), 'a', s.Repeat(s.Literal("a"), 999, 999)},
		{"words by i", s.Or(s.Literal("if"), s.Literal("in"), s.Literal("else")), 'i', s.Bytes(set("fn"))},
		{"not a by a", s.Not(s.Literal("a")), 'a', s.Repeat(s.Bytes(Set{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0) >> 1}), 1, -1)},
	} {
		got := s.Derive(c.id, c.by)
		if got != c.want && !(s.Contains(got, c.want) && s.Contains(c.want, got)) {
			t.Errorf("%s: %s, want %s", c.name, s.Describe(got), s.Describe(c.want))
		}
	}
}

// expr is an expression and the slow definition of its set.
type expr struct {
	id    ID
	text  string
	holds func(w string) bool
}

// grow returns a random expression over the letters a, b and c.
func grow(t *rapid.T, s *Store, depth int) expr {
	ops := 12
	if depth == 0 {
		ops = 5
	}
	sub := func() expr { return grow(t, s, depth-1) }
	switch rapid.IntRange(0, ops-1).Draw(t, "op") {
	case 0:
		w := rapid.StringMatching(`[abc]{0,4}`).Draw(t, "literal")
		return expr{s.Literal(w), fmt.Sprintf("%q", w), func(v string) bool { return v == w }}
	case 1:
		w := rapid.SampledFrom([]string{"a", "b", "ab", "bc", "abc", ""}).Draw(t, "set")
		return expr{s.Bytes(set(w)), "[" + w + "]", func(v string) bool { return len(v) == 1 && strings.Contains(w, v) }}
	case 2:
		words := rapid.SliceOfN(rapid.StringMatching(`[abc]{0,4}`), 0, 6).Draw(t, "words")
		var ids []ID
		for _, w := range words {
			ids = append(ids, s.Literal(w))
		}
		return expr{s.Or(ids...), fmt.Sprintf("%q", words), func(v string) bool { return slices.Contains(words, v) }}
	case 3:
		m := counter(rapid.IntRange(1, 3).Draw(t, "machine"))
		return expr{s.Machine(m, 0), fmt.Sprintf("machine(%d)", m), func(v string) bool {
			return strings.Count(v, "a") == int(m) && !strings.ContainsAny(v, "c[12]") && !strings.Contains(v, "\xff")
		}}
	case 4:
		w := rapid.SampledFrom([]string{"\xff", "\xff[12]", "a\xffb", "ab\xff"}).Draw(t, "special")
		return expr{s.Literal(w), fmt.Sprintf("%q", w), func(v string) bool { return v == w }}
	case 5:
		x, y := sub(), sub()
		return expr{s.Concat(x.id, y.id), "(" + x.text + " " + y.text + ")", concat(x, y)}
	case 6, 11:
		x, y, z := sub(), sub(), sub()
		return expr{s.Or(x.id, y.id, z.id), "(" + x.text + "|" + y.text + "|" + z.text + ")", func(v string) bool { return x.holds(v) || y.holds(v) || z.holds(v) }}
	case 7:
		x, y := sub(), sub()
		return expr{s.And(x.id, y.id), "(" + x.text + "&" + y.text + ")", func(v string) bool { return x.holds(v) && y.holds(v) }}
	case 8:
		x := sub()
		return expr{s.Not(x.id), "~" + x.text, func(v string) bool { return !strings.Contains(v, "\xff") && !x.holds(v) }}
	default:
		x := sub()
		lo := rapid.IntRange(0, 3).Draw(t, "min")
		hi := rapid.IntRange(-1, 4).Draw(t, "max")
		return expr{s.Repeat(x.id, lo, hi), fmt.Sprintf("%s{%d,%d}", x.text, lo, hi), repeat(x, lo, hi)}
	}
}

// counter is the machine of texts without c that have as many a as its number.
type counter int

func (m counter) Step(state int, b byte) (int, bool) {
	switch b {
	case 'a':
		return state + 1, state < int(m)
	case 'b':
		return state, true
	}
	return 0, false
}
func (m counter) Final(state int) bool { return state == int(m) }

// memo keeps the answers of a definition.
func memo(f func(string) bool) func(string) bool {
	known := map[string]bool{}
	return func(v string) bool {
		is, ok := known[v]
		if !ok {
			is = f(v)
			known[v] = is
		}
		return is
	}
}

func concat(x, y expr) func(string) bool {
	return memo(func(v string) bool {
		for i := range len(v) + 1 {
			if x.holds(v[:i]) && y.holds(v[i:]) {
				return true
			}
		}
		return false
	})
}

func repeat(x expr, lo, hi int) func(string) bool {
	var times func(v string, lo, hi int) bool
	times = func(v string, lo, hi int) bool {
		if lo <= 0 && v == "" {
			return true
		}
		if hi == 0 || lo > 0 && hi > 0 && lo > hi {
			return false
		}
		if lo > 0 && x.holds("") && times(v, lo-1, hi-1) {
			return true
		}
		for i := 1; i <= len(v); i++ {
			if x.holds(v[:i]) && times(v[i:], lo-1, max(hi-1, -1)) {
				return true
			}
		}
		return false
	}
	return memo(func(v string) bool { return !(hi >= 0 && lo > hi) && times(v, lo, hi) })
}

// words returns all texts over a, b and c up to a length.
func words(n int) (all []string) {
	all = []string{""}
	for from := 0; n > 0; n-- {
		end := len(all)
		for _, w := range all[from:end] {
			all = append(all, w+"a", w+"b", w+"c")
		}
		from = end
	}
	for _, w := range all[:min(len(all), 13)] {
		all = append(all, "\xff"+w, "\xff[12]"+w, w+"\xff[12]", "a\xffb"+w, w+"ab\xff")
	}
	return all
}

// TestAlgebra compares random expressions with the definition of their sets, in stores of their own and in one for all.
func TestAlgebra(t *testing.T) {
	t.Run("own", func(t *testing.T) { checkAlgebra(t, func() *Store { return New(Limits{}) }) })
	shared := New(Limits{})
	t.Run("shared", func(t *testing.T) {
		checkAlgebra(t, func() *Store {
			if shared.Refuel(); shared.used > 500000 {
				shared = New(Limits{})
			}
			return shared
		})
	})
}

func checkAlgebra(t *testing.T, store func() *Store) {
	all := words(6)
	rapid.Check(t, func(t *rapid.T) {
		s := store()
		x, y := grow(t, s, 3), grow(t, s, 2)
		var in []string
		contained, some := true, ""
		viable := map[string]bool{}
		for _, w := range all {
			holds := x.holds(w)
			if got := s.Matches(x.id, w); got != holds {
				t.Fatalf("%s holds %q: %v, want %v", x.text, w, got, holds)
			}
			if holds {
				in = append(in, w)
				for i := range len(w) + 1 {
					viable[w[:i]] = true
				}
				if !y.holds(w) {
					contained, some = false, w
				}
			}
		}
		for _, w := range words(4) {
			d := x.id
			for i := range len(w) {
				d = s.Derive(d, w[i])
			}
			if viable[w] && d == Nothing {
				t.Fatalf("%s has no text that begins with %q", x.text, w)
			}
			if w == "" && s.IsEmpty(d) {
				d = Nothing
			}
			if d != Nothing {
				text, ok := s.Example(d)
				if !ok || !s.Matches(x.id, w+text) {
					t.Fatalf("%s after %q: example %q %v", x.text, w, text, ok)
				}
				if strings.Trim(strings.ReplaceAll(text, "\xff", ""), "abc[12]") == "" && len(w+text) < 12 && !x.holds(w+text) {
					t.Fatalf("%s does not hold the example %q", x.text, w+text)
				}
				f := s.First(d)
				for b := range 256 {
					if f.Has(byte(b)) != (s.Derive(d, byte(b)) != Nothing) {
						t.Fatalf("%s after %q: byte %d is first: %v", x.text, w, b, f.Has(byte(b)))
					}
				}
			}
		}
		if s.IsEmpty(x.id) && len(in) > 0 {
			t.Fatalf("%s is empty and holds %q", x.text, in[0])
		}
		if got := s.Contains(y.id, x.id); got && !contained {
			t.Fatalf("%s contains %s, but for %q", y.text, x.text, some)
		} else if !got {
			w, ok := s.Example(s.And(x.id, s.not(y.id, 1)))
			if !ok || !s.Matches(x.id, w) || s.Matches(y.id, w) {
				t.Fatalf("%s does not contain %s: example %q %v", y.text, x.text, w, ok)
			}
		}
		if list, finite := s.Strings(x.id, 100); finite {
			slices.Sort(in)
			short := slices.DeleteFunc(slices.Clone(list), func(w string) bool { return len(w) > 6 || strings.Contains(w, "\xff") })
			in = slices.DeleteFunc(in, func(w string) bool { return len(w) > 6 || strings.Contains(w, "\xff") })
			if diff := cmp.Diff(in, short); diff != "" && len(in)+len(short) > 0 {
				t.Fatalf("%s: strings: %s", x.text, diff)
			}
		} else if len(in) == 0 && s.IsEmpty(x.id) {
			t.Fatalf("%s is empty and infinite", x.text)
		}
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
	})
}
