package modeltest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"grove/internal/compute"
	"grove/internal/compute/weight"
	"grove/internal/kv"
	"grove/internal/model"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

// Recurrent describes a random model of five layers with each recurrence: a layer with two, one with attention beside, one with
// attention alone. Zero values mean a vocabulary of 40 and a context of 512.
type Recurrent struct {
	Seed      uint64
	Attention bool // otherwise the layer of attention alone has nothing
	Vocab     int
	Context   int
	Embed     []float32 // [Vocab, RecurrentWidth]; nil: random
	Head      []float32 // the same for the head; nil: that of Embed
}

// RecurrentWidth is the width of a model of [Recurrent].
const RecurrentWidth = 32

// recurrer is the model that a [Recurrent] describes.
type recurrer struct {
	info       model.Info
	embed      *compute.Matrix
	head       *compute.Matrix
	ones       compute.Vector
	conv       [2]*compute.Conv
	mamba1     *compute.Mamba1
	mamba2     *compute.Mamba2
	delta, kda *compute.Delta
	in         []compute.Projection // by use
	out        []compute.Projection
}

// Open makes the model. It does not depend on the pool, which the caller owns, beyond the call.
func (c Recurrent) Open(tb testing.TB, pool *par.Pool) model.Model {
	tb.Helper()
	const w = RecurrentWidth
	if c.Vocab == 0 {
		c.Vocab = 40
	}
	if c.Context == 0 {
		c.Context = 512
	}
	m := &recurrer{info: model.Info{Arch: "recurrer", Width: w, Vocabulary: c.Vocab, Context: c.Context}}
	m.info.Identity = func() (string, error) { return fmt.Sprint("recurrer", c.Seed, c.Attention), nil }
	rng := rand.New(rand.NewPCG(c.Seed, 6))
	weights := weight.New(pool, func([]byte) {})
	random := func(n int, scale, shift float64) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64()*scale + shift)
		}
		return v
	}
	packed := func(out, in int, values []float32) *compute.Matrix {
		v := tensor.View{Name: "matrix", Type: tensor.F32, Shape: []int{out, in}, Data: make([]byte, 4*len(values))}
		if err := tensor.Pack(tensor.F32, v.Data, values); err != nil {
			tb.Fatal(err)
		}
		p, err := weights.Matrix(v)
		if err != nil {
			tb.Fatal(err)
		}
		return p
	}
	matrix := func(out, in int, scale float64) *compute.Matrix { return packed(out, in, random(out*in, scale, 0)) }
	vector := func(n int, scale, shift float64) compute.Vector { return compute.Vector{F: random(n, scale, shift)} }
	if c.Embed == nil {
		c.Embed = random(c.Vocab*w, 1, 0)
	}
	if c.Head == nil {
		c.Head = c.Embed
	}
	m.embed, m.head, m.ones = packed(c.Vocab, w, c.Embed), packed(c.Vocab, w, c.Head), vector(w, 0, 1)
	for i := range m.conv {
		m.conv[i] = compute.NewConv(vector(w*4, 0.4, 0), vector(w, 0.1, 0), w, 4, i == 0)
	}
	a := vector(w*8, 0, -0.3)
	m.mamba1 = compute.NewMamba1(a, vector(w, 0.2, 0), w, 8)
	m.mamba2 = compute.NewMamba2(vector(4, 0.1, -0.5), vector(4, 0.1, 0), 4, 8, 16, 2)
	m.delta, m.kda = compute.NewDelta(4, 2, 8, 8, false, true), compute.NewDelta(4, 4, 8, 8, true, false)
	state := func(o interface {
		Parts() int
		Size() int
		Record() int
	}) kv.State {
		return kv.State{Parts: o.Parts(), Size: o.Size(), Record: o.Record()}
	}
	keys := kv.Layer{}
	if c.Attention {
		keys = kv.Layer{KVHeads: 2, KeySize: 16, Keeps: kv.Window(70)}
	}
	beside := keys
	beside.Keeps, beside.States = kv.Keep{}, []kv.State{state(m.mamba1)}
	m.info.Layers = []kv.Layer{
		{States: []kv.State{state(m.conv[0]), state(m.mamba2)}}, keys, {States: []kv.State{state(m.delta)}}, beside,
		{States: []kv.State{state(m.kda), state(m.conv[1])}},
	}
	for _, n := range []int{m.mamba2.Record(), 4 * 16, 2 * 16, 2 * 16, m.delta.Record(), m.mamba1.Record(), m.kda.Record()} {
		m.in = append(m.in, compute.Projection{Matrix: matrix(n, w, 0.2)})
	}
	for range 2 {
		m.out = append(m.out, compute.Projection{Matrix: matrix(w, 64, 0.2)})
	}
	return m
}

// Info implements [model.Model].
func (m *recurrer) Info() *model.Info { return &m.info }

// Forward implements [model.Model].
func (m *recurrer) Forward(x *compute.Exec) {
	x.Embed(m.embed, 1)
	for i, layer := range m.info.Layers {
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		norm := x.RMSNorm(stream, m.ones, 1e-5)
		if layer.KVHeads > 0 {
			p := x.Linears(m.in[1:4], norm)
			o := x.Attend(compute.Attention{Layer: i, Heads: 4, Scale: 0.25}, p[0], p[1], p[2])
			stream = x.Add(stream, x.Linear(m.out[i/2], o))
		}
		switch i {
		case 0:
			norm = x.Recur(0, 0, m.conv[0], norm)
			stream = x.Add(stream, x.Recur(0, 1, m.mamba2, x.Sigmoid(x.Linear(m.in[0], norm))))
		case 2:
			in := x.Linear(m.in[4], norm) // q, k, v, g and beta
			v := x.Part(in, 32, 32)
			in = x.Join(x.UnitHeads(x.Part(in, 0, 32), 4, 1e-6), v, m.decay(x, in, 64, 4), x.Sigmoid(x.Part(in, 68, 4)))
			stream = x.Add(stream, x.Recur(2, 0, m.delta, in))
		case 3:
			stream = x.Add(stream, x.Recur(3, 0, m.mamba1, x.Sigmoid(x.Linear(m.in[5], norm))))
		case 4:
			in := x.Linear(m.in[6], norm)
			v := x.Part(in, 64, 32)
			in = x.Join(x.UnitHeads(x.Part(in, 0, 64), 8, 1e-6), v, m.decay(x, in, 96, 32), x.Sigmoid(x.Part(in, 128, 4)))
			stream = x.Add(stream, x.Recur(4, 1, m.conv[1], x.Recur(4, 0, m.kda, in)))
		}
		x.Leave(stream)
	}
	x.Output(m.ones, 1e-5, m.head)
}

// decay makes columns of a buffer the logarithms of decays: they are negative.
func (m *recurrer) decay(x *compute.Exec, a compute.Buf, first, n int) compute.Buf {
	b := x.Softplus(x.Part(a, first, n), compute.Vector{})
	return x.MulVector(b, compute.Vector{F: minusHalf[:n]})
}

var minusHalf = func() (v [RecurrentWidth]float32) {
	for i := range v {
		v[i] = -0.5
	}
	return v
}()
