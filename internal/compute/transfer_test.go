package compute

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/compute/weight"
	"grove/internal/forest"
	"grove/internal/kernel/matmul"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

const transferWidth = 64

// transferMatrix stores a matrix of random values, or of one value.
func transferMatrix(t *testing.T, typ tensor.Type, fill func() float32, rows, width int) *weight.Matrix {
	t.Helper()
	values := make([]float32, rows*width)
	for i := range values {
		values[i] = fill()
	}
	n, _ := typ.RowBytes(width)
	v := tensor.View{Name: "m", Type: typ, Shape: []int{rows, width}, Data: make([]byte, n*rows)}
	if err := tensor.Pack(typ, v.Data, values); err != nil {
		t.Fatal(err)
	}
	pool := par.New(1)
	defer pool.Close()
	m, err := weight.New(pool, nil).Matrix(v)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// placed returns two rows whose logits are wanted, and rows that begin at layers as products of them.
func placed(begins ...forest.Placed) []forest.Placed {
	plain := forest.Placed{Row: forest.Row{Want: forest.Want{Logits: true}}, Run: forest.LayerRange(0, 4)}
	return append([]forest.Placed{plain, plain}, begins...)
}

func from(layer int, source int32, m forest.Linear) forest.Placed {
	return forest.Placed{Row: forest.Row{Through: m}, Run: forest.LayerRange(layer, 4), Source: source, Index: 7}
}

// transferRun makes the streams of a layer of random ones, with a number of threads.
func transferRun(t *testing.T, layer, threads int, rows []forest.Placed) (before, after []float32, err error) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	for range len(rows) * transferWidth {
		before = append(before, float32(rng.NormFloat64()))
	}
	after = append([]float32(nil), before...)
	pool := par.New(threads)
	defer pool.Close()
	var task TransferTask
	err = task.Enter(layer, rows, after, transferWidth, pool, make([]matmul.Scratch, pool.Threads()))
	return before, after, err
}

// TestProducts: the rows of a layer get the products of float64 within rounding, the same bits whatever other rows and threads there are;
// other streams stay.
func TestProducts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, typ := range []tensor.Type{tensor.F32, tensor.F16, tensor.Q8_0} {
		t.Run(typ.String(), func(t *testing.T) {
			fill := func() float32 { return float32(rng.NormFloat64()) / 8 }
			m, other := transferMatrix(t, typ, fill, transferWidth, transferWidth), transferMatrix(t, typ, fill, transferWidth, transferWidth)
			rows := placed(from(2, 1, m), from(1, 0, m), from(2, 0, other), from(2, 0, m), from(3, 1, other))
			before, after, err := transferRun(t, 2, 1, rows)
			if err != nil {
				t.Fatal(err)
			}
			var scratch matmul.Scratch
			row := make([]float32, transferWidth)
			for i, r := range rows {
				if i < 2 || r.Run.First() != 2 {
					if d := cmp.Diff(before[i*transferWidth:][:transferWidth], after[i*transferWidth:][:transferWidth]); d != "" {
						t.Errorf("row %d, which does not begin at the layer, has changed:\n%s", i, d)
					}
					continue
				}
				for o := range transferWidth {
					r.Through.(*weight.Matrix).Embedding(row, o, &scratch)
					want := 0.0
					for k, v := range row {
						want += float64(v) * float64(before[int(r.Source)*transferWidth+k])
					}
					if got := after[i*transferWidth+o]; math.Abs(float64(got)-want) > 0.03 {
						t.Fatalf("row %d, value %d is %v, want %v", i, o, got, want)
					}
				}
			}
			_, alone, err := transferRun(t, 2, 1, append(placed(), rows[2]))
			if err != nil || cmp.Diff(alone[2*transferWidth:], after[2*transferWidth:3*transferWidth]) != "" {
				t.Errorf("alone and beside others: %v", err)
			}
			if _, threads, err := transferRun(t, 2, 3, rows); err != nil || cmp.Diff(threads, after) != "" {
				t.Errorf("one thread and three: %v", err)
			}
		})
	}
}

// TestWrong: what is no number, or too large, becomes one that the step can bear.
func TestWrong(t *testing.T) {
	for name, v := range map[string]float32{"NaN": float32(math.NaN()), "infinity": float32(math.Inf(1)), "huge": 3e38} {
		m := transferMatrix(t, tensor.F32, func() float32 { return v }, transferWidth, transferWidth)
		_, after, err := transferRun(t, 1, 1, placed(from(1, 0, m)))
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range after[2*transferWidth:] {
			if !(got >= -MaxTransfer && got <= MaxTransfer) {
				t.Fatalf("%s: a stream of %v", name, got)
			}
		}
	}
}

type square int

func (s square) In() int  { return int(s) }
func (s square) Out() int { return int(s) }

func TestRefused(t *testing.T) {
	one := func() float32 { return 1 }
	wide := placed(from(1, 0, transferMatrix(t, tensor.F32, one, transferWidth, 2*transferWidth)))
	unwanted := placed(from(1, 1, transferMatrix(t, tensor.F32, one, transferWidth, transferWidth)))
	unwanted[1].Want, unwanted[1].Index = forest.Want{}, 6
	for _, tt := range []struct {
		name string
		rows []forest.Placed
		want string
	}{
		{"another width", wide, "the row at index 7 begins as a product with a *weight.Matrix [64, 128]; it must be a matrix of weights [64, 64]"},
		{"no matrix of weights", placed(from(1, 0, square(transferWidth))), "the row at index 7 begins as a product with a compute.square [64, 64]; it must be a matrix of weights [64, 64]"},
		{"a row that may end before", unwanted, "the row at index 7 begins as a product of the row at index 6, of which no output is wanted; want its logits or its state"},
	} {
		if _, _, err := transferRun(t, 1, 1, tt.rows); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %s", tt.name, err, tt.want)
		}
	}
}

// TestSteadyState: a layer allocates nothing once its buffers are there.
func TestSteadyState(t *testing.T) {
	m := transferMatrix(t, tensor.Q8_0, func() float32 { return 0.1 }, transferWidth, transferWidth)
	rows, pool := placed(from(1, 0, m), from(1, 1, m)), par.New(1)
	defer pool.Close()
	var task TransferTask
	stream, scratch := make([]float32, len(rows)*transferWidth), make([]matmul.Scratch, pool.Threads())
	step := func() {
		if err := task.Enter(1, rows, stream, transferWidth, pool, scratch); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if n := testing.AllocsPerRun(20, step); n > 0 {
		t.Errorf("%v allocations a layer", n)
	}
}
