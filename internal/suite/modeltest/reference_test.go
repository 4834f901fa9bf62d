package modeltest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"grove/internal/forest"
	"grove/internal/model/synthetic"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// reference is a Llama in float64 whose rows list the rows that they see. It specifies visibility, shifts, mixtures,
// vectors, skipped layers and rows that begin as products.
type reference struct {
	spec    synthetic.Spec
	tensors map[string][]float64
	stands  func(l int, x []float64) []float64 // what is added to the stream of an anchor behind a substituted layer
}

// refRow is one row: its input, its position, the rows that it sees, and the layers that it skips.
type refRow struct {
	input []float64
	pos   int
	sees  []int // rows, itself among them, in any order
	skip  forest.Layers

	drop   forest.Layers // layers of which it takes what they gave for row anchor, and a product of its own stream
	anchor int

	of      int       // the row of whose stream it begins as a product, where it has a matrix
	through []float64 // the matrix, of which it takes the product where it runs its first layer

	skipAttention, skipFeed forest.Layers // parts of layers, of which it runs the other part

	blind func(layer, head, row int) bool // rows that a KV head does not read; nil: none
}

func newReference(spec Spec, f *gguf.File) *reference {
	r := &reference{spec: synthetic.Spec(spec).WithDefaults(), tensors: map[string][]float64{}}
	for _, v := range f.Tensors {
		w := make([]float64, v.Elems())
		for i := range w {
			w[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(v.Data[4*i:])))
		}
		r.tensors[v.Name] = w
	}
	return r
}

func (r *reference) embedding(id token.ID) []float64 {
	w := r.spec.Width
	return r.tensors["token_embd.weight"][int(id)*w : (int(id)+1)*w]
}

func (r *reference) layer(l int, name string) []float64 {
	return r.tensors[fmt.Sprintf("blk.%d.%s.weight", l, name)]
}

func matVec(w, x []float64) []float64 {
	out := make([]float64, len(w)/len(x))
	for o := range out {
		for i, v := range x {
			out[o] += w[o*len(x)+i] * v
		}
	}
	return out
}

func rmsNorm(x, w []float64) []float64 {
	var sum float64
	for _, v := range x {
		sum += v * v
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v / math.Sqrt(sum/float64(len(x))+1e-5) * w[i]
	}
	return out
}

func (r *reference) rotate(x []float64, pos int) {
	size := r.spec.KeySize
	for h := 0; h < len(x); h += size {
		for i := 0; i < size; i += 2 {
			sin, cos := math.Sincos(float64(pos) * math.Pow(10000, -float64(i)/float64(size)))
			a, b := x[h+i], x[h+i+1]
			x[h+i], x[h+i+1] = a*cos-b*sin, a*sin+b*cos
		}
	}
}

// forward returns each row's logits and its stream after each layer.
func (r *reference) forward(rows []refRow) (logits [][]float64, hidden [][][]float64) {
	x := make([][]float64, len(rows))
	hidden = make([][][]float64, len(rows))
	for i := range rows {
		x[i] = append([]float64(nil), rows[i].input...)
	}
	for l := range r.spec.Layers {
		for i, row := range rows {
			if row.through != nil && row.skip == forest.LayerRange(0, l) {
				x[i] = matVec(row.through, x[row.of])
			}
		}
		q, k, v := make([][]float64, len(rows)), make([][]float64, len(rows)), make([][]float64, len(rows))
		for i, row := range rows {
			h := rmsNorm(x[i], r.layer(l, "attn_norm"))
			q[i], k[i], v[i] = matVec(r.layer(l, "attn_q"), h), matVec(r.layer(l, "attn_k"), h), matVec(r.layer(l, "attn_v"), h)
			r.rotate(q[i], row.pos)
			r.rotate(k[i], row.pos)
		}
		for i, row := range rows {
			if !row.skip.Has(l) && !row.skipAttention.Has(l) {
				add(x[i], matVec(r.layer(l, "attn_output"), r.attend(l, rows, i, q[i], k, v)))
			}
			if !row.skip.Has(l) && !row.skipFeed.Has(l) {
				r.feed(l, x[i])
			}
			if row.drop.Has(l) {
				x[i] = r.stands(l, x[i])
				add(x[i], hidden[row.anchor][l])
			}
			hidden[i] = append(hidden[i], append([]float64(nil), x[i]...))
		}
	}
	for i := range rows {
		logits = append(logits, matVec(r.tensors["output.weight"], rmsNorm(x[i], r.tensors["output_norm.weight"])))
	}
	return logits, hidden
}

func (r *reference) attend(l int, rows []refRow, i int, q []float64, k, v [][]float64) []float64 {
	s := r.spec
	out := make([]float64, s.Heads*s.ValueSize)
	for h := range s.Heads {
		kh, vh := h/(s.Heads/s.KVHeads)*s.KeySize, h/(s.Heads/s.KVHeads)*s.ValueSize
		weights, sum := make([]float64, len(rows)), 0.0
		for _, j := range rows[i].sees {
			if blind := rows[i].blind; rows[j].skip.Has(l) || rows[j].skipAttention.Has(l) || blind != nil && blind(l, h/(s.Heads/s.KVHeads), j) {
				continue
			}
			var dot float64
			for e := range s.KeySize {
				dot += q[h*s.KeySize+e] * k[j][kh+e]
			}
			weights[j] = math.Exp(dot / math.Sqrt(float64(s.KeySize)))
			sum += weights[j]
		}
		for j := range rows {
			for e := range s.ValueSize {
				out[h*s.ValueSize+e] += weights[j] / sum * v[j][vh+e]
			}
		}
	}
	return out
}

func add(x, y []float64) {
	for i, v := range y {
		x[i] += v
	}
}

func (r *reference) feed(l int, x []float64) {
	h := rmsNorm(x, r.layer(l, "ffn_norm"))
	gate, up := matVec(r.layer(l, "ffn_gate"), h), matVec(r.layer(l, "ffn_up"), h)
	for i, g := range gate {
		up[i] *= g / (1 + math.Exp(-g))
	}
	add(x, matVec(r.layer(l, "ffn_down"), up))
}

func worst(got []float32, want []float64) float64 {
	var d, scale float64
	for i := range want {
		d, scale = max(d, math.Abs(float64(got[i])-want[i])), max(scale, math.Abs(want[i]))
	}
	return d / scale
}

// TestRowKinds runs every kind of row in one sequence and compares logits and hidden states with the
// reference: a trunk, a branch, a block whose rows see each other, a vector, a mixture, a shifted
// position, rows that skip layers or parts of them, and one that begins as a product.
func TestRowKinds(t *testing.T) {
	spec := Spec{Type: tensor.F32, ValueSize: 48}
	file := spec.File(t)
	ref := newReference(spec, file)
	r := New(t, file, Config{})
	rng := rand.New(rand.NewPCG(1, 2))
	trunk := randomIDs(rng, 5, 48)
	s := r.NewSeq("")
	r.Prefill(s, trunk, 5)
	var rows []refRow
	for i, id := range trunk {
		rows = append(rows, refRow{input: ref.embedding(id), pos: i, sees: upTo(i)})
	}
	vector := make([]float32, 64)
	wide := make([]float64, 64)
	for i := range vector {
		vector[i] = float32(rng.NormFloat64())
		wide[i] = float64(vector[i])
	}
	mix := []forest.Weighted{{ID: 3, Weight: 0.25}, {ID: 9, Weight: 0.75}}
	mixed := make([]float64, 64)
	for i := range mixed {
		mixed[i] = 0.25*ref.embedding(3)[i] + 0.75*ref.embedding(9)[i]
	}
	want := forest.Want{Logits: true, Hidden: forest.LayerRange(0, 3)}
	skip := forest.Layers{}.With(1)
	add := func(row forest.Row, as refRow) forest.Node {
		row.Seq, row.Want = s, want
		rows = append(rows, as)
		return r.Add(row)
	}
	over := func(extra ...int) []int { return append(upTo(4), extra...) }
	a := add(forest.Row{ID: 7}, refRow{input: ref.embedding(7), pos: 5, sees: over(5)})
	b := add(forest.Row{Parent: a, Vector: vector, Shift: 3}, refRow{input: wide, pos: 9, sees: over(5, 6)})
	add(forest.Row{Mix: mix}, refRow{input: mixed, pos: 5, sees: over(7)})
	c := add(forest.Row{Parent: a, ID: 2, Skip: skip}, refRow{input: ref.embedding(2), pos: 6, sees: over(5, 8), skip: skip})
	add(forest.Row{Parent: c, ID: 4}, refRow{input: ref.embedding(4), pos: 7, sees: over(5, 8, 9)})
	first, last := forest.LayerRange(0, 2), forest.LayerRange(1, 3)
	f := add(forest.Row{Parent: a, ID: 6, SkipAttention: first, SkipFeedForward: forest.LayerRange(2, 3)},
		refRow{input: ref.embedding(6), pos: 6, sees: over(5, 10), skipAttention: first, skipFeed: forest.LayerRange(2, 3)})
	add(forest.Row{Parent: f, ID: 8, SkipFeedForward: last}, refRow{input: ref.embedding(8), pos: 7, sees: over(5, 10, 11), skipFeed: last})
	add(forest.Row{Parent: f, ID: 9, SkipAttention: last, SkipFeedForward: skip}, // the middle layer as a whole
		refRow{input: ref.embedding(9), pos: 7, sees: over(5, 10, 12), skip: skip, skipAttention: forest.LayerRange(2, 3)})
	d := add(forest.Row{Parent: b, ID: 11, Block: 1}, refRow{input: ref.embedding(11), pos: 7, sees: over(5, 6, 13, 14, 15)})
	e := add(forest.Row{Parent: d, ID: 12, Block: 1}, refRow{input: ref.embedding(12), pos: 8, sees: over(5, 6, 13, 14, 15)})
	add(forest.Row{Parent: e, ID: 13, Block: 1}, refRow{input: ref.embedding(13), pos: 9, sees: over(5, 6, 13, 14, 15)})
	matrix := randomValues(rng, 64, 64)
	half, square := forest.LayerRange(0, 2), make([]float64, len(matrix))
	for i, v := range matrix {
		square[i] = float64(v)
	}
	begins := add(forest.Row{Parent: b, Of: a, Through: productOf(r, matrix, tensor.F32), Skip: half}, refRow{input: ref.embedding(0), pos: 7, sees: over(5, 6, 16), skip: half, of: 5, through: square})
	add(forest.Row{Parent: begins, ID: 6}, refRow{input: ref.embedding(6), pos: 8, sees: over(5, 6, 16, 17)})
	r.Forward()
	logits, hidden := ref.forward(rows)
	for i := len(trunk); i < len(rows); i++ {
		got := r.Exec.Result(i - len(trunk))
		if w := worst(got.Logits, logits[i]); !(w < 1e-5) {
			t.Errorf("row %d: logits differ by %.2g of the largest", i, w)
		}
		for l := range hidden[i] {
			if w := worst(got.Hidden[l], hidden[i][l]); !(w < 1e-5) {
				t.Errorf("row %d: stream after layer %d differs by %.2g", i, l, w)
			}
		}
	}
}

// upTo returns 0 to n.
func upTo(n int) []int {
	var s []int
	for i := range n + 1 {
		s = append(s, i)
	}
	return s
}

// TestTop compares the largest logits and the log-sum-exp of a row with all of its logits.
func TestTop(t *testing.T) {
	for _, arch := range []string{"llama", "gemma2"} { // gemma2 caps them
		t.Run(arch, func(t *testing.T) { checkTop(t, New(t, Spec{Arch: arch}.File(t), Config{})) })
	}
}

func checkTop(t *testing.T, r *Runner) {
	s := r.NewSeq("")
	r.Add(forest.Row{Seq: s, ID: 5, Want: forest.Want{Logits: true, Top: 10}})
	r.Forward()
	got := r.Exec.Result(0)
	var sum float64
	for _, l := range got.Logits {
		sum += math.Exp(float64(l))
	}
	if math.Abs(math.Log(sum)-float64(got.LSE)) > 1e-5 {
		t.Errorf("log-sum-exp is %v, want %v", got.LSE, math.Log(sum))
	}
	if len(got.Top) != 10 {
		t.Fatalf("%d entries", len(got.Top))
	}
	for i, e := range got.Top {
		above := 0
		for id, l := range got.Logits {
			if l > e.Logit || l == e.Logit && token.ID(id) < e.ID {
				above++
			}
		}
		if above != i || got.Logits[e.ID] != e.Logit {
			t.Errorf("entry %d is %+v, with %d above it", i, e, above)
		}
	}
}
