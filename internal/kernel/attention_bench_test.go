package kernel

import (
	"fmt"
	"testing"
)

// BenchmarkAttention reads a cache of eight heads of 128 values at a depth, for one query, for the
// four queries that share a key-value head in one row, and for eight such rows; MB/s are those of the
// cache.
func BenchmarkAttention(b *testing.B) {
	const heads, size = 8, 128
	for _, typ := range cacheTypes {
		c, _ := CacheFormatOf(typ)
		for _, depth := range []int{1024, 4096} {
			pages := heads * depth / PageSlots
			rnd := newRand(1)
			key, value := page(rnd, c, size)
			keys, values := make([][]byte, pages), make([][]byte, pages)
			for i := range pages {
				keys[i], values[i] = append([]byte{}, key...), append([]byte{}, value...)
			}
			for _, n := range []int{1, 4, 32} {
				q := queries(rnd, n, size)
				s, state, block := make([]float32, n*PageSlots), attended(n, size), attended(n, size)
				b.Run(fmt.Sprintf("type=%v/depth=%d/queries=%d", typ, depth, n), func(b *testing.B) {
					b.SetBytes(int64(pages * (len(key) + len(value))))
					b.ReportAllocs()
					for b.Loop() {
						state.Clear()
						for p := range pages {
							c.Scores(s, q, 0, n, keys[p], 0, PageSlots, size, values[p])
							next := keys[min(p+1, pages-1)]
							SoftmaxBlocks(s, 0.1, 0, block.Max, block.Sum, next)
							clear(block.Out)
							c.Weigh(block.Out, s, n, values[p], 0, PageSlots, 0, size, next)
							state.Merge(block)
						}
					}
				})
			}
		}
	}
}

// BenchmarkAttentionParts times one page in the first-level cache, for each implementation.
func BenchmarkAttentionParts(b *testing.B) {
	defer Use(Implementation())
	for _, impl := range Implementations() {
		if impl != portable {
			Use(impl)
			b.Run(impl, benchmarkParts)
		}
	}
}

func benchmarkParts(b *testing.B) {
	const size = 64
	for _, typ := range cacheTypes {
		c, _ := CacheFormatOf(typ)
		keys, values := page(newRand(1), c, size)
		for _, n := range []int{1, 4, 8, 16, 32, 128} {
			q := queries(newRand(1), n, size)
			s, o := make([]float32, n*PageSlots), make([]float32, n*size)
			b.Run(fmt.Sprintf("type=%v/queries=%d/Scores", typ, n), func(b *testing.B) {
				b.SetBytes(int64(len(keys)))
				for b.Loop() {
					c.Scores(s, q, 0, n, keys, 0, PageSlots, size, nil)
				}
			})
			b.Run(fmt.Sprintf("type=%v/queries=%d/Weigh", typ, n), func(b *testing.B) {
				b.SetBytes(int64(len(values)))
				for b.Loop() {
					c.Weigh(o, s, n, values, 0, PageSlots, 0, size, nil)
				}
			})
		}
		k := queries(newRand(1), 1, size).F
		b.Run(fmt.Sprintf("type=%v/Put", typ), func(b *testing.B) {
			for b.Loop() {
				c.Put(keys, values, 5, HeadSize{size, size}, k, k)
			}
		})
	}
	const n = 8
	s, state, block := make([]float32, n*PageSlots), attended(n, size), attended(n, size)
	b.Run("Softmax", func(b *testing.B) {
		for b.Loop() {
			SoftmaxBlocks(s, 0.1, 0, block.Max, block.Sum, nil)
		}
	})
	b.Run("SoftmaxCapped", func(b *testing.B) {
		for b.Loop() {
			SoftmaxBlocks(s, 0.1, 50, block.Max, block.Sum, nil)
		}
	})
	b.Run("Merge", func(b *testing.B) {
		for b.Loop() {
			state.Merge(block)
		}
	})
}

// BenchmarkSampling draws from vocabularies whose logits spread like a model's.
func BenchmarkSampling(b *testing.B) {
	for _, n := range []int{32000, 262144} {
		x := make([]float32, n)
		rnd := newRand(1)
		for i := range x {
			x[i] = float32(rnd.NormFloat64() * 3)
		}
		perToken := func(name string, f func(i int)) {
			b.Run(fmt.Sprintf("%s/vocabulary=%d", name, n), func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					f(i)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/token")
			})
		}
		perToken("GumbelMax", func(i int) { GumbelMax(x, 1, MakeKey(1, 0, uint32(i), 0)) })
		perToken("LogSumExp", func(int) { LogSumExp(x) })
		perToken("ArgMax", func(int) { ArgMax(x) })
	}
}

func BenchmarkVector(b *testing.B) {
	for _, n := range []int{128, 4096} {
		v, _ := vectors(newRand(1), "normal", 3, n, 0)
		for _, c := range []struct {
			name string
			f    func()
		}{
			{"RMSNorm", func() { RMSNorm(v[0], v[1], v[2], 1e-5) }},
			{"SiluMul", func() { SiluMul(v[0], v[1], v[2]) }},
			{"GeluMul", func() { GeluMul(v[0], v[1], v[2]) }},
			{"Add", func() { Add(v[0], v[1]) }},
			{"Rope", func() { Rope(v[0], n/128, 128, 128, v[1][:64], v[2][:64], true) }},
			{"RopePairs", func() { Rope(v[0], n/128, 128, 128, v[1][:64], v[2][:64], false) }},
			{"MaxAbsFinite", func() { MaxAbsFinite(v[0]) }},
		} {
			b.Run(fmt.Sprintf("%s/n=%d", c.name, n), func(b *testing.B) {
				b.SetBytes(int64(4 * n))
				for b.Loop() {
					c.f()
				}
			})
		}
	}
}
