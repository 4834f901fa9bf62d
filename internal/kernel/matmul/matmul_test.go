package matmul

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"grove/internal/kernel"
	"grove/internal/weights/tensor"
)

// eachImpl runs a test once per implementation of this machine.
func eachImpl(t *testing.T, f func(t *testing.T)) {
	for _, name := range kernel.Implementations() {
		t.Run(name, func(t *testing.T) {
			defer kernel.Use(kernel.Implementation())
			kernel.Use(name)
			f(t)
		})
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// weights returns a row-major matrix of type t: random quants, scales of modest size. Wild
// matrices are random bits instead: NaN, infinities and subnormals among them.
func weights(rnd *rand.Rand, t tensor.Type, out, k int, wild bool) []byte {
	size, ok := t.RowBytes(k)
	if !ok {
		panic("no whole blocks")
	}
	b := make([]byte, out*size)
	if wild {
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	f := make([]float32, out*k)
	for i := range f {
		f[i] = float32(rnd.NormFloat64())
	}
	if err := tensor.Pack(t, b, f); err != nil {
		panic(err)
	}
	return b
}

// activations returns quantised rows; wild ones hold random bits here and there, also in D.
func activations(rnd *rand.Rand, n, k int, wild bool) *kernel.Rows {
	x := &kernel.Rows{N: n, K: k, F: make([]float32, n*k)}
	for i := range x.F {
		x.F[i] = float32(rnd.NormFloat64())
		if wild && rnd.IntN(3) == 0 {
			x.F[i] = math.Float32frombits(rnd.Uint32())
		}
	}
	if k%kernel.QBlock == 0 {
		nb := n * (k / kernel.QBlock)
		x.Q, x.D, x.Sum = make([]int8, n*k), make([]float32, nb), make([]int32, nb)
		x.Quantize()
		for i := range x.D {
			if wild && rnd.IntN(3) == 0 {
				x.D[i] = math.Float32frombits(rnd.Uint32())
			}
		}
	}
	return x
}

// rowOf returns row r of x alone.
func rowOf(x *kernel.Rows, r int) *kernel.Rows {
	y := &kernel.Rows{N: 1, K: x.K, F: x.F[r*x.K:][:x.K]}
	if x.K%kernel.QBlock == 0 {
		nb := x.K / kernel.QBlock
		y.Q, y.D, y.Sum = x.Q[r*x.K:][:x.K], x.D[r*nb:][:nb], x.Sum[r*nb:][:nb]
	}
	return y
}

// pack returns the packed matrix, at an odd address.
func pack(f *Format, src []byte, out, k int) []byte {
	w := make([]byte, f.PackedSize(out, k)+1)[1:]
	for i := range w {
		w[i] = 0xa5
	}
	f.Pack(w, src, out, k, 0, f.Groups(out), new(Scratch))
	return w
}

// canary stands wherever a kernel must not write.
const canary = -12345.75

// product multiplies all groups, checks the canaries around the outputs and returns them.
func product(t testing.TB, f *Format, w []byte, out, k int, x *kernel.Rows) []float32 {
	t.Helper()
	const before = 3
	stride := out + 5
	dst := make([]float32, before+x.N*stride+before)
	for i := range dst {
		dst[i] = canary
	}
	f.MatMul(dst[before:], stride, w, out, k, 0, f.Groups(out), x, new(Scratch))
	var y []float32
	for i, v := range dst {
		r, o := (i-before)/stride, (i-before)%stride
		if i >= before && r < x.N && o < out {
			y = append(y, v)
		} else if v != canary {
			t.Fatalf("%v [%d, %d], %d rows: wrote row %d, output %d", f.Type, out, k, x.N, r, o)
		}
	}
	return y
}

// portableProduct is product by the specification.
func portableProduct(t testing.TB, f *Format, w []byte, out, k int, x *kernel.Rows) []float32 {
	t.Helper()
	defer kernel.Use(kernel.Implementation())
	kernel.Use("portable")
	return product(t, f, w, out, k, x)
}

// diffBits returns the first place where the bits of want and got differ, two NaN being equal,
// or "".
func diffBits(want, got []float32) string {
	if len(want) != len(got) {
		return fmt.Sprintf("%d values, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if math.Float32bits(w) != math.Float32bits(g) && (w == w || g == g) {
			return fmt.Sprintf("value %d is %v (%08x), want %v (%08x)", i, g, math.Float32bits(g), w, math.Float32bits(w))
		}
	}
	return ""
}

// sweep calls f with every k up to 257 that the format takes (at most 9 blocks), every number of
// outputs up to 40, and 1 to 12, 33, 53 and 67 rows, though not with every combination of them.
func sweep(f *Format, do func(out, k, n int)) {
	rowCounts := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 33, 53, 67}
	kMax := 257
	if f.Quantized {
		kMax = 9 * f.BlockK
	}
	for i, k := 0, 0; k <= kMax; i, k = i+1, k+f.BlockK {
		do(1+i%40, k, rowCounts[i%12])
	}
	for out := 1; out <= 40; out++ {
		for j, n := range rowCounts {
			do(out, f.BlockK*(1+(out+j)%3), n)
		}
	}
}

// TestMatMulEqualsPortable is for float types; TestMatMulEqualsFileOrder asks more of the others.
func TestMatMulEqualsPortable(t *testing.T) {
	for _, f := range formats {
		if f.Quantized {
			continue
		}
		t.Run(f.Type.String(), func(t *testing.T) {
			eachImpl(t, func(t *testing.T) {
				rnd := newRand(7)
				compare := func(out, k, n int) {
					wild := rnd.IntN(2) == 0
					w := pack(f, weights(rnd, f.Type, out, k, wild), out, k)
					x := activations(rnd, n, k, wild)
					want := portableProduct(t, f, w, out, k, x)
					if d := diffBits(want, product(t, f, w, out, k, x)); d != "" {
						t.Fatalf("[%d, %d], %d rows, wild %v: %s", out, k, n, wild, d)
					}
				}
				sweep(f, compare)
				for _, out := range []int{63, 64, 65, 96, 113, 130} { // several groups at once, and those that are left
					for n := 1; n <= 14; n++ {
						for _, k := range []int{1, 2, 3, 32} {
							compare(out, k, n)
						}
					}
				}
			})
		})
	}
}

// float returns the float32 at the start of b.
func float(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

// TestFMA32Instruction compares with the fused instruction of the machine, reached through
// products of two steps: z*1 + 0, then x*y + z.
func TestFMA32Instruction(t *testing.T) {
	eachImpl(t, func(t *testing.T) {
		f, _ := FormatOf(tensor.F32)
		rnd := newRand(5)
		w := make([]byte, f.PackedSize(lanes, 2))
		x := &kernel.Rows{N: 1, K: 2, F: make([]float32, 2)}
		var got, want [lanes]float32
		for range 20_000 {
			for i := 0; i < len(w); i += 4 {
				binary.LittleEndian.PutUint32(w[i:], rnd.Uint32())
			}
			x.F[0], x.F[1] = 1, math.Float32frombits(rnd.Uint32())
			f.MatMul(got[:], lanes, w, lanes, 2, 0, 1, x, new(Scratch))
			for j := range want {
				z, v := float(w[4*j:]), float(w[4*(lanes+j):])
				want[j] = kernel.FMA32(v, x.F[1], kernel.FMA32(z, 1, 0))
			}
			if d := diffBits(want[:], got[:]); d != "" {
				t.Fatal(d)
			}
		}
	})
}

func TestMatMulUnaligned(t *testing.T) {
	eachImpl(t, func(t *testing.T) {
		for _, f := range formats {
			out, k, rnd := 18, 2*f.BlockK, newRand(9)
			w := pack(f, weights(rnd, f.Type, out, k, false), out, k)
			x := activations(rnd, 2, kernel.QBlock*k, false)
			x.K = k
			want := portableProduct(t, f, w, out, k, x)
			for at := range 65 {
				moved := append(make([]byte, at, at+len(w)), w...)[at:]
				y := &kernel.Rows{N: 2, K: k, F: append(make([]float32, at%9), x.F...)[at%9:], D: x.D, Sum: x.Sum}
				y.Q = append(make([]int8, at), x.Q...)[at:]
				if d := diffBits(want, product(t, f, moved, out, k, y)); d != "" {
					t.Fatalf("%v, %d bytes on: %s", f.Type, at, d)
				}
			}
		}
	})
}

// TestMatMulReference holds the portable products against the definition of the formats: bits for
// float types, a float64 product of the unpacked weights and activations for the others.
func TestMatMulReference(t *testing.T) {
	for _, f := range formats {
		t.Run(f.Type.String(), func(t *testing.T) {
			rnd := newRand(11)
			for _, k := range []int{f.BlockK, 5 * f.BlockK} {
				const out, n = 21, 3
				src := weights(rnd, f.Type, out, k, false)
				values := make([]float32, out*k)
				if err := tensor.Unpack(f.Type, values, src); err != nil {
					t.Fatal(err)
				}
				x := activations(rnd, n, k, false)
				y := portableProduct(t, f, pack(f, src, out, k), out, k, x)
				for i, got := range y {
					r, o := i/out, i%out
					if f.Quantized {
						checkQuantized(t, values[o*k:][:k], rowOf(x, r), got)
						continue
					}
					acc := float32(0)
					for j, v := range values[o*k:][:k] {
						acc = kernel.FMA32(v, x.F[r*k+j], acc)
					}
					if d := diffBits([]float32{acc}, []float32{got}); d != "" {
						t.Fatalf("k %d, row %d, output %d: %s", k, r, o, d)
					}
				}
			}
		})
	}
}

// checkQuantized compares with float64 arithmetic over the same rounded activations.
func checkQuantized(t *testing.T, w []float32, x *kernel.Rows, got float32) {
	t.Helper()
	want, size := 0.0, 0.0
	for i, v := range w {
		p := float64(v) * float64(x.Q[i]) * float64(x.D[i/kernel.QBlock])
		want, size = want+p, size+math.Abs(p)
	}
	if math.Abs(want-float64(got)) > 1e-6*size {
		t.Fatalf("got %v, want %v (sum of magnitudes %v)", got, want, size)
	}
}

// TestMatMulRowsAlone is N1 and N4: the bits of a row do not depend on its company, nor those of
// an output on the range of groups.
func TestMatMulRowsAlone(t *testing.T) {
	for _, f := range formats {
		t.Run(f.Type.String(), func(t *testing.T) {
			eachImpl(t, func(t *testing.T) {
				rnd := newRand(13)
				const out, n = 39, 64
				k := 3 * f.BlockK
				if !f.Quantized {
					k = 83
				}
				w := pack(f, weights(rnd, f.Type, out, k, false), out, k)
				x := activations(rnd, n, k, false)
				all := product(t, f, w, out, k, x)
				for r := range n {
					if d := diffBits(all[r*out:][:out], product(t, f, w, out, k, rowOf(x, r))); d != "" {
						t.Fatalf("row %d alone: %s", r, d)
					}
				}
				pieces := make([]float32, n*out)
				for g := range f.Groups(out) {
					f.MatMul(pieces, out, w, out, k, g, g+1, x, new(Scratch))
				}
				if d := diffBits(all, pieces); d != "" {
					t.Fatalf("group by group: %s", d)
				}
			})
		})
	}
}

func TestMatMulNonFinite(t *testing.T) {
	eachImpl(t, func(t *testing.T) {
		for _, f := range formats {
			k := f.BlockK * kernel.QBlock
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				w := pack(f, weights(newRand(1), f.Type, 3, k, false), 3, k)
				x := activations(newRand(2), 2, k, false)
				x.F[k+1] = float32(bad)
				x.Quantize()
				y := product(t, f, w, 3, k, x)
				for o := range 3 {
					if v := y[o]; v-v != 0 {
						t.Errorf("%v: %v in row 1 reached row 0: %v", f.Type, bad, v)
					}
					if v := y[3+o]; v-v == 0 {
						t.Errorf("%v: %v in row 1 was lost: %v", f.Type, bad, v)
					}
				}
			}
		}
	})
}

func TestPackAndRow(t *testing.T) {
	for _, f := range formats {
		t.Run(f.Type.String(), func(t *testing.T) {
			rnd, seen := newRand(17), map[[3]int]bool{}
			sweep(f, func(out, k, n int) {
				shape := [3]int{out, k, n % 2} // the number of rows changes nothing here
				if seen[shape] {
					return
				}
				seen[shape] = true
				src := weights(rnd, f.Type, out, k, n%2 == 0)
				values := make([]float32, out*k)
				if err := tensor.Unpack(f.Type, values, src); err != nil {
					t.Fatal(err)
				}
				w := pack(f, src, out, k)
				pieces := make([]byte, len(w))
				for g := f.Groups(out) - 1; g >= 0; g-- {
					f.Pack(pieces, src, out, k, g, g+1, new(Scratch))
				}
				if string(w) != string(pieces) {
					t.Fatalf("[%d, %d]: packing group by group differs", out, k)
				}
				got := make([]float32, k)
				for o := range out {
					f.Row(got, w, out, k, o, new(Scratch))
					if d := diffBits(values[o*k:][:k], got); d != "" {
						t.Fatalf("[%d, %d], output %d: %s", out, k, o, d)
					}
				}
			})
		})
	}
}

func TestCallerMistakes(t *testing.T) {
	f, _ := FormatOf(tensor.Q8_0)
	const out, k = 20, 64
	w := make([]byte, f.PackedSize(out, k))
	src := make([]byte, out*68)
	x := activations(newRand(1), 2, k, false)
	dst := make([]float32, 2*out)
	short := &kernel.Rows{N: 2, K: k, F: x.F}
	for name, c := range map[string]struct {
		do   func()
		want string
	}{
		"k no multiple": {func() { f.MatMul(dst, out, w, out, 33, 0, 1, x, new(Scratch)) }, "no matrix of 20 outputs and 33 inputs"},
		"groups":        {func() { f.MatMul(dst, out, w, out, k, 1, 3, x, new(Scratch)) }, "groups [1, 3) of 2"},
		"weights":       {func() { f.MatMul(dst, out, w[1:], out, k, 0, 1, x, new(Scratch)) }, "in 2175 bytes"},
		"rows' width":   {func() { f.MatMul(dst, out, w, out, k, 0, 1, &kernel.Rows{N: 1, K: 32}, new(Scratch)) }, "1 rows of 32 values for 64 inputs"},
		"not quantised": {func() { f.MatMul(dst, out, w, out, k, 0, 1, short, new(Scratch)) }, "slices too short"},
		"dst":           {func() { f.MatMul(dst[1:], out, w, out, k, 0, 1, x, new(Scratch)) }, "stride 20, in 39"},
		"stride":        {func() { f.MatMul(dst, 19, w, out, k, 0, 1, x, new(Scratch)) }, "stride 19"},
		"pack":          {func() { f.Pack(w, src[1:], out, k, 0, 1, new(Scratch)) }, "from 1359 bytes into 2176"},
		"row":           {func() { f.Row(dst, w, out, k, out, new(Scratch)) }, "output 20 of [20, 64]"},
		"row's length":  {func() { f.Row(dst, w, out, 96, 0, new(Scratch)) }, "into 40 values"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got, _ := recover().(string); !strings.HasPrefix(got, "matmul: ") || !strings.Contains(got, c.want) {
					t.Errorf("panic %q, want one that says %q", got, c.want)
				}
			}()
			c.do()
		})
	}
}

func TestNothingToDo(t *testing.T) {
	eachImpl(t, func(t *testing.T) {
		for _, f := range formats {
			f.MatMul(nil, 0, nil, 0, 0, 0, 0, &kernel.Rows{}, new(Scratch))
			f.MatMul(nil, 0, pack(f, weights(newRand(1), f.Type, 3, f.BlockK, false), 3, f.BlockK), 3, f.BlockK, 0, 1, &kernel.Rows{K: f.BlockK}, new(Scratch))
			y := product(t, f, nil, 3, 0, &kernel.Rows{N: 2})
			if d := diffBits(make([]float32, 6), y); d != "" {
				t.Errorf("%v without inputs: %s", f.Type, d)
			}
		}
	})
}

func TestMatMulAllocatesNothing(t *testing.T) {
	eachImpl(t, func(t *testing.T) {
		for _, f := range formats {
			const out, rows = 19, 64
			k := f.BlockK * 2
			w := pack(f, weights(newRand(1), f.Type, out, k, false), out, k)
			x := activations(newRand(2), rows, kernel.QBlock*k, false)
			x.K = k
			dst := make([]float32, rows*out)
			row := make([]float32, k)
			src, s := weights(newRand(1), f.Type, out, k, false), new(Scratch)
			if n := testing.AllocsPerRun(10, func() {
				f.Pack(s.Room(len(w)), src, out, k, 0, f.Groups(out), s)
				f.MatMul(dst, out, w, out, k, 0, f.Groups(out), x, s)
				f.Row(row, w, out, k, 3, s)
				(&kernel.Rows{N: 1, K: kernel.QBlock, F: x.F, Q: x.Q, D: x.D, Sum: x.Sum}).Quantize()
			}); n != 0 {
				t.Errorf("%v: %v allocations", f.Type, n)
			}
		}
	})
}

func FuzzMatMul(f *testing.F) {
	for kind := range formats {
		f.Add(uint8(kind), uint8(17), uint8(3), uint8(2), []byte{0, 0, 192, 127, 1})
		f.Add(uint8(kind), uint8(16), uint8(2), uint8(7), []byte{255, 127, 128, 3})
		f.Add(uint8(kind), uint8(31), uint8(4), uint8(8), []byte{0, 60, 0, 188, 255, 63, 240})
	}
	f.Fuzz(func(t *testing.T, kind, outs, ks, ns uint8, data []byte) {
		format := formats[int(kind)%len(formats)]
		out, n := int(outs)%40+1, int(ns)%19
		k := int(ks) * format.BlockK
		if format.Quantized {
			k = int(ks) % 5 * format.BlockK
		}
		row, _ := format.Type.RowBytes(k)
		src := make([]byte, out*row)
		for i := range src {
			if len(data) > 0 {
				src[i] = data[i%len(data)]
			}
		}
		w := pack(format, src, out, k)
		x := activations(newRand(uint64(len(data))), n, k, true)
		want := portableProduct(t, format, w, out, k, x)
		if d := diffBits(want, product(t, format, w, out, k, x)); d != "" {
			t.Fatalf("%v [%d, %d], %d rows: %s", format.Type, out, k, n, d)
		}
	})
}
