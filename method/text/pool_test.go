package text

import (
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

func poolNewText(t *testing.T, p *pool) *growtest.Text {
	t.Helper()
	return growtest.NewText(t, p)
}

// rising returns tokens that follow each other.
func rising(from token.ID, count int) (ids []token.ID) {
	for i := range count {
		ids = append(ids, from+token.ID(i))
	}
	return ids
}

// TestReproduces: a text that the pool knows is drafted from its own beginning, in another text, however it came.
func TestReproduces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	p := newPool(slots)
	first := poolNewText(t, p)
	var all []token.ID
	for range 300 {
		all = append(all, token.ID(rng.IntN(1000)))
	}
	first.Begin(t, all[:70]...)
	for at := 70; at < len(all); {
		k := min(1+rng.IntN(9), len(all)-at)
		first.Add(all[at : at+k]...)
		at += k
	}
	second := poolNewText(t, p)
	for from := n; from+poolLongest < len(all); from += 13 {
		second.Begin(t, append([]token.ID{5}, all[from-n:from]...)...)
		if got := growtest.IDs(second.Draft(t, 128)); !slices.Equal(got, all[from:from+poolLongest]) {
			t.Fatalf("from %d: %v, want %v", from, got, all[from:from+poolLongest])
		}
	}
	second.Begin(t, all[290:298]...)
	if got := growtest.IDs(second.Draft(t, 128)); !slices.Equal(got, all[298:]) {
		t.Errorf("before the end: %v, want %v", got, all[298:])
	}
	second.Begin(t, all[291:299]...)
	if got := growtest.IDs(second.Draft(t, 128)); got != nil {
		t.Errorf("a draft of one token: %v", got)
	}
	second.Begin(t, all[1:n]...)
	if got := growtest.IDs(second.Draft(t, 128)); got != nil {
		t.Errorf("behind fewer than %d tokens: %v", n, got)
	}
	i, err := method.Find("ngram-pool")
	if err != nil {
		t.Fatal(err)
	}
	other, err := i.Open(method.Env{})
	if err != nil {
		t.Fatal(err)
	}
	x := poolNewText(t, other.(*pool))
	x.Begin(t, all[10:40]...)
	if got := growtest.IDs(x.Draft(t, 128)); got != nil {
		t.Errorf("texts of another salt draft %v", got)
	}
}

// TestLastCounts: what followed last is drafted.
func TestLastCounts(t *testing.T) {
	x := poolNewText(t, newPool(slots))
	key := rising(10, n)
	x.Begin(t, slices.Concat(key, []token.ID{1, 2, 3}, key, []token.ID{4, 5, 6}, key)...)
	if got := growtest.IDs(x.Draft(t, 3)); !slices.Equal(got, []token.ID{4, 5, 6}) {
		t.Errorf("drafts %v, want 4 5 6", got)
	}
}

// TestFeedback: drafts that are wrong become shorter, and longer again when they are right.
func TestFeedback(t *testing.T) {
	p := newPool(slots)
	known := poolNewText(t, p)
	all := rising(100, 300)
	known.Begin(t, all...)
	x := poolNewText(t, p)
	x.Begin(t, all[:n]...)
	for i := range 2 * maxWrongDrafts {
		want := poolLongest
		if i >= maxWrongDrafts {
			want = poolLongest / 2
		}
		if got := x.Draft(t, 128).Len(); got != want {
			t.Fatalf("draft %d has %d tokens, want %d", i, got, want)
		}
		x.Add(slices.Concat([]token.ID{token.ID(1 + i)}, all[10*i:10*i+n])...)
	}
	if got := growtest.IDs(x.Draft(t, 128)); len(got) != poolLongest/4 {
		t.Fatalf("the draft has %d tokens, want %d", len(got), poolLongest/4)
	} else {
		x.Add(got...)
	}
	if got := x.Draft(t, 128).Len(); got != poolLongest/2 {
		t.Errorf("behind a draft that was right: %d tokens, want %d", got, poolLongest/2)
	}
}

// TestFull: a pool that is a quarter full is emptied when a text begins.
func TestFull(t *testing.T) {
	p := newPool(64)
	x := poolNewText(t, p)
	x.Begin(t, rising(1, 60)...)
	if p.used.Load() <= 16 {
		t.Fatalf("%d slots are used", p.used.Load())
	}
	if x.Begin(t, rising(1, n+1)...); p.used.Load() != 1 {
		t.Errorf("%d slots are used by one n-gram", p.used.Load())
	}
}
