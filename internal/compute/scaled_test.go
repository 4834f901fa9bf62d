package compute

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

// step runs forward on n rows of one sequence with a cache of one layer.
func step(t *testing.T, pool *par.Pool, width, n int, want forest.Want, forward func(x *Exec)) (*Exec, error) {
	t.Helper()
	cache, err := kv.New(kv.Config{Layers: []kv.Layer{{KVHeads: 1, KeySize: 4}}, Context: 64, Tokens: 64, Seqs: 1, Scratch: 64})
	if err != nil {
		t.Fatal(err)
	}
	x, s, parent := NewExec(cache, pool, width, n), cache.NewSeq(""), forest.Trunk
	for range n {
		if parent, err = x.Step.Add(forest.Row{Seq: s, Parent: parent, Want: want}); err != nil {
			t.Fatal(err)
		}
	}
	return x, x.Run(context.Background(), forward)
}

// TestCenterHeads compares heads with the norm of each by itself, for one thread and two.
func TestCenterHeads(t *testing.T) {
	const rows, heads, size = 40, 6, 70
	r := rand.New(rand.NewPCG(7, 8))
	w, in := make([]float32, heads*size), make([]float32, rows*heads*size)
	for _, v := range [][]float32{w, in} {
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
	}
	for _, threads := range []int{1, 2} {
		pool := par.New(threads)
		defer pool.Close()
		_, err := step(t, pool, 4, rows, forest.Want{}, func(x *Exec) {
			x.Enter(0)
			a := x.alloc(rows, heads*size)
			copy(a.f, in)
			got := x.CenterHeads(a, heads, Vector{F: w}, 1e-5).f
			one := make([]float32, size)
			for at := 0; at < len(in); at += size {
				h := at % (heads * size)
				kernel.LayerNorm(one, in[at:at+size], w[h:h+size], nil, 1e-5)
				for i, v := range one {
					if got[at+i] != v {
						t.Fatalf("%d threads: value %d is %v, want %v", threads, at+i, got[at+i], v)
					}
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestLimit compares with the definition, and fails the step for what the limit would hide.
func TestLimit(t *testing.T) {
	const rows, width = 40, 700
	for _, threads := range []int{1, 2} {
		pool := par.New(threads)
		defer pool.Close()
		for _, bad := range []float64{0, math.Inf(1), math.Inf(-1), math.NaN()} {
			_, err := step(t, pool, 4, rows, forest.Want{}, func(x *Exec) {
				x.Enter(0)
				a := x.alloc(rows, width)
				for i := range a.f {
					a.f[i] = float32(i%13) - 6
				}
				a.f[rows*width/2] = float32(bad)
				got := x.Limit(a, 2.5).f
				for i, v := range got {
					if want := float32(min(2.5, max(-2.5, float64(i%13)-6))); i != rows*width/2 && v != want {
						t.Fatalf("%d threads: value %d is %v, want %v", threads, i, v, want)
					}
				}
			})
			if errors.Is(err, ErrNotFinite) != (bad != 0) {
				t.Errorf("%d threads, %v: %v", threads, bad, err)
			}
		}
	}
}

// TestScaledLogits compares scaled logits with those of Logits, and fails the step where the scale makes an infinity.
func TestScaledLogits(t *testing.T) {
	const width = 32
	pool := par.New(1)
	defer pool.Close()
	head := randomProjection(t, pool, rand.New(rand.NewPCG(7, 8)), tensor.F32, 48, width)
	logits := func(scale, softcap float32) ([]float32, error) {
		x, err := step(t, pool, width, 1, forest.Want{Logits: true}, func(x *Exec) {
			x.Embed(head.Matrix, 1)
			x.Enter(0)
			a, _ := x.Outputs()
			x.ScaledLogits(a, head, scale, softcap)
		})
		return x.Result(0).Logits, err
	}
	plain, err := logits(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, softcap := range []float32{0, 3} {
		scaled, err := logits(0.3, softcap)
		if err != nil {
			t.Fatal(err)
		}
		want := append([]float32(nil), plain...)
		kernel.Scale(want, 0.3)
		if softcap > 0 {
			kernel.Softcap(want, softcap)
		}
		for i, v := range scaled {
			if v != want[i] {
				t.Fatalf("soft cap %v: logit %d is %v, want %v", softcap, i, v, want[i])
			}
		}
	}
	if _, err := logits(math.MaxFloat32, 3); !errors.Is(err, ErrNotFinite) {
		t.Errorf("infinite logits: %v", err)
	}
}
