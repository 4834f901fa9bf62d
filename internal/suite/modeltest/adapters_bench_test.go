package modeltest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/weights/lora"
	"grove/internal/weights/tensor"
)

// BenchmarkAdapters measures steps of one row and of eight with and without an adapter of rank 16 (F16), in turns: on all matrices of
// the layers, and on those of attention. Of eight rows, all have one set, or each a set of its own. It reports medians and the cost.
func BenchmarkAdapters(b *testing.B) {
	for _, typ := range []tensor.Type{tensor.Q8_0, tensor.F16} {
		f := half(b, typ).File(b)
		r := New(b, f, Config{CacheType: tensor.F16, Threads: par.Threads(), Seqs: 8, Context: 4 * kv.PageTokens})
		for _, where := range []string{"all", "attn"} {
			rank16 := func(seed uint64) *lora.Adapter {
				return randomAdapter(b, f, seed, 16, tensor.F16, func(name string) bool {
					return strings.HasPrefix(name, "blk.") && r.Model.Info().Adapts(name) && (where == "all" || strings.Contains(name, "attn_"))
				})
			}
			var all []*lora.Adapter
			for seed := range 8 {
				all = append(all, rank16(uint64(seed)))
			}
			for i, a := range r.adapt(b, par.Threads(), all...) {
				r.Exec.SetAdapters(i+1, [32]byte{byte(i + 1)}, []compute.Adapted{a})
			}
			for _, tt := range []struct {
				rows int
				sets string
			}{{1, "one"}, {8, "one"}, {8, "own"}} {
				b.Run(fmt.Sprintf("type=%v/on=%s/rows=%d/sets=%s", typ, where, tt.rows, tt.sets), func(b *testing.B) {
					r.compareAdapters(b, tt.rows, tt.sets == "own")
				})
			}
		}
	}
}

// compareAdapters runs steps of rows without and with adapters, in turns.
func (r *Runner) compareAdapters(b *testing.B, rows int, own bool) {
	var seqs []forest.Seq
	for range rows {
		s := r.Cache.NewSeq("")
		defer r.Close(s)
		r.check(r.Cache.Pad(s, kv.PageTokens))
		seqs = append(seqs, s)
	}
	step := func(on bool) float64 {
		for i, s := range seqs {
			set := 0
			if on {
				set = 1
			}
			if on && own {
				set = i + 1
			}
			r.Add(forest.Row{Seq: s, ID: 7, Adapter: set, Want: logits})
		}
		start := time.Now()
		r.Forward()
		took := time.Since(start).Seconds()
		for _, s := range seqs {
			r.Drop(s, forest.Trunk)
		}
		return took
	}
	for range 3 {
		step(false)
		step(true)
	}
	var plain, with []float64
	for b.Loop() {
		plain, with = append(plain, step(false)), append(with, step(true))
	}
	median := func(x []float64) float64 { slices.Sort(x); return x[len(x)/2] }
	p, w := median(plain), median(with)
	b.ReportMetric(1e3*p, "plain-ms")
	b.ReportMetric(1e3*w, "with-ms")
	b.ReportMetric(100*(w/p-1), "%cost")
}
