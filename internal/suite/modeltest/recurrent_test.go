package modeltest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"grove/internal/forest"
	"grove/internal/model/synthetic"
	"grove/internal/par"
	"grove/internal/weights/tensor"

	"pgregory.net/rapid"
)

// TestRecurrences checks the bits of a model with every recurrence, with attention and without, with every cache and any threads.
func TestRecurrences(t *testing.T) {
	for name, c := range map[string]struct {
		cache     tensor.Type
		attention bool
		threads   int
	}{"alone": {tensor.F32, false, 2}, "hybrid": {tensor.F16, true, 3}} {
		t.Run(name, func(t *testing.T) {
			pool := par.New(c.threads)
			t.Cleanup(pool.Close)
			m := Recurrent{Attention: c.attention}.Open(t, pool)
			r := NewFor(t, m, pool, Config{CacheType: c.cache})
			rng := rand.New(rand.NewPCG(7, 8))
			text := randomIDs(rng, textLength, 40)
			plain := r.Plain(text)
			for _, c := range checks {
				if err := c.run(r, rng, text, plain); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		})
	}
}

// TestRecurrentVerbs walks over the verbs at random with such a model.
func TestRecurrentVerbs(t *testing.T) {
	pool := par.New(2)
	t.Cleanup(pool.Close)
	m := Recurrent{Attention: true}.Open(t, pool)
	rapid.Check(t, func(rt *rapid.T) {
		h := &history{r: NewFor(t, m, pool, Config{CacheType: tensor.F16}), rt: rt, vocab: 40}
		for range 40 {
			h.move()
		}
		for i := range h.seqs {
			h.probe(i)
		}
	})
}

// BenchmarkTrees measures steps of a row, and of trees of 8 and 32 rows behind a text, from whose last tree a path of some rows was
// accepted, with what is stored of states: one, and the records of the tree's rows.
func BenchmarkTrees(b *testing.B) {
	base := Spec{Type: tensor.Q4_K, Layers: 24, Width: 1024, FFN: 2816, Heads: 16, Vocab: 4096, Context: 2048}
	for _, arch := range []string{"llama", "mamba2", "granitehybrid"} {
		s := base
		s.Arch = arch
		s.Scan = synthetic.Scan{State: 128, Rank: 32, Groups: 1}
		file := s.File(b)
		for _, rows := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("%s/rows=%d", arch, rows), func(b *testing.B) {
				r := New(b, file, Config{CacheType: tensor.F16, Threads: 2, Seqs: 1, Context: 2048, Scratch: 64})
				rng := rand.New(rand.NewPCG(1, 2))
				seq := r.Cache.NewSeq("")
				r.Prefill(seq, randomIDs(rng, 60, s.Vocab), 60)
				for b.Loop() {
					tree := randomTree(rng, rows, s.Vocab)
					tree.Parent[0] = -1
					for i := range tree.Parent[1:] {
						tree.Parent[i+1] = max(0, tree.Parent[i+1])
					}
					nodes := make([]forest.Node, rows)
					for i, id := range tree.IDs {
						nodes[i] = r.Add(forest.Row{Seq: seq, Parent: parentOf(tree, nodes, i), ID: id, Want: forest.Want{Top: 1}})
					}
					r.Forward()
					r.Commit(seq, nodes[rows/4])
					r.Drop(seq, forest.Trunk)
					if r.Cache.Forest.Len(seq) > 1000 {
						if _, err := r.Cache.Rewind(seq, 0); err != nil {
							b.Fatal(err)
						}
					}
				}
				state, record := r.Cache.StateBytes()
				b.ReportMetric(float64(state)/1e6, "MB/state")
				b.ReportMetric(float64(rows*record)/1e6, "MB/records")
			})
		}
	}
}
