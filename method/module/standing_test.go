package module

import (
	"math"
	"slices"
	"testing"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

const vocabulary = 40

// likely returns logits by which some tokens are likely, the first most.
func likely(ids ...token.ID) []float32 {
	l := make([]float32, vocabulary)
	for i, id := range ids {
		l[id] = 9 - float32(i)
	}
	return l
}

// given returns what vectors behind the text's token at a place gave.
func given(place int32, logits ...[]float32) (all []method.ExtraResult) {
	for i, l := range logits {
		all = append(all, method.ExtraResult{Extra: int32(i), Index: place + 1 + int32(i), Result: compute.Result{Logits: l}})
	}
	return all
}

func newText(t *testing.T) *growtest.Text {
	t.Helper()
	return growtest.NewText(t, standing{})
}

// standing is a method of three vectors.
type standing struct{}

func (standing) NewDrafter(method.Trunk) (method.Drafter, error) {
	return NewStanding(&method.Module{Module: forest.Module{Rows: []forest.Row{{Vector: []float32{1}}, {Vector: []float32{2}}, {Vector: []float32{3}}}}}, vocabulary), nil
}

// TestStandingDraft: the lists of the last round's vectors are those of the places behind the text; those of an earlier one serve as far as they reach.
func TestStandingDraft(t *testing.T) {
	x := newText(t)
	x.Begin(t, 1, 2, 3)
	if tree := x.Draft(t, 50); tree.Len() > 0 || len(tree.Extras()) != 3 {
		t.Errorf("at first %d drafts and %d vectors", tree.Len(), len(tree.Extras()))
	}
	x.Add(4)
	x.Drafter.Committed(method.Update{Extra: given(2, likely(10, 20), likely(11), likely(12))})
	tree := x.Draft(t, 50)
	for depth, id := range []token.ID{10, 11, 12} {
		at := slices.IndexFunc(tree.Nodes(), func(n method.Node) bool { return n.ID == id && int(n.Depth) == depth+1 })
		if at < 0 {
			t.Errorf("token %d is no draft at depth %d of %v", id, depth+1, growtest.IDs(tree))
		}
	}
	if tree.Len() > standingDrafts {
		t.Errorf("%d drafts", tree.Len())
	}
	x.Add(10)
	if tree := x.Draft(t, 50); tree.Len() == 0 || tree.Nodes()[0].ID != 11 {
		t.Errorf("a round later: %v", growtest.IDs(tree))
	}
	x.Add(11, 12)
	if tree := x.Draft(t, 50); tree.Len() > 0 {
		t.Errorf("behind the last list: %v", growtest.IDs(tree))
	}
	x.Begin(t, 5, 6, 7, 8, 9)
	if tree := x.Draft(t, 50); tree.Len() > 0 {
		t.Errorf("in another text: %v", growtest.IDs(tree))
	}
}

// TestStandingRows: all vectors stand behind the text, in order, and behind a draft the fewer the less likely it is the last that is accepted; none at the end
// of the text.
func TestStandingRows(t *testing.T) {
	x := newText(t)
	x.Begin(t, 1, 2, 3)
	x.Drafter.Committed(method.Update{Extra: given(1, likely(10), likely(11), likely(12))})
	tree := x.Draft(t, 50)
	count := map[int32]int{}
	for i, e := range tree.Extras() {
		if want := float32(count[e.Parent] + 1); e.Row.Vector[0] != want || e.After != int32(method.Root) && e.After != int32(i-1) || (e.After == int32(method.Root)) != (count[e.Parent] == 0) {
			t.Errorf("extra row %d is %+v, want vector %v", i, e, want)
		}
		count[e.Parent]++
	}
	if count[int32(method.Root)] != 3 {
		t.Errorf("%d vectors behind the text", count[int32(method.Root)])
	}
	last := map[int32]float32{} // the chance that a draft is the last that is accepted
	for at, n := range tree.Nodes() {
		last[int32(at)] += tree.Score(at)
		if n.Parent != int32(method.Root) {
			last[n.Parent] -= tree.Score(at)
		}
	}
	behind := 0
	for a, p := range last {
		behind += count[a]
		for b, q := range last {
			if p > q && count[a] < count[b] {
				t.Errorf("%d vectors behind a draft that is the last with chance %v, %d behind one with %v", count[a], p, count[b], q)
			}
		}
	}
	if behind == 0 || behind > 3*len(last)/2 {
		t.Errorf("%d vectors behind %d drafts", behind, len(last))
	}
	if tree := x.Draft(t, 1); len(tree.Extras()) != 1 {
		t.Errorf("with room for a token %d vectors", len(tree.Extras()))
	}
}

// TestStandingShares: what share of the lists had the text's tokens decides how many vectors stand behind drafts.
func TestStandingShares(t *testing.T) {
	for _, c := range []struct {
		name  string
		token token.ID // of all places
		want  []float32
	}{
		{"always", 10, []float32{1, 1, 1}},
		{"never", 11, []float32{0, follows, follows}}, // where the first list has not its token, the others tell nothing
	} {
		x := newText(t)
		x.Begin(t, 1, 2, 3)
		for at := int32(2); at < 400; at += 3 {
			x.Drafter.Committed(method.Update{Extra: given(at, likely(10), likely(10), likely(10))})
			x.Draft(t, 50)
			x.Add(c.token, c.token, c.token, c.token)
		}
		d := x.Drafter.(*Standing)
		for i, want := range c.want {
			if math.Abs(float64(d.shares[i]-want)) > 0.05 {
				t.Errorf("%s: shares %v, want %v", c.name, d.shares, c.want)
				break
			}
		}
		if few, many := d.worth(worthwhile*0.9), d.worth(1); few != 0 || c.want[0] == 1 && many != 3 || c.want[0] == 0 && many != 0 {
			t.Errorf("%s: %d and %d vectors", c.name, few, many)
		}
	}
}

// TestStandingAllocatesNothing: a round's lists, drafts and rows, greedily and at a temperature, within the memory that was said.
func TestStandingAllocatesNothing(t *testing.T) {
	for name, p := range map[string]sample.Params{"greedy": {}, "temperature 1": {Temperature: 1, Seed: 3}} {
		t.Run(name, func(t *testing.T) {
			d, _ := standing{}.NewDrafter(nil)
			ids := slices.Repeat([]token.ID{3, 5}, 600)
			h := &method.History{}
			h.Noise.Sampling = p
			h.Begin(ids[:4], 4)
			if err := d.Begin(h); err != nil {
				t.Fatal(err)
			}
			tree, rates, at := method.NewTree(128, vocabulary), method.NewRates(1), 4
			extra := given(0, likely(3, 7), likely(5), likely(3, 9))
			update := method.Update{IDs: make([]token.ID, 1), Extra: extra}
			step := func() {
				at++
				h.Extend(ids[:at])
				for i := range extra {
					extra[i].Index = int32(at - 1 + i)
				}
				d.Committed(update)
				tree.Reset(64, rates)
				if err := d.Draft(t.Context(), tree); err != nil {
					t.Fatal(err)
				}
			}
			for range 50 {
				step()
			}
			if n := testing.AllocsPerRun(400, step); n > 0 {
				t.Errorf("%v allocations a round", n)
			}
			if held, most := d.(method.Sized).Held(), d.(method.Sized).MemoryFor(16, p); held != most || most.Logits != 4*3*vocabulary {
				t.Errorf("holds %+v of %+v", held, most)
			}
		})
	}
}

// TestStandingShare: above temperature 0 candidates come in the order of a draw, and shares that were learnt stand for their probabilities.
func TestStandingShare(t *testing.T) {
	d := NewStanding(&method.Module{Module: forest.Module{Rows: make([]forest.Row, 1)}}, vocabulary)
	h := &method.History{}
	if err := d.Begin(h); err != nil || d.product.Share != nil {
		t.Errorf("greedy texts have shares (%v)", err)
	}
	h.Noise.Sampling = sample.Params{Temperature: 1}
	if err := d.Begin(h); err != nil || d.product.Share == nil {
		t.Errorf("texts that are drawn have no shares (%v)", err)
	}
}
