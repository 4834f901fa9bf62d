package heads

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/module"
)

const (
	specblockWidth = 8
	words          = 100
	slots          = 3
)

// specblockScripted is a module whose slot k prefers the token k+1 behind its block's, and by falling shares the ones behind that; the rank head gives all slots one class.
func specblockScripted(class int) (*method.Module, *growtest.Model) {
	m := &growtest.Model{Dims: method.Size{Vocabulary: words, Layers: 2, Width: specblockWidth, Context: 300, Rows: 32}}
	m.Next = func(path []token.ID, r forest.Row) []float32 {
		at := len(path) - 1
		slot := 0
		if r.Vector == nil { // its id is its number
			slot = int(path[at])
			at -= slot
		}
		logits := make([]float32, words)
		for id := range logits {
			logits[id] = -1.5 * float32((id-int(path[at])-slot-1+words)%words)
		}
		return logits
	}
	m.Stream = func([]token.ID, forest.Row, int) []float32 { return make([]float32, specblockWidth) }
	m.State = func([]token.ID) []float32 { return make([]float32, specblockWidth) }
	b := &forest.Block{Size: slots, Rank: [4][]float32{make([]float32, 2*(specblockWidth+15)), make([]float32, 2), make([]float32, 2*module.RankClasses), make([]float32, module.RankClasses)}}
	b.Rank[3][class] = 1
	return &method.Module{Model: m, Module: forest.Module{Family: specblockFamily.Name, Taps: []int{1, 2, 3}, Block: b}}, m
}

// specblockBegin begins a text with a prompt whose features are known but for the last token's.
func specblockBegin(t *testing.T, of *method.Module, option string, prompt ...token.ID) *growtest.Text {
	t.Helper()
	x := &growtest.Text{Drafter: growtest.Drafter(t, specblockFamily.Name+option, method.Env{Vocabulary: words, Modules: []*method.Module{of}})}
	x.Begin(t, prompt...)
	x.Drafter.Committed(method.Update{IDs: prompt, Before: token.None, Rows: known(prompt, 0, len(prompt)-1)})
	return x
}

// known are the rows of the target of the tokens at places.
func known(ids []token.ID, from, end int) (rows []method.RowResult) {
	for i := from; i < end; i++ {
		v := make([]float32, specblockWidth)
		rows = append(rows, method.RowResult{ID: ids[i], At: int32(i), Accepted: true, Result: compute.Result{Hidden: [][]float32{v, v, v}}})
	}
	return rows
}

// paths returns the paths of a tree, each as the text of its tokens, sorted.
func paths(t *method.Tree) (all []string) {
	for at := range t.Nodes() {
		path := ""
		for n := at; n != method.Root; n = int(t.Nodes()[n].Parent) {
			path = string(rune('0'+t.Nodes()[n].ID)) + path
		}
		all = append(all, path)
	}
	slices.Sort(all)
	return all
}

// TestTree expects the tree of each class of ranks, for a module that is certain of order; ids are digits.
func TestTree(t *testing.T) {
	for _, c := range []struct {
		name, option string
		class, depth int
		want         []string
	}{
		{"sure: two children", ":blocks=1+beam=3", 0, 9, []string{"1", "12", "123", "124", "13", "2", "3"}},
		{"within four, of three at most", ":blocks=1+beam=3", 1, 9, []string{"1", "12", "123", "124", "125", "13", "14", "2", "3"}},
		{"lost: the chain ends", ":blocks=1+beam=3", 3, 9, []string{"1", "2", "3"}},
		{"one block behind the best leaf", ":blocks=2+beam=1", 0, 9, []string{"1", "12", "123", "1234", "12345", "123456"}},
		{"blocks behind a lost slot", ":blocks=3+beam=1", 3, 9, []string{"1", "12", "123"}},
		{"three blocks", ":blocks=3+beam=1", 0, 9, []string{"1", "12", "123", "1234", "12345", "123456", "1234567", "12345678", "123456789"}},
		{"a short round", ":blocks=3+beam=1", 0, 4, []string{"1", "12", "123", "1234"}},
		{"blocks behind two leaves", ":blocks=2+beam=2", 3, 9, []string{"1", "12", "13", "2", "23", "24"}},
		{"the likeliest alone", ":blocks=1+beam=3+drafts=4", 1, 9, []string{"1", "12", "123", "2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			of, _ := specblockScripted(c.class)
			if diff := cmp.Diff(c.want, paths(specblockBegin(t, of, c.option, 7, 5, 0).Draft(t, c.depth))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTrunk: the blocks of the text are run once; the last one is kept in the next round, and what hung from it is not.
func TestTrunk(t *testing.T) {
	of, m := specblockScripted(0)
	x := specblockBegin(t, of, ":blocks=2+beam=1", 7, 5, 0)
	x.Draft(t, 9)
	if diff := cmp.Diff([]token.ID{5, 1, 2, 0, 1, 2, 3, 1, 2}, m.Ran); diff != "" {
		t.Errorf("first round: %s", diff)
	}
	m.Ran = nil
	ids := []token.ID{7, 5, 0, 1, 4}
	x.History.Extend(ids)
	x.Drafter.Committed(method.Update{IDs: ids[3:], Before: 0, Rows: known(ids, 2, 4)})
	if diff := cmp.Diff([]string{"5", "56", "567", "5678", "56789", "56789:"}, paths(x.Draft(t, 9))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]token.ID{1, 1, 2, 4, 1, 2, 7, 1, 2}, m.Ran); diff != "" {
		t.Errorf("second round: %s", diff)
	}
	if got := paths(x.Draft(t, 9)); got != nil {
		t.Errorf("drafts %v and nothing is new", got)
	}
}

// TestSmallSteps: a module whose steps hold less than a block, or whose context less than two, drafts nothing; one whose context is short begins anew.
func TestSmallSteps(t *testing.T) {
	for _, c := range []struct {
		name          string
		rows, context int
		want          int // drafts
	}{
		{"two rows", 2, 300, 0}, {"three rows", slots, 300, 6}, {"a context of one block", 32, slots, 0}, {"of two", 32, 2 * slots, 6}, {"of four", 32, 4 * slots, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			of, m := specblockScripted(0)
			m.Dims.Rows, m.Dims.Context = c.rows, c.context
			if got := specblockBegin(t, of, ":blocks=2+beam=1", 7, 5, 6, 7, 8, 0).Draft(t, 9).Len(); got != c.want {
				t.Errorf("%d drafts, want %d", got, c.want)
			}
		})
	}
}

func TestSpecblockNeeds(t *testing.T) {
	info, err := method.Find(specblockFamily.Name)
	if err != nil {
		t.Fatal(err)
	}
	of, _ := specblockScripted(0)
	of.Block = nil
	if err := info.CheckNeeds(method.Env{Modules: []*method.Module{of}}); err == nil || !strings.Contains(err.Error(), "have no slots") {
		t.Errorf("error %v", err)
	}
	for _, option := range []string{"beam=0", "beam=11", "blocks=5", "drafts=257", "drafts=", "beam=2+beam=3", "width=3", "learn=2", ""} {
		if _, err := method.Find(specblockFamily.Name + ":" + option); err == nil || !strings.Contains(err.Error(), "beam=N, the children") {
			t.Errorf("%q: error %v", option, err)
		}
	}
	if i, err := method.Find(specblockFamily.Name + ":drafts=60+beam=10"); err != nil || i.Name != "specblock:beam=10+blocks=2+drafts=60+learn=0" {
		t.Errorf("%q, %v", i.Name, err)
	}
}

// TestLearn lets tokens come that a module is right about whose rank head says that it is lost: the head that learns finds that, and the trees get deeper.
func TestLearn(t *testing.T) {
	for option, want := range map[string]int{":blocks=1+beam=3": 1, ":blocks=1+beam=3+learn=1": 3} {
		of, _ := specblockScripted(3)
		ids := []token.ID{1, 2, 3}
		x := specblockBegin(t, of, option, ids...)
		deepest := 0
		for range 100 {
			tree := x.Draft(t, 9)
			for at := range tree.Nodes() {
				deepest = max(deepest, tree.DepthOf(at))
			}
			from := len(ids)
			for range 3 {
				ids = append(ids, (ids[len(ids)-1]+1)%words)
			}
			x.History.Extend(ids)
			x.Drafter.Committed(method.Update{IDs: ids[from:], Before: ids[from-1], Rows: known(ids, from-1, len(ids)-1)})
		}
		if deepest != want {
			t.Errorf("%s: drafts %d deep, want %d", option, deepest, want)
		}
	}
}
