package modeltest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"grove/internal/compute"
	"grove/internal/compute/weight"
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/model"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// attender is a model of attention alone, with a layer of each kind of cache.
type attender struct {
	info   model.Info
	embed  *compute.Matrix
	ones   compute.Vector
	layers []attenderLayer
	plain  map[string][]float32 // the same weights by name
}

type attenderLayer struct{ qkv, out []compute.Projection }

// Sizes of an attender. 6 queries share 2 heads of keys.
const (
	attenderWidth = 32
	attenderHeads = 4
	attenderSize  = 16
	attenderVocab = 40
)

// attenderKinds are what the layers of an attender keep: no window and no chunk is a multiple of a page.
var attenderKinds = []kv.Keep{{}, kv.Window(70), kv.Chunk(50), kv.Share(1), kv.Share(2), kv.Share(0), kv.Chunk(100)}

func newAttender(t *testing.T, pool *par.Pool) *attender {
	t.Helper()
	m := &attender{plain: map[string][]float32{}}
	rng := rand.New(rand.NewPCG(3, 4))
	weights := weight.New(pool, func([]byte) {})
	matrix := func(name string, out, in int, scale float64) *compute.Matrix {
		v := tensor.View{Name: name, Type: tensor.F32, Shape: []int{out, in}}
		for range out * in {
			x := float32(rng.NormFloat64() * scale)
			m.plain[name] = append(m.plain[name], x)
			v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(x))
		}
		w, err := weights.Matrix(v)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	m.embed = matrix("embed", attenderVocab, attenderWidth, 1)
	v := tensor.View{Name: "ones", Type: tensor.F32, Shape: []int{attenderWidth}}
	for range attenderWidth {
		v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(1))
	}
	var err error
	if m.ones, err = weights.Vector(v); err != nil {
		t.Fatal(err)
	}
	m.info = model.Info{Arch: "attender", Width: attenderWidth, Vocabulary: attenderVocab, Context: 512}
	for i, keeps := range attenderKinds {
		m.info.Layers = append(m.info.Layers, kv.Layer{KVHeads: 2, KeySize: attenderSize, Keeps: keeps})
		l := attenderLayer{}
		for _, p := range "qkv" {
			out := 2 * attenderSize
			if p == 'q' {
				out = attenderHeads * attenderSize
			} else if keeps.Kind == kv.Shared {
				continue
			}
			l.qkv = append(l.qkv, compute.Projection{Matrix: matrix(fmt.Sprintf("%c%d", p, i), out, attenderWidth, 0.3)})
		}
		l.out = []compute.Projection{{Matrix: matrix(fmt.Sprintf("o%d", i), attenderWidth, attenderHeads*attenderSize, 0.2)}}
		m.layers = append(m.layers, l)
	}
	return m
}

// Info implements [model.Model].
func (m *attender) Info() *model.Info { return &m.info }

// Forward implements [model.Model].
func (m *attender) Forward(x *compute.Exec) {
	x.Embed(m.embed, 1)
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		p := x.Linears(l.qkv, x.RMSNorm(stream, m.ones, 1e-5))
		c := compute.Attention{Layer: i, Heads: attenderHeads, Scale: 0.25}
		var o compute.Buf
		if len(p) == 1 {
			o = x.AttendShared(c, p[0])
		} else {
			o = x.Attend(c, p[0], p[1], p[2])
		}
		x.Leave(x.Add(stream, x.Linear(l.out[0], o)))
	}
	x.Output(m.ones, 1e-5, m.embed)
}

// oracle computes a whole text in float64: row i of layer l runs unless skip says so.
func (m *attender) oracle(ids []token.ID, skip func(row, layer int) bool) [][]float64 {
	norm := func(x []float64) []float64 {
		sum := 0.0
		for _, v := range x {
			sum += v * v
		}
		out := make([]float64, len(x))
		for i, v := range x {
			out[i] = v / math.Sqrt(sum/float64(len(x))+1e-5)
		}
		return out
	}
	mul := func(name string, x []float64) []float64 {
		w := m.plain[name]
		out := make([]float64, len(w)/len(x))
		for o := range out {
			for i, v := range x {
				out[o] += float64(w[o*len(x)+i]) * v
			}
		}
		return out
	}
	x := make([][]float64, len(ids))
	for i, id := range ids {
		for _, v := range m.plain["embed"][int(id)*attenderWidth:][:attenderWidth] {
			x[i] = append(x[i], float64(v))
		}
	}
	k, v := make([][][]float64, len(attenderKinds)), make([][][]float64, len(attenderKinds))
	for l, keeps := range attenderKinds {
		from := l
		if keeps.Kind == kv.Shared {
			from = keeps.From
		}
		k[l], v[l] = make([][]float64, len(ids)), make([][]float64, len(ids))
		for i := range ids {
			if from == l && !skip(i, l) {
				k[l][i], v[l][i] = mul(fmt.Sprintf("k%d", l), norm(x[i])), mul(fmt.Sprintf("v%d", l), norm(x[i]))
			}
		}
		for i := range ids {
			if skip(i, l) {
				continue
			}
			q, out := mul(fmt.Sprintf("q%d", l), norm(x[i])), make([]float64, attenderHeads*attenderSize)
			for h := range attenderHeads {
				at, total := h/2*attenderSize, 0.0
				for j := range i + 1 {
					w := attenderKinds[from].Window
					switch attenderKinds[from].Kind {
					case kv.Windowed:
						if i-j >= w {
							continue
						}
					case kv.Chunked:
						if j/w != i/w {
							continue
						}
					}
					if k[from][j] == nil {
						continue
					}
					dot := 0.0
					for d := range attenderSize {
						dot += q[h*attenderSize+d] * k[from][j][at+d]
					}
					e := math.Exp(dot / 4)
					total += e
					for d := range attenderSize {
						out[h*attenderSize+d] += e * v[from][j][at+d]
					}
				}
				for d := range attenderSize {
					if total > 0 {
						out[h*attenderSize+d] /= total
					}
				}
			}
			for d, o := range mul(fmt.Sprintf("o%d", l), out) {
				x[i][d] += o
			}
		}
	}
	for i := range x {
		x[i] = mul("embed", norm(x[i]))
	}
	return x
}

// near returns an error where a row differs from the oracle's by more than 1e-4 of the largest value.
func near(got []Bits, want [][]float64) error {
	largest := 0.0
	for _, row := range want {
		for _, v := range row {
			largest = max(largest, math.Abs(v))
		}
	}
	for i, row := range got {
		for j, v := range row {
			if !(math.Abs(float64(v)-want[i][j]) <= 1e-4*largest) {
				return fmt.Errorf("row %d, value %d is %v; the oracle has %v", i, j, v, want[i][j])
			}
		}
	}
	return nil
}

// TestKinds compares a model whose layers keep tokens in every way with an oracle, and checks its bits with every cache.
func TestKinds(t *testing.T) {
	for _, cache := range []tensor.Type{tensor.F32, tensor.F16} {
		t.Run(cache.String(), func(t *testing.T) {
			pool := par.New(2)
			t.Cleanup(pool.Close)
			m := newAttender(t, pool)
			r := NewFor(t, m, pool, Config{CacheType: cache})
			rng := rand.New(rand.NewPCG(7, 8))
			text := randomIDs(rng, 230, attenderVocab)
			plain := r.Plain(text)
			if cache == tensor.F32 {
				if err := near(plain, m.oracle(text, func(int, int) bool { return false })); err != nil {
					t.Error(err)
				}
			}
			for _, c := range checks {
				if err := c.run(r, rng, text[:textLength], plain[:textLength]); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		})
	}
}

// TestFamilyBits checks the bits of models with chunks that end within a page, and of those whose rows carry more than a stream.
func TestFamilyBits(t *testing.T) {
	for n, spec := range []Spec{
		{Arch: "llama4", Type: tensor.Q8_0, Layers: 5}, {Arch: "gemma3n", Type: tensor.F16}, {Arch: "gemma4", Type: tensor.BF16, Experts: 6, ExpertsPerToken: 2},
	} {
		t.Run(spec.Arch, func(t *testing.T) {
			file := spec.File(t)
			r := New(t, file, Config{CacheType: tensor.F32, Context: 256})
			archBits(t, r, file, n)
			checkMixtures(t, r)
		})
	}
}

// checkMixtures: a mixture of one id has the bits of the id, and one of two others.
func checkMixtures(t *testing.T, r *Runner) {
	s := r.Cache.NewSeq("")
	defer r.Close(s)
	row := func(row forest.Row) Bits {
		row.Seq, row.Want = s, logits
		r.Add(row)
		r.Forward()
		defer r.Drop(s, forest.Trunk)
		return r.bits(0)
	}
	id := row(forest.Row{ID: 7})
	if err := row(forest.Row{Mix: []forest.Weighted{{ID: 7, Weight: 1}}}).Diff(id); err != nil {
		t.Errorf("a mixture of one id and the id: %v", err)
	}
	if row(forest.Row{Mix: []forest.Weighted{{ID: 7, Weight: 0.5}, {ID: 8, Weight: 0.5}}}).Diff(id) == nil {
		t.Error("a mixture of two ids has the logits of one")
	}
}

// TestSharedSkip: rows that skip the layer whose keys a later layer reads are not seen there, not even by themselves;
// rows that stop between the two are seen once they resume.
func TestSharedSkip(t *testing.T) {
	pool := par.New(2)
	t.Cleanup(pool.Close)
	m := newAttender(t, pool)
	r := NewFor(t, m, pool, Config{CacheType: tensor.F32})
	rng := rand.New(rand.NewPCG(7, 8))
	text := randomIDs(rng, 120, attenderVocab)
	for _, length := range []int{0, 99, 100, 108} {
		skips := func(row, layer int) bool {
			return row >= length && (layer == 0 && row%3 == length%3 || layer == 2 && row%2 == length%2)
		}
		s := r.NewSeq("")
		r.Prefill(s, text[:length], 64)
		row := func(i int) (out forest.Row) {
			out = forest.Row{Seq: s, ID: text[i], Want: logits}
			for l := range attenderKinds {
				if skips(i, l) {
					out.Skip = out.Skip.With(l)
				}
			}
			return out
		}
		nodes := make([]forest.Node, 12)
		grow := func(resume bool) []Bits {
			r.Drop(s, forest.Trunk)
			parent := forest.Trunk
			for i := range nodes {
				one := row(length + i)
				one.Parent = parent
				if resume {
					one.To, one.Want = 3, forest.Want{}
				}
				nodes[i] = r.Add(one)
				parent = nodes[i]
			}
			r.Forward()
			if resume {
				for i := range nodes {
					r.Add(forest.Row{Seq: s, Resume: nodes[i], From: 3, Want: logits})
				}
				r.Forward()
			}
			return r.take(len(nodes))
		}
		once := grow(false)
		if err := near(once, m.oracle(text[:length+12], skips)[length:]); err != nil {
			t.Errorf("behind %d tokens: %v", length, err)
		}
		if err := Equal("stopped and resumed", grow(true), once); err != nil {
			t.Errorf("behind %d tokens: %v", length, err)
		}
		r.Drop(s, forest.Trunk)
		parent := forest.Trunk
		for i := range nodes {
			one := row(length + i)
			one.Parent = parent
			parent = r.Add(one)
			r.Forward()
			if err := once[i].Diff(r.bits(0)); err != nil {
				t.Errorf("behind %d tokens: row %d in a step of its own: %v", length, i, err)
			}
		}
		r.Close(s)
	}
}
