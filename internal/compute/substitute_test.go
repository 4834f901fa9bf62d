package compute

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/internal/compute/weight"
	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

const (
	substituteWidth = 40
	rank            = 6
)

// substituteMatrix stores a matrix of random values and returns them too.
func substituteMatrix(t *testing.T, rng *rand.Rand, rows, cols int) (*weight.Matrix, []float32) {
	t.Helper()
	values := make([]float32, rows*cols)
	for i := range values {
		values[i] = float32(rng.NormFloat64())
	}
	v := tensor.View{Name: "m", Type: tensor.F32, Shape: []int{rows, cols}, Data: make([]byte, 4*len(values))}
	if err := tensor.Pack(v.Type, v.Data, values); err != nil {
		t.Fatal(err)
	}
	pool := par.New(1)
	defer pool.Close()
	m, err := weight.New(pool, nil).Matrix(v)
	if err != nil {
		t.Fatal(err)
	}
	return m, values
}

// substituteProduct is the order of N1.
func substituteProduct(m, x []float32) (y []float32) {
	for ; len(m) > 0; m = m[len(x):] {
		acc := float32(0)
		for k, v := range x {
			acc = kernel.FMA32(m[k], v, acc)
		}
		y = append(y, acc)
	}
	return y
}

// TestSubstituteStreams holds the streams of rows that substitute a layer to the specification, bit by bit: with an anchor in the step, and with one of an earlier step; a step that fails keeps nothing.
func TestSubstituteStreams(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	a, av := substituteMatrix(t, rng, rank, substituteWidth)
	b, bv := substituteMatrix(t, rng, substituteWidth, rank)
	layers := SubstituteLayers{{}, {A: a, B: b, Scale: 2}, {}, {A: a, B: b, Scale: -0.5}}
	if set := layers.Set(); set != (forest.Layers{}).With(1).With(3) {
		t.Fatalf("%v can be substituted", set)
	}
	task, scratch := NewSubstitute(layers, substituteWidth), make([]matmul.Scratch, 1)
	random := func(rows int) (s []float32) {
		for range rows * substituteWidth {
			s = append(s, float32(rng.NormFloat64()))
		}
		return s
	}
	want := func(x, anchor []float32, scale float32) []float32 {
		y := slices.Clone(anchor)
		for i, v := range substituteProduct(bv, substituteProduct(av, x)) {
			y[i] = kernel.FMA32(scale, v, y[i])
		}
		return y
	}
	row := func(stream []float32, i int) []float32 {
		return slices.Clone(stream[i*substituteWidth:][:substituteWidth])
	}
	rows := []forest.Placed{
		{Node: 7, Row: forest.Row{Seq: 1, Anchor: true}}, {Node: 8, Behind: 7, Row: forest.Row{Seq: 1, Substitute: true}}, {Node: 9, Row: forest.Row{Seq: 0}},
	}
	if err := task.Begin(rows); err != nil {
		t.Fatal(err)
	}
	stream, kept := random(3), [][]float32{}
	for l := range layers {
		copy(stream, random(1)) // the anchor's row runs the layer
		other, x, anchor := row(stream, 2), row(stream, 1), row(stream, 0)
		task.Leave(l, rows, stream, scratch)
		if layers[l].A != nil {
			x, kept = want(x, anchor, layers[l].Scale), append(kept, anchor)
		}
		if !slices.Equal(row(stream, 1), x) || !slices.Equal(row(stream, 2), other) || !slices.Equal(row(stream, 0), anchor) {
			t.Fatalf("layer %d: other streams than the specification's", l)
		}
	}
	task.End(true, rows)
	for _, done := range []bool{false, true, true} {
		rows = []forest.Placed{{Node: 12, Behind: 7, Row: forest.Row{Seq: 1, Substitute: true}}, {Node: 13, Row: forest.Row{Seq: 1, Anchor: true}}}
		if err := task.Begin(rows); err != nil {
			if !strings.Contains(err.Error(), "what they gave for its anchor is gone") || kept != nil {
				t.Fatal(err)
			}
			return // the second anchor has taken the place of the first
		}
		stream = random(2)
		x := want(want(row(stream, 0), kept[0], 2), kept[1], -0.5)
		task.Leave(3, rows, stream, scratch)
		if !slices.Equal(row(stream, 0), x) {
			t.Error("behind an anchor of an earlier step: other streams than the specification's")
		}
		if task.End(done, rows); done {
			kept = nil
		}
	}
	t.Error("an anchor that was replaced is found")
}

// TestAllocations: steps allocate nothing once their buffers are made.
func TestAllocations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	a, _ := substituteMatrix(t, rng, rank, substituteWidth)
	b, _ := substituteMatrix(t, rng, substituteWidth, rank)
	task, scratch, stream := NewSubstitute(SubstituteLayers{{}, {A: a, B: b, Scale: 2}}, substituteWidth), make([]matmul.Scratch, 1), make([]float32, 3*substituteWidth)
	anchor := []forest.Placed{{Node: 7, Row: forest.Row{Anchor: true}}, {Node: 8, Behind: 7, Row: forest.Row{Substitute: true}}}
	behind := []forest.Placed{{Node: 9, Behind: 7, Row: forest.Row{Substitute: true}}}
	step := func() {
		for _, rows := range [][]forest.Placed{anchor, behind} {
			if err := task.Begin(rows); err != nil {
				t.Fatal(err)
			}
			task.Leave(1, rows, stream, scratch)
			task.End(true, rows)
		}
	}
	step()
	step() // both rooms of an anchor's streams
	if n := testing.AllocsPerRun(20, step); n > 0 {
		t.Errorf("a step allocates %v times", n)
	}
}
