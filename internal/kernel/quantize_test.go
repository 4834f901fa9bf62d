package kernel

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// quantized returns the blocks of one row.
func quantized(f []float32) *Rows {
	nb := len(f) / QBlock
	x := &Rows{N: 1, K: len(f), F: f, Q: make([]int8, len(f)), D: make([]float32, nb), Sum: make([]int32, nb)}
	x.Quantize()
	return x
}

func TestQuantizeCases(t *testing.T) {
	block := func(v ...float32) []float32 { return append(v, make([]float32, QBlock-len(v))...) }
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	tiny := math.Float32frombits(1)
	for name, c := range map[string]struct {
		x   []float32
		q   []int8
		d   float32
		sum int32
	}{
		"zero":             {block(), nil, 0, 0},
		"ends":             {block(127, -127, 1), []int8{127, -127, 1}, 1, 1},
		"half to even":     {block(127, 0.5, 1.5, 2.5, -0.5, -1.5), []int8{127, 0, 2, 2, 0, -2}, 1, 129},
		"largest negative": {block(1, -254), []int8{0, -127}, 2, -127},
		"NaN":              {block(1, nan), nil, nan, 0},
		"infinity":         {block(-inf, 3), nil, nan, 0},
		"largest floats":   {block(math.MaxFloat32, -math.MaxFloat32), []int8{127, -127}, math.MaxFloat32 / 127, 0},
		"1/d overflows":    {block(127*tiny, -tiny), nil, tiny, 0},
		"scale to zero":    {block(tiny), nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			eachImpl(t, func(t *testing.T) {
				x := quantized(c.x)
				want := make([]int8, QBlock)
				copy(want, c.q)
				if d := cmp.Diff(want, x.Q); d != "" {
					t.Errorf("Q (-want +got):\n%s", d)
				}
				if x.Sum[0] != c.sum {
					t.Errorf("Sum = %d, want %d", x.Sum[0], c.sum)
				}
				if err := equalBits([]float32{c.d}, x.D); err != nil {
					t.Errorf("D: %v", err)
				}
			})
		})
	}
}

func TestQuantizeEqualsPortable(t *testing.T) {
	rnd := newRand(23)
	for nb := range 65 {
		for range 20 {
			f := make([]float32, nb*QBlock+1)[1:]
			scale := math.Float32frombits(rnd.Uint32() &^ (1 << 31))
			wild := rnd.IntN(2) == 0
			for i := range f {
				f[i] = float32(rnd.NormFloat64()) * scale
				if wild && rnd.IntN(40) == 0 {
					f[i] = math.Float32frombits(rnd.Uint32())
				}
			}
			checkQuantize(t, f)
		}
	}
}

func FuzzQuantize(f *testing.F) {
	f.Add([]byte{0, 0, 128, 63, 0, 0, 192, 127})
	f.Fuzz(func(t *testing.T, data []byte) {
		x := make([]float32, 2*QBlock)
		for i := range min(len(data), 4*len(x)) {
			b := math.Float32bits(x[i/4]) | uint32(data[i])<<(i%4*8)
			x[i/4] = math.Float32frombits(b)
		}
		checkQuantize(t, x)
	})
}

// checkQuantize holds every implementation against the portable one, and that against its promises.
func checkQuantize(t *testing.T, f []float32) {
	t.Helper()
	defer Use(Implementation())
	Use(portable)
	want := quantized(f)
	for i, q := range want.Q {
		if d := want.D[i/QBlock]; q == -128 || math.Abs(float64(f[i])-float64(q)*float64(d)) > 0.5001*float64(d)+0x1p-121 {
			t.Fatalf("value %d: %v became %d * %v", i, f[i], q, d)
		}
	}
	for _, name := range Implementations() {
		Use(name)
		got := quantized(f)
		if !slices.Equal(want.Q, got.Q) { // cmp takes a thousand times longer to find that nothing differs
			t.Fatalf("%s: Q (-want +got):\n%s", name, cmp.Diff(want.Q, got.Q))
		}
		if !slices.Equal(want.Sum, got.Sum) {
			t.Fatalf("%s: Sum (-want +got):\n%s", name, cmp.Diff(want.Sum, got.Sum))
		}
		if err := equalBits(want.D, got.D); err != nil {
			t.Fatalf("%s: D: %v", name, err)
		}
	}
}

func TestQuantizePanics(t *testing.T) {
	f := make([]float32, 64)
	for name, c := range map[string]struct {
		x    *Rows
		want string
	}{
		"short": {&Rows{N: 2, K: 32, F: f}, "too short"},
		"k":     {&Rows{N: 1, K: 31, F: f}, "1 rows of 31 values"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got, _ := recover().(string); !strings.HasPrefix(got, "kernel: ") || !strings.Contains(got, c.want) {
					t.Errorf("panic %q, want one that says %q", got, c.want)
				}
			}()
			c.x.Quantize()
		})
	}
}

func BenchmarkQuantize(b *testing.B) {
	rnd, f := newRand(1), make([]float32, 8*3584)
	for i := range f {
		f[i] = float32(rnd.NormFloat64())
	}
	x := quantized(f)
	b.SetBytes(int64(4 * len(f)))
	b.ReportAllocs()
	for b.Loop() {
		x.Quantize()
	}
}
