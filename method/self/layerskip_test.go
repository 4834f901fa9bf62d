package self

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

const layerskipVocabulary = 40

// counting is a model that says the next number, with less certainty on fewer layers, and behind every tenth token another one below layer sure.
func counting(layers, sure int) *growtest.Model {
	return &growtest.Model{
		Dims: method.Size{Vocabulary: layerskipVocabulary, Layers: layers, Width: 8, Context: 100, Rows: 16},
		Next: func(path []token.ID, r forest.Row) []float32 {
			last := path[len(path)-1]
			next := (last + 1) % layerskipVocabulary
			if r.To > 0 && r.To < sure && last%10 == 9 {
				next = (last + 2) % layerskipVocabulary
			}
			logits := make([]float32, layerskipVocabulary)
			logits[next] = 4 + float32(r.To)
			return logits
		},
	}
}

// round is a text with its trunk.
type round struct {
	growtest.Text
	trunk *growtest.Sequence
}

func newRound(t *testing.T, name string, model *growtest.Model, text ...token.ID) *round {
	t.Helper()
	x := &round{trunk: model.Sequence(text[:len(text)-1]...)}
	var err error
	if x.Drafter, err = growtest.Open(t, name, method.Env{Vocabulary: layerskipVocabulary, Target: model}).NewDrafter(x.trunk); err != nil {
		t.Fatal(err)
	}
	x.Begin(t, text...)
	return x
}

// TestLayerskipChain: rows of the exit's layers alone run for the text's last token and all drafts but the last, live on, and are left to be resumed.
func TestLayerskipChain(t *testing.T) {
	for _, c := range []struct {
		name        string
		room        int // for tokens
		exit, depth int
		want        []token.ID
	}{
		{"layerskip", 50, 2, 6, []token.ID{8, 9, 11, 12, 13, 14}}, // a quarter of 8 layers
		{"layerskip:exit=1", 50, 1, 6, []token.ID{8, 9, 11, 12, 13, 14}},
		{"layerskip:exit=7+depth=3", 50, 7, 3, []token.ID{8, 9, 10}},
		{"layerskip:depth=25", 4, 2, 4, []token.ID{8, 9, 11, 12}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newRound(t, c.name, counting(8, 5), 6, 7)
			to := []int{}
			next := x.trunk.Next
			x.trunk.Next = func(path []token.ID, r forest.Row) []float32 { to = append(to, r.To); return next(path, r) }
			tree := x.Draft(t, c.room)
			if got := growtest.IDs(tree); !slices.Equal(got, c.want) {
				t.Fatalf("drafts %v, want %v", got, c.want)
			}
			if want := slices.Repeat([]int{c.exit}, c.depth); !slices.Equal(to, want) {
				t.Errorf("rows through %v layers, want %v", to, want)
			}
			if n := x.trunk.Live(); n != c.depth {
				t.Errorf("%d rows live, want %d", n, c.depth)
			}
			above := tree.RootLive()
			if above.Layer != c.exit || above.Parent != forest.Trunk || above.Node == forest.Trunk {
				t.Errorf("the text's last token is left as %+v", above)
			}
			for i, n := range tree.Nodes() {
				if last := i == tree.Len()-1; last != (n.Live == method.Live{}) || !last && (n.Live.Parent != above.Node || n.Live.Layer != c.exit) {
					t.Errorf("draft %d is left as %+v, behind %+v", i, n.Live, above)
				}
				above = n.Live
			}
		})
	}
}

// TestLayerskipEnd: at the context's end no row is run that has no place, and without room for a draft none at all.
func TestLayerskipEnd(t *testing.T) {
	model := counting(8, 5)
	model.Dims.Context = 5
	x := newRound(t, "layerskip", model, 1, 2, 3)
	if got := growtest.IDs(x.Draft(t, 50)); !slices.Equal(got, []token.ID{4, 5, 6}) {
		t.Errorf("%v", got)
	}
	calls := model.Calls
	if x = newRound(t, "layerskip", model, 1, 2, 3); x.Draft(t, 0).Len() > 0 || model.Calls != calls {
		t.Error("it drafts without room")
	}
	failed := errors.New("a failed step")
	model.Fail = failed
	x = newRound(t, "layerskip", model, 1, 2, 3)
	tree := method.NewTree(8, layerskipVocabulary)
	tree.Reset(8, method.NewRates(1))
	if err := x.Drafter.Draft(t.Context(), tree); !errors.Is(err, failed) || tree.RootLive() != (method.Live{}) {
		t.Errorf("%v, and a row %+v", err, tree.RootLive())
	}
}

func TestLayerskipOptions(t *testing.T) {
	for option, want := range map[string]string{
		"exit=4": "exit=4+depth=6", "depth=3": "depth=3", "depth=3+exit=2": "exit=2+depth=3", "exit=04+depth=25": "exit=4+depth=25",
	} {
		if i, err := method.Find("layerskip:" + option); err != nil || i.Name != "layerskip:"+want {
			t.Errorf("%s: %s, %v", option, i.Name, err)
		}
	}
	for _, option := range []string{"", "exit", "exit=0", "exit=-1", "exit=x", "depth=0", "depth=26", "exit=1+exit=2", "depth=3+depth=3", "depth=1+", "layers=3"} {
		if _, err := method.Find("layerskip:" + option); err == nil || !strings.Contains(err.Error(), "use exit=L") {
			t.Errorf("%s: %v", option, err)
		}
	}
	env := method.Env{Vocabulary: layerskipVocabulary, Target: counting(8, 5)}
	for name, fits := range map[string]bool{"layerskip:exit=8": false, "layerskip:exit=7": true, "layerskip:exit=99999999999": false} {
		info, err := method.Find(name)
		if err == nil {
			_, err = info.Open(env)
		}
		if (err == nil) != fits {
			t.Errorf("%s: %v", name, err)
		}
	}
	m, err := openLayerskip(env, []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.NewDrafter(nil); !errors.Is(err, method.ErrNeeds) {
		t.Errorf("no trunk: %v", err)
	}
}
