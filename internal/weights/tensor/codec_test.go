package tensor

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

var all = Types()

// golden reads the blocks and the exact values of a type; its origin is in testdata/README.md.
func golden(t *testing.T, typ Type) (blocks []byte, values []float32) {
	t.Helper()
	base := filepath.Join("testdata", typ.String())
	blocks, err := os.ReadFile(base + ".bin")
	if err != nil {
		t.Fatalf("%v; every type has blocks that another implementation made, and their values", err)
	}
	raw, err := os.ReadFile(base + ".f32")
	if err != nil {
		t.Fatal(err)
	}
	values = make([]float32, len(raw)/4)
	if _, err := binary.Decode(raw, binary.LittleEndian, values); err != nil {
		t.Fatal(err)
	}
	return blocks, values
}

func TestUnpackGolden(t *testing.T) {
	for _, typ := range all {
		if typ == F32 || typ == MXFP4 {
			continue // F32 are its values; TestMXFP4 knows the other by its definition
		}
		t.Run(typ.String(), func(t *testing.T) {
			blocks, want := golden(t, typ)
			got := make([]float32, len(want))
			if err := Unpack(typ, got, blocks); err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("element %d is %v, want %v", i, got[i], want[i])
				}
			}
		})
	}
}

// TestMXFP4 holds every exponent and nibble against the definition of the OCP formats E8M0 and E2M1, in float64:
// (-1)^s * 2^(e-127) times m/2 for x = 0, else (1 + m/2) * 2^(x-1), of a nibble with the bits s, x, x, m.
func TestMXFP4(t *testing.T) {
	for e := range 256 {
		block := make([]byte, mxfp4.Bytes)
		block[0] = byte(e)
		for i := range 16 {
			block[1+i] = byte(i) | byte(15-i)<<4
		}
		got := make([]float32, mxfp4.Elems)
		if err := Unpack(MXFP4, got, block); err != nil {
			t.Fatal(err)
		}
		for i := range 32 {
			n := i
			if i >= 16 {
				n = 31 - i
			}
			v := float64(n%2) / 2
			if x := n / 2 % 4; x > 0 {
				v = (1 + v) * math.Pow(2, float64(x-1))
			}
			if n >= 8 {
				v = -v
			}
			want := float32(v * math.Pow(2, float64(e-127)))
			if e == 254 && n%8 > 5 || e == 255 && n%8 > 3 { // 4 and more times 2^127, 2 and more times 2^128
				want = float32(math.Inf(1 - n/8*2))
			}
			if got[i] != want {
				t.Errorf("exponent %d, nibble %d: %v, want %v", e, n, got[i], want)
			}
		}
	}
}

// TestPackGolden packs the values again: the float types give the bytes back.
func TestPackGolden(t *testing.T) {
	for _, typ := range []Type{F16, BF16} {
		t.Run(typ.String(), func(t *testing.T) {
			blocks, values := golden(t, typ)
			got := make([]byte, len(blocks))
			if err := Pack(typ, got, values); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, blocks) {
				t.Error("the bytes changed")
			}
		})
	}
}

// TestPackReference checks Q8_0 and Q4_0 against bytes worked out by hand from the reference
// quantisers' formulas, rounding of ties included.
func TestPackReference(t *testing.T) {
	ramp := func(set map[int]float32) []float32 {
		x := make([]float32, 32)
		for i, v := range set {
			x[i] = v
		}
		return x
	}
	cases := []struct {
		name string
		typ  Type
		in   []float32
		want map[int]byte // bytes that are not zero (Q4_0: not 0x88)
	}{
		// d = 127/127 = 1: quants are the values, halves rounded away from zero.
		{"Q8_0", Q8_0, ramp(map[int]float32{0: 127, 1: -127, 2: 0.5, 3: -0.5, 4: 2.5, 5: 0.49, 31: -64}),
			map[int]byte{1: 0x3c, 2: 127, 3: 0x81, 4: 1, 5: 0xff, 6: 3, 33: 0xc0}},
		// The peak 8 gives d = -1; 8 -> 0, -8 -> 16 kept at 15, 0.5 -> 8, -1 -> 9.
		{"Q4_0", Q4_0, ramp(map[int]float32{0: 8, 1: -8, 2: 0.5, 3: 1, 16: -1, 31: -7}),
			map[int]byte{0: 0x00, 1: 0xbc, 2: 0x90, 3: 0x8f, 5: 0x87, 17: 0xf8}},
		{"Q8_0 of zeros", Q8_0, ramp(nil), nil},
		{"Q8_0 of values too small for a scale", Q8_0, ramp(map[int]float32{3: 1e-44}), nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			size, _ := c.typ.RowBytes(32)
			want := make([]byte, size)
			if c.typ == Q4_0 {
				for i := range want {
					want[i] = 0x88
				}
			}
			for i, v := range c.want {
				want[i] = v
			}
			got := make([]byte, size)
			if err := Pack(c.typ, got, c.in); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got  %x\nwant %x", got, want)
			}
		})
	}
}

// limits are the errors that packing may make. The first two are as ggml's test-quantize-fns measures them on its
// synthetic wave: the root of the summed squares over the count, and the error of a dot product of two rows over the
// count. Its limits are 0.002 and 0.02 for all types here; ours are near what these codecs reach. Then come the
// error of normally distributed values over their size, both as root mean squares, and the worst error of any value of
// a difficult block over the peak; 0: 0.08.
var limits = map[Type]struct{ round, dot, relative, worst float64 }{
	F32:    {0, 0, 0, 0},
	F16:    {1e-5, 1e-4, 3e-4, 0},
	BF16:   {4e-5, 1e-3, 3e-3, 0},
	Q8_0:   {1e-4, 1e-3, 8e-3, 0},
	Q4_0:   {2e-3, 2e-2, 0.11, 0},
	Q4_1:   {1.2e-3, 2e-2, 0.075, 0},
	Q5_0:   {7e-4, 1e-2, 0.045, 0},
	Q5_1:   {6e-4, 1e-2, 0.037, 0},
	Q2_K:   {5e-3, 5e-2, 0.31, 0.2},
	Q3_K:   {3e-3, 3e-2, 0.165, 0},
	Q4_K:   {1.2e-3, 2e-2, 0.077, 0},
	Q5_K:   {6e-4, 1e-2, 0.039, 0},
	Q6_K:   {3e-4, 5e-3, 0.02, 0},
	IQ4_NL: {1.5e-3, 2e-2, 0.083, 0.1},
	IQ4_XS: {1.5e-3, 2e-2, 0.084, 0.1},
	MXFP4:  {2.2e-3, 2e-2, 0.12, 0.17},
}

func TestRoundTrip(t *testing.T) {
	const n = 32 * 128
	wave := func(offset float64) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(0.1 + 2*math.Cos(float64(i)+offset))
		}
		return x
	}
	rng := rand.New(rand.NewPCG(1, 2))
	normal := make([]float32, n)
	for i := range normal {
		normal[i] = float32(rng.NormFloat64())
	}
	a, b := wave(0), wave(1)
	for _, typ := range all {
		t.Run(typ.String(), func(t *testing.T) {
			lim, ok := limits[typ]
			if !ok {
				t.Fatalf("%v has no entry in limits", typ)
			}
			got := roundTrip(t, typ, a)
			if e := math.Sqrt(squares(a, got)) / n; e > lim.round {
				t.Errorf("round trip error %.3g, limit %.3g", e, lim.round)
			}
			var want, have float64
			for i := range a {
				want += float64(a[i]) * float64(b[i])
				have += float64(got[i]) * float64(b[i])
			}
			if e := math.Abs(want-have) / n; e > lim.dot {
				t.Errorf("dot product error %.3g, limit %.3g", e, lim.dot)
			}
			rel := math.Sqrt(squares(normal, roundTrip(t, typ, normal)) / squares(normal, make([]float32, n)))
			if rel > lim.relative {
				t.Errorf("relative error of normal values %.3g, limit %.3g", rel, lim.relative)
			}
			t.Logf("round %.3g, relative %.3g", math.Sqrt(squares(a, got))/n, rel)
		})
	}
}

func roundTrip(t *testing.T, typ Type, x []float32) []float32 {
	t.Helper()
	size, _ := typ.RowBytes(len(x))
	blocks, out := make([]byte, size), make([]float32, len(x))
	if err := Pack(typ, blocks, x); err != nil {
		t.Fatal(err)
	}
	if err := Unpack(typ, out, blocks); err != nil {
		t.Fatal(err)
	}
	return out
}

func squares(a, b []float32) (sum float64) {
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return sum
}

// TestPackShapes packs blocks that once broke some quantiser: constant, one-sided, tiny, huge.
func TestPackShapes(t *testing.T) {
	fill := func(f func(i int) float32) []float32 {
		x := make([]float32, 256)
		for i := range x {
			x[i] = f(i)
		}
		return x
	}
	cases := []struct {
		name string
		x    []float32
		tol  float64 // of the largest magnitude
	}{
		{"zeros", fill(func(int) float32 { return 0 }), 0},
		{"constant", fill(func(int) float32 { return 3 }), 0.01},
		{"negative constant", fill(func(int) float32 { return -3 }), 0.01},
		{"positive ramp", fill(func(i int) float32 { return float32(i) }), 0.08},
		{"negative ramp", fill(func(i int) float32 { return -float32(i) }), 0.08},
		{"one spike", fill(func(i int) float32 { return float32(i / 255 * 100) }), 0.01},
		{"subnormal", fill(func(i int) float32 { return float32(i) * 1e-44 }), 1},
		{"large", fill(func(i int) float32 { return float32(i-128) * 500 }), 0.08},
	}
	for _, typ := range all[3:] {
		for _, c := range cases {
			if c.tol > 0 {
				c.tol = max(c.tol, limits[typ].worst)
			}
			t.Run(typ.String()+"/"+c.name, func(t *testing.T) {
				got := roundTrip(t, typ, c.x)
				var peak, worst float64
				for i, v := range c.x {
					peak = max(peak, math.Abs(float64(v)))
					worst = max(worst, math.Abs(float64(got[i]-v)))
				}
				if !(worst <= c.tol*peak) {
					t.Errorf("worst error %v, peak %v", worst, peak)
				}
			})
		}
	}
}

func TestErrors(t *testing.T) {
	one := func(n, at int, v float32) []float32 {
		x := make([]float32, n)
		x[at] = v
		return x
	}
	inf := float32(math.Inf(1))
	cases := []struct {
		name string
		err  error
		want string
	}{
		{"unpack unsupported", Unpack(Q8_K, make([]float32, 256), make([]byte, 292)), "type Q8_K has no codec; use a file of another type, such as Q8_0"},
		{"pack unsupported", Pack(Q8_K, make([]byte, 292), make([]float32, 256)), "type Q8_K has no codec; use a file of another type, such as Q8_0"},
		{"unknown", Unpack(99, nil, nil), "type type 99 has no codec; use a file of another type, such as Q8_0"},
		{"ragged", Unpack(Q8_0, make([]float32, 33), nil), "Q8_0: 33 elements are not a multiple of 32"},
		{"short", Unpack(Q4_K, make([]float32, 256), make([]byte, 143)), "Q4_K: 256 elements take 144 bytes, not 143"},
		{"long", Pack(F16, make([]byte, 3), make([]float32, 1)), "F16: 1 elements take 2 bytes, not 3"},
		{"infinity", Pack(Q8_0, make([]byte, 68), one(64, 40, inf)), "Q8_0: element 40 is +Inf; it must be finite"},
		{"NaN", Pack(Q6_K, make([]byte, 210), one(256, 0, inf-inf)), "Q6_K: element 0 is NaN; it must be finite"},
		{"too large for Q8_0", Pack(Q8_0, make([]byte, 68), one(64, 63, 1e7)), "Q8_0: elements 32 to 63 are too large for the scale of a block"},
		{"too large for Q4_0", Pack(Q4_0, make([]byte, 18), one(32, 0, -6e5)), "Q4_0: elements 0 to 31 are too large for the scale of a block"},
		{"too large for Q4_K", Pack(Q4_K, make([]byte, 144), one(256, 0, math.MaxFloat32)), "Q4_K: elements 0 to 255 are too large for the scale of a block"},
		{"too large for Q4_1", Pack(Q4_1, make([]byte, 20), one(32, 3, -1e5)), "Q4_1: elements 0 to 31 are too large for the scale of a block"},
		{"too large for Q5_0", Pack(Q5_0, make([]byte, 22), one(32, 3, 2e6)), "Q5_0: elements 0 to 31 are too large for the scale of a block"},
		{"too large for Q2_K", Pack(Q2_K, make([]byte, 84), one(256, 3, -1e30)), "Q2_K: elements 0 to 255 are too large for the scale of a block"},
		{"too large for Q3_K", Pack(Q3_K, make([]byte, 110), one(256, 3, math.MaxFloat32)), "Q3_K: elements 0 to 255 are too large for the scale of a block"},
		{"too large for IQ4_XS", Pack(IQ4_XS, make([]byte, 136), one(256, 3, math.MaxFloat32)), "IQ4_XS: elements 0 to 255 are too large for the scale of a block"},
		{"largest in MXFP4", Pack(MXFP4, make([]byte, 17), one(32, 3, -math.MaxFloat32)), ""},
		{"too small for Q4_K", Pack(Q4_K, make([]byte, 144), one(256, 0, -math.MaxFloat32)), "Q4_K: elements 0 to 255 are too large for the scale of a block"},
		{"too large for Q6_K", Pack(Q6_K, make([]byte, 210), one(256, 7, math.MaxFloat32)), "Q6_K: elements 0 to 255 are too large for the scale of a block"},
		{"nothing", Unpack(Q4_K, nil, nil), ""},
		{"infinity in a half", Pack(F16, make([]byte, 2), one(1, 0, inf)), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if c.err != nil {
				got = c.err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestQ4KScale(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		var sc, m [8]uint8
		for j := range 8 {
			sc[j], m[j] = uint8(rng.IntN(64)), uint8(rng.IntN(64))
		}
		scales := make([]byte, 12)
		putQ4KScales(scales, &sc, &m)
		for j := range 8 {
			if s, l := q4KScale(scales, j); s != sc[j] || l != m[j] {
				t.Fatalf("sub-block %d: got %d, %d, want %d, %d", j, s, l, sc[j], m[j])
			}
		}
	}
}

// FuzzUnpack: any bytes unpack, and what they give is refused or packed, never a panic.
func FuzzUnpack(f *testing.F) {
	f.Add(uint8(5), make([]byte, 144))
	f.Add(uint8(6), bytes.Repeat([]byte{0xff}, 210))
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		typ := all[int(which)%len(all)]
		elems, size, _ := typ.Block()
		n := len(data) / size
		values := make([]float32, n*elems)
		if err := Unpack(typ, values, data[:n*size]); err != nil {
			t.Fatal(err)
		}
		_ = Pack(typ, make([]byte, n*size), values) // refusal is fine, a panic is not
	})
}

// BenchmarkPack is the speed of quantising in one thread; a value is 4 bytes.
func BenchmarkPack(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, 1<<16)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for _, typ := range all {
		b.Run(typ.String(), func(b *testing.B) {
			size, _ := typ.RowBytes(len(x))
			blocks := make([]byte, size)
			for b.Loop() {
				if err := Pack(typ, blocks, x); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*float64(len(x))/b.Elapsed().Seconds()/1e6, "Mvalues/s")
		})
	}
}
