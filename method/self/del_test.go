package self

import (
	"errors"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"

	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/layers"
)

const delVocabulary = 40

// exiting is a model of so many layers. Its token behind a text depends on the text; the first layers say the same at a share of places.
func exiting(n int, share func(layers int) float64) *growtest.Model {
	next := func(path []token.ID, layers int) []float32 {
		h := fnv.New64a()
		for _, id := range path[max(0, len(path)-3):] {
			h.Write([]byte{byte(id)})
		}
		h.Write([]byte{byte(len(path)), byte(len(path) >> 8)})
		id := h.Sum64() >> 20 % delVocabulary
		h.Write([]byte{byte(layers), 7})
		if layers < n && float64(h.Sum64()>>20%1000) >= 1000*share(layers) {
			id = (id + 1) % delVocabulary
		}
		return []float32{float32(id), 8}
	}
	head := func(stream []float32) []float32 {
		logits := make([]float32, delVocabulary)
		logits[int(stream[0])] = stream[1]
		return logits
	}
	return &growtest.Model{
		Dims:   method.Size{Vocabulary: delVocabulary, Layers: n, Width: 2, Context: 4000, Rows: 32},
		Stream: func(path []token.ID, _ forest.Row, layer int) []float32 { return next(path, layer+1) },
		Head:   head,
		Next: func(path []token.ID, r forest.Row) []float32 {
			if r.To == 0 {
				r.To = n
			}
			return head(next(path, r.To))
		},
	}
}

// delText is a text that is decoded with a drafter on its own trunk.
type delText struct {
	growtest.Text
	model *growtest.Model
	trunk *growtest.Sequence
	tree  *method.Tree
	to    []int   // where the rows of the last round stopped
	worth float64 // tokens a second; 0: every draft is run
}

func delOpened(t *testing.T, name string, model *growtest.Model) *del {
	t.Helper()
	return growtest.Open(t, name, method.Env{Vocabulary: delVocabulary, Target: model}).(*del)
}

func delNewText(t *testing.T, m *del, model *growtest.Model, temperature float32) *delText {
	t.Helper()
	x := &delText{model: model, trunk: model.Sequence(), tree: method.NewTree(64, delVocabulary)}
	d, err := m.NewDrafter(x.trunk)
	if err != nil {
		t.Fatal(err)
	}
	x.Drafter = d
	x.Noise.Sampling.Temperature, x.Noise.Sampling.Seed = temperature, 5
	next := x.model.Next
	x.trunk.Model = &growtest.Model{Dims: model.Dims, Stream: model.Stream, Head: model.Head, Fail: model.Fail, Next: func(path []token.ID, r forest.Row) []float32 {
		x.to = append(x.to, r.To)
		return next(path, r)
	}}
	x.Begin(t, 1, 2, 3)
	return x
}

// round drafts, and returns the drafts and how many of them are what followed. The text grows by these and by another token.
func (x *delText) round(t *testing.T) (drafts, accepted int) {
	t.Helper()
	ids := x.IDs()
	x.trunk.Trunk, x.to = slices.Clone(ids[:len(ids)-1]), x.to[:0]
	x.tree.Reset(60, method.NewRates(1))
	x.tree.Throughput = x.worth
	if err := x.Drafter.Draft(t.Context(), x.tree); err != nil {
		t.Fatal(err)
	}
	d := x.Drafter.(*delDrafter)
	path := slices.Clone(ids)
	for node, ok := method.Root, true; ok; {
		id, err := d.grower.First(x.model.Next(path, forest.Row{}), len(path))
		if err != nil {
			t.Fatal(err)
		}
		path = append(path, id)
		if node, ok = x.tree.Child(node, id); ok {
			accepted++
		}
	}
	if err := x.trunk.Drop(); err != nil {
		t.Fatal(err)
	}
	x.Add(path[len(ids):]...)
	return x.tree.Len(), accepted
}

// TestShares: after some rounds the shares of the exits up to the farthest that is tried are those of the model, although few of them drafted, and
// the exit with the most tokens a layer drafts.
func TestShares(t *testing.T) {
	of := map[int]float64{1: 0.3, 2: 0.4, 3: 0.9, 4: 0.9, 5: 0.95}
	for _, temperature := range []float32{0, 1} {
		model := exiting(8, func(l int) float64 { return of[l] })
		m := delOpened(t, "del", model)
		x := delNewText(t, m, model, temperature)
		used := map[int]int{}
		for range 400 {
			x.round(t)
			used[x.to[0]]++
			if len(x.IDs()) > 3900 {
				x.Begin(t, 3, 2, 1)
			}
		}
		if used[3] < 300 {
			t.Errorf("temperature %v: rounds by exit: %v", temperature, used)
		}
		c := m.Choose(layers.Units(8), delUsual)
		if c.Exit != 2 || !c.Pays {
			t.Errorf("temperature %v: %+v", temperature, c)
		}
		for i, l := range m.Exits[:c.Farthest+1] {
			if got := m.Share(i); math.Abs(got-of[l]) > 0.2 {
				t.Errorf("temperature %v: %d layers: share %v, want %v", temperature, l, got, of[l])
			}
		}
	}
}

// TestShadows: where every exit drafts what follows, with the same random numbers, one trial shows that of all exits before its own.
func TestShadows(t *testing.T) {
	for _, temperature := range []float32{0, 0.5, 2} {
		model := exiting(6, func(int) float64 { return 1 })
		m := delOpened(t, "del:depth=4", model)
		x := delNewText(t, m, model, temperature)
		heads := 0
		x.trunk.Head = func(stream []float32) []float32 { heads++; return model.Head(stream) }
		for round := range 2 {
			if drafts, accepted := x.round(t); drafts != accepted || drafts < 3 {
				t.Errorf("temperature %v: %d of %d drafts are accepted", temperature, accepted, drafts)
			}
			if round == 0 && m.Share(0) != 0 {
				t.Error("the share of an exit that has not drafted is known at once")
			}
		}
		if want := 3 * 4; heads != want { // positions of the trial, which the fourth exit makes, and exits before its own
			t.Errorf("temperature %v: %d shadows, want %d", temperature, heads, want)
		}
		for i := range 4 {
			if got := m.Share(i); got != 1 {
				t.Errorf("temperature %v: exit %d: share %v", temperature, i, got)
			}
		}
	}
}

// TestMismatch: positions behind a draft that was rejected teach nothing, and the one of that draft does.
func TestMismatch(t *testing.T) {
	model := exiting(4, func(int) float64 { return 0 })
	m := delOpened(t, "del:depth=5", model)
	x := delNewText(t, m, model, 0)
	for range 2 {
		if _, accepted := x.round(t); accepted != 0 {
			t.Fatalf("%d drafts are accepted", accepted)
		}
	}
	d := x.Drafter.(*delDrafter)
	if m.Share(0) != 0 {
		t.Errorf("share %v", m.Share(0))
	}
	d.asked, x.trunk.Trunk = 0, slices.Clone(x.IDs()[:len(x.IDs())-1])
	first := growtest.IDs(x.Draft(t, 5))[0]
	if x.Add((first+1)%delVocabulary, 1, 2, 3); d.shadows.told != 1 {
		t.Errorf("%d positions teach something behind a first draft that was rejected, want 1", d.shadows.told)
	}
}

// TestPlain: where no draft is accepted and time is worth something, rounds that are no trials run no row; a round behind some in which it was not
// asked is a trial.
func TestPlain(t *testing.T) {
	model := exiting(8, func(int) float64 { return 0 })
	x := delNewText(t, delOpened(t, "del", model), model, 0)
	x.worth = 0.1
	ran := 0
	for range 4 * trialEvery {
		if drafts, _ := x.round(t); drafts > 0 {
			ran++
		}
	}
	if ran != 4 {
		t.Errorf("%d rounds draft, want 4", ran)
	}
	x.round(t)
	x.Add(5)
	if drafts, _ := x.round(t); drafts < trialDepth {
		t.Errorf("%d drafts when it is asked again", drafts)
	}
	if drafts, _ := x.round(t); drafts > 0 {
		t.Errorf("%d drafts in the round behind", drafts)
	}
	x.worth = 0
	if drafts, _ := x.round(t); drafts == 0 {
		t.Error("no drafts where all are run")
	}
}

// slow is a machine whose head takes more time than layers.
type slow struct{}

func (slow) LayerSeconds(_, layers int) float64 { return float64(layers) }

func (slow) HeadSeconds(rows int) float64 { return 3 * float64(rows) }

// TestBounds: evaluating shadows takes no more rows than a step has, no more than there are, and no more time than half a plain step.
func TestBounds(t *testing.T) {
	stream := [][]float32{{1, 2}, {3, 4}, {5, 6}}
	for _, c := range []struct {
		name           string
		positions, was int // positions with streams, and of these with a known successor
		m              layers.Model
		room           int
		want           int
	}{
		{"all", 4, 4, layers.Units(8), 50, 12}, {"as many as are kept", 9, 9, layers.Units(8), 50, 15}, {"the first", 4, 2, layers.Units(8), 50, 6},
		{"little room", 4, 4, layers.Units(8), 8, 6}, {"no room", 4, 4, layers.Units(8), 2, 0}, {"nothing followed", 4, 0, layers.Units(8), 50, 0},
		{"a slow head", 4, 4, layers.Model{Steps: slow{}, Layers: 8}, 50, 3},
		{"a faster one", 4, 4, layers.Model{Steps: slow{}, Layers: 60}, 50, 9},
	} {
		s := &shadows{width: 2, all: forest.LayerRange(0, 8)}
		s.begin(len(stream), 7)
		for range c.positions {
			s.keep(stream)
		}
		s.tell(make([]token.ID, c.was))
		rows := s.rows(nil, c.m, c.room)
		if len(rows) != c.want {
			t.Errorf("%s: %d rows, want %d", c.name, len(rows), c.want)
		}
		for i, r := range rows {
			if !slices.Equal(r.Vector, stream[i%3]) || r.Skip != s.all || !r.Want.Logits {
				t.Errorf("%s: row %d is %+v", c.name, i, r.Row)
			}
		}
	}
	s := &shadows{width: 2}
	s.begin(0, 7) // the first exit has none before it
	s.keep(nil)
	s.tell([]token.ID{1, 2})
	if got := s.rows(nil, layers.Units(8), 9); len(got) > 0 {
		t.Errorf("%d rows of no exit", len(got))
	}
}

// TestDelEnd: without room nothing is drafted, and a failed step is reported.
func TestDelEnd(t *testing.T) {
	model := exiting(8, func(int) float64 { return 1 })
	model.Dims.Context, model.Dims.Rows = 5, 1
	x := delNewText(t, delOpened(t, "del", model), model, 0)
	if drafts, _ := x.round(t); drafts != 3 { // the draft behind the last index of the context needs no row
		t.Errorf("%d drafts at the context's end", drafts)
	}
	x = delNewText(t, delOpened(t, "del", model), model, 0)
	x.trunk.Trunk = []token.ID{1, 2}
	x.tree.Reset(0, method.NewRates(1))
	if err := x.Drafter.Draft(t.Context(), x.tree); err != nil || x.tree.Len() > 0 || len(x.to) > 0 {
		t.Errorf("without room: %v, %d drafts", err, x.tree.Len())
	}
	x.trunk.Fail = errors.New("a failed step")
	x.tree.Reset(8, method.NewRates(1))
	if err := x.Drafter.Draft(t.Context(), x.tree); !errors.Is(err, x.trunk.Fail) {
		t.Errorf("error %v", err)
	}
}

func TestDelOptions(t *testing.T) {
	for option, want := range map[string]string{"exit=4": "exit=4+depth=18", "depth=3": "depth=3", "depth=3+exit=2": "exit=2+depth=3"} {
		if i, err := method.Find("del:" + option); err != nil || i.Name != "del:"+want {
			t.Errorf("%s: %s, %v", option, i.Name, err)
		}
	}
	for _, option := range []string{"", "exit=0", "depth=26", "exit=1+exit=2", "layers=3"} {
		if _, err := method.Find("del:" + option); err == nil || !strings.Contains(err.Error(), "use exit=L") {
			t.Errorf("%s: %v", option, err)
		}
	}
	model := exiting(8, func(int) float64 { return 1 })
	if m := delOpened(t, "del:exit=2", model); !slices.Equal(m.Exits, []int{1, 2}) {
		t.Errorf("exits %v", m.Exits)
	}
	info, err := method.Find("del:exit=8")
	if err == nil {
		_, err = info.Open(method.Env{Vocabulary: delVocabulary, Target: model})
	}
	if err == nil || !strings.Contains(err.Error(), "the exit must be 1 to 7") {
		t.Errorf("an exit beyond: %v", err)
	}
	if _, err := delOpened(t, "del", model).NewDrafter(nil); !errors.Is(err, method.ErrNeeds) {
		t.Errorf("no trunk: %v", err)
	}
}
