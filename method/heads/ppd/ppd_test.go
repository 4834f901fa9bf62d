package ppd

import (
	"errors"
	"slices"
	"testing"

	"grove/compute"
	"grove/method"
	"grove/method/grow/growtest"
	"grove/text/token"
)

const vocabulary = 40

// likely returns logits by which some tokens are likely, the first most.
func likely(ids ...token.ID) []float32 {
	l := make([]float32, vocabulary)
	for i, id := range ids {
		l[id] = 9 - float32(i)
	}
	return l
}

// given returns what vectors behind the text's token at a place gave.
func given(place int32, logits ...[]float32) (all []method.ExtraResult) {
	for i, l := range logits {
		all = append(all, method.ExtraResult{Extra: int32(i), Index: place + 1 + int32(i), Result: compute.Result{Logits: l}})
	}
	return all
}

func newText(t *testing.T) *growtest.Text {
	t.Helper()
	info, err := method.Find("ppd")
	if err != nil {
		t.Fatal(err)
	}
	m, err := info.Open(method.Env{Vocabulary: vocabulary, Modules: []*method.Module{{Family: family, Vectors: [][]float32{{1}, {2}, {3}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return growtest.NewText(t, m)
}

// TestDraft: the lists of the last round's vectors are those of the places behind the text; those of an earlier one serve as far as they reach.
func TestDraft(t *testing.T) {
	x := newText(t)
	x.Begin(t, 1, 2, 3)
	if tree := x.Draft(t, 50); tree.Len() > 0 || len(tree.Extras()) != 3 {
		t.Errorf("at first %d drafts and %d vectors", tree.Len(), len(tree.Extras()))
	}
	x.Add(4)
	x.Drafter.Committed(method.Update{Extra: given(2, likely(10, 20), likely(11), likely(12))})
	tree := x.Draft(t, 50)
	for depth, id := range []token.ID{10, 11, 12} {
		at := slices.IndexFunc(tree.Nodes(), func(n method.Node) bool { return n.ID == id && int(n.Depth) == depth+1 })
		if at < 0 {
			t.Errorf("token %d is no draft at depth %d of %v", id, depth+1, growtest.IDs(tree))
		}
	}
	if tree.Len() > most {
		t.Errorf("%d drafts", tree.Len())
	}
	x.Add(10)
	if tree := x.Draft(t, 50); tree.Len() == 0 || tree.Nodes()[0].ID != 11 {
		t.Errorf("a round later: %v", growtest.IDs(tree))
	}
	x.Add(11, 12)
	if tree := x.Draft(t, 50); tree.Len() > 0 {
		t.Errorf("behind the last list: %v", growtest.IDs(tree))
	}
	x.Begin(t, 5, 6, 7, 8, 9)
	if tree := x.Draft(t, 50); tree.Len() > 0 {
		t.Errorf("in another text: %v", growtest.IDs(tree))
	}
}

// TestVectors: all vectors stand behind the text, in order, and fewer behind drafts, the fewer the less likely; none at the end of the text.
func TestVectors(t *testing.T) {
	x := newText(t)
	x.Begin(t, 1, 2, 3)
	x.Drafter.Committed(method.Update{Extra: given(1, likely(10), likely(11), likely(12))})
	tree := x.Draft(t, 50)
	count := map[int32]int{}
	for i, e := range tree.Extras() {
		if want := float32(count[e.Parent] + 1); e.Vector[0] != want || e.After != int32(method.Root) && e.After != int32(i-1) || (e.After == int32(method.Root)) != (count[e.Parent] == 0) {
			t.Errorf("extra row %d is %+v, want vector %v", i, e, want)
		}
		count[e.Parent]++
	}
	if count[int32(method.Root)] != 3 {
		t.Errorf("%d vectors behind the text", count[int32(method.Root)])
	}
	for at, n := range tree.Nodes() {
		for parent := n.Parent; parent != int32(method.Root); parent = tree.Nodes()[parent].Parent {
			if count[int32(at)] > count[parent] {
				t.Errorf("draft %d has %d vectors, one above it %d", at, count[int32(at)], count[parent])
			}
		}
	}
	if tree := x.Draft(t, 1); len(tree.Extras()) != 1 {
		t.Errorf("with room for a token %d vectors", len(tree.Extras()))
	}
}

func TestNeeds(t *testing.T) {
	if _, err := open(method.Env{Modules: []*method.Module{{Family: family}}}); !errors.Is(err, method.ErrNeeds) {
		t.Errorf("no vectors: %v", err)
	}
}
