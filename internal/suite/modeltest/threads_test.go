package modeltest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"grove/internal/weights/tensor"
)

// TestManyThreads: many more threads than processors give the bits of one thread: in steps of many rows, whose products are cut into
// bands of rows, of few, whose attention is cut into segments that several threads merge, and of one.
func TestManyThreads(t *testing.T) {
	specs := []Spec{
		{Arch: "llama", Type: tensor.Q4_K, Width: 256, FFN: 768, Heads: 8, KVHeads: 2, KeySize: 64},
		{Arch: "gpt-oss", Type: tensor.Q8_0, Width: 64, Heads: 6, KVHeads: 2, KeySize: 64}, // with sinks
		{Arch: "qwen3moe", Type: tensor.Q8_0, Width: 128, FFN: 96, Experts: 12, ExpertsPerToken: 4},
	}
	for _, spec := range specs {
		file := spec.File(t)
		var want []Bits
		for _, threads := range []int{1, 5, 16, 64} {
			t.Run(fmt.Sprintf("%s-threads=%d", spec.Arch, threads), func(t *testing.T) {
				r := New(t, file, Config{CacheType: tensor.F16, Threads: threads, Context: 512})
				text := randomIDs(rand.New(rand.NewPCG(5, 6)), 500, r.Model.Info().Vocabulary)
				got := append(r.Plain(text[:150]), r.Reference(text[:300])...)
				got = append(got, r.Prefill(r.NewSeq(""), text, 8)...)
				if want == nil {
					want = got
				}
				if err := Equal(fmt.Sprint("1 and ", threads, " threads"), got, want); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
