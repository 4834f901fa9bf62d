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

// suffixNewText returns a text for which a method drafts.
func suffixNewText(t *testing.T, s *suffix) *growtest.Text {
	t.Helper()
	return growtest.NewText(t, s)
}

// end ends a text.
func end(t *testing.T, x *growtest.Text) {
	t.Helper()
	if err := x.Drafter.(method.Closer).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSuffixDraft(t *testing.T) {
	s := &suffix{past: newAnswers(maxTokens)}
	x := suffixNewText(t, s)
	for _, c := range []struct {
		name       string
		text, want []token.ID
	}{
		{"empty", nil, nil},
		{"one token", []token.ID{1}, nil},
		{"nothing repeats", []token.ID{1, 2, 3}, nil},
		{"the longer suffix", []token.ID{1, 2, 3, 1, 2, 4, 1, 2, 3, 5, 1, 2}, []token.ID{3, 1}},
		{"the first of equals", []token.ID{1, 2, 3, 9, 2, 4, 8, 2, 3, 7, 2, 4, 6, 2}, []token.ID{3}},
		{"as many tokens as match", []token.ID{1, 2, 3, 4, 5, 6, 7, 1, 2, 3}, []token.ID{4, 5, 6}},
	} {
		for half := range 2 {
			n := len(c.text) / (1 + half)
			x.Begin(t, c.text[:n]...)
			x.Add(c.text[n:]...)
			if got := growtest.IDs(x.Draft(t, 64)); !cmp.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		}
	}
}

func TestTree(t *testing.T) {
	x := suffixNewText(t, &suffix{past: newAnswers(maxTokens), tree: true})
	x.Begin(t, 1, 2, 3, 8, 1, 2, 4, 8, 1, 2, 3, 5, 1, 2)
	tree := x.Draft(t, 64)
	if got := growtest.IDs(tree); !slices.Equal(got, []token.ID{3, 4}) || tree.Nodes()[1].Parent != method.Root {
		t.Errorf("drafts %v", got)
	}
}

// TestPast: an answer is drafted from in the next text of the same salt, a prompt and another salt's answers are not.
func TestPast(t *testing.T) {
	s := &suffix{past: newAnswers(maxTokens)}
	x := suffixNewText(t, s)
	x.Begin(t, 50, 51, 52, 53)
	x.Add(60, 61, 62, 63, 64, 65)
	if got := growtest.IDs(newTextAt(t, s, 60, 61).Draft(t, 64)); got != nil {
		t.Errorf("an answer that has not ended gives %v", got)
	}
	end(t, x)
	if got := growtest.IDs(newTextAt(t, s, 9, 60, 61).Draft(t, 64)); !slices.Equal(got, []token.ID{62, 63}) {
		t.Errorf("drafts %v, want 62 63", got)
	}
	if got := growtest.IDs(newTextAt(t, s, 50, 51).Draft(t, 64)); got != nil {
		t.Errorf("a prompt gives %v", got)
	}
	if got := growtest.IDs(newTextAt(t, s, 60, 61, 62, 7, 60, 61).Draft(t, 64)); !slices.Equal(got, []token.ID{62, 63}) {
		t.Errorf("drafts %v: the text has half a share of 62, the answer all of 63", got)
	}
	i, err := method.Find("suffix")
	if err != nil {
		t.Fatal(err)
	}
	other, err := i.Open(method.Env{})
	if err != nil {
		t.Fatal(err)
	}
	if got := growtest.IDs(newTextAt(t, other.(*suffix), 9, 60, 61).Draft(t, 64)); got != nil {
		t.Errorf("texts of another salt draft %v", got)
	}
}

// newTextAt is newText for a prompt.
func newTextAt(t *testing.T, s *suffix, prompt ...token.ID) *growtest.Text {
	t.Helper()
	x := suffixNewText(t, s)
	x.Begin(t, prompt...)
	return x
}

// TestBound: of many answers, the last stay, as if they were the only ones.
func TestBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	a := newAnswers(100)
	var all [][]token.ID
	for range 300 {
		var ids []token.ID
		for range 2 + rng.IntN(40) {
			ids = append(ids, token.ID(rng.IntN(9)))
		}
		a.add(ids)
		all = append(all, ids)
		sum, kept := 0, 0
		for _, ids := range slices.Backward(all) {
			if sum += len(ids); sum > 100 {
				break
			}
			kept++
		}
		if kept != len(a.lengths) || len(a.log) > 2*100+41 {
			t.Fatalf("%d answers are kept in %d tokens, want %d", len(a.lengths), len(a.log), kept)
		}
		for id := range token.ID(9) {
			want := 0
			for _, ids := range all[len(all)-kept:] {
				for i := range len(ids) - 1 {
					if ids[i] == id && ids[i+1] == 3 {
						want++
					}
				}
			}
			if got := a.tree.Count([]token.ID{id, 3}); got != want {
				t.Fatalf("%d 3 occurs %d times, want %d", id, got, want)
			}
		}
	}
}

// TestCut: a text that is cut drafts as one that was never longer.
func TestCut(t *testing.T) {
	x := suffixNewText(t, &suffix{past: newAnswers(maxTokens)})
	x.Begin(t, 1, 2, 3, 1, 2)
	x.Add(9, 1, 2, 9, 1, 2)
	x.Begin(t, 1, 2, 3, 1, 2)
	if got := growtest.IDs(x.Draft(t, 64)); !slices.Equal(got, []token.ID{3, 1}) {
		t.Errorf("drafts %v, want 3 1", got)
	}
}

func TestSuffixClasses(t *testing.T) {
	seen := map[int]bool{}
	for _, past := range []bool{false, true} {
		for match := 1; match < 200; match++ {
			for _, share := range []float32{0.1, 0.5, 0.8, 1} {
				class, belief := suffixClassOf(past, match, share)
				if class < 0 || class >= method.Classes || belief > share {
					t.Fatalf("class %d, belief %v of a share of %v", class, belief, share)
				}
				seen[class] = true
			}
		}
	}
	if len(seen) != method.Classes {
		t.Errorf("%d classes", len(seen))
	}
}
