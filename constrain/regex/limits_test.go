package regex

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestHostile builds and walks expressions that are made to be costly. Each ends well or with the error of a budget, in time.
func TestHostile(t *testing.T) {
	loop := func(n int, f func(s *Store, x ID, i int) ID) func(s *Store) ID {
		return func(s *Store) ID {
			x := s.Literal("a")
			for i := range n {
				x = f(s, x, i)
			}
			return x
		}
	}
	ab := func(s *Store) ID { return s.Bytes(set("ab")) }
	for _, c := range []struct {
		name  string
		build func(s *Store) ID
		fails bool
	}{
		{"nested counts", loop(3, func(s *Store, x ID, _ int) ID { return s.Repeat(x, 1000, 1000) }), false},
		{"nested counts of groups", loop(6, func(s *Store, x ID, _ int) ID { return s.Repeat(s.Concat(x, s.Literal("b")), 0, 1000) }), false},
		{"nested optional counts", loop(3, func(s *Store, x ID, _ int) ID { return s.Repeat(s.Or(x, s.Literal("ab")), 0, 1000) }), true},
		{"count beyond numbers", loop(9, func(s *Store, x ID, _ int) ID { return s.Repeat(x, 100000, 100000) }), false},
		{"nested complements", loop(60000, func(s *Store, x ID, _ int) ID { return s.Not(s.Concat(x, s.Literal("b"))) }), true},
		{"nested unions", loop(60000, func(s *Store, x ID, _ int) ID { return s.Or(s.Concat(x, ab(s)), s.Literal("b")) }), true},
		{"nested to the right", loop(60000, func(s *Store, x ID, _ int) ID { return s.Concat(ab(s), s.Or(x, s.Literal("cb"))) }), false},
		{"nested options", loop(60000, func(s *Store, x ID, _ int) ID { return s.Repeat(s.Concat(ab(s), x), 0, 1) }), false},
		{"long concatenation", loop(60000, func(s *Store, x ID, i int) ID { return s.Concat(x, s.Bytes(set("ab"[i%2:]+"c"))) }), false},
		{"long text", loop(60000, func(s *Store, x ID, _ int) ID { return s.Concat(x, s.Literal("b")) }), true},
		{"union in a loop", loop(60000, func(s *Store, x ID, i int) ID { return s.Or(x, s.Literal(fmt.Sprint(i))) }), true},
		{"strings of strings", loop(30, func(s *Store, x ID, _ int) ID { return s.Quoted(x) }), false},
		{"strings of strings of strings", loop(60000, func(s *Store, x ID, _ int) ID { return s.Quoted(x) }), true},
		{"optional chain", func(s *Store) ID {
			var ids []ID
			for range 5000 {
				ids = append(ids, s.Repeat(s.Concat(ab(s), s.Literal("c")), 0, 1), s.Repeat(ab(s), 0, 1))
			}
			return s.Concat(ids...)
		}, true},
		{"the nth from the end", func(s *Store) ID {
			return s.Concat(s.Repeat(ab(s), 0, -1), s.Literal("a"), s.Repeat(ab(s), 40, 40))
		}, false},
		{"not the nth from the end, twice", func(s *Store) ID {
			x := s.Concat(s.Repeat(ab(s), 0, -1), s.Literal("a"), s.Repeat(ab(s), 40, 40))
			y := s.Concat(s.Repeat(ab(s), 0, -1), s.Literal("b"), s.Repeat(ab(s), 40, 40))
			return s.And(s.Not(x), s.Not(y), s.Repeat(ab(s), 60, -1))
		}, true},
		{"a megabyte of words", func(s *Store) ID {
			var ids []ID
			for i := range 100000 {
				ids = append(ids, s.Literal(fmt.Sprintf("abword%04d", i)))
			}
			return s.Quoted(s.Or(ids...))
		}, false},
		{"one word of a megabyte", func(s *Store) ID { return s.Quoted(s.Literal(strings.Repeat("abba", 1<<18))) }, false},
		{"words in quotes", func(s *Store) ID {
			var ids []ID
			for i := range 20000 {
				ids = append(ids, s.Quoted(s.Literal(fmt.Sprintf("abword%04d", i))))
			}
			return s.Or(ids...)
		}, false},
		{"words and values", func(s *Store) ID {
			var ids []ID
			for i := range 20000 {
				ids = append(ids, s.Concat(s.Literal(fmt.Sprintf("abword%04d:", i)), s.Repeat(ab(s), i, -1)))
			}
			return s.Or(ids...)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := time.Now()
			s := New(Limits{})
			d := c.build(s)
			s.Describe(d)
			for i := 0; i < 2000 && d != Nothing; i++ {
				next := s.Derive(d, "ab"[i%2])
				if next == Nothing {
					next = s.Derive(d, "\"ba"[i%3])
				}
				if next == Nothing {
					break
				}
				d = next
			}
			s.First(d)
			took := time.Since(start)
			runtime.GC()
			var after runtime.MemStats
			runtime.ReadMemStats(&after)
			held := int64(after.HeapAlloc) - int64(before.HeapAlloc)
			t.Logf("%d of %d nodes, %d of %d fuel, %v, %d KiB", s.used, s.limits.Nodes, s.fuel, s.limits.Fuel, took, held>>10)
			if held > 96<<20 {
				t.Errorf("holds %d bytes", held)
			}
			if s.Err() != nil != c.fails {
				t.Errorf("error %v, want one: %v", s.Err(), c.fails)
			}
			if s.Err() != nil && !errors.Is(s.Err(), ErrBudget) {
				t.Errorf("error %v", s.Err())
			}
			if took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			runtime.KeepAlive(s)
		})
	}
}

// TestWorn: a store is worn when half of its nodes are spent, and before it fails.
func TestWorn(t *testing.T) {
	s := New(Limits{Nodes: 2000})
	n := 0
	for ; !s.Worn(); n++ {
		s.Literal(fmt.Sprint("text ", n))
	}
	if s.Err() != nil || s.used < 1000 || s.used > 1100 {
		t.Errorf("worn with %d nodes of 2000, error %v", s.used, s.Err())
	}
	for range 10 * n {
		s.Literal(fmt.Sprint("text ", n))
		n++
	}
	if !errors.Is(s.Err(), ErrBudget) || !s.Worn() {
		t.Errorf("%d nodes, error %v", s.used, s.Err())
	}
}

// TestBudgets: with whatever budgets, an expression is either the same set as without or the store has failed.
func TestBudgets(t *testing.T) {
	all := words(4)
	rapid.Check(t, func(t *rapid.T) {
		s := New(Limits{Nodes: rapid.IntRange(1, 600).Draw(t, "nodes"), Fuel: rapid.IntRange(1, 3000).Draw(t, "fuel")})
		x := grow(t, s, 3)
		quoted := s.Quoted(x.id)
		for _, w := range all {
			got := s.Matches(x.id, w)
			inQuotes := s.Matches(quoted, `"`+w+`"`)
			d := x.id
			for i := 0; i < len(w) && d != Nothing; i++ {
				d = s.Derive(d, w[i])
			}
			if s.Err() != nil {
				if !errors.Is(s.Err(), ErrBudget) || s.Concat(x.id, x.id) != Nothing || s.Derive(x.id, 'a') != Nothing || s.Matches(s.Not(x.id), "a") {
					t.Fatalf("%s: after %v something is made", x.text, s.Err())
				}
				return
			}
			if want := x.holds(w); got != want || s.Nullable(d) != want || inQuotes != (want && utf8.ValidString(w)) {
				t.Fatalf("%s holds %q: %v, in quotes %v, by derivatives %v, want %v", x.text, w, got, inQuotes, s.Nullable(d), want)
			}
		}
		s.Strings(x.id, 10)
		s.Example(x.id)
		s.Contains(quoted, x.id)
	})
}

// TestOptionalRow: the derivatives of hundreds of optional parts in a row are as small as the first, and hold the same texts.
func TestOptionalRow(t *testing.T) {
	s := New(Limits{})
	var parts []ID
	for range 300 {
		for _, letter := range []string{"x", "y", "z"} {
			parts = append(parts, s.Repeat(s.Literal(letter), 0, 1))
		}
	}
	row := s.Concat(parts...)
	start := time.Now()
	for _, c := range []struct {
		text string
		want bool
	}{{strings.Repeat("xyz", 300), true}, {strings.Repeat("xyz", 301), false}, {strings.Repeat("zy", 299), true}, {strings.Repeat("z", 301), false}, {strings.Repeat("zx", 150) + "a", false}} {
		if got := s.Matches(row, c.text); got != c.want {
			t.Errorf("%.20q of %d bytes: %v", c.text, len(c.text), got)
		}
	}
	if took := time.Since(start); took > 20*time.Second || s.Err() != nil {
		t.Errorf("took %v, %v", took, s.Err())
	}
	t.Log(time.Since(start))
}
