package hydra

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/compute"
	"grove/forest"
	"grove/method"
	"grove/method/grow/growtest"
	"grove/sample"
	"grove/text/token"
)

const (
	vocabulary = 20
	width      = 4
)

// scripted is a module of so many heads, which find the token behind the last one that they read likeliest, then the next one, and so on. Every row is held to
// what the module reads: state is what heads must read of the text.
type scripted struct {
	*growtest.Model
	module *method.Module
	state  float32
	mixes  [][]token.ID // that heads have read
}

func script(t *testing.T, heads, first int) *scripted {
	s := &scripted{Model: growtest.Cycle(vocabulary, 2)}
	cycle := s.Next
	s.Dims.Width, s.Dims.Layers = width, first+heads
	s.Next = func(path []token.ID, r forest.Row) []float32 {
		k := r.To - 1 - first
		if r.Skip != forest.LayerRange(0, first+k) || len(r.Mix) != k+1 || len(r.Vector) != width || r.Vector[0] != s.state {
			t.Errorf("head %d reads state %v and %v, want state %v", k, r.Vector, r.Mix, s.state)
		}
		var mix []token.ID
		for _, m := range r.Mix {
			mix = append(mix, m.ID)
		}
		s.mixes = append(s.mixes, mix)
		return cycle(mix[len(mix)-1:], r)
	}
	s.Stream = func(path []token.ID, r forest.Row, _ int) []float32 {
		return []float32{100*float32(len(path)) + r.Vector[0], 0, 0, 0}
	}
	s.module = &method.Module{Model: s, Module: forest.Module{Family: "hydra", Heads: heads, Prefix: first}}
	return s
}

// text begins a text whose states are ten times the tokens.
func (s *scripted) text(t *testing.T, p sample.Params, prompt ...token.ID) (*growtest.Text, func(int) []float32) {
	t.Helper()
	x := growtest.NewText(t, hydra{s.module, vocabulary})
	x.Noise.Sampling = p
	x.Begin(t, prompt...)
	of := func(place int) []float32 { return []float32{10 * float32(x.IDs()[place]), 0, 0, 0} }
	x.AddRan(0, of)
	return x, of
}

// TestDrafts follows a text by the last known state and by what the first layer gives of all of them.
func TestDrafts(t *testing.T) {
	for name, prefix := range map[string]int{"hydra": 0, "hydra++": 1} {
		t.Run(name, func(t *testing.T) {
			s := script(t, 3, prefix)
			x, of := s.text(t, sample.Params{}, 3, 4, 5)
			is := func(rows int, state float32) float32 {
				if prefix > 0 {
					return 100*float32(rows) + state
				}
				return state
			}
			s.state = is(2, 40)
			tree := x.Draft(t, 9)
			if got := growtest.PerDepth(tree); !slices.Equal(got, []int{4, 16, 16}) {
				t.Errorf("%v drafts by depth", got)
			}
			if diff := cmp.Diff([][]token.ID{{5}, {5, 6}, {5, 7}, {5, 8}, {5, 9}, {5, 6, 7}}, s.mixes[:6]); diff != "" {
				t.Error("what heads read: ", diff)
			}
			if n := tree.Nodes()[0]; n.ID != 6 {
				t.Errorf("the first draft is %d, want 6", n.ID)
			}
			if got := growtest.PerDepth(x.Draft(t, 2)); prefix == 0 && !slices.Equal(got, []int{4, 16}) {
				t.Errorf("%v drafts by depth where two tokens fit", got)
			}
			s.state = is(4, 60)
			x.AddRan(2, of, 6, 7)
			if n := x.Draft(t, 1).Nodes(); len(n) != 4 || n[0].ID != 8 {
				t.Errorf("%v behind 6 7", n)
			}
			if x.Add(8); x.Draft(t, 9).Len() != 0 {
				t.Error("drafts behind a token whose feature is not known")
			}
			s.state = is(1, 80) // the trunk begins anew behind the gap
			x.AddRan(5, of, 9)
			if n := x.Draft(t, 1).Nodes(); len(n) != 4 || n[0].ID != 10 {
				t.Errorf("%v when features are known again", n)
			}
		})
	}
}

// TestNoise holds drafts above temperature 0 to what the text's noise draws.
func TestNoise(t *testing.T) {
	s, p := script(t, 2, 0), sample.Params{Temperature: 1.5, Seed: 4}
	x, of := s.text(t, p, 3, 4)
	chain, err := sample.NewChain(sample.Settings{Params: p}, vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	other := 0
	for range 40 {
		s.state = 10 * float32(x.Last(1))
		tree := x.Draft(t, 4)
		want, err := chain.Candidates(make([]sample.Candidate, 1), s.logits(x.Last(0)), len(x.IDs()))
		if err != nil {
			t.Fatal(err)
		}
		if got := tree.Nodes()[0].ID; got != want[0].ID {
			t.Fatalf("the first draft is %d, want the draw %d", got, want[0].ID)
		}
		if want[0].ID != (x.Last(0)+1)%vocabulary {
			other++
		}
		x.AddRan(len(x.IDs())-1, of, want[0].ID)
	}
	if other == 0 {
		t.Error("every draw is the likeliest token")
	}
}

// logits returns the logits behind a token.
func (s *scripted) logits(id token.ID) []float32 {
	return growtest.Cycle(vocabulary, 2).Next([]token.ID{id}, forest.Row{})
}

// TestEdges drafts where there is nothing to draft from, no room, or an error.
func TestEdges(t *testing.T) {
	s := script(t, 2, 1)
	x, _ := s.text(t, sample.Params{}, 7)
	if got := x.Draft(t, 9); got.Len() != 0 || s.Calls != 0 {
		t.Errorf("%v behind one token", growtest.IDs(got))
	}
	s.Dims.Context = 3
	x, of := s.text(t, sample.Params{}, 1, 2, 3)
	s.state = 220
	if got := x.Draft(t, 9); got.Len() == 0 {
		t.Error("no drafts where a row fits behind the trunk")
	}
	x.AddRan(2, of, 4)
	if got := x.Draft(t, 9); got.Len() != 0 {
		t.Errorf("%v where the module's context is full", growtest.IDs(got))
	}
	s.state = 140 // the trunk has begun anew, with the state of 4
	if x.AddRan(3, of, 5); x.Draft(t, 9).Len() == 0 {
		t.Error("no drafts behind a text that has outgrown the module's context")
	}
	one := script(t, 1, 0)
	x, _ = one.text(t, sample.Params{}, 3, 4)
	one.state = 30
	if got := growtest.PerDepth(x.Draft(t, 9)); !slices.Equal(got, []int{4}) {
		t.Errorf("%v drafts by depth of one head", got)
	}
	one.Fail = errors.New("the module fails")
	tree := method.NewTree(8, vocabulary)
	tree.Reset(4, method.NewRates(1))
	if err := x.Drafter.Draft(t.Context(), tree); !errors.Is(err, one.Fail) {
		t.Errorf("%v, want the module's error", err)
	}
	if err := x.Drafter.(method.Closer).Close(); err != nil {
		t.Error(err)
	}
	// Rows of another text: nothing is known.
	x.Begin(t, 5, 6)
	x.Drafter.Committed(method.Update{Rows: []method.RowResult{{ID: 9, Accepted: true, Result: compute.Result{State: make([]float32, width)}}}})
	if one.Fail = nil; x.Draft(t, 9).Len() != 0 {
		t.Error("drafts by rows of another text")
	}
}

// TestNeeds expects what is open of another family to be named.
func TestNeeds(t *testing.T) {
	info, err := method.Find("hydra")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  method.Env
		want string
	}{
		"nothing":        {method.Env{}, "none is given"},
		"another family": {method.Env{Modules: []*method.Module{{Module: forest.Module{Family: "medusa"}}}}, "none is given; the heads that are open are of the family medusa"},
	} {
		if err := info.CheckNeeds(c.env); !errors.Is(err, method.ErrNeeds) || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if _, err := method.Find("hydra:n=3"); err == nil {
		t.Error("an option is taken")
	}
}
