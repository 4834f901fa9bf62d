package heads

import (
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

const falconVocabulary, falconWidth = 20, 4

// falconScripted is a module of blocks of two pairs, whose rows find likeliest the token two places on, and a text that it drafts for.
func falconScripted(t *testing.T) (*growtest.Model, *growtest.Text) {
	t.Helper()
	m := growtest.Cycle(falconVocabulary, 2)
	next := m.Next
	m.Dims.Width = falconWidth
	m.Next = func(path []token.ID, r forest.Row) []float32 {
		return next([]token.ID{(r.ID + 1) % falconVocabulary}, r)
	}
	m.State = func([]token.ID) []float32 { return make([]float32, falconWidth) }
	of := &method.Module{Model: m, Module: forest.Module{Family: "falcon", FeedsState: true, Block: &forest.Block{Size: 2, Sees: true, Pairs: 2}}}
	return m, &growtest.Text{Drafter: growtest.Drafter(t, "falcon", method.Env{Vocabulary: falconVocabulary, Modules: []*method.Module{of}})}
}

func falconFeature(int) []float32 { return make([]float32, falconWidth) }

// TestFalconDraft expects a tree of six levels by fewer passes, since each gives two levels, and trees behind the tokens that are accepted.
func TestFalconDraft(t *testing.T) {
	m, x := falconScripted(t)
	x.Begin(t, 3, 4, 5, 6)
	x.AddRan(0, falconFeature)
	tree := x.Draft(t, 9)
	if got := growtest.PerDepth(tree); len(got) != 6 || !slices.Equal(got[:3], []int{4, 16, 16}) {
		t.Errorf("%v drafts by depth", got)
	}
	if m.Calls > 4 {
		t.Errorf("%d passes, want 4 at most", m.Calls)
	}
	for i, n := range tree.Nodes()[:4] {
		if n.ID != token.ID(7+i) {
			t.Errorf("draft %d is %d, want %d", i, n.ID, 7+i)
		}
	}
	x.AddRan(3, falconFeature, 7, 12)
	if n := x.Draft(t, 2).Nodes(); n[0].ID != 9 { // the module's first row has 7, its second 12
		t.Errorf("%v behind 12", n[0])
	}
	if x.Add(8); x.Draft(t, 9).Len() != 0 {
		t.Error("drafts behind a token whose feature is not known")
	}
}

// TestFalconEdges drafts where there is nothing to draft from, and passes the module's error on.
func TestFalconEdges(t *testing.T) {
	m, x := falconScripted(t)
	x.Begin(t, 3, 4)
	x.AddRan(0, falconFeature)
	if got := x.Draft(t, 9); got.Len() != 0 || m.Calls != 0 {
		t.Errorf("%v behind one pair", growtest.IDs(got))
	}
	x.AddRan(1, falconFeature, 5, 6)
	x.Draft(t, 9)
	x.AddRan(3, falconFeature, 7)
	x.Ends(t, m)
}
