package chimera

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/forest"
	"grove/method"
	"grove/method/grow/growtest"
	"grove/sample"
	"grove/text/token"
)

const (
	vocabulary = 20
	width      = 4
	first      = 2 // layers before the heads
)

// scripted is a module of so many heads, which find the token behind the last one likeliest, then the next one, and so on. Every row is held to
// what the module reads: state is that of the text's last token but one.
type scripted struct {
	*growtest.Model
	module  *method.Module
	state   float32
	grams   [][]token.ID // that rows have read
	deepest int          // rows of a path
}

func script(t *testing.T, heads int) *scripted {
	s := &scripted{Model: growtest.Cycle(vocabulary, 2)}
	cycle := s.Next
	s.Dims.Width, s.Dims.Layers = width, first+heads
	s.Next = func(path []token.ID, r forest.Row) []float32 {
		s.deepest = max(s.deepest, len(path))
		runs := -1
		for k := range heads {
			if !r.Skip.Has(first + k) {
				if runs >= 0 {
					t.Errorf("a row runs heads %d and %d", runs, k)
				}
				runs = k
			}
		}
		if runs < 0 || r.Skip.Has(0) || r.Skip.Has(1) || r.To != 0 || len(r.Mix) != 2 || len(r.Vector) != width || r.Vector[0] != s.state {
			t.Errorf("head %d, a row that skips %v and ends behind layer %d, reads state %v and %v, want state %v", runs, r.Skip, r.To, r.Vector, r.Mix, s.state)
		}
		if before := path[len(path)-2]; runs > 0 && before != r.Mix[1].ID { // the trunk has a row for each state, whose token is the next one
			t.Errorf("the row of %d hangs from that of %d, want that of %d", r.ID, before, r.Mix[1].ID)
		}
		s.grams = append(s.grams, []token.ID{r.Mix[0].ID, r.Mix[1].ID, r.ID, token.ID(runs)})
		return cycle(path, r)
	}
	s.Stream = func(path []token.ID, r forest.Row, layer int) []float32 {
		if layer != 0 || r.Mix != nil || r.Skip != (forest.Layers{}) {
			t.Errorf("a row of the text gives the stream behind layer %d, reads %v and skips %v", layer, r.Mix, r.Skip)
		}
		return slices.Clone(r.Vector)
	}
	s.module = &method.Module{Model: s, Module: forest.Module{Family: "chimera", Heads: heads, Prefix: 1}}
	return s
}

// text begins a text whose states are ten times the tokens.
func (s *scripted) text(t *testing.T, p sample.Params, prompt ...token.ID) (*growtest.Text, func(int) []float32) {
	t.Helper()
	x := growtest.NewText(t, chimera{s.module, vocabulary})
	x.Noise.Sampling = p
	x.Begin(t, prompt...)
	of := func(place int) []float32 { return []float32{10 * float32(x.IDs()[place]), 0, 0, 0} }
	x.AddRan(0, of)
	return x, of
}

// TestDrafts follows a text: rows read the last three tokens down to theirs, and hang from their parents' rows.
func TestDrafts(t *testing.T) {
	s := script(t, 3)
	x, of := s.text(t, sample.Params{}, 3, 4, 5)
	s.state = 40
	tree := x.Draft(t, 9)
	if got := growtest.PerDepth(tree); !slices.Equal(got, []int{4, 16, 16}) {
		t.Errorf("%v drafts by depth", got)
	}
	if diff := cmp.Diff([][]token.ID{{3, 4, 5, 0}, {4, 5, 6, 1}, {4, 5, 7, 1}, {4, 5, 8, 1}, {4, 5, 9, 1}, {5, 6, 7, 2}}, s.grams[:6]); diff != "" {
		t.Error("what rows read: ", diff)
	}
	if n := tree.Nodes()[0]; n.ID != 6 {
		t.Errorf("the first draft is %d, want 6", n.ID)
	}
	s.state, s.grams = 60, nil
	x.AddRan(2, of, 6, 7)
	if n := x.Draft(t, 1).Nodes(); len(n) != 4 || n[0].ID != 8 || !slices.Equal(s.grams[0], []token.ID{5, 6, 7, 0}) {
		t.Errorf("%v behind 6 7, by %v", n, s.grams)
	}
	if x.Add(8); x.Draft(t, 9).Len() != 0 {
		t.Error("drafts behind a token whose state is not known")
	}
	s.state = 80 // the trunk begins anew behind the gap
	x.AddRan(5, of, 9)
	if n := x.Draft(t, 1).Nodes(); len(n) != 4 || n[0].ID != 10 {
		t.Errorf("%v when states are known again", n)
	}
}

// TestBeginning: before a text's first token stands that token again.
func TestBeginning(t *testing.T) {
	s := script(t, 2)
	if got, _ := s.text(t, sample.Params{}, 7); got.Draft(t, 9).Len() != 0 || s.Calls != 0 {
		t.Error("drafts behind one token, whose state is not known")
	}
	x, _ := s.text(t, sample.Params{}, 7, 9)
	s.state = 70
	x.Draft(t, 9)
	if diff := cmp.Diff([][]token.ID{{7, 7, 9, 0}, {7, 9, 10, 1}}, s.grams[:2]); diff != "" {
		t.Error("what rows read: ", diff)
	}
}

// TestNoise holds drafts above temperature 0 to what the text's noise draws.
func TestNoise(t *testing.T) {
	s, p := script(t, 2), sample.Params{Temperature: 1.5, Seed: 4}
	x, of := s.text(t, p, 3, 4)
	chain, err := sample.NewChain(sample.Settings{Params: p}, vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	other := 0
	for range 40 {
		s.state = 10 * float32(x.Last(1))
		want, err := chain.Candidates(make([]sample.Candidate, 1), growtest.Cycle(vocabulary, 2).Next([]token.ID{x.Last(0)}, forest.Row{}), len(x.IDs()))
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Draft(t, 4).Nodes()[0].ID; got != want[0].ID {
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

// TestEdges drafts where there is no room, or an error.
func TestEdges(t *testing.T) {
	s := script(t, 3)
	s.Dims.Context = 4
	x, of := s.text(t, sample.Params{}, 1, 2, 3)
	s.state = 20
	if got := growtest.PerDepth(x.Draft(t, 9)); !slices.Equal(got, []int{4, 16}) || s.deepest != 4 {
		t.Errorf("%v drafts by depth and %d rows of a path, where two rows fit behind the trunk", got, s.deepest)
	}
	s.state = 40
	x.AddRan(2, of, 4, 5)
	if got := x.Draft(t, 9); got.Len() != 0 {
		t.Errorf("%v where the module's context is full", growtest.IDs(got))
	}
	s.state = 50 // the trunk has begun anew, with the state of 5
	if x.AddRan(4, of, 6); x.Draft(t, 9).Len() == 0 {
		t.Error("no drafts behind a text that has outgrown the module's context")
	}
	one := script(t, 1)
	x, of = one.text(t, sample.Params{}, 3, 4)
	one.state = 30
	if got := growtest.PerDepth(x.Draft(t, 9)); !slices.Equal(got, []int{4}) {
		t.Errorf("%v drafts by depth of one head", got)
	}
	if held, most := x.Drafter.(method.Sized).Held(), x.Drafter.(method.Sized).MemoryFor(8, sample.Params{}); held.Logits > most.Logits {
		t.Errorf("%d bytes are held, want %d at most", held.Logits, most.Logits)
	}
	x.AddRan(1, of, 5)
	one.Fail = errors.New("the module fails")
	tree := method.NewTree(8, vocabulary)
	tree.Reset(4, method.NewRates(1))
	if err := x.Drafter.Draft(t.Context(), tree); !errors.Is(err, one.Fail) {
		t.Errorf("%v, want the module's error", err)
	}
	if err := x.Drafter.(method.Closer).Close(); err != nil {
		t.Error(err)
	}
}

// TestNeeds expects what is open of another family to be named.
func TestNeeds(t *testing.T) {
	info, err := method.Find("chimera")
	if err != nil {
		t.Fatal(err)
	}
	for want, env := range map[string]method.Env{
		"none is given": {},
		"none is given; the heads that are open are of the family hydra": {Modules: []*method.Module{{Module: forest.Module{Family: "hydra"}}}},
	} {
		if err := info.CheckNeeds(env); !errors.Is(err, method.ErrNeeds) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := method.Find("chimera:n=3"); err == nil {
		t.Error("an option is taken")
	}
}
