package compute

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"grove/internal/compute/weight"
	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

// factors is a pair as plain values.
type factors struct {
	a, b  []float32 // [rank, in], [out, rank]
	rank  int
	scale float32
}

// add is the specification: u = Ax and v = Bu, each value one chain of fused multiply-adds from +0, then y = FMA32(scale, v, y).
func (f *factors) add(y, x []float32, scale float32) {
	u := make([]float32, f.rank)
	for r := range u {
		for i, v := range x {
			u[r] = kernel.FMA32(f.a[r*len(x)+i], v, u[r])
		}
	}
	for o := range y {
		v := float32(0)
		for r := range u {
			v = kernel.FMA32(f.b[o*f.rank+r], u[r], v)
		}
		y[o] = kernel.FMA32(float32(f.scale*scale), v, y[o])
	}
}

// values returns a view of random values and the values.
func values(t *testing.T, rng *rand.Rand, typ tensor.Type, out, in int) (tensor.View, []float32) {
	t.Helper()
	x := make([]float32, out*in)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	v := tensor.View{Type: typ, Shape: []int{out, in}}
	v.Data = make([]byte, v.Bytes())
	if err := tensor.Pack(typ, v.Data, x); err != nil {
		t.Fatal(err)
	}
	if err := tensor.Unpack(typ, x, v.Data); err != nil {
		t.Fatal(err)
	}
	return v, x
}

// raising is a task that adds what adapters give to some matrices, of which an item is a stretch of groups.
type raising struct {
	t     *Additions
	cells []AdapterCells
	ms    []*weight.Matrix
	rows  int
}

const lowrankStretch = 3

func (r *raising) Do(worker, item int) {
	r.t.Lower(worker)
	m := item % len(r.ms)
	first := item / len(r.ms) * lowrankStretch
	if end := min(first+lowrankStretch, r.ms[m].Groups()); first < end {
		half := r.rows / 2 // rows in two bands
		r.t.Raise(worker, r.cells[m], 0, half, first, end)
		r.t.Raise(worker, r.cells[m], half, r.rows, first, end)
	}
}

// TestAdditions adds sets of adapters of several ranks and types to the products of rows with several matrices, and expects the bits of the
// specification, for any number of threads.
func TestAdditions(t *testing.T) {
	const in = 96
	outs := []int{64, 40, 16, 100}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, threads := range []int{1, 2, 4} {
		for _, tt := range []struct {
			typ  tensor.Type
			rank []int // of each matrix; 0: none
		}{
			{tensor.F32, []int{4, 4, 4, 4}}, {tensor.F16, []int{16, 16, 16, 0}}, {tensor.BF16, []int{1, 0, 70, 16}}, {tensor.F16, []int{130, 20, 64, 33}},
		} {
			t.Run(fmt.Sprintf("threads=%d/%v/%v", threads, tt.typ, tt.rank), func(t *testing.T) {
				pool := par.New(threads)
				defer pool.Close()
				store := weight.New(pool, nil)
				var ms []*weight.Matrix
				for _, out := range outs {
					v, _ := values(t, rng, tensor.F32, out, in)
					m, err := store.Matrix(v)
					if err != nil {
						t.Fatal(err)
					}
					store.Adaptable(m, false)
					ms = append(ms, m)
				}
				one, wantOne := adapter(t, rng, store, ms, tt.typ, tt.rank)
				two, wantTwo := adapter(t, rng, store, ms, tensor.F32, []int{3, 3, 3, 3})
				var a Additions
				a.Set(1, []Adapted{{one, 1}})
				a.Set(2, []Adapted{{two, 0.5}, {one, -0.75}})
				for _, sets := range [][]int{{1}, {0, 1, 2}, {2, 2, 2, 1, 1, 0, 1, 2}, make([]int, 5), long(70)} {
					check(t, &a, pool, rng, ms, sets, func(set, m int, y, x []float32) {
						if set == 2 {
							wantTwo[m].add(y, x, 0.5)
						}
						if scale := []float32{0, 1, -0.75}[set]; scale != 0 && tt.rank[m] > 0 {
							wantOne[m].add(y, x, scale)
						}
					})
				}
			})
		}
	}
}

// long returns the sets of many rows: stretches longer than a cell.
func long(n int) (sets []int) {
	for i := range n {
		sets = append(sets, 1+i/50)
	}
	return sets
}

// adapter packs random pairs of some ranks, those of matrices of one size side by side, and returns them as values too.
func adapter(t *testing.T, rng *rand.Rand, store *weight.Store, ms []*weight.Matrix, typ tensor.Type, ranks []int) (*weight.Adapter, []factors) {
	t.Helper()
	packed, plain := &weight.Adapter{}, make([]factors, len(ms))
	var as []tensor.View
	var bs []*weight.Matrix
	for i, m := range ms {
		if ranks[i] == 0 {
			continue
		}
		f := &plain[i]
		f.rank, f.scale = ranks[i], float32(rng.NormFloat64())
		var a, b tensor.View
		a, f.a = values(t, rng, typ, f.rank, m.In())
		b, f.b = values(t, rng, typ, m.Out(), f.rank)
		up, err := store.Matrix(b)
		if err != nil {
			t.Fatal(err)
		}
		as, bs = append(as, a), append(bs, up)
	}
	downs, err := store.Stacked(as)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, m := range ms {
		if ranks[i] > 0 {
			packed.Add(m, false, weight.Pair{A: downs[n], B: bs[n], Scale: plain[i].scale})
			n++
		}
	}
	return packed, plain
}

// check adds to random results and compares them with those of the specification.
func check(t *testing.T, a *Additions, pool *par.Pool, rng *rand.Rand, ms []*weight.Matrix, sets []int, spec func(set, m int, y, x []float32)) {
	t.Helper()
	rows, active := make([]forest.Placed, len(sets)), make([]int32, len(sets))
	for i, set := range sets {
		rows[i].Adapter, active[i] = set, int32(i)
	}
	in := AdapterRows{F: make([]float32, len(sets)*ms[0].In()), Width: ms[0].In(), ID: 1}
	for i := range in.F {
		in.F[i] = float32(rng.NormFloat64())
	}
	a.Begin(rows, make([]matmul.Scratch, pool.Threads()))
	a.Group(rows, active)
	a.Clear()
	task := &raising{t: a, ms: ms, rows: len(sets)}
	var got, want []AdapterRows
	items := 0
	for m, matrix := range ms {
		y := AdapterRows{F: make([]float32, len(sets)*matrix.Out()), Width: matrix.Out(), ID: 2 + m}
		for i := range y.F {
			y.F[i] = float32(rng.NormFloat64())
		}
		w := AdapterRows{F: append([]float32(nil), y.F...), Width: y.Width}
		for i, set := range sets {
			spec(set, m, w.row(i), in.row(i))
		}
		got, want = append(got, y), append(want, w)
		if a.On {
			task.cells = append(task.cells, a.Add(matrix, in, y, len(sets)))
		} else {
			task.cells = append(task.cells, AdapterCells{})
		}
		items = max(items, (matrix.Groups()+lowrankStretch-1)/lowrankStretch*len(ms))
	}
	a.Ready()
	pool.Run(items, task)
	for m := range ms {
		for i, w := range want[m].F {
			if math.Float32bits(got[m].F[i]) != math.Float32bits(w) {
				t.Fatalf("sets %v, matrix %d, value %d: %v, want %v", sets, m, i, got[m].F[i], w)
			}
		}
	}
}
