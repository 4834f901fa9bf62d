package compute

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/compute/weight"
	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

// randomProjection returns a matrix of a type and a bias.
func randomProjection(t *testing.T, pool *par.Pool, r *rand.Rand, typ tensor.Type, out, in int) Projection {
	t.Helper()
	values := func(n int) []float32 {
		f := make([]float32, n)
		for i := range f {
			f[i] = float32(r.NormFloat64())
		}
		return f
	}
	row, _ := typ.RowBytes(in)
	data := make([]byte, row*out)
	if err := tensor.Pack(typ, data, values(out*in)); err != nil {
		t.Fatal(err)
	}
	m, err := weight.New(pool, nil).Matrix(tensor.View{Name: "m", Type: typ, Shape: []int{out, in}, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return Projection{Matrix: m, Bias: Vector{F: values(out)}}
}

// TestFeedForward compares the block with its products and gates one after another, for outputs that are no multiple of a
// group or of a block of rounded activations, and for rows that are cut into bands.
func TestFeedForward(t *testing.T) {
	const width = 64
	gates := map[Gate]func(dst, gate, up []float32){SiluGate: kernel.SiluMul, GeluGate: kernel.GeluMul, GeluErfGate: kernel.GeluErfMul}
	defer kernel.Use(kernel.Implementation())
	impls := kernel.Implementations()
	if testing.Short() { // as with the race detector
		impls = impls[:1]
	}
	for _, impl := range impls {
		kernel.Use(impl)
		for _, c := range []struct {
			typ, down  tensor.Type
			inner, max int
		}{{tensor.Q8_0, tensor.Q8_0, 32, 9}, {tensor.Q8_0, tensor.Q4_0, 1120, 70}, {tensor.F32, tensor.Q8_0, 96, 9}, {tensor.Q8_0, tensor.F32, 1129, 9}} {
			for _, threads := range []int{1, 2, 3} {
				pool := par.New(threads)
				x := &Exec{pool: pool, scratch: make([]matmul.Scratch, threads), bands: make([]kernel.Rows, threads), products: make([]Buf, 0, maxProjections)}
				r := rand.New(rand.NewPCG(7, 8))
				gateUp := []Projection{randomProjection(t, pool, r, c.typ, c.inner, width), randomProjection(t, pool, r, c.typ, c.inner, width)}
				down := randomProjection(t, pool, r, c.down, width, c.inner)
				for gate, f := range gates {
					for _, rows := range []int{1, 3, c.max} {
						a := x.alloc(rows, width)
						for i := range a.f {
							a.f[i] = float32(r.NormFloat64())
						}
						p := slices.Clone(x.Linears(gateUp, a))
						f(p[0].f, p[0].f, p[1].f)
						want := x.Linear(down, x.changed(p[0]))
						got := x.FeedForward(gateUp, down, gate, a)
						if !slices.EqualFunc(got.f, want.f, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
							t.Errorf("%s: %v", impl, fmt.Sprint(c, threads, gate, rows))
						}
					}
				}
				pool.Close()
			}
		}
	}
}
