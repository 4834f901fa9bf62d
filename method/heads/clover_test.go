package heads

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

const (
	cloverVocabulary = 20
	layers           = 2 // that read the text
	cloverWidth      = 4
)

// cloverScripted is a module whose states name the token that they are behind, and how many tokens of the text the trunk has: it finds the next token
// likeliest. It notes which states and tokens rows read, and fails the test where a row runs other layers than its own.
type cloverScripted struct {
	*growtest.Model
	module *method.Module
	read   [][2]float32 // the token of the parent's state, and the row's
}

func cloverScript(t *testing.T) *cloverScripted {
	s := &cloverScripted{Model: growtest.Cycle(cloverVocabulary, 2)}
	cycle := s.Next
	s.Dims.Width, s.Dims.Layers = cloverWidth, layers+3
	s.Next = func(path []token.ID, r forest.Row) []float32 {
		id := r.ID
		switch r.Skip {
		case forest.LayerRange(0, layers+1): // the head behind the text
			if id = token.ID(r.Vector[0]); r.To != layers+2 {
				t.Errorf("the first head ends behind layer %d", r.To)
			}
		case forest.LayerRange(0, layers).With(layers + 1):
			s.read = append(s.read, [2]float32{r.Vector[0], float32(id)})
		default:
			t.Errorf("a row with logits skips %v", r.Skip)
		}
		return cycle([]token.ID{id}, r)
	}
	s.Stream = func(path []token.ID, r forest.Row, layer int) []float32 {
		if r.Skip == (forest.Layers{}) != (layer == layers-1) || layer > layers {
			t.Errorf("the stream behind layer %d of a row that skips %v", layer, r.Skip)
		}
		return []float32{float32(r.ID), float32(len(path)), 0, 0}
	}
	s.module = &method.Module{Model: s, Module: forest.Module{Family: "clover", Prefix: layers}}
	return s
}

func (s *cloverScripted) text(t *testing.T, prompt ...token.ID) *growtest.Text {
	t.Helper()
	x := &growtest.Text{Drafter: growtest.Drafter(t, "clover", method.Env{Vocabulary: cloverVocabulary, Modules: []*method.Module{s.module}})}
	x.Begin(t, prompt...)
	x.AddRan(0, cloverFeature)
	return x
}

func cloverFeature(int) []float32 { return make([]float32, cloverWidth) }

// TestCloverDrafts expects each draft to read its parent's state and its own token, as deep as the head was trained.
func TestCloverDrafts(t *testing.T) {
	s := cloverScript(t)
	x := s.text(t, 3, 4, 5)
	tree := x.Draft(t, 9)
	if got := growtest.PerDepth(tree); !slices.Equal(got, []int{4, 16, 16, 16, 16}) {
		t.Errorf("%v drafts by depth", got)
	}
	if diff := cmp.Diff([][2]float32{{5, 6}, {5, 7}, {5, 8}, {5, 9}, {6, 7}}, s.read[:5]); diff != "" {
		t.Error("the states and tokens that drafts read: ", diff)
	}
	for i, n := range tree.Nodes()[:4] {
		if n.ID != token.ID(6+i) {
			t.Errorf("draft %d is %d, want %d", i, n.ID, 6+i)
		}
	}
	s.read = nil
	x.AddRan(2, cloverFeature, 6, 9)
	if n := x.Draft(t, 2).Nodes(); n[0].ID != 10 || !slices.Contains(s.read, [2]float32{9, 10}) {
		t.Errorf("%v behind 9, by %v", n[0], s.read)
	}
	if x.Add(8); x.Draft(t, 9).Len() != 0 {
		t.Error("drafts behind a token whose feature is not known")
	}
}

// TestCloverEdges drafts where there is nothing to draft from, and passes the module's error on.
func TestCloverEdges(t *testing.T) {
	s := cloverScript(t)
	if got := s.text(t, 7).Draft(t, 9); got.Len() != 0 || s.Calls != 0 {
		t.Errorf("%v behind one token", growtest.IDs(got))
	}
	x := s.text(t, 3, 4)
	x.Ends(t, s.Model)
}
