package heads

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

const (
	pathVocabulary = 20
	pathWidth      = 4
)

// pathScripted is a module of so many heads, which find the token behind the last one that they read likeliest, then the next one, and so on. Every row is held to
// what the module reads.
type pathScripted struct {
	*growtest.Model
	t       *testing.T
	module  *method.Module
	state   float32      // that heads must read of the text
	read    [][]token.ID // tokens that rows have read
	deepest int          // rows of a path
}

func pathScript(t *testing.T, family string, heads, prefix, layers int) *pathScripted {
	s := &pathScripted{Model: growtest.Cycle(pathVocabulary, 2), t: t}
	s.Dims.Width, s.Dims.Layers = pathWidth, layers+heads
	s.module = &method.Module{Model: s, Module: forest.Module{Family: family, Heads: heads, Prefix: prefix}}
	return s
}

// hydra is a module whose heads read the tokens of a path, with layers before them: Hydra++.
func hydra(t *testing.T, heads, prefix int) *pathScripted {
	s := pathScript(t, "hydra", heads, prefix, prefix)
	cycle := s.Next
	s.Next = func(path []token.ID, r forest.Row) []float32 {
		k := r.To - 1 - prefix
		if r.Skip != forest.LayerRange(0, prefix+k) || len(r.Mix) != k+1 || len(r.Vector) != pathWidth || r.Vector[0] != s.state {
			t.Errorf("head %d reads state %v and %v, want state %v", k, r.Vector, r.Mix, s.state)
		}
		return cycle(s.reads(path, r.Mix), r)
	}
	s.Stream = func(path []token.ID, r forest.Row, _ int) []float32 {
		return []float32{100*float32(len(path)) + r.Vector[0], 0, 0, 0}
	}
	return s
}

// chimera is a module whose rows read trigrams. What a row has read is its trigram and its head.
func chimera(t *testing.T, heads int) *pathScripted {
	const first = 2 // layers before the heads
	s := pathScript(t, "chimera", heads, 1, first)
	cycle := s.Next
	s.Next = func(path []token.ID, r forest.Row) []float32 {
		runs := -1
		for k := range heads {
			if !r.Skip.Has(first + k) {
				if runs >= 0 {
					t.Errorf("a row runs heads %d and %d", runs, k)
				}
				runs = k
			}
		}
		if runs < 0 || r.Skip.Has(0) || r.Skip.Has(1) || r.To != 0 || len(r.Mix) != 2 || len(r.Vector) != pathWidth || r.Vector[0] != s.state {
			t.Errorf("head %d, a row that skips %v and ends behind layer %d, reads state %v and %v, want state %v", runs, r.Skip, r.To, r.Vector, r.Mix, s.state)
		}
		if before := path[len(path)-2]; runs > 0 && before != r.Mix[1].ID { // the trunk has a row for each state, whose token is the next one
			t.Errorf("the row of %d hangs from that of %d, want that of %d", r.ID, before, r.Mix[1].ID)
		}
		s.reads(path, r.Mix, r.ID, token.ID(runs))
		return cycle(path, r)
	}
	s.Stream = func(path []token.ID, r forest.Row, layer int) []float32 {
		if layer != 0 || r.Mix != nil || r.Skip != (forest.Layers{}) {
			t.Errorf("a row of the text gives the stream behind layer %d, reads %v and skips %v", layer, r.Mix, r.Skip)
		}
		return slices.Clone(r.Vector)
	}
	return s
}

// reads notes what a row has read, and returns the last of it.
func (s *pathScripted) reads(path []token.ID, mix []forest.Weighted, more ...token.ID) []token.ID {
	var ids []token.ID
	for _, m := range mix {
		ids = append(ids, m.ID)
	}
	s.deepest, s.read = max(s.deepest, len(path)), append(s.read, append(ids, more...))
	return ids[len(ids)-1:]
}

// text begins a text whose states are ten times the tokens.
func (s *pathScripted) text(p sample.Params, prompt ...token.ID) (*growtest.Text, func(int) []float32) {
	s.t.Helper()
	x := &growtest.Text{Drafter: growtest.Drafter(s.t, s.module.Family, method.Env{Vocabulary: pathVocabulary, Modules: []*method.Module{s.module}})}
	x.Noise.Sampling = p
	x.Begin(s.t, prompt...)
	of := func(place int) []float32 { return []float32{10 * float32(x.IDs()[place]), 0, 0, 0} }
	x.AddRan(0, of)
	return x, of
}

// TestPathDrafts follows a text: by the last known state, by what the first layer gives of all of them, and by trigrams whose rows hang from their parents'.
func TestPathDrafts(t *testing.T) {
	rows := func(rows int, state float32) float32 { return 100*float32(rows) + state }
	last := func(_ int, state float32) float32 { return state }
	for name, c := range map[string]struct {
		of    *pathScripted
		state func(rows int, state float32) float32 // that heads read behind so many rows of the trunk
		read  [][]token.ID                          // by the first rows
		then  []token.ID                            // by the first row of the next round
	}{
		"hydra":   {hydra(t, 3, 0), last, [][]token.ID{{5}, {5, 6}, {5, 7}, {5, 8}, {5, 9}, {5, 6, 7}}, []token.ID{7}},
		"hydra++": {hydra(t, 3, 1), rows, [][]token.ID{{5}, {5, 6}, {5, 7}, {5, 8}, {5, 9}, {5, 6, 7}}, []token.ID{7}},
		"chimera": {chimera(t, 3), last, [][]token.ID{{3, 4, 5, 0}, {4, 5, 6, 1}, {4, 5, 7, 1}, {4, 5, 8, 1}, {4, 5, 9, 1}, {5, 6, 7, 2}}, []token.ID{5, 6, 7, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.of
			x, of := s.text(sample.Params{}, 3, 4, 5)
			s.state = c.state(2, 40)
			tree := x.Draft(t, 9)
			if got := growtest.PerDepth(tree); !slices.Equal(got, []int{4, 16, 16}) {
				t.Errorf("%v drafts by depth", got)
			}
			if diff := cmp.Diff(c.read, s.read[:6]); diff != "" {
				t.Error("what rows read: ", diff)
			}
			if n := tree.Nodes()[0]; n.ID != 6 {
				t.Errorf("the first draft is %d, want 6", n.ID)
			}
			if got := growtest.PerDepth(x.Draft(t, 2)); s.module.Prefix == 0 && !slices.Equal(got, []int{4, 16}) {
				t.Errorf("%v drafts by depth where two tokens fit", got)
			}
			s.state, s.read = c.state(4, 60), nil
			x.AddRan(2, of, 6, 7)
			if n := x.Draft(t, 1).Nodes(); len(n) != 4 || n[0].ID != 8 || !slices.Equal(s.read[0], c.then) {
				t.Errorf("%v behind 6 7, by %v", n, s.read)
			}
			if x.Add(8); x.Draft(t, 9).Len() != 0 {
				t.Error("drafts behind a token whose feature is not known")
			}
			s.state = c.state(1, 80) // the trunk begins anew behind the gap
			x.AddRan(5, of, 9)
			if n := x.Draft(t, 1).Nodes(); len(n) != 4 || n[0].ID != 10 {
				t.Errorf("%v when features are known again", n)
			}
		})
	}
}

// TestBeginning: nothing is drafted behind one token, whose state is not known. Before a text's first token stands that token again.
func TestBeginning(t *testing.T) {
	for _, s := range []*pathScripted{hydra(t, 2, 1), chimera(t, 2)} {
		if x, _ := s.text(sample.Params{}, 7); x.Draft(t, 9).Len() != 0 || s.Calls != 0 {
			t.Errorf("%s drafts behind one token", s.module.Family)
		}
	}
	s := chimera(t, 2)
	x, _ := s.text(sample.Params{}, 7, 9)
	s.state = 70
	x.Draft(t, 9)
	if diff := cmp.Diff([][]token.ID{{7, 7, 9, 0}, {7, 9, 10, 1}}, s.read[:2]); diff != "" {
		t.Error("what rows read: ", diff)
	}
}

// TestNoise holds drafts above temperature 0 to what the text's noise draws.
func TestNoise(t *testing.T) {
	for _, s := range []*pathScripted{hydra(t, 2, 0), chimera(t, 2)} {
		t.Run(s.module.Family, func(t *testing.T) {
			p := sample.Params{Temperature: 1.5, Seed: 4}
			x, of := s.text(p, 3, 4)
			chain, err := sample.NewChain(sample.Settings{Params: p}, pathVocabulary)
			if err != nil {
				t.Fatal(err)
			}
			other := 0
			for range 40 {
				s.state = 10 * float32(x.Last(1))
				want, err := chain.Candidates(make([]sample.Candidate, 1), growtest.Cycle(pathVocabulary, 2).Next([]token.ID{x.Last(0)}, forest.Row{}), len(x.IDs()))
				if err != nil {
					t.Fatal(err)
				}
				if got := x.Draft(t, 4).Nodes()[0].ID; got != want[0].ID {
					t.Fatalf("the first draft is %d, want the draw %d", got, want[0].ID)
				}
				if want[0].ID != (x.Last(0)+1)%pathVocabulary {
					other++
				}
				x.AddRan(len(x.IDs())-1, of, want[0].ID)
			}
			if other == 0 {
				t.Error("every draw is the likeliest token")
			}
		})
	}
}

// TestPathContext drafts at the end of the module's context: a row fits behind the trunk, or two of a path do.
func TestPathContext(t *testing.T) {
	for name, c := range map[string]struct {
		of      *pathScripted
		context int
		states  [2]float32 // behind the prompt, and of a trunk that has begun anew
	}{
		"hydra":   {hydra(t, 2, 1), 3, [2]float32{220, 140}},
		"chimera": {chimera(t, 3), 4, [2]float32{20, 50}},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.of
			s.Dims.Context, s.state = c.context, c.states[0]
			x, of := s.text(sample.Params{}, 1, 2, 3)
			if got := growtest.PerDepth(x.Draft(t, 9)); !slices.Equal(got, []int{4, 16}) || s.deepest > c.context {
				t.Errorf("%v drafts by depth and %d rows of a path, where two rows of drafts fit", got, s.deepest)
			}
			for id := token.ID(4); int(id) < c.context+2; id++ {
				x.AddRan(int(id)-2, of, id)
			}
			if got := x.Draft(t, 9); got.Len() != 0 {
				t.Errorf("%v where the module's context is full", growtest.IDs(got))
			}
			s.state = c.states[1]
			n := len(x.IDs())
			if x.AddRan(n-1, of, token.ID(n+1)); x.Draft(t, 9).Len() == 0 {
				t.Error("no drafts behind a text that has outgrown the module's context")
			}
		})
	}
}

// TestPathEdges drafts with one head, and passes the module's error on.
func TestPathEdges(t *testing.T) {
	for _, s := range []*pathScripted{hydra(t, 1, 0), chimera(t, 1)} {
		x, of := s.text(sample.Params{}, 3, 4)
		s.state = 30
		if got := growtest.PerDepth(x.Draft(t, 9)); !slices.Equal(got, []int{4}) {
			t.Errorf("%v drafts by depth of one head", got)
		}
		x.AddRan(1, of, 5)
		x.Ends(t, s.Model)
	}
	s := hydra(t, 1, 0) // rows of another text: nothing is known
	x, _ := s.text(sample.Params{}, 5, 6)
	x.Begin(t, 5, 6)
	x.Drafter.Committed(method.Update{Rows: []method.RowResult{{ID: 9, Accepted: true, Result: compute.Result{State: make([]float32, pathWidth)}}}})
	if x.Draft(t, 9).Len() != 0 {
		t.Error("drafts by rows of another text")
	}
}
