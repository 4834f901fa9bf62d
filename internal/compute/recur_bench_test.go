package compute

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"grove/internal/forest"
	"grove/internal/kernel/scan"
	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

// BenchmarkRecur measures the recurrences of 18 layers of gated delta nets of 16 heads of 128 x 128 values with their
// convolutions (those of Qwen 3.5 0.8B: 19 MB of states, which no cache of a core holds), for a row, trees and prompts; and
// reports the bytes of one state and of the records of the rows, which a tree has instead of a state for each row.
func BenchmarkRecur(b *testing.B) {
	const layers, channels = 18, 3 * 16 * 128
	taps := make([]float32, 4*channels)
	conv, delta := NewConv(Vector{F: taps}, Vector{}, channels, 4, true), NewDelta(16, 16, 128, 128, false, false)
	config := kv.Config{Type: tensor.F32, Context: 4096, Tokens: 4096, Seqs: 1, Scratch: 512, Records: 130}
	for range layers {
		config.Layers = append(config.Layers, kv.Layer{States: []kv.State{conv.Keeps(), delta.Keeps()}})
	}
	for _, threads := range []int{1, 2} {
		pool := par.New(threads)
		defer pool.Close()
		for _, c := range []struct {
			name string
			rows int
			wide bool
		}{{"row", 1, false}, {"chain", 8, false}, {"tree", 8, true}, {"tree", 32, true}, {"prompt", 512, false}} {
			b.Run(fmt.Sprintf("threads=%d/%s=%d", threads, c.name, c.rows), func(b *testing.B) {
				k, err := kv.New(config)
				if err != nil {
					b.Fatal(err)
				}
				x := NewExec(k, pool, channels, 512)
				s := k.NewSeq("")
				rng := rand.New(rand.NewPCG(1, 2))
				ops := [...]scan.Op{conv, delta}
				for i := 0; b.Loop(); i++ {
					nodes := []forest.Node{forest.Trunk}
					for row := range c.rows {
						parent := nodes[len(nodes)-1]
						if c.wide {
							parent = nodes[max(0, len(nodes)-1-rng.IntN(4))]
						}
						if c.wide && row == 0 {
							parent = forest.Trunk
						}
						n, err := x.Step.Add(forest.Row{Seq: s, Parent: parent, Transient: c.name == "prompt" && row < c.rows-1})
						if err != nil {
							b.Fatal(err)
						}
						nodes = append(nodes, n)
					}
					err := x.Run(context.Background(), func(x *Exec) {
						for l := range layers {
							x.Enter(l)
							x.Recur(l, 0, ops[0], x.alloc(c.rows, channels))
							x.Recur(l, 1, ops[1], x.alloc(c.rows, delta.Record()))
						}
					})
					if err != nil {
						b.Fatal(err)
					}
					x.Step.Reset()
					commit := nodes[len(nodes)-1]
					if c.wide {
						commit = nodes[1+len(nodes)/4]
					}
					if err = k.Commit(s, commit); err == nil {
						err = k.Drop(s, forest.Trunk)
					}
					if err == nil && k.Forest.Len(s) > 3000 {
						_, err = k.Rewind(s, 0)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				state, record := k.StateBytes()
				b.ReportMetric(float64(state)/1e6, "MB/state")
				b.ReportMetric(float64(record*c.rows)/1e6, "MB/records")
			})
		}
	}
}
