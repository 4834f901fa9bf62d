package heads

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

const (
	kangarooVocabulary = 40
	kangarooExit       = 2 // layers that draft
)

// stream is what the first layers give behind a path: its last token and its length.
func stream(path []token.ID, _ forest.Row, _ int) []float32 {
	s := make([]float32, 8)
	s[0], s[1] = float32(path[len(path)-1]), float32(len(path))
	return s
}

// kangarooCounting is an adapter that says the next number behind a stream, with a probability of 0.91, and of 0.34 behind every tenth.
func kangarooCounting() *growtest.Model {
	return &growtest.Model{
		Dims:   method.Size{Vocabulary: kangarooVocabulary, Layers: 1, Width: 8, Context: 100, Rows: 4},
		Stream: stream,
		Next: func(_ []token.ID, r forest.Row) []float32 {
			last, logits := int(r.Vector[0]), make([]float32, kangarooVocabulary)
			if logits[(last+1)%kangarooVocabulary] = 6; last%10 == 9 {
				logits[(last+1)%kangarooVocabulary] = 3
			}
			return logits
		},
	}
}

// kangarooAdapter is the scripted adapter, whose rows must have the streams of their tokens, one behind the other.
type kangarooAdapter struct {
	*growtest.Model
	t      *testing.T
	opened *growtest.Sequence
	first  float32 // length of the text at the trunk's first row
	busy   bool
}

// Open implements [method.Model].
func (a *kangarooAdapter) Open() (method.Branch, error) {
	if a.busy {
		return nil, method.ErrBusy
	}
	a.opened = a.Sequence()
	return &branch{a.opened, a}, nil
}

type branch struct {
	*growtest.Sequence
	of *kangarooAdapter
}

// Grow implements [method.Trunk].
func (b *branch) Grow(ctx context.Context, rows []method.Row) ([]method.Result, error) {
	if b.Len() == 0 && b.Live() == 0 {
		b.of.first = rows[0].Vector[1]
	}
	for i, r := range rows {
		if r.Vector[0] != float32(r.ID) || r.Parent == forest.Trunk && r.Vector[1] != b.of.first+float32(b.Len()+i) && b.Live() == 0 {
			b.of.t.Errorf("row %d of %d has token %d and stream %v, in a trunk of %d rows from %v on", i, len(rows), r.ID, r.Vector, b.Len(), b.of.first)
		}
	}
	return b.Sequence.Grow(ctx, rows)
}

// round is a text with its trunk.
type round struct {
	growtest.Text
	text    []token.ID
	trunk   *growtest.Sequence
	adapter *kangarooAdapter
	to      []int // layers of the target's rows
}

func newRound(t *testing.T, name string, text ...token.ID) *round {
	t.Helper()
	return roundOf(t, name, kangarooCounting(), text...)
}

// roundOf is newRound with another adapter.
func roundOf(t *testing.T, name string, model *growtest.Model, text ...token.ID) *round {
	t.Helper()
	x := &round{text: text, adapter: &kangarooAdapter{Model: model, t: t}}
	target := &growtest.Model{Dims: method.Size{Vocabulary: kangarooVocabulary, Layers: 8, Width: 8, Context: 100, Rows: 16}}
	target.Next = func([]token.ID, forest.Row) []float32 { t.Error("the head runs behind the first layers"); return nil }
	target.Stream = stream
	info, err := method.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := info.Open(method.Env{Vocabulary: kangarooVocabulary, Target: target, Modules: []*method.Module{{Model: x.adapter, Module: forest.Module{Family: kangarooFamily.Name, Taps: []int{kangarooExit}}}}})
	if err != nil {
		t.Fatal(err)
	}
	x.trunk = target.Sequence(text[:len(text)-1]...)
	if x.Drafter, err = m.NewDrafter(&own{x.trunk, x}); err != nil {
		t.Fatal(err)
	}
	x.Begin(t, text...)
	x.Drafter.Committed(method.Update{Rows: rows(text[:len(text)-1], 0)})
	return x
}

// own is the text's own trunk. It notes how far rows run.
type own struct {
	*growtest.Sequence
	x *round
}

// Grow implements [method.Trunk].
func (o *own) Grow(ctx context.Context, rows []method.Row) ([]method.Result, error) {
	for _, r := range rows {
		o.x.to = append(o.x.to, r.To)
	}
	return o.Sequence.Grow(ctx, rows)
}

// rows returns what the target's rows of a text's tokens from place from on gave.
func rows(text []token.ID, from int) (all []method.RowResult) {
	for i := from; i < len(text); i++ {
		all = append(all, method.RowResult{ID: text[i], At: int32(i), Parent: int32(len(all)) - 1, Accepted: true, Result: compute.Result{Hidden: [][]float32{stream(text[:i+1], forest.Row{}, kangarooExit-1)}}})
	}
	return all
}

// commit adds tokens to the text: those before the last one, and the text's last one before them, are rows of the round, unless the round gave nothing.
func (x *round) commit(t *testing.T, gave bool, ids ...token.ID) {
	t.Helper()
	from := len(x.text) - 1
	x.text = append(x.text, ids...)
	x.trunk.Trunk = x.text[:len(x.text)-1]
	if err := x.trunk.Drop(); err != nil {
		t.Fatal(err)
	}
	x.Extend(x.text)
	u := method.Update{IDs: ids}
	if gave {
		u.Rows = rows(x.text[:len(x.text)-1], from)
		u.Rows = append(u.Rows, method.RowResult{ID: 3, Result: compute.Result{Hidden: [][]float32{make([]float32, 8)}}}) // a draft that was rejected
	}
	x.Drafter.Committed(u)
}

// TestKangarooChain: the first layers alone run for the text's last token and all drafts but the last, and the rows are left to be resumed. The chain
// ends behind a draft that is not likely enough.
func TestKangarooChain(t *testing.T) {
	for _, c := range []struct {
		name string
		room int // for tokens
		want []token.ID
	}{
		{"kangaroo", 50, []token.ID{8, 9, 10}},
		{"kangaroo:least=0", 50, []token.ID{8, 9, 10, 11, 12, 13}},
		{"kangaroo:least=0.33+depth=20", 50, []token.ID{8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27}},
		{"kangaroo:least=1", 50, []token.ID{8}},
		{"kangaroo:depth=2", 50, []token.ID{8, 9}},
		{"kangaroo:depth=25", 1, []token.ID{8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newRound(t, c.name, 5, 6, 7)
			tree := x.Draft(t, c.room)
			if got := growtest.IDs(tree); !slices.Equal(got, c.want) {
				t.Fatalf("drafts %v, want %v", got, c.want)
			}
			if want := slices.Repeat([]int{kangarooExit}, len(c.want)); !slices.Equal(x.to, want) {
				t.Errorf("rows through %v layers, want %v", x.to, want)
			}
			above := tree.RootLive()
			if above.Layer != kangarooExit || above.Parent != forest.Trunk || above.Node == forest.Trunk {
				t.Errorf("the text's last token is left as %+v", above)
			}
			for i, n := range tree.Nodes() {
				if last := i == tree.Len()-1; last != (n.Live == method.Live{}) || !last && (n.Live.Parent != above.Node || n.Live.Layer != kangarooExit) {
					t.Errorf("draft %d is left as %+v, behind %+v", i, n.Live, above)
				}
				above = n.Live
			}
		})
	}
}

// TestFollow: before each round the adapter has no more rows than the target has tokens of the text, and in it a row of each token whose stream is known, in order.
func TestFollow(t *testing.T) {
	x := newRound(t, "kangaroo:depth=3", 2, 3, 4, 5, 1, 6, 2, 5) // more features than a step has rows
	for _, c := range []struct {
		name  string
		gave  bool
		ids   []token.ID // added
		want  []token.ID // drafts
		first int        // place of the text of the adapter's first row
	}{
		{"a prompt", true, nil, []token.ID{6, 7, 8}, 0},
		{"the same text again", true, nil, []token.ID{6, 7, 8}, 0},
		{"all drafts", true, []token.ID{6, 7, 8, 9}, []token.ID{10}, 0},
		{"no draft", true, []token.ID{3}, []token.ID{4, 5, 6}, 0},
		{"drafts of another drafter", true, []token.ID{20, 30, 4, 4, 4, 4, 15}, []token.ID{16, 17, 18}, 0},
		{"rows that gave nothing", false, []token.ID{16, 17}, []token.ID{18, 19, 20}, 21},
		{"behind the gap", true, []token.ID{18, 11}, []token.ID{12, 13, 14}, 21},
	} {
		if len(c.ids) > 0 {
			x.commit(t, c.gave, c.ids...)
		}
		if have := x.adapter.opened; have != nil && len(c.ids) > 0 && have.Len() > len(x.text)-1 {
			t.Errorf("%s: the adapter has %d rows, the target %d", c.name, have.Len(), len(x.text)-1)
		}
		if got := growtest.IDs(x.Draft(t, 50)); !slices.Equal(got, c.want) {
			t.Errorf("%s: drafts %v, want %v", c.name, got, c.want)
		}
		if got := x.adapter.opened.Trunk; !slices.Equal(got, x.text[c.first:]) || x.adapter.first != float32(c.first+1) {
			t.Errorf("%s: the adapter's rows are those of %v from %v on, want %v", c.name, got, x.adapter.first, x.text[c.first:])
		}
	}
	x.Begin(t, 9, 12) // another text, of whose prompt the cache had all
	if got := growtest.IDs(x.Draft(t, 50)); !slices.Equal(got, []token.ID{13, 14, 15}) || !slices.Equal(x.adapter.opened.Trunk, []token.ID{12}) {
		t.Errorf("another text: drafts %v behind %v", got, x.adapter.opened.Trunk)
	}
	if err := x.Drafter.(method.Closer).Close(); err != nil || !x.adapter.opened.Shut {
		t.Errorf("closed: %v", err)
	}
}

// TestRefusals: without a slot, room or a step that works there are no drafts, and the next round has them.
func TestRefusals(t *testing.T) {
	x := newRound(t, "kangaroo", 1, 2, 3)
	x.adapter.busy = true
	if got := x.Draft(t, 50); got.Len() > 0 || len(x.to) > 0 {
		t.Errorf("without a slot: %v, and %d rows", growtest.IDs(got), len(x.to))
	}
	x.adapter.busy = false
	if x.Draft(t, 0).Len() > 0 || len(x.to) > 0 {
		t.Error("it drafts without room")
	}
	tree := method.NewTree(8, kangarooVocabulary)
	tree.Reset(8, method.NewRates(1))
	failed := errors.New("a failed step")
	x.adapter.Fail = failed
	if err := x.Drafter.Draft(t.Context(), tree); !errors.Is(err, failed) {
		t.Errorf("a failed step of the adapter: %v", err)
	}
	if x.adapter.Fail = nil; x.adapter.opened.Len() > 0 {
		t.Error("rows of a failed step are left")
	}
	x.trunk.Fail = failed
	if err := x.Drafter.Draft(t.Context(), tree); !errors.Is(err, failed) {
		t.Errorf("a failed step of the target: %v", err)
	}
	x.trunk.Fail = nil
	if got := growtest.IDs(x.Draft(t, 50)); !slices.Equal(got, []token.ID{4, 5, 6, 7, 8, 9}) {
		t.Errorf("behind the failures: %v", got)
	}
	for context, want := range map[int][]token.ID{3: nil, 4: {5}, 6: {5, 6, 7}} { // of the adapter
		model := kangarooCounting()
		model.Dims.Context = context
		y := roundOf(t, "kangaroo", model, 1, 2, 3, 4)
		if got := growtest.IDs(y.Draft(t, 50)); !slices.Equal(got, want) {
			t.Errorf("in a context of %d: %v, want %v", context, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	for option, want := range map[string]string{
		"least=0.3": "least=0.3+depth=6", "depth=3": "least=0.6+depth=3", "depth=3+least=0.250": "least=0.25+depth=3", "least=1e0+depth=025": "least=1+depth=25",
	} {
		if i, err := method.Find("kangaroo:" + option); err != nil || i.Name != "kangaroo:"+want {
			t.Errorf("%s: %s, %v", option, i.Name, err)
		}
	}
	for _, option := range []string{"", "least", "least=1.01", "least=-0.1", "least=NaN", "least=0.333", "depth=0", "depth=26", "depth=2.0", "depth=1+depth=2", "least=0+", "exit=3"} {
		if _, err := method.Find("kangaroo:" + option); err == nil || !strings.Contains(err.Error(), "use least=P") {
			t.Errorf("%s: %v", option, err)
		}
	}
	target, module := kangarooCounting(), []*method.Module{{Model: kangarooCounting(), Module: forest.Module{Family: kangarooFamily.Name, Taps: []int{1}}}}
	for name, c := range map[string]struct {
		env  method.Env
		want string
	}{
		"nothing":           {method.Env{Target: target}, "none is given"},
		"other heads":       {method.Env{Target: target, Modules: []*method.Module{{Module: forest.Module{Family: "medusa"}}}}, "the heads that are open are of the family medusa"},
		"no target":         {method.Env{Modules: module}, "on record"},
		"all that it needs": {method.Env{Target: target, Modules: module}, ""},
	} {
		err := kangarooFamily.MeetsOnTrunk(c.env)
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, method.ErrNeeds) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m, err := openKangaroo(method.Env{Target: target, Modules: module}, []int{60, 6})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.NewDrafter(nil); !errors.Is(err, method.ErrNeeds) {
		t.Errorf("no trunk: %v", err)
	}
}
