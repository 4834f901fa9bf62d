package text

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

func build(ids ...token.ID) *automaton {
	a := newAutomaton()
	for i, id := range ids {
		a.extend(id, int32(i))
	}
	return a
}

func TestStates(t *testing.T) {
	a := build(1, 2, 3, 4, 1, 2)
	if n := len(a.length); n != 7 {
		t.Errorf("%d states, want 7: no clone is needed", n)
	}
	if length, end := a.repeated(); length != 2 || end != 1 {
		t.Errorf("the longest suffix that repeats has %d tokens and ends at %d; want 2 and 1", length, end)
	}
	a.extend(3, 6)
	if length, end := a.repeated(); length != 3 || end != 2 {
		t.Errorf("after 3: %d, %d; want 3, 2", length, end)
	}
	a = build(1, 2, 3, 4, 1, 2, 9)
	if length, _ := a.repeated(); length != 0 {
		t.Errorf("after 9: %d, want 0", length)
	}
	if length, end := newAutomaton().repeated(); length != 0 || end != samNone {
		t.Errorf("nothing: %d, %d", length, end)
	}
}

// TestSamRepeated compares the longest repeated suffix and its first place with a search, after every token of random
// texts: of few tokens, so that states are split.
func TestSamRepeated(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	a := newAutomaton()
	split := 0
	for range 1000 {
		a.reset()
		var text []token.ID
		alphabet := 1 + rng.IntN(4)
		for range 40 {
			id := token.ID(rng.IntN(alphabet))
			a.extend(id, int32(len(text)))
			text = append(text, id)
			length, end := a.repeated()
			wantLength, wantEnd := samSearch(text)
			if length != wantLength || length > 0 && end != wantEnd {
				t.Fatalf("%v: %d tokens that end at %d, want %d at %d", text, length, end, wantLength, wantEnd)
			}
		}
		split += len(a.length) - 1 - len(text)
	}
	if split == 0 {
		t.Error("no state was ever split")
	}
}

// samSearch returns the length of the longest suffix that ends earlier, too, and where it ends first.
func samSearch(text []token.ID) (length, end int) {
	for n := len(text) - 1; n > 0; n-- {
		for end := n - 1; end < len(text)-1; end++ {
			if slices.Equal(text[end+1-n:end+1], text[len(text)-n:]) {
				return n, end
			}
		}
	}
	return 0, samNone
}

// TestLinear bounds states and edges of the texts that make the most of them.
func TestLinear(t *testing.T) {
	const n = 20_000
	for name, f := range map[string]func(i int) token.ID{
		"a^n":    func(int) token.ID { return 7 },
		"ab^n":   func(i int) token.ID { return token.ID(min(i, 1)) },
		"(ab)^n": func(i int) token.ID { return token.ID(i % 2) },
		"random": func(i int) token.ID { return token.ID(rand.New(rand.NewPCG(1, uint64(i))).IntN(3)) },
		"rising": func(i int) token.ID { return token.ID(i) },
	} {
		a := newAutomaton()
		for i := range n {
			a.extend(f(i), int32(i))
		}
		if len(a.length) > 2*n || len(a.edges) > 3*n {
			t.Errorf("%s: %d states and %d edges of %d tokens", name, len(a.length), len(a.edges), n)
		}
		if length, _ := a.repeated(); name == "a^n" && length != n-1 {
			t.Errorf("a^n: %d of %d tokens repeat", length, n-1)
		}
	}
}

func TestSamDraft(t *testing.T) {
	d, err := sam{}.NewDrafter(nil)
	if err != nil {
		t.Fatal(err)
	}
	x := growtest.Text{Drafter: d}
	repeat := func(n int, ids ...token.ID) []token.ID { return slices.Repeat(ids, n) }
	for _, c := range []struct {
		name       string
		text, want []token.ID
	}{
		{"empty", nil, nil},
		{"one token", []token.ID{1}, nil},
		{"a match", []token.ID{1, 2, 3, 4, 1, 2, 3}, repeat(10, 4, 1, 2, 3)},
		{"no match", []token.ID{1, 2, 3, 4, 1, 2, 9}, nil},
		{"periodic", []token.ID{1, 2, 1}, repeat(20, 2, 1)},
		{"one token again and again", []token.ID{5, 5}, repeat(40, 5)},
	} {
		for half := range 2 { // the text at once, and in two parts
			n := len(c.text) / (1 + half)
			x.Begin(t, c.text[:n]...)
			x.Add(c.text[n:]...)
			if got := growtest.IDs(x.Draft(t, 64)); !cmp.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		}
	}
}

func TestSamClasses(t *testing.T) {
	last := 0
	for n := 1; n < 1<<20; n++ {
		c := samClassOf(n)
		if c < last || c > last+1 || c >= method.Classes {
			t.Fatalf("a match of %d tokens is of class %d, one less of %d", n, c, last)
		}
		last = c
	}
}
