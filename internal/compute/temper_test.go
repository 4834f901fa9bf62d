package compute

import (
	"context"
	"math"
	"testing"

	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/par"
)

// TestTemper compares with the definition, for rows at the borders of a length and for threads.
func TestTemper(t *testing.T) {
	const rows, width, length, scale = 40, 700, 16, 0.1
	for _, threads := range []int{1, 2} {
		first := threads - 1
		pool := par.New(threads)
		defer pool.Close()
		cache, err := kv.New(kv.Config{Layers: []kv.Layer{{KVHeads: 1, KeySize: 4}}, Context: 64, Tokens: 64, Seqs: 1, Scratch: 64})
		if err != nil {
			t.Fatal(err)
		}
		x, s, parent := NewExec(cache, pool, 4, rows), cache.NewSeq(""), forest.Trunk
		for range rows {
			if parent, err = x.Step.Add(forest.Row{Seq: s, Parent: parent}); err != nil {
				t.Fatal(err)
			}
		}
		err = x.Run(context.Background(), func(x *Exec) {
			x.Enter(0)
			a := x.alloc(rows, width)
			for i := range a.f {
				a.f[i] = float32(i%13) - 6
			}
			for i, v := range x.Temper(a, scale, length, first).f {
				want := (float64(i%13) - 6) * (1 + scale*math.Log(float64(1+(i/width+first)/length)))
				if math.Abs(float64(v)-want) > 1e-6*math.Abs(want) {
					t.Fatalf("%d threads: value %d of row %d is %v, want %v", threads, i%width, i/width, v, want)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
