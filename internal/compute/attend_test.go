package compute

import (
	"context"
	"fmt"
	"math"
	"testing"

	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

// TestTilesKeepBits attends from a prompt behind a trunk on one thread, which takes long tiles, and on many, which take
// short ones, and from its rows one by one.
func TestTilesKeepBits(t *testing.T) {
	const heads, kvHeads, size, rows = 6, 2, 32, 200
	for _, typ := range []tensor.Type{tensor.F32, tensor.F16, tensor.Q8_0} {
		for _, depth := range []int{1, 64, 150} {
			for _, window := range []int{0, 50, 100} {
				layer := kv.Layer{KVHeads: kvHeads, KeySize: size}
				if window > 0 {
					layer.Keeps = kv.Window(window)
				}
				config := kv.Config{Type: typ, Context: 512, Tokens: 512, Seqs: 1, Scratch: 256, Layers: []kv.Layer{layer}}
				name := fmt.Sprintf("%v, depth %d, window %d", typ, depth, window)
				c := Attention{Heads: heads, Scale: 0.3}
				want := attended(t, config, 1, depth, c, 1, rows)
				for _, at := range [][2]int{{1, rows}, {16, rows}, {1, 7}} {
					got := attended(t, config, at[0], depth, c, at[1], rows)
					for i, v := range want {
						if math.Float32bits(v) != math.Float32bits(got[i]) {
							t.Fatalf("%s: %d rows a step on %d threads: value %d of row %d is %v and %v", name, at[1], at[0], i%(heads*size), i/(heads*size), got[i], v)
						}
					}
				}
			}
		}
	}
}

// attended returns the attention of n rows behind a trunk, some at once.
func attended(t *testing.T, config kv.Config, threads, depth int, c Attention, atOnce, n int) []float32 {
	t.Helper()
	cache, err := kv.New(config)
	if err != nil {
		t.Fatal(err)
	}
	pool := par.New(threads)
	defer pool.Close()
	size, kvHeads := config.Layers[0].KeySize, config.Layers[0].KVHeads
	x := NewExec(cache, pool, size, config.Scratch)
	s := cache.NewSeq("")
	var out []float32
	step := func(first, n int, parent forest.Node) forest.Node {
		for range n {
			if parent, err = x.Step.Add(forest.Row{Seq: s, Parent: parent}); err != nil {
				t.Fatal(err)
			}
		}
		err := x.Run(context.Background(), func(x *Exec) {
			x.Enter(0)
			q, k, v := x.alloc(n, c.Heads*size), x.alloc(n, kvHeads*size), x.alloc(n, kvHeads*size)
			for i, b := range []Buf{q, k, v} {
				for j := range b.f {
					b.f[j] = float32(math.Sin(float64((first*b.width+j)*(3+i)))) * 2
				}
			}
			out = append(out, x.Attend(c, q, k, v).f...)
		})
		if err != nil {
			t.Fatal(err)
		}
		x.Step.Reset()
		return parent
	}
	for i := 0; i < depth; i++ {
		last := step(i, 1, forest.Trunk)
		if err := cache.Commit(s, last); err != nil {
			t.Fatal(err)
		}
	}
	out = nil
	parent := forest.Trunk
	for i := 0; i < n; i += atOnce {
		parent = step(i, min(atOnce, n-i), parent)
	}
	return out
}
