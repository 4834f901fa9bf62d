package module

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
)

// paired is a text of distinct tokens that a module with blocks of pairs drafts for. A feature has its token and its place in the text; what a row gives, the
// token of the row and no place. So each row shows whether it carries the pairs before it.
type paired struct {
	t      *testing.T
	model  *growtest.Model
	source *Pairs
	drafts *Drafter
	h      method.History
	ids    []token.ID
	told   int
	blocks [][]token.ID // of the rows of blocks that ran: the tokens of each
}

const pairTokens = 1000

// newPaired makes a module of blocks of size pairs, whose rows carry so many, with steps of so many rows.
func newPaired(t *testing.T, size, reach, context, rows int) *paired {
	x := &paired{t: t}
	m := &growtest.Model{Dims: method.Size{Vocabulary: pairTokens, Layers: 1, Width: 2, Context: context, Rows: rows}}
	m.State = func(path []token.ID) []float32 { return []float32{float32(path[len(path)-1]), -1} }
	m.Next = func(path []token.ID, r forest.Row) []float32 {
		x.look(path, r, size, reach)
		logits := make([]float32, pairTokens)
		for d, l := range []float32{3, 2} { // the token size places on, and the next
			logits[(int(r.ID)+size+d)%pairTokens] = l
		}
		return logits
	}
	x.model = m
	of := &method.Module{Model: m, Module: forest.Module{Family: "falcon", FeedsState: true, Block: &forest.Block{Size: size, Sees: true, Pairs: reach}}}
	x.source = NewPairs(of, pairTokens)
	x.drafts = NewDrafter(grow.Shape{Growth: grow.Fixed, Ranks: []int{2, 1, 1, 1, 1}, Beam: 2}, x.source, of, pairTokens)
	return x
}

// look checks a row of a block: its pairs are those of the path's end, each token with the feature of the token before it, or with the state that the row a block before gave.
func (x *paired) look(path []token.ID, r forest.Row, size, reach int) {
	x.t.Helper()
	n := len(path)
	if r.Block == 0 || path[n-1] != r.ID {
		x.t.Errorf("a row of block %d of token %d behind %v", r.Block, r.ID, path)
	}
	carried := len(r.Vector) / 2
	if carried != min(reach, n) || len(r.Mix) != carried-1 {
		x.t.Errorf("%d features and %d tokens behind %v", carried, len(r.Mix), path)
	}
	for back := range carried {
		id := path[n-1-back]
		if back > 0 && r.Mix[back-1].ID != id {
			x.t.Errorf("token %d of %v is behind %v", back, r.Mix, path)
		}
		f := r.Vector[2*back:]
		if of := x.featureOf(path, n-1-back, size); f[0] != of {
			x.t.Errorf("feature %v of token %d, not %v, behind %v", f[0], id, of, path)
		}
	}
	if at := len(x.blocks) - 1; at < 0 || len(x.blocks[at]) == size {
		x.blocks = append(x.blocks, []token.ID{r.ID})
	} else {
		x.blocks[at] = append(x.blocks[at], r.ID)
	}
}

// featureOf returns the feature of the i-th pair of a path: the token before it in the text, or the token of the row a block before it.
func (x *paired) featureOf(path []token.ID, i, size int) float32 {
	known := len(x.ids) - 1 - x.source.first // pairs of the text, of which the path has the last ones
	if i < known {
		return float32(x.ids[x.source.first+i])
	}
	return float32(path[i-size])
}

func (x *paired) begin(n int) {
	x.ids, x.told = nil, 0
	for i := range n {
		x.ids = append(x.ids, token.ID(i))
	}
	x.h.Begin(x.ids, n)
	if err := x.drafts.Begin(&x.h); err != nil {
		x.t.Fatal(err)
	}
}

// tell adds n tokens and tells the features of those before the last.
func (x *paired) tell(n int) {
	for range n {
		x.ids = append(x.ids, token.ID(len(x.ids)))
	}
	x.h.Extend(x.ids)
	var u method.Update
	for at := x.told; at < len(x.ids)-1; at++ {
		u.Rows = append(u.Rows, method.RowResult{ID: x.ids[at], At: int32(at), Accepted: true, Result: compute.Result{State: []float32{float32(x.ids[at]), float32(at)}}})
	}
	x.drafts.Committed(u)
	x.told = len(x.ids) - 1
}

// draft returns the tree behind the text.
func (x *paired) draft() (*method.Tree, error) {
	tree := method.NewTree(32, pairTokens)
	tree.Reset(6, method.NewRates(1))
	x.blocks = nil
	err := x.drafts.Draft(x.t.Context(), tree)
	return tree, err
}

// round adds n tokens, and returns the drafts behind the text with their depths. It expects the trunk to be the text's pairs but for the last block.
func (x *paired) round(n int) (drafts [][2]int) {
	x.t.Helper()
	x.tell(n)
	tree, err := x.draft()
	if err != nil {
		x.t.Fatal(err)
	}
	for _, d := range tree.Nodes() {
		drafts = append(drafts, [2]int{int(d.ID) - len(x.ids), int(d.Depth)})
	}
	if x.source.Trunk == nil {
		return drafts
	}
	if got, size := x.source.Trunk.(*growtest.Sequence).Trunk, x.source.size; len(drafts) > 0 && !slices.Equal(got, x.ids[x.source.first+1:len(x.ids)-size]) {
		x.t.Errorf("a trunk of %v behind %v", got, x.ids)
	}
	return drafts
}

// TestPairs drafts two paths, whose blocks of two depths run together.
func TestPairs(t *testing.T) {
	x := newPaired(t, 2, 2, 100, 16)
	x.begin(6)
	x.tell(1)
	calls := x.model.Calls
	got := x.round(0)
	want := [][2]int{{0, 1}, {1, 1}, {1, 2}, {1, 2}, {2, 3}, {3, 3}, {3, 4}, {3, 4}, {4, 5}, {5, 5}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("drafts and depths (-want +got):\n%s", diff)
	}
	blocks := [][]token.ID{{5, 6}, {7, 8}, {8, 8}, {9, 10}, {10, 10}}
	if diff := cmp.Diff(blocks, x.blocks); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	if n := x.model.Calls - calls; n != 3 {
		t.Errorf("%d passes for five depths, want 3", n)
	}
}

// TestPairsInSmallSteps drafts nothing where a step holds fewer rows than a block, and fewer blocks at a time where it holds few.
func TestPairsInSmallSteps(t *testing.T) {
	x := newPaired(t, 4, 2, 61, 3)
	x.begin(20)
	if d := x.round(1); len(d) > 0 || x.model.Calls > 0 {
		t.Errorf("%d drafts, %d passes", len(d), x.model.Calls)
	}
	x = newPaired(t, 2, 2, 61, 3)
	x.begin(20)
	if d := x.round(1); len(d) == 0 || x.model.Calls == 0 {
		t.Error("no drafts")
	}
}

// TestPairsFollow drafts in rounds, in steps that hold few rows and many.
func TestPairsFollow(t *testing.T) {
	for name, run := range map[string]func(x *paired){
		"rounds follow a prompt": func(x *paired) {
			x.begin(30)
			for n := range 6 {
				if len(x.round(1+n)) == 0 {
					x.t.Errorf("no drafts behind %d tokens", len(x.ids))
				}
			}
		},
		"the text is the last round's": func(x *paired) {
			x.begin(9)
			one, again := x.round(1), x.round(0)
			if diff := cmp.Diff(one, again); diff != "" {
				x.t.Error(diff)
			}
		},
		"fewer pairs than a block": func(x *paired) {
			x.begin(1)
			for n := 1; n < x.source.size; n++ {
				if d := x.round(1); len(d) > 0 {
					x.t.Errorf("%d drafts behind %d pairs", len(d), n)
				}
			}
			if len(x.round(1)) == 0 {
				x.t.Error("no drafts behind a block's pairs")
			}
		},
		"a prefix without features": func(x *paired) {
			x.begin(20)
			x.told = 12
			x.round(1)
			if len(x.round(2)) == 0 || x.source.first != 12 {
				x.t.Errorf("no drafts, or a trunk that begins at %d", x.source.first)
			}
		},
		"a gap": func(x *paired) {
			x.begin(20)
			x.round(1)
			x.told += 3
			x.round(5)
			if len(x.round(2)) == 0 {
				x.t.Error("no drafts behind the gap")
			}
		},
		"a text outgrows the context": func(x *paired) {
			x.begin(4)
			some := 0
			for range 120 {
				some += len(x.round(1))
			}
			if some == 0 {
				x.t.Error("no drafts")
			}
		},
		"a prompt is longer than the context": func(x *paired) {
			x.begin(200)
			x.round(1)
			if len(x.round(1)) == 0 {
				x.t.Error("no drafts")
			}
		},
		"a step fails": func(x *paired) {
			x.begin(12)
			x.tell(1)
			x.model.Fail = errors.New("broken")
			if _, err := x.draft(); !errors.Is(err, x.model.Fail) {
				x.t.Errorf("error %v", err)
			}
			x.model.Fail = nil
			if len(x.round(1)) == 0 {
				x.t.Error("no drafts once steps work")
			}
		},
		"another text": func(x *paired) {
			x.begin(30)
			x.round(1)
			x.begin(7)
			if len(x.round(1)) == 0 {
				x.t.Error("no drafts")
			}
		},
	} {
		for _, c := range []struct{ size, reach, rows int }{{1, 1, 5}, {2, 2, 5}, {3, 1, 16}, {3, 3, 8}, {4, 2, 64}} {
			t.Run(name, func(t *testing.T) {
				x := newPaired(t, c.size, c.reach, 61, c.rows)
				run(x)
				if err := x.drafts.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
