package modeltest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"grove/internal/compute"
	"grove/internal/compute/weight"
	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// twoLayers are the layers whose streams these checks want: the first, and the one before the last.
func (r *Runner) twoLayers() forest.Layers {
	return forest.Layers{}.With(0).With(len(r.Model.Info().Layers) - 2)
}

// outputs copies the logits of row i of the last step, and the streams that it wanted.
func (r *Runner) outputs(i int) Bits {
	out := r.bits(i)
	for _, h := range r.Exec.Result(i).Hidden {
		out = append(out, h...)
	}
	return out
}

// checkHidden compares the embeddings, and the streams after two layers, of a tree's rows, beside another sequence, with those of the same
// rows run one a step, and the embeddings with the streams of rows that pass over every layer.
func checkHidden(r *Runner, rng *rand.Rand, text []token.ID, _ []Bits) error {
	vocab := r.Model.Info().Vocabulary
	want := forest.Want{Logits: true, Embedding: true, Hidden: r.twoLayers()}
	passes := forest.Row{Skip: forest.LayerRange(0, len(r.Model.Info().Layers)), Want: forest.Want{Hidden: forest.LayerRange(0, 1)}}
	tree := randomTree(rng, 9, vocab)
	s, other := r.NewSeq(""), r.NewSeq("")
	defer r.Close(s)
	defer r.Close(other)
	r.Prefill(s, text[:62], 64)
	nodes := make([]forest.Node, len(tree.IDs))
	for i, id := range tree.IDs {
		nodes[i] = r.Add(forest.Row{Seq: s, Parent: parentOf(tree, nodes, i), ID: id, Want: want})
		r.Add(forest.Row{Seq: other, ID: id, Want: forest.Want{Hidden: forest.LayerRange(1, 2)}})
	}
	r.Forward()
	got := make([]Bits, len(nodes))
	for i := range got {
		got[i] = r.outputs(2 * i)
		if n := r.Model.Info().Vocabulary + 3*r.Model.Info().Width; len(got[i]) != n {
			return fmt.Errorf("node %d gives %d values, want %d", i, len(got[i]), n)
		}
	}
	r.Drop(s, forest.Trunk)
	for i, id := range tree.IDs {
		nodes[i] = r.Add(forest.Row{Seq: s, Parent: parentOf(tree, nodes, i), ID: id, Want: want})
		passes.Seq, passes.Parent, passes.ID = s, parentOf(tree, nodes, i), id
		r.Add(passes)
		r.Forward()
		if err := got[i].Diff(r.outputs(0)); err != nil {
			return fmt.Errorf("node %d in a tree and by itself: %w", i, err)
		}
		if err := Bits(r.Exec.Result(0).Hidden[0]).Diff(r.Exec.Result(1).Hidden[0]); err != nil {
			return fmt.Errorf("the embedding of node %d, and the stream of a row that passes over every layer: %w", i, err)
		}
	}
	return nil
}

// checkParts runs a tree whose rows skip random parts of layers, beside rows of another text that run all. Each row has the bits that it has behind its
// path alone, and the other text those of plain decoding. A row that has skipped a part cannot be committed.
func checkParts(r *Runner, rng *rand.Rand, text []token.ID, plain []Bits) error {
	info := r.Model.Info()
	if info.AttentionShare == 0 {
		return nil // its rows run layers as a whole
	}
	tree := randomTree(rng, 9, info.Vocabulary)
	s, other := r.NewSeq(""), r.NewSeq("")
	defer r.Close(s)
	defer r.Close(other)
	r.Prefill(s, text[:62], 64)
	rows, nodes := make([]forest.Row, len(tree.IDs)), make([]forest.Node, len(tree.IDs))
	var end forest.Node
	for i, id := range tree.IDs {
		rows[i] = forest.Row{Seq: s, ID: id, Want: forest.Want{Logits: true, Hidden: r.twoLayers()}}
		for l := range info.Layers {
			switch rng.IntN(3) {
			case 0:
				rows[i].SkipAttention = rows[i].SkipAttention.With(l)
			case 1:
				rows[i].SkipFeedForward = rows[i].SkipFeedForward.With(l)
			}
		}
		rows[i].Parent = parentOf(tree, nodes, i)
		nodes[i] = r.Add(rows[i])
		end = r.Add(forest.Row{Seq: other, Parent: end, ID: text[i], Want: logits})
	}
	r.Forward()
	got := make([]Bits, 2*len(nodes))
	for i := range got {
		got[i] = r.outputs(i)
	}
	for i := range nodes {
		if err := got[2*i+1].Diff(plain[i]); err != nil {
			return fmt.Errorf("token %d of a text beside rows that skip parts: %w", i, err)
		}
		if err := r.Cache.Commit(s, nodes[i]); err == nil {
			return fmt.Errorf("node %d, which has skipped parts of layers, was committed", i)
		}
	}
	r.Commit(other, end)
	r.Drop(s, forest.Trunk)
	for i := range tree.IDs {
		var up forest.Node
		for _, at := range pathTo(tree, i) {
			rows[at].Parent = up
			up = r.Add(rows[at])
			r.Forward()
		}
		if err := got[2*i].Diff(r.outputs(0)); err != nil {
			return fmt.Errorf("node %d in a tree, and alone behind its path: %w", i, err)
		}
		r.Drop(s, forest.Trunk)
	}
	return Equal("after rows that skip parts were dropped", r.Prefill(s, text[62:100], 38), plain[62:100])
}

// pathTo returns the places of a tree down to one.
func pathTo(t Tree, i int) (path []int) {
	for ; i >= 0; i = t.Parent[i] {
		path = append(path, i)
	}
	slices.Reverse(path)
	return path
}

// checkVectors hangs two rows of vectors behind every node of a tree: see checkExtra.
func checkVectors(r *Runner, rng *rand.Rand, text []token.ID, _ []Bits) error {
	rows := make([]forest.Row, 2)
	for i := range rows {
		for range r.Model.Info().Width {
			rows[i].Vector = append(rows[i].Vector, float32(rng.NormFloat64())/8)
		}
	}
	return checkExtra(r, rng, text, rows)
}

// checkProducts hangs two rows behind every node of a tree that begin at a middle layer and at the last one, as products of the node's stream
// there, with a float matrix and a quantised one. So do rows of products that are no numbers, of which no other row's bits know.
func checkProducts(r *Runner, rng *rand.Rand, text []token.ID, _ []Bits) error {
	info := r.Model.Info()
	layers := len(info.Layers)
	huge := make([]float32, info.Width*info.Width)
	for i := range huge {
		huge[i] = []float32{3e38, -3e38, float32(math.Inf(1)), float32(math.NaN())}[rng.IntN(4)]
	}
	good, bad := productOf(r, randomValues(rng, info.Width, info.Width), tensor.F32), productOf(r, huge, tensor.F32)
	rounded := good
	if info.Width%kernel.QBlock == 0 {
		rounded = productOf(r, randomValues(rng, info.Width, info.Width), tensor.Q8_0)
	}
	if err := checkExtra(r, rng, text, []forest.Row{{Through: good, Skip: forest.LayerRange(0, layers/2)}, {Through: rounded, Skip: forest.LayerRange(0, layers-1)}}); err != nil {
		return err
	}
	return checkExtra(r, rng, text, []forest.Row{{Through: bad, Skip: forest.LayerRange(0, layers/2)}, {Through: bad, Skip: forest.LayerRange(0, layers/2)}})
}

func randomValues(rng *rand.Rand, rows, width int) []float32 {
	v := make([]float32, rows*width)
	for i := range v {
		v[i] = float32(rng.NormFloat64() / math.Sqrt(float64(width)))
	}
	return v
}

// productOf returns a matrix of the model's width.
func productOf(r *Runner, values []float32, typ tensor.Type) *compute.Matrix {
	r.tb.Helper()
	width := r.Model.Info().Width
	row, ok := typ.RowBytes(width)
	if !ok {
		r.tb.Fatalf("no rows of %d values of %v", width, typ)
	}
	v := tensor.View{Name: "product", Type: typ, Shape: []int{width, width}, Data: make([]byte, row*width)}
	r.check(tensor.Pack(typ, v.Data, values))
	pool := par.New(1)
	defer pool.Close()
	m, err := weight.New(pool, nil).Matrix(v)
	r.check(err)
	return m
}

// checkExtra hangs a path of two rows behind every node of a tree and drops them after the step. The tree's rows do not
// see them, a path of the tree is committed, and what follows is plain decoding. The extra rows have the bits
// that they have behind their path alone.
func checkExtra(r *Runner, rng *rand.Rand, text []token.ID, rows []forest.Row) error {
	const length = 62
	info := r.Model.Info()
	want := forest.Want{Logits: true, Hidden: r.twoLayers()}
	tree := randomTree(rng, 7, info.Vocabulary)
	s := r.NewSeq("")
	defer r.Close(s)
	r.Prefill(s, text[:length], 64)
	hang := func(parent forest.Node) (first forest.Node) {
		of := parent
		for i, row := range rows {
			row.Seq, row.Parent, row.Want, row.Of = s, parent, want, of
			parent = r.Add(row)
			if i == 0 {
				first = parent
			}
		}
		return first
	}
	nodes, extra := make([]forest.Node, len(tree.IDs)), make([]forest.Node, len(tree.IDs))
	for i, id := range tree.IDs {
		nodes[i] = r.Add(forest.Row{Seq: s, Parent: parentOf(tree, nodes, i), ID: id, Want: want})
		extra[i] = hang(nodes[i])
	}
	r.Forward()
	got := make([]Bits, 3*len(nodes)) // node, extra, extra; node, ...
	for i := range got {
		got[i] = r.outputs(i)
	}
	for _, n := range extra {
		r.Drop(s, n)
	}
	if live := r.Cache.Forest.Live(s); live != len(nodes) {
		return fmt.Errorf("%d rows live on after the extra rows were dropped, want %d", live, len(nodes))
	}
	leaf := tree.leaves(1)[0]
	r.Commit(s, nodes[leaf])
	whole := append(append(slices.Clone(text[:length]), tree.Path(leaf)...), text[:5]...)
	if err := Equal("behind dropped extra rows", r.Prefill(s, text[:5], 5), r.Reference(whole)[len(whole)-5:]); err != nil {
		return err
	}
	r.check(r.Cache.Truncate(s, 0))
	r.Prefill(s, text[:length], 64)
	for i := leaf; i >= 0; i = tree.Parent[i] {
		path := tree.Path(i)
		var end forest.Node
		for _, id := range path {
			end = r.Add(forest.Row{Seq: s, Parent: end, ID: id, Want: want})
		}
		hang(end)
		r.Forward()
		for j := range 3 {
			if err := got[3*i+j].Diff(r.outputs(len(path) - 1 + j)); err != nil {
				return fmt.Errorf("node %d, row %d behind it: in a tree and alone: %w", i, j, err)
			}
		}
		r.Drop(s, forest.Trunk)
	}
	return nil
}

// refusesBlocks expects rows that see each other to be refused by a model with recurrent layers, and to leave no trace.
func refusesBlocks(r *Runner) error {
	s := r.Cache.NewSeq("canvas")
	defer r.Close(s)
	r.Add(forest.Row{Seq: s, Block: 1})
	if err := r.Exec.Run(context.Background(), r.Model.Forward); err == nil || !strings.Contains(err.Error(), "a recurrent layer reads rows in order alone") {
		return fmt.Errorf("a block of a recurrent model: %v", err)
	}
	return nil
}

// checkCanvas runs eight rows that see each other four times, with other tokens each time, and commits the last, while
// four sequences decode a token in each of these steps: all are as they are alone.
func checkCanvas(r *Runner, rng *rand.Rand, text []token.ID, _ []Bits) error {
	const rows, passes, start = 8, 4, 61
	vocab := r.Model.Info().Vocabulary
	if r.Cache.Recurrent() {
		return refusesBlocks(r)
	}
	canvas := make([][]token.ID, passes)
	for p := range canvas {
		canvas[p] = randomIDs(rng, rows, vocab)
	}
	texts := [][]token.ID{text[:5], text[3:67], text[20:120], text[:134]} // the last tokens of each are decoded
	run := func(texts [][]token.ID) (block []Bits, others [][]Bits) {
		s := r.NewSeq("canvas")
		defer r.Close(s)
		r.Prefill(s, text[:start], 64)
		var seqs []forest.Seq
		for _, ids := range texts {
			seqs = append(seqs, r.NewSeq("canvas"))
			r.Prefill(seqs[len(seqs)-1], ids[:len(ids)-passes], 64)
		}
		others = make([][]Bits, len(texts))
		for p, ids := range canvas {
			r.Drop(s, forest.Trunk)
			var end forest.Node
			nodes := make([]forest.Node, len(texts))
			for i, id := range ids {
				end = r.Add(forest.Row{Seq: s, Parent: end, ID: id, Block: 1, Want: logits})
				if i < len(texts) { // among the block's rows
					nodes[i] = r.Add(forest.Row{Seq: seqs[i], ID: texts[i][len(texts[i])-passes+p], Want: logits})
				}
			}
			r.Forward()
			at := 0
			for i := range ids {
				block = append(block, r.bits(at))
				at++
				if i < len(texts) {
					others[i] = append(others[i], r.bits(at))
					r.Commit(seqs[i], nodes[i])
					at++
				}
			}
			if p == passes-1 {
				r.Commit(s, end)
			}
		}
		block = append(block, r.Prefill(s, text[:3], 1)...) // behind the committed block
		for _, seq := range seqs {
			r.Close(seq)
		}
		return block, others
	}
	alone, _ := run(nil)
	beside, others := run(texts)
	if err := Equal("a canvas beside four sequences and alone", beside, alone); err != nil {
		return err
	}
	for i, ids := range texts {
		if err := Equal(fmt.Sprintf("sequence %d beside a canvas", i), others[i], r.Reference(ids)[len(ids)-passes:]); err != nil {
			return err
		}
	}
	return nil
}
