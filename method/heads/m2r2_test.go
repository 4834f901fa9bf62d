package heads

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

const (
	m2r2Vocabulary = 40
	m2r2Exit       = 2
	m2r2Adapter    = 3
)

// row is a row whose logits were wanted.
type row struct {
	id              token.ID
	layers, adapter int
}

// m2r2Counting is a target whose accelerated rows say the next number, and whose own rows another one.
func m2r2Counting(ran *[]row) *growtest.Model {
	return &growtest.Model{
		Dims: method.Size{Vocabulary: m2r2Vocabulary, Layers: 8, Width: 8, Context: 100, Rows: 16},
		Next: func(path []token.ID, r forest.Row) []float32 {
			logits, last := make([]float32, m2r2Vocabulary), path[len(path)-1]
			*ran = append(*ran, row{last, r.To, r.Adapter})
			if r.Adapter == m2r2Adapter {
				logits[(last+1)%m2r2Vocabulary] = 4
			} else {
				logits[0] = 9
			}
			return logits
		},
	}
}

func opened(t *testing.T, name string, target *growtest.Model) (method.Method, error) {
	t.Helper()
	info, err := method.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	e := method.Env{Vocabulary: m2r2Vocabulary, Target: target, Modules: []*method.Module{{Module: forest.Module{Family: m2r2Family.Name}, Accelerated: method.Accelerated{Layers: m2r2Exit, Adapter: m2r2Adapter}}}}
	if err := info.CheckNeeds(e); err != nil {
		t.Fatal(err)
	}
	return info.Open(e)
}

// TestM2r2Chain: a token has two rows of the exit's layers, of which the own one is left to be taken further and the accelerated one gives the draft. Where a step has no room for both,
// or none is left behind the text, there are fewer drafts or none.
func TestM2r2Chain(t *testing.T) {
	for _, c := range []struct {
		name       string
		rows, live int // of a step, and behind the text; 0: any
		room       int // for tokens
		want       []token.ID
	}{
		{"m2r2:least=0", 16, 0, 50, []token.ID{8, 9, 10, 11, 12, 13}},
		{"m2r2:least=0+depth=3", 2, 0, 50, []token.ID{8, 9, 10}},
		{"m2r2:least=1", 16, 0, 50, []token.ID{8}},
		{"m2r2:least=0", 16, 0, 2, []token.ID{8, 9}},
		{"m2r2:least=0", 1, 0, 50, nil},
		{"m2r2:least=0", 16, 1, 50, nil},
		{"m2r2:least=0", 16, 5, 50, []token.ID{8, 9}},
	} {
		var ran []row
		target := m2r2Counting(&ran)
		target.Dims.Rows, target.Dims.Live = c.rows, c.live
		m, err := opened(t, c.name, target)
		if err != nil {
			t.Fatal(err)
		}
		trunk := target.Sequence(6)
		x := growtest.Text{}
		if x.Drafter, err = m.NewDrafter(trunk); err != nil {
			t.Fatal(err)
		}
		x.Begin(t, 6, 7)
		tree := x.Draft(t, c.room)
		if got := growtest.IDs(tree); !slices.Equal(got, c.want) {
			t.Errorf("%s, %d rows, %d live: drafts %v, want %v", c.name, c.rows, c.live, got, c.want)
		}
		for i, r := range ran {
			if r != (row{token.ID(7 + i), m2r2Exit, m2r2Adapter}) {
				t.Errorf("%s: row %d with logits is %+v", c.name, i, r)
			}
		}
		if n := trunk.Live(); n != 2*len(ran) || c.live > 0 && n > c.live {
			t.Errorf("%s: %d rows live, of %d accelerated ones", c.name, n, len(ran))
		}
		above := tree.RootLive()
		for i, n := range tree.Nodes() {
			if last := i == tree.Len()-1; !last && (n.Live.Parent != above.Node || n.Live.Layer != m2r2Exit || n.Live.Node == forest.Trunk) {
				t.Errorf("%s: draft %d is left as %+v, behind %+v", c.name, i, n.Live, above)
			}
			above = n.Live
		}
	}
}

func TestM2r2Needs(t *testing.T) {
	info, err := method.Find("m2r2:depth=3+least=0.25")
	if err != nil || info.Name != "m2r2:least=0.25+depth=3" {
		t.Fatalf("%s, %v", info.Name, err)
	}
	if _, err := method.Find("m2r2:exit=3"); err == nil || !strings.Contains(err.Error(), "use least=P") {
		t.Errorf("an option of another method: %v", err)
	}
	modules, target := []*method.Module{{Module: forest.Module{Family: m2r2Family.Name}}}, m2r2Counting(new([]row))
	for name, e := range map[string]method.Env{"nothing": {Target: target}, "other heads": {Target: target, Modules: []*method.Module{{Module: forest.Module{Family: "medusa"}}}}, "no target": {Modules: modules}} {
		if err := info.CheckNeeds(e); !errors.Is(err, method.ErrNeeds) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := info.Open(method.Env{Target: target, Modules: modules}); !errors.Is(err, method.ErrNeeds) {
		t.Errorf("heads that add nothing: %v", err)
	}
	m, err := opened(t, "m2r2", target)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.NewDrafter(nil); !errors.Is(err, method.ErrNeeds) {
		t.Errorf("no trunk: %v", err)
	}
}
