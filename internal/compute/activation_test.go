package compute

import (
	"context"
	"math"
	"testing"

	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/par"
)

// TestActivations runs rows together and alone, with one thread and with two: their bits are equal, and a step allocates
// nothing.
func TestActivations(t *testing.T) {
	xielu := NewXIELU(0.8, -0.3, 0.5, -1e-6)
	softplus := func(a float64) float64 { return math.Log1p(math.Exp(a)) }
	for name, c := range map[string]struct {
		run  func(x *Exec, a Buf) Buf
		want func(v float64) float64
	}{
		"Relu":        {(*Exec).Relu, func(v float64) float64 { return max(0, v) }},
		"ReluSquared": {(*Exec).ReluSquared, func(v float64) float64 { return max(0, v) * max(0, v) }},
		"GeluErf":     {(*Exec).GeluErf, func(v float64) float64 { return v / 2 * math.Erfc(-v/math.Sqrt2) }},
		"XIELU": {func(x *Exec, a Buf) Buf { return x.XIELU(a, xielu) }, func(v float64) float64 {
			if v > 0 {
				return softplus(0.8)*v*v + 0.5*v
			}
			return (0.5+softplus(-0.3))*(math.Expm1(min(v, -1e-6))-v) + 0.5*v
		}},
		"AddScaled": {func(x *Exec, a Buf) Buf { return x.AddScaled(a, 0.25, a) }, func(v float64) float64 { return 1.25 * v }},
		"Add":       {func(x *Exec, a Buf) Buf { return x.AddScaled(a, 1, a) }, func(v float64) float64 { return 2 * v }},
	} {
		t.Run(name, func(t *testing.T) { testRows(t, c.run, c.want) })
	}
}

func testRows(t *testing.T, run func(x *Exec, a Buf) Buf, want func(v float64) float64) {
	const rows, width = 40, 700
	value := func(i int) float32 { return float32(i%13)/2 - 3 }
	var first []float32
	for _, threads := range []int{1, 2} {
		pool := par.New(threads)
		defer pool.Close()
		cache, err := kv.New(kv.Config{Layers: []kv.Layer{{KVHeads: 1, KeySize: 4}}, Context: 64, Tokens: 64, Seqs: 1, Scratch: 64})
		if err != nil {
			t.Fatal(err)
		}
		x, s := NewExec(cache, pool, 4, rows), cache.NewSeq("")
		got := make([]float32, rows*width)
		step := func(from, n int) {
			parent := forest.Trunk
			for range n {
				if parent, err = x.Step.Add(forest.Row{Seq: s, Parent: parent}); err != nil {
					t.Fatal(err)
				}
			}
			forward := func(x *Exec) {
				x.Enter(0)
				a := x.alloc(n, width)
				for i := range a.f {
					a.f[i] = value(from*width + i)
				}
				copy(got[from*width:], run(x, a).f)
			}
			if err := x.Run(context.Background(), forward); err != nil {
				t.Fatal(err)
			}
			x.Step.Abort()
		}
		step(0, rows)
		together := append([]float32(nil), got...)
		if first == nil {
			first = together
		}
		for i := range rows {
			step(i, 1)
		}
		for i, v := range got {
			w := float64(v) // where the test has no value of its own
			if want != nil {
				w = want(float64(value(i)))
			}
			if v != together[i] || v != first[i] || !(math.Abs(float64(v)-w) <= 1e-6*(1+math.Abs(w))) {
				t.Fatalf("%d threads: value %d is %v together and %v alone, want %v", threads, i, together[i], v, w)
			}
		}
		if n := testing.AllocsPerRun(10, func() { step(0, rows) }); n > 1 { // the closure
			t.Errorf("%d threads: a step allocates %v times", threads, n)
		}
	}
}
