package modeltest

import (
	"fmt"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/model/synthetic"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Gram returns the logits of head k of Chimera behind the last token of a text, of which the last k+1 have no states: those are trigrams (Zeng et al. 2024).
func (h *headOracle) Gram(states [][]float64, ids []int) []float64 {
	rows, k := slices.Clone(states), len(ids)-len(states)-1
	for j := len(states); j < len(ids); j++ {
		var x []float64
		for _, at := range []int{j - 2, j - 1, j} {
			x = append(x, h.embed(ids[max(0, at)])...)
		}
		rows = append(rows, h.named("trigram.out", added(x, gates(h.named("trigram.in", x)))))
	}
	read := h.layer("prefix.", rows)
	x := slices.Concat(states[len(states)-1], read[len(read)-1])
	if name := fmt.Sprintf("blk.%d.mix", k); h.has(name + ".weight") {
		x = h.named(name, x)
	}
	return h.logits(fmt.Sprintf("blk.%d.output", k), x)
}

// grams is a tree of drafts behind states of a text: the first of its paths is as deep as there are heads.
type grams struct {
	*heads
	seq    forest.Seq
	states int // that are known
	tree   Tree
}

// behind runs the text's rows, step of them at a time. The first node of the tree is the text's last token.
func (h *heads) behind(states, step int) grams {
	g := grams{h, h.NewSeq(""), states, Tree{IDs: h.ids[states:][:6:6], Parent: []int{-1, 0, 0, 1, 1, 2}}}
	for k := 3; k < h.of.Heads; k++ {
		g.tree.IDs, g.tree.Parent = append(g.tree.IDs, h.ids[states+10+k]), append(g.tree.Parent, len(g.tree.IDs)-1)
	}
	for first := 0; first < states; first += step {
		node := forest.Trunk
		for i := first; i < min(first+step, states); i++ {
			node = h.Add(forest.Row{Seq: g.seq, Parent: node, ID: h.ids[i], Vector: h.states[i], Want: forest.Want{Hidden: forest.LayerRange(0, 1)}})
		}
		h.Forward()
		h.Commit(g.seq, node)
	}
	return g
}

// text returns the tokens down to a node.
func (g grams) text(node int) []token.ID {
	return append(slices.Clone(g.ids[:g.states]), g.tree.Path(node)...)
}

// row is that of a node.
func (g grams) row(node int, parent forest.Node) forest.Row {
	ids, k := g.text(node), g.tree.Depth(node)
	last := len(ids) - 1
	return forest.Row{
		Seq: g.seq, Parent: parent, ID: ids[last], Vector: g.heads.states[g.states-1], Mix: []forest.Weighted{{ID: ids[max(0, last-2)]}, {ID: ids[max(0, last-1)]}},
		Skip: forest.LayerRange(2, 2+k).Union(forest.LayerRange(3+k, 2+g.of.Heads)), Want: logits,
	}
}

// together runs the tree in one step, behind some rows of another text.
func (g grams) together(others int) (out []Bits) {
	for i, s := 0, g.NewSeq(""); i < others; i++ {
		g.Add(forest.Row{Seq: s, Vector: g.heads.states[i]})
	}
	var nodes []forest.Node
	for i, p := range g.tree.Parent {
		parent := forest.Trunk
		if p >= 0 {
			parent = nodes[p]
		}
		nodes = append(nodes, g.Add(g.row(i, parent)))
	}
	g.Forward()
	for i := range nodes {
		out = append(out, g.bits(others+i))
	}
	g.Drop(g.seq, forest.Trunk)
	return out
}

// alone runs each path by itself, a row at a time.
func (g grams) alone() (out []Bits) {
	for i := range g.tree.Parent {
		var path []int
		for n := i; n >= 0; n = g.tree.Parent[n] {
			path = append(path, n)
		}
		slices.Reverse(path)
		node := forest.Trunk
		for _, n := range path {
			node = g.Add(g.row(n, node))
			g.Forward()
		}
		out = append(out, g.bits(0))
		g.Drop(g.seq, forest.Trunk)
	}
	return out
}

// TestChimera compares trees of drafts with the oracle's paths, and expects the same bits alone, in a tree, whatever the steps of the text were and with any threads.
func TestChimera(t *testing.T) {
	for name, spec := range map[string]synthetic.Module{"outputs": {Own: true, Heads: 4}, "lent head": {}} {
		for wt, share := range map[tensor.Type]float64{tensor.F32: 1e-4, tensor.Q8_0: 0.06} {
			t.Run(fmt.Sprint(name, " ", wt), func(t *testing.T) {
				target := Spec{Seed: 3, Type: wt}
				spec.Family, spec.Target, spec.Type, spec.Seed = "chimera", synthetic.Spec(target), wt, 4
				files := [2]*gguf.File{target.File(t), headFile(t, spec)}
				for _, states := range []int{1, 2, 40} { // a trigram before the text's first token, and texts without one
					one := openHeads(t, files[0], files[1], 1).behind(states, 1)
					got := one.alone()
					var want [][]float64
					for i := range one.tree.Parent {
						var known [][]float64
						for _, s := range one.heads.states[:states] {
							known = append(known, doubles(s))
						}
						var ids []int
						for _, id := range one.text(i) {
							ids = append(ids, int(id))
						}
						want = append(want, one.oracle.Gram(known, ids))
					}
					holdsTo(t, fmt.Sprint(states, " states"), got, want, share)
					for _, threads := range []int{1, 3, 16} {
						many := openHeads(t, files[0], files[1], threads).behind(states, 23)
						if err := Equal(fmt.Sprintf("%d states, a tree, %d threads", states, threads), many.together(5), got); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
	}
}

// TestChimeraIsMedusa: where the layer's part of what heads read is zero, a head is a product with the last state.
func TestChimeraIsMedusa(t *testing.T) {
	target := Spec{Seed: 3}
	metadata, tensors, err := synthetic.Module{Family: "chimera", Target: synthetic.Spec(target), Seed: 6}.Parts()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range tensors {
		if len(v.Shape) != 2 || v.Name != "blk.0.mix.weight" {
			continue
		}
		width := v.Shape[0]
		one := make([]float32, 2*width*width)
		for i := range width {
			one[2*width*i+i] = 1
		}
		if err := tensor.Pack(v.Type, v.Data, one); err != nil {
			t.Fatal(err)
		}
	}
	g := openHeads(t, target.File(t), written(t, metadata, tensors), 1).behind(12, 5)
	got := g.together(0)[:1]
	holdsTo(t, "the first head", got, [][]float64{g.oracle.logits("", doubles(g.heads.states[11]))}, 1e-4)
}
