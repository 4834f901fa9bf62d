package modeltest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// TestSelect lets every head of every layer read blocks of its own choice: a tree's logits are those of the reference
// that leaves the other blocks out, beside a sequence that shares the pages and reads them all; and without selections
// everything is as before.
func TestSelect(t *testing.T) {
	const length = 210 // three full blocks and a part
	spec := Spec{Type: tensor.F32}
	file := spec.File(t)
	ref := newReference(spec, file)
	rng := rand.New(rand.NewPCG(3, 4))
	text, tree := randomIDs(rng, length, 48), randomTree(rng, 10, 48)
	var lists [3][2][]int32
	for l := range lists {
		lists[l] = [2][]int32{{int32(l)}, {0, 2}}
	}
	lists[2][1] = nil // all
	lists[1][0] = []int32{}
	want := ref.selected(text, tree, func(layer, head, row int) bool {
		block := int32(row / kv.PageTokens)
		return block < 3 && lists[layer][head] != nil && !slices.Contains(lists[layer][head], block)
	})
	for _, threads := range []int{1, 2} {
		r := New(t, file, Config{Threads: threads})
		s := r.NewSeq("")
		r.Prefill(s, text, 64)
		other, err := r.Cache.Fork(s, forest.Trunk)
		r.check(err)
		_, before := r.Grow(s, tree)
		r.Drop(s, forest.Trunk)
		set := func(of func(l, h int) []int32) {
			for l := range lists {
				for h := range lists[l] {
					r.check(r.Cache.Select(s, l, h, of(l, h)))
				}
			}
		}
		set(func(l, h int) []int32 { return lists[l][h] })
		_, alone := r.Grow(s, tree)
		r.Drop(s, forest.Trunk)
		for i := range want {
			if w := worst(alone[i], want[i]); !(w < 1e-5) {
				t.Errorf("%d threads: node %d: logits differ from the reference by %.2g of the largest", threads, i, w)
			}
		}
		for _, seq := range []forest.Seq{other, s} {
			nodes := make([]forest.Node, len(tree.IDs))
			for i, id := range tree.IDs {
				nodes[i] = r.Add(forest.Row{Seq: seq, Parent: parentOf(tree, nodes, i), ID: id, Want: logits})
			}
		}
		r.Forward()
		got := r.take(2 * len(tree.IDs))
		r.check(Equal("beside a selection", got[:len(before)], before))
		r.check(Equal("a selection beside another sequence", got[len(before):], alone))
		r.Drop(s, forest.Trunk)
		r.Drop(other, forest.Trunk)
		set(func(int, int) []int32 { return nil })
		_, after := r.Grow(s, tree)
		r.check(Equal("behind a selection", after, before))
	}
}

// selected returns the logits of a tree behind a text, whose rows do not read what blind says.
func (r *reference) selected(text []token.ID, tree Tree, blind func(layer, head, row int) bool) [][]float64 {
	var rows []refRow
	for i, id := range text {
		rows = append(rows, refRow{input: r.embedding(id), pos: i, sees: upTo(i)})
	}
	for i, id := range tree.IDs {
		row := refRow{input: r.embedding(id), pos: len(text) + tree.Depth(i), sees: upTo(len(text) - 1), blind: blind}
		for at := i; at >= 0; at = tree.Parent[at] {
			row.sees = append(row.sees, len(text)+at)
		}
		rows = append(rows, row)
	}
	out, _ := r.forward(rows)
	return out[len(text):]
}
