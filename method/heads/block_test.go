package heads

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

const (
	blockWidth = 8
	mask       = 99
)

// blockScripted is a module whose block drafts the successors of the text's last token: a row says how far it is behind the last token that is no mask.
func blockScripted(own bool, vocabulary ...token.ID) (*method.Module, *growtest.Model) {
	m := &growtest.Model{Dims: method.Size{Vocabulary: 100, Layers: 2, Width: blockWidth, Context: 40, Rows: 16}}
	m.Next = func(path []token.ID, _ forest.Row) []float32 {
		last := len(path) - 1
		for path[last] == mask {
			last--
		}
		far := len(path) - 1 - last
		if !own {
			far++
		}
		logits := make([]float32, 100)
		for id := range logits {
			logits[id] = -float32(max(id-int(path[last])-far, int(path[last])+far-id))
		}
		if vocabulary != nil {
			for i, id := range vocabulary {
				logits[i] = logits[id]
			}
			logits = logits[:len(vocabulary)]
		}
		return logits
	}
	return &method.Module{Model: m, Module: forest.Module{Family: "dflash", Vocabulary: vocabulary, Block: &forest.Block{Size: 5, Mask: mask, Own: own}}}, m
}

// blockBegin begins a text with a prompt whose features are known but for the last token's.
func blockBegin(t *testing.T, name string, of *method.Module, option string, prompt ...token.ID) *growtest.Text {
	t.Helper()
	of.Family = name
	x := &growtest.Text{Drafter: growtest.Drafter(t, name+option, method.Env{Vocabulary: 100, Modules: []*method.Module{of}})}
	x.Begin(t, prompt...)
	var rows []method.RowResult
	for i, id := range prompt[:len(prompt)-1] {
		rows = append(rows, method.RowResult{ID: id, At: int32(i), Accepted: true, Result: compute.Result{State: make([]float32, blockWidth)}})
	}
	x.Drafter.Committed(method.Update{IDs: prompt, Before: token.None, Rows: rows})
	return x
}

func TestBlockDraft(t *testing.T) {
	for _, c := range []struct {
		name, option string
		own          bool
		rows         int // that a step holds
		depth        int // of the round
		vocabulary   []token.ID
		want         []token.ID
	}{
		{name: "its own places", own: true, rows: 16, depth: 16, want: []token.ID{8, 9, 10, 11}},
		{name: "the tokens behind", rows: 16, depth: 16, want: []token.ID{8, 9, 10, 11, 12}},
		{name: "fewer rows", option: ":rows=3", own: true, rows: 16, depth: 16, want: []token.ID{8, 9}},
		{name: "small steps", own: true, rows: 2, depth: 16, want: []token.ID{8}},
		{name: "steps of one row", own: true, rows: 1, depth: 16},
		{name: "one row is enough", rows: 1, depth: 16, want: []token.ID{8}},
		{name: "a short round", own: true, rows: 16, depth: 2, want: []token.ID{8, 9}},
		{name: "some tokens", own: true, rows: 16, depth: 16, vocabulary: []token.ID{3, 8, 20, 30, 40}, want: []token.ID{8, 8, 8, 8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			of, m := blockScripted(c.own, c.vocabulary...)
			m.Dims.Rows = c.rows
			x := blockBegin(t, "dflash", of, c.option, 3, 5, 7)
			if diff := cmp.Diff(c.want, growtest.Best(x.Draft(t, c.depth))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestBlockContext: rows of a block are dropped; the text's rows stay, and only new ones run.
func TestBlockContext(t *testing.T) {
	of, m := blockScripted(true)
	x := blockBegin(t, "dflash", of, "", 3, 5, 7)
	x.Draft(t, 16)
	if diff := cmp.Diff([]token.ID{5, 7, 7, mask, mask, mask, mask}, m.Ran); diff != "" {
		t.Errorf("first round: %s", diff)
	}
	m.Ran = nil
	x.History.Extend([]token.ID{3, 5, 7, 8, 20})
	x.Drafter.Committed(method.Update{IDs: []token.ID{8, 20}, Before: 7, Rows: []method.RowResult{
		{ID: 7, At: 2, Accepted: true, Result: compute.Result{State: make([]float32, blockWidth)}}, {ID: 8, At: 3, Accepted: true, Result: compute.Result{State: make([]float32, blockWidth)}},
		{ID: 9, At: 4, Result: compute.Result{State: make([]float32, blockWidth)}},
	}})
	if diff := cmp.Diff([]token.ID{21, 22, 23, 24}, growtest.Best(x.Draft(t, 16))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]token.ID{8, 20, 20, mask, mask, mask, mask}, m.Ran); diff != "" {
		t.Errorf("second round: %s", diff)
	}
	if got := growtest.Best(x.Draft(t, 16)); got != nil {
		t.Errorf("drafts %v and nothing is new", got)
	}
}

// TestFollows: one pass has the text's new rows and the masks behind them, and its logits are those of the text's last row and of the masks. The text's rows stay.
func TestFollows(t *testing.T) {
	for _, c := range []struct {
		name, option   string
		rows, context  int // of a step, and of a text
		depth          int
		first, further []token.ID // rows that run
		want           []token.ID
	}{
		{"a pass", "", 16, 40, 16, []token.ID{5, 7, mask, mask, mask, mask}, []token.ID{8, 20, mask, mask, mask, mask}, []token.ID{21, 22, 23, 24, 25}},
		{"fewer rows", ":rows=3", 16, 40, 16, []token.ID{5, 7, mask, mask}, []token.ID{8, 20, mask, mask}, []token.ID{21, 22, 23}},
		{"a short round", "", 16, 40, 2, []token.ID{5, 7, mask}, []token.ID{8, 20, mask}, []token.ID{21, 22}},
		{"steps of five rows", "", 5, 40, 16, []token.ID{5, 7, mask, mask, mask, mask}, []token.ID{8, 20, mask, mask, mask, mask}, []token.ID{21, 22, 23, 24, 25}},
		{"steps of one row", "", 1, 40, 16, []token.ID{5, 7}, []token.ID{8, 20}, []token.ID{21}},
		{"a context that ends", "", 16, 6, 16, []token.ID{5, 7, mask, mask}, []token.ID{8, 20, mask, mask}, []token.ID{21, 22, 23}},
	} {
		t.Run(c.name, func(t *testing.T) {
			of, m := blockScripted(false)
			of.Block.Follows, m.Dims.Rows, m.Dims.Context = true, c.rows, c.context
			x := blockBegin(t, "peagle", of, c.option, 3, 5, 7)
			x.Draft(t, c.depth)
			if diff := cmp.Diff(c.first, m.Ran); diff != "" {
				t.Errorf("first round: %s", diff)
			}
			m.Ran = nil
			x.History.Extend([]token.ID{3, 5, 7, 8, 20})
			x.Drafter.Committed(method.Update{IDs: []token.ID{8, 20}, Before: 7, Rows: []method.RowResult{
				{ID: 7, At: 2, Accepted: true, Result: compute.Result{State: make([]float32, blockWidth)}}, {ID: 8, At: 3, Accepted: true, Result: compute.Result{State: make([]float32, blockWidth)}},
			}})
			if diff := cmp.Diff(c.want, growtest.Best(x.Draft(t, c.depth))); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.further, m.Ran); diff != "" {
				t.Errorf("second round: %s", diff)
			}
		})
	}
}

// TestOrder: what a draft's row gives is added to the logits behind it, and a path that the module does not trust ends.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		trust float32 // a logit
		want  []token.ID
	}{
		{"trusted", 4, []token.ID{17, 27, 37, 47}},
		{"less with each draft", -0.9, []token.ID{17}},
		{"not trusted", -4, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			of, m := blockScripted(true)
			of.Block.Order, of.Block.Trust = true, 3
			near := m.Next
			m.Next = func(path []token.ID, r forest.Row) []float32 {
				if !r.Skip.Has(0) {
					if !r.Skip.Has(1) && r.Want.Logits {
						t.Error("a row of the block runs the last layer")
					}
					return near(path, r)
				}
				logits := make([]float32, 100)
				logits[(r.ID+10)%100] = 1000
				return logits
			}
			m.State = func([]token.ID) []float32 { return []float32{0, 0, 0, c.trust, 0, 0, 0, 0} }
			x := blockBegin(t, "dspark", of, "", 3, 5, 7)
			if diff := cmp.Diff(c.want, growtest.Best(x.Draft(t, 16))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBlockNeeds(t *testing.T) {
	info, err := method.Find("dflash")
	if err != nil {
		t.Fatal(err)
	}
	of, _ := blockScripted(true)
	of.Block = nil
	if err := info.CheckNeeds(method.Env{Modules: []*method.Module{of}}); err == nil || !strings.Contains(err.Error(), "draft no blocks") {
		t.Errorf("error %v", err)
	}
	for _, option := range []string{"rows=1", "rows=65", "rows=", "b=3"} {
		if _, err := method.Find("dflash:" + option); err == nil || !strings.Contains(err.Error(), "rows=N, the rows of a block at most, from 2 to 64") {
			t.Errorf("%s: error %v", option, err)
		}
	}
}
