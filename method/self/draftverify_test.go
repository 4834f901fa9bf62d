package self

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
	"grove/method/layers"
)

const draftverifyVocabulary = 40

// TestThreshold has the trace of the paper's rule, and its other cases.
func TestThreshold(t *testing.T) {
	s := &threshold{depth: 8, greedy: true}
	s.Begin()
	for i, c := range []struct {
		drafts, judged, accepted int
		share, least             float64
	}{
		{3, 3, 3, 0.5, 0.801}, {4, 2, 1, 0.375, 0.802}, {8, 8, 8, 0.6875, 0.803}, {3, 3, 2, 0.6771, 0.804},
		{8, 2, 2, 0.8385, 0.805}, // of a chain of 8, 2 were compared
		{4, 4, 4, 0.9193, 0.804}, {8, 8, 8, 0.9596, 0.804}, {7, 7, 7, 0.9798, 0.803}, {1, 1, 0, 0.4899, 0.804},
	} {
		s.Followed(c.drafts, c.judged, c.accepted)
		if math.Abs(s.share-c.share) > 6e-5 || math.Abs(s.least-c.least) > 1e-6 {
			t.Errorf("round %d: share %.4f, threshold %.4f; want %v, %v", i, s.share, s.least, c.share, c.least)
		}
	}
	for _, c := range []struct {
		depth int
		p     float32
		want  bool
	}{{1, 0.81, false}, {1, 0.8, true}, {7, 0.9, false}, {8, 0.9, true}} {
		if got := s.Ends(grow.ChainDraft{Depth: c.depth, P: c.p}); got != c.want {
			t.Errorf("draft %d of probability %v ends the chain: %v", c.depth, c.p, got)
		}
	}
	if s.Begin(); s.least != firstGreedy || s.share != 0 {
		t.Errorf("a new text begins with %+v", s)
	}
	s.greedy = false
	if s.Begin(); s.least != firstSampled {
		t.Errorf("a text that is sampled begins with %v", s.least)
	}
}

// draftverifyText is a text that is decoded greedily with a drafter on its own trunk.
type draftverifyText struct {
	growtest.Text
	model *growtest.Model
	trunk *growtest.Sequence
	tree  *method.Tree
	skips []layers.Set // of the rows of the last round
}

func draftverifyOpened(t *testing.T, name string, model *growtest.Model) *draftverify {
	t.Helper()
	return growtest.Open(t, name, method.Env{Vocabulary: draftverifyVocabulary, Target: model}).(*draftverify)
}

func draftverifyNewText(t *testing.T, m *draftverify, model *growtest.Model) *draftverifyText {
	t.Helper()
	x := &draftverifyText{model: model, tree: method.NewTree(64, draftverifyVocabulary)}
	own := *model
	own.Next = func(path []token.ID, r forest.Row) []float32 {
		x.skips = append(x.skips, layers.Set{r.Skip.Union(r.SkipAttention), r.Skip.Union(r.SkipFeedForward)})
		return model.Next(path, r)
	}
	x.trunk = own.Sequence()
	d, err := m.NewDrafter(x.trunk)
	if err != nil {
		t.Fatal(err)
	}
	x.Drafter = d
	x.Begin(t, 1, 2, 3)
	return x
}

// round drafts and verifies, and returns the drafts and how many were accepted.
func (x *draftverifyText) round(t *testing.T) (drafts, accepted int) {
	t.Helper()
	ids := x.IDs()
	x.trunk.Trunk, x.skips = slices.Clone(ids[:len(ids)-1]), x.skips[:0]
	x.tree.Reset(60, method.NewRates(1))
	if err := x.Drafter.Draft(t.Context(), x.tree); err != nil {
		t.Fatal(err)
	}
	if n := x.trunk.Live(); n > 0 {
		t.Fatalf("%d rows hang from the trunk after drafting", n)
	}
	path := slices.Clone(ids)
	for node, ok := method.Root, true; ok; {
		logits := x.model.Next(path, forest.Row{})
		path = append(path, token.ID(slices.Index(logits, slices.Max(logits))))
		if node, ok = x.tree.Child(node, path[len(path)-1]); ok {
			accepted++
		}
	}
	x.Add(path[len(ids):]...)
	return x.tree.Len(), accepted
}

// TestDraftverifyNothingSkipped: with no layer passed over and without a threshold all drafts are accepted.
func TestDraftverifyNothingSkipped(t *testing.T) {
	model := growtest.Skipping(draftverifyVocabulary, 8, forest.Layers{}, 0.5)
	m := draftverifyOpened(t, "draft-verify", model)
	m.skip = layers.Set{}
	x := draftverifyNewText(t, m, model)
	for range 5 {
		x.Drafter.(*draftverifyDrafter).stop.least = 0
		if drafts, accepted := x.round(t); drafts != draftverifyUsual || accepted != draftverifyUsual {
			t.Errorf("%d of %d drafts are accepted", accepted, drafts)
		}
	}
}

// TestRows: all rows of a chain pass over the set, which an option gives, or a record, or neither; an option counts more than a record.
func TestRows(t *testing.T) {
	model := growtest.Skipping(draftverifyVocabulary, 12, forest.LayerRange(0, 12), 0.99)
	for _, c := range []struct {
		name, primed, want string
		drafts             int
	}{
		{"draft-verify", "", "1+3+5+7+9", 8}, {"draft-verify", "2-4", "2-4", 8}, {"draft-verify:skip=1-10", "2-4", "1-10", 8},
		{"draft-verify:depth=3", "5", "5", 3}, {"draft-verify:skip=0-11+depth=25", "", "0-11", 25},
	} {
		m := draftverifyOpened(t, c.name, model)
		if c.primed != "" {
			set, err := layers.Parse(c.primed)
			if err == nil {
				err = m.Prime(layers.Record(12, set))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		x := draftverifyNewText(t, m, model)
		if drafts, accepted := x.round(t); drafts != c.drafts || accepted != drafts {
			t.Errorf("%s: %d of %d drafts are accepted, want %d", c.name, accepted, drafts, c.drafts)
		}
		for i, skip := range x.skips {
			if layers.Format(skip) != c.want {
				t.Errorf("%s: row %d passes over %s, want %s", c.name, i, layers.Format(skip), c.want)
			}
		}
		if len(x.skips) != c.drafts {
			t.Errorf("%s: %d rows for %d drafts", c.name, len(x.skips), c.drafts)
		}
	}
	parts := growtest.Skipping(draftverifyVocabulary, 12, forest.LayerRange(0, 12), 0.99)
	parts.Dims.AttentionShare = 0.3
	for name, primed := range map[string]string{"draft-verify:skip=2+a4-6+f7": "12:3", "draft-verify": "12:2+a4-6+f7"} {
		m := draftverifyOpened(t, name, parts)
		if err := m.Prime([]byte(primed)); err != nil {
			t.Fatal(err)
		}
		x := draftverifyNewText(t, m, parts)
		x.round(t)
		for i, skip := range x.skips {
			if layers.Format(skip) != "2+a4-6+f7" {
				t.Errorf("%s: row %d passes over %s", name, i, layers.Format(skip))
			}
		}
		if len(x.skips) != draftverifyUsual {
			t.Errorf("%s: %d rows", name, len(x.skips))
		}
	}
	m := draftverifyOpened(t, "draft-verify", model)
	before := m.skip
	for _, bad := range []string{"", "11:2", "12:12", "12:2-", "12:a3"} {
		if err := m.Prime([]byte(bad)); err == nil || m.skip != before {
			t.Errorf("record %q: %v", bad, err)
		}
	}
}

// TestDraftverifyChain: a draft of less than the threshold is the last one.
func TestDraftverifyChain(t *testing.T) {
	for p, want := range map[float64]int{0.79: 1, 0.81: draftverifyUsual} {
		model := growtest.Skipping(draftverifyVocabulary, 12, forest.LayerRange(0, 12), p)
		x := draftverifyNewText(t, draftverifyOpened(t, "draft-verify", model), model)
		if drafts, _ := x.round(t); drafts != want {
			t.Errorf("probability %v: %d drafts, want %d", p, drafts, want)
		}
	}
}

// TestDraftverifyEnd: at the context's end no row is run that has no place; a failed step is reported.
func TestDraftverifyEnd(t *testing.T) {
	model := growtest.Skipping(draftverifyVocabulary, 6, forest.LayerRange(0, 6), 0.99)
	model.Dims.Context, model.Dims.Rows = 6, 1
	x := draftverifyNewText(t, draftverifyOpened(t, "draft-verify", model), model)
	if drafts, _ := x.round(t); drafts != 4 {
		t.Errorf("%d drafts at the context's end", drafts)
	}
	model.Fail = errors.New("a failed step")
	x = draftverifyNewText(t, draftverifyOpened(t, "draft-verify", model), model)
	x.trunk.Trunk = []token.ID{1, 2}
	x.tree.Reset(0, method.NewRates(1))
	if err := x.Drafter.Draft(t.Context(), x.tree); err != nil || x.tree.Len() > 0 {
		t.Errorf("without room: %v", err)
	}
	x.tree.Reset(8, method.NewRates(1))
	if err := x.Drafter.Draft(t.Context(), x.tree); !errors.Is(err, model.Fail) {
		t.Errorf("error %v", err)
	}
}

func TestDraftverifyOptions(t *testing.T) {
	for option, want := range map[string]string{
		"skip=3-5+8": "skip=3-5+8+depth=8", "skip=8+4+3+5+depth=2": "skip=3-5+8+depth=2", "depth=25+skip=1": "skip=1+depth=25", "depth=4": "depth=4", "skip=a3-5+f3+8": "skip=3+8+a4-5+depth=8",
	} {
		if i, err := method.Find("draft-verify:" + option); err != nil || i.Name != "draft-verify:"+want {
			t.Errorf("%s: %s, %v", option, i.Name, err)
		}
	}
	for _, option := range []string{"", "skip", "skip=", "skip=x", "skip=3+3", "skip=1+skip=2", "depth=0", "depth=26", "depth=2+3", "depth=2+depth=3", "3-5", "skip=128"} {
		if _, err := method.Find("draft-verify:" + option); err == nil || !strings.Contains(err.Error(), "use skip=L") {
			t.Errorf("%s: %v", option, err)
		}
	}
	model := growtest.Skipping(draftverifyVocabulary, 8, forest.Layers{}, 0.9)
	info, err := method.Find("draft-verify:skip=7-8")
	if err == nil {
		_, err = info.Open(method.Env{Vocabulary: draftverifyVocabulary, Target: model})
	}
	if err == nil || !strings.Contains(err.Error(), "name layers from 0 to 7") {
		t.Errorf("a layer beyond: %v", err)
	}
	info, err = method.Find("draft-verify:skip=1+f3")
	if err == nil {
		_, err = info.Open(method.Env{Vocabulary: draftverifyVocabulary, Target: model})
	}
	if err == nil || !strings.Contains(err.Error(), "runs layers as a whole") {
		t.Errorf("a part of a layer: %v", err)
	}
	if _, err := draftverifyOpened(t, "draft-verify", model).NewDrafter(nil); !errors.Is(err, method.ErrNeeds) {
		t.Errorf("no trunk: %v", err)
	}
}
