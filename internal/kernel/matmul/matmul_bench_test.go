package matmul

import (
	"fmt"
	"sync"
	"testing"

	"grove/internal/kernel"
	"grove/internal/weights/tensor"
)

// The shape of a feed-forward matrix of a model of half a billion parameters.
const benchOut, benchK = 1280, 3584

// threads runs f(0) to f(n-1) at once.
func threads(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// BenchmarkMatMul multiplies one row by matrices of more than 64 MB together, so that weights come
// from memory, and 8 and 512 rows by one matrix.
func BenchmarkMatMul(b *testing.B) {
	for _, t := range tensor.Types() {
		f, _ := FormatOf(t)
		w := pack(f, weights(newRand(1), t, benchOut, benchK, false), benchOut, benchK)
		for _, n := range []int{1, 8, 512} {
			ws := [][]byte{w}
			for n == 1 && len(ws)*len(w) < 64<<20 {
				ws = append(ws, append([]byte{}, w...))
			}
			x := activations(newRand(2), n, benchK, false)
			for p := 1; p <= 2; p++ {
				b.Run(fmt.Sprintf("type=%v/n=%d/threads=%d", t, n, p), func(b *testing.B) { benchMatMul(b, f, ws, x, p) })
			}
		}
	}
}

func benchMatMul(b *testing.B, f *Format, ws [][]byte, x *kernel.Rows, p int) {
	dst := make([]float32, x.N*benchOut)
	groups := f.Groups(benchOut)
	scratch := make([]Scratch, p)
	part := func(i int) {
		for _, w := range ws {
			f.MatMul(dst, benchOut, w, benchOut, benchK, i*groups/p, (i+1)*groups/p, x, &scratch[i])
		}
	}
	if n := testing.AllocsPerRun(1, func() { part(0) }); n != 0 {
		b.Fatalf("%v allocations", n)
	}
	for b.Loop() {
		threads(p, part)
	}
	passes := float64(b.N) * float64(len(ws)) / b.Elapsed().Seconds() / 1e9
	b.ReportMetric(passes*float64(len(ws[0])), "GB/s")
	b.ReportMetric(passes*float64(x.N)*benchOut*benchK, "GMAC/s")
}

// BenchmarkPack packs a matrix, as loading does, on one thread.
func BenchmarkPack(b *testing.B) {
	for _, f := range formats {
		b.Run(fmt.Sprintf("type=%v", f.Type), func(b *testing.B) {
			row, _ := f.Type.RowBytes(benchK)
			src, dst := make([]byte, row*benchOut), make([]byte, f.PackedSize(benchOut, benchK))
			s := new(Scratch)
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				f.Pack(dst, src, benchOut, benchK, 0, f.Groups(benchOut), s)
			}
		})
	}
}
