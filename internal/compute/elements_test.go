package compute

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/par"
)

// TestElements runs the operations on values, rows together and alone, with one thread and with two: their bits are equal, the
// values are those of float64, and a step allocates nothing.
func TestElements(t *testing.T) {
	const width = 700
	w := Vector{F: make([]float32, width)}
	for i := range w.F {
		w.F[i] = 0.75
	}
	for name, c := range map[string]struct {
		run  func(x *Exec, a Buf) Buf
		want func(v float64) float64
	}{
		"Mul":       {func(x *Exec, a Buf) Buf { return x.Mul(a, x.Part(a, 0, width)) }, func(v float64) float64 { return v * v }},
		"MulHeads":  {func(x *Exec, a Buf) Buf { return x.MulHeads(a, x.Part(a, 0, width)) }, func(v float64) float64 { return v * v }},
		"Scale":     {func(x *Exec, a Buf) Buf { return x.Scale(a, 0.75) }, func(v float64) float64 { return 0.75 * v }},
		"MulVector": {func(x *Exec, a Buf) Buf { return x.MulVector(a, w) }, func(v float64) float64 { return 0.75 * v }},
		"AddVector": {func(x *Exec, a Buf) Buf { return x.AddVector(a, w) }, func(v float64) float64 { return v + 0.75 }},
		"Tanh":      {(*Exec).Tanh, math.Tanh},
		"GeluMul": {func(x *Exec, a Buf) Buf { return x.GeluMul(a, x.Part(a, 0, width)) }, func(v float64) float64 {
			return v * v / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
		}},
		"AddMixed of one stream": {func(x *Exec, a Buf) Buf { return x.AddMixed(a, x.Part(a, 3, 1), 1) }, nil},
		"MatchLength":            {func(x *Exec, a Buf) Buf { return x.MatchLength(x.Scale(x.Part(a, 0, width), 3), 1, a, 1e-5) }, func(v float64) float64 { return v }},
		"GaussTopK":              {func(x *Exec, a Buf) Buf { return x.GaussTopK(a, 0.5) }, nil},
		"Silu":                   {(*Exec).Silu, func(v float64) float64 { return v / (1 + math.Exp(-v)) }},
		"Sigmoid":                {(*Exec).Sigmoid, func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }},
		"Softplus":               {func(x *Exec, a Buf) Buf { return x.Softplus(a, Vector{}) }, func(v float64) float64 { return math.Log1p(math.Exp(v)) }},
		"Softplus with a bias":   {func(x *Exec, a Buf) Buf { return x.Softplus(a, w) }, func(v float64) float64 { return math.Log1p(math.Exp(v + 0.75)) }},
		"UnitHeads":              {func(x *Exec, a Buf) Buf { return x.UnitHeads(a, width, 2) }, func(v float64) float64 { return v / max(math.Abs(v), 2) }},
		"Join": {func(x *Exec, a Buf) Buf {
			return x.Join(x.Part(a, 0, 1), x.Part(a, 1, 399), x.Part(a, 400, 300))
		}, func(v float64) float64 { return v }},
	} {
		t.Run(name, func(t *testing.T) { testRows(t, c.run, c.want) })
	}
}

// TestMulHeads multiplies heads of several values, each by its own factor.
func TestMulHeads(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	cache, err := kv.New(kv.Config{Layers: []kv.Layer{{KVHeads: 1, KeySize: 4}}, Context: 64, Tokens: 64, Seqs: 1, Scratch: 64})
	if err != nil {
		t.Fatal(err)
	}
	x := NewExec(cache, pool, 4, 1)
	a, b := x.alloc(2, 6), x.alloc(2, 3)
	copy(a.f, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	copy(b.f, []float32{1, 10, 100, 2, 20, 200})
	want := []float32{1, 2, 30, 40, 500, 600, 14, 16, 180, 200, 2200, 2400}
	if got := x.MulHeads(a, b).f; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestGatesRefuse: an infinity that a gate would hide fails the step.
func TestGatesRefuse(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	cache, err := kv.New(kv.Config{Layers: []kv.Layer{{KVHeads: 1, KeySize: 4}}, Context: 64, Tokens: 64, Seqs: 1, Scratch: 64})
	if err != nil {
		t.Fatal(err)
	}
	x, s := NewExec(cache, pool, 4, 1), cache.NewSeq("")
	for name, gate := range map[string]func(a Buf) Buf{
		"Sigmoid":  x.Sigmoid,
		"Tanh":     x.Tanh,
		"Softplus": func(a Buf) Buf { return x.Softplus(a, Vector{}) },
		"Silu":     x.Silu,
	} {
		if _, err := x.Step.Add(forest.Row{Seq: s, Parent: forest.Trunk}); err != nil {
			t.Fatal(err)
		}
		err := x.Run(context.Background(), func(x *Exec) {
			x.Enter(0)
			a := x.alloc(1, 4)
			copy(a.f, []float32{1, 2, float32(math.Inf(-1)), 4})
			if a = gate(a); name == "Silu" && a.f[2] == a.f[2] {
				t.Errorf("Silu of an infinity is %v, want NaN", a.f[2])
			}
		})
		x.Step.Abort()
		if hides := name != "Silu"; errors.Is(err, ErrNotFinite) != hides {
			t.Errorf("%s of an infinity: %v", name, err)
		}
	}
}
