package compute

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/compute/weight"
	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

// sparse is a layer of blocks with random weights.
type sparse struct {
	up, down Projection
	width    int
}

func newSparse(t testing.TB, rng *rand.Rand, typ tensor.Type, blocks, inner, width int) *sparse {
	t.Helper()
	pool := par.New(1)
	t.Cleanup(pool.Close)
	store := weight.New(pool, nil)
	stack := func(out, in int) Projection {
		v := tensor.View{Name: "w", Type: typ, Shape: []int{blocks, out, in}}
		values := make([]float32, v.Elems())
		for i := range values {
			values[i] = float32(rng.NormFloat64()) / float32(math.Sqrt(float64(in)))
		}
		v.Data = make([]byte, v.Bytes())
		if err := tensor.Pack(typ, v.Data, values); err != nil {
			t.Fatal(err)
		}
		m, err := store.Matrix(v)
		if err != nil {
			t.Fatal(err)
		}
		return Projection{Matrix: m}
	}
	return &sparse{up: stack(inner, width), down: stack(width, inner), width: width}
}

// dense is the reference: every block of every row, one product at a time, each times its gate even where that is 0.
func (s *sparse) dense(gates, a []float32) []float32 {
	out := make([]float32, s.width)
	var scratch matmul.Scratch
	product := func(m *Matrix, e int, in []float32) []float32 {
		x := &Exec{pool: par.New(1)}
		x.lastID = 1
		rows := kernel.Rows{N: 1, K: len(in), F: in}
		if m.Format.Quantized {
			rows = *x.quantize(Buf{f: in, rows: 1, width: len(in), id: 1})
		}
		dst := make([]float32, m.Out())
		m.Multiply(dst, m.Out(), e, 0, m.Groups(), &rows, &scratch)
		return dst
	}
	for e, g := range gates {
		h := product(s.up.Matrix, e, a)
		kernel.Silu(h, h)
		kernel.AddScaled(out, g, product(s.down.Matrix, e, h))
	}
	return out
}

// gatesOf returns gates of which each is 0 but for a share of them.
func gatesOf(rng *rand.Rand, rows, blocks int, share float64) Buf {
	b := Buf{f: make([]float32, rows*blocks), rows: rows, width: blocks}
	for i := range b.f {
		if rng.Float64() < share {
			b.f[i] = float32(rng.NormFloat64())
		}
	}
	return b
}

func rowsOf(rng *rand.Rand, rows, width int) Buf {
	b := Buf{f: make([]float32, rows*width), rows: rows, width: width}
	for i := range b.f {
		b.f[i] = float32(rng.NormFloat64())
	}
	return b
}

// TestSparseBlocks compares the blocks that rows have gates for with the sum over all of them, bit by bit, for one row and many, for none of the
// blocks and for all, with one thread and two, and for more rows than a window holds.
func TestSparseBlocks(t *testing.T) {
	for _, typ := range []tensor.Type{tensor.F32, tensor.F16, tensor.Q8_0, tensor.Q4_0} {
		for _, c := range []struct {
			rows, blocks int
			share        float64
		}{{1, 6, 0.4}, {9, 6, 0.4}, {3, 6, 0}, {5, 6, 1}, {700, 12, 0.2}} {
			t.Run(fmt.Sprintf("%v, %d rows, %v of %d", typ, c.rows, c.share, c.blocks), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(c.rows), 2))
				s := newSparse(t, rng, typ, c.blocks, 64, 96)
				gates, a := gatesOf(rng, c.rows, c.blocks, c.share), rowsOf(rng, c.rows, s.width)
				for _, threads := range []int{1, 2} {
					x := execOf(t, threads)
					got := x.SparseBlocks(gates, s.up, s.down, x.changed(a))
					for i := range c.rows {
						if i > 20 && i%50 > 0 {
							continue
						}
						for j, want := range s.dense(gates.row(i), a.row(i)) {
							if v := got.row(i)[j]; math.Float32bits(v) != math.Float32bits(want) {
								t.Fatalf("%d threads: value %d of row %d is %g; the sum over all blocks is %g", threads, j, i, v, want)
							}
						}
					}
				}
			})
		}
	}
}

func execOf(t testing.TB, threads int) *Exec {
	pool := par.New(threads)
	t.Cleanup(pool.Close)
	return &Exec{pool: pool, scratch: make([]matmul.Scratch, threads), bands: make([]kernel.Rows, threads)}
}

// TestSparseUnion counts the blocks that rows read together: none for rows whose gates are 0, never fewer for more rows, and never more than there are.
func TestSparseUnion(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	s := newSparse(t, rng, tensor.F32, 48, 32, 32)
	gates, a := gatesOf(rng, 64, 48, 0.1), rowsOf(rng, 64, 32)
	clear(gates.row(5))
	before := 0
	for n := 1; n <= gates.rows; n++ {
		x := execOf(t, 1)
		part := Buf{f: gates.f[:n*48], rows: n, width: 48}
		got := x.SparseBlocks(part, s.up, s.down, x.changed(Buf{f: a.f[:n*32], rows: n, width: 32}))
		union := map[int]bool{}
		for i, g := range part.f {
			if g != 0 {
				union[i%48] = true
			}
		}
		if x.Touched() != len(union) || x.Touched() < before {
			t.Fatalf("%d rows read %d blocks, after %d; they have gates for %d", n, x.Touched(), before, len(union))
		}
		before = x.Touched()
		if n > 5 {
			if d := cmp.Diff(make([]float32, 32), got.row(5)); d != "" {
				t.Fatalf("a row without gates gives (-want +got):\n%s", d)
			}
		}
	}
}

// TestSparseNotFinite expects a gate that is not finite to end the step.
func TestSparseNotFinite(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	s := newSparse(t, rng, tensor.F32, 3, 32, 32)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		x, gates := execOf(t, 1), gatesOf(rng, 2, 3, 1)
		gates.f[4] = float32(bad)
		x.SparseBlocks(gates, s.up, s.down, x.changed(rowsOf(rng, 2, 32)))
		if x.err == nil {
			t.Errorf("a gate of %v passes", bad)
		}
	}
}

// BenchmarkSparseBlocks takes a layer of the size of BlockFFN's model of 1.2B parameters for rows that have gates for a share of the blocks together, and
// gives the bytes of weights that it reads.
func BenchmarkSparseBlocks(b *testing.B) {
	const blocks, inner, width = 56, 128, 1792
	for _, rows := range []int{1, 8} {
		for _, percent := range []int{20, 30, 100} {
			b.Run(fmt.Sprintf("rows=%d/union=%d%%", rows, percent), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 2))
				s := newSparse(b, rng, tensor.Q8_0, blocks, inner, width)
				gates := gatesOf(rng, rows, blocks, 0)
				for i := range blocks * percent / 100 { // each block has one row or more
					for r := range rows {
						if r == i%rows || rng.IntN(2) == 0 {
							gates.row(r)[i*blocks/(blocks*percent/100)] = 0.5
						}
					}
				}
				x, a := execOf(b, 2), rowsOf(rng, rows, width)
				for b.Loop() {
					x.used, x.touched = 0, 0
					x.SparseBlocks(gates, s.up, s.down, x.changed(a))
				}
				b.ReportMetric(float64(x.touched)*float64(s.up.Matrix.Bytes()+s.down.Matrix.Bytes())/1e6, "MB/op")
			})
		}
	}
}
