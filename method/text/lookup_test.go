package text

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/suite/growtest"
	"grove/internal/text/token"
)

// lookupDrafts returns the drafts behind a text, which must be a chain.
func lookupDrafts(t *testing.T, x *growtest.Text) []token.ID {
	t.Helper()
	tree := x.Draft(t, 64)
	for i, n := range tree.Nodes() {
		if int(n.Parent) != i-1 {
			t.Fatalf("draft %d hangs from %d: not a chain", i, n.Parent)
		}
	}
	return growtest.IDs(tree)
}

func TestLookupDraft(t *testing.T) {
	x := growtest.NewText(t, lookup{})
	for _, c := range []struct {
		name       string
		text, want []token.ID
	}{
		{"empty", nil, nil},
		{"one token", []token.ID{1}, nil},
		{"nothing repeats", []token.ID{1, 2, 3}, nil},
		{"ten tokens", []token.ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 1, 2, 3}, []token.ID{4, 5, 6, 7, 8, 9, 10, 11, 12, 13}},
		{"to the end", []token.ID{1, 2, 3, 4, 1, 2, 3}, []token.ID{4, 1, 2, 3}},
		{"longest first", []token.ID{3, 9, 2, 3, 8, 1, 2, 3, 7, 1, 2, 3}, []token.ID{7, 1, 2, 3}},
		{"earliest of equals", []token.ID{3, 9, 3, 8, 3}, []token.ID{9, 3, 8, 3}},
		{"a run", []token.ID{5, 5}, []token.ID{5}},
	} {
		x.Begin(t, c.text...)
		if got := lookupDrafts(t, x); !cmp.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestScan compares with a scan of random texts over four tokens that come in parts.
func TestScan(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	x := growtest.NewText(t, lookup{})
	for range 10_000 {
		text := make([]token.ID, rng.IntN(40))
		for i := range text {
			text[i] = token.ID(rng.IntN(4))
		}
		cut := rng.IntN(len(text) + 1)
		x.Begin(t, text[:cut]...)
		for cut < len(text) {
			n := min(1+rng.IntN(5), len(text)-cut)
			x.Add(text[cut : cut+n]...)
			cut += n
		}
		if got, want := lookupDrafts(t, x), scan(text); !slices.Equal(got, want) {
			t.Fatalf("%v: %v, want %v", text, got, want)
		}
	}
}

func scan(text []token.ID) []token.ID {
	for n := lookupLongest; n > 0; n-- {
		for end := n; end < len(text); end++ {
			if slices.Equal(text[end-n:end], text[len(text)-n:]) {
				return text[end:min(end+length, len(text))]
			}
		}
	}
	return nil
}
