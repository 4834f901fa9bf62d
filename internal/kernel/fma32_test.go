package kernel

import (
	"encoding/binary"
	"math"
	"math/big"
	"testing"

	"grove/tensor"
)

// exactFMA returns x*y+z rounded once, by arithmetic of unlimited precision. Zero, infinity and
// NaN, whose signs need care, are left to float64, which gets them right.
func exactFMA(x, y, z float32) float32 {
	plain := float64(x)*float64(y) + float64(z)
	if plain == 0 || plain-plain != 0 {
		return float32(plain)
	}
	exact := func(v float32) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(float64(v)) }
	p := exact(0).Mul(exact(x), exact(y))
	f, _ := p.Add(p, exact(z)).Float32()
	return f
}

func TestFMA32(t *testing.T) {
	one := math.Float32bits(1)
	special := []float32{
		0, float32(math.Copysign(0, -1)), 1, -1, 0x1p-149, -0x1p-149, 0x1p-126, 0x1.fffffcp-127, 0x1p-24, -0x1p-24,
		0x1p-25, 0x1p-48, 0x1p-60, 1 + 0x1p-23, -1 - 0x1p-23, 1 + 0x1p-12, 1 - 0x1p-12, 0x1p-75, -0x1p-75, 0x1.8p-75,
		math.MaxFloat32, -math.MaxFloat32, 0x1p127, 0x1p64, 0x1p103, 3, 5, 0x1.555556p0,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	}
	check := func(x, y, z float32) {
		t.Helper()
		if d := diffBits([]float32{exactFMA(x, y, z)}, []float32{FMA32(x, y, z)}); d != "" {
			t.Fatalf("FMA32(%x, %x, %x): %s", x, y, z, d)
		}
	}
	for _, x := range special {
		for _, y := range special {
			for _, z := range special {
				check(x, y, z)
			}
		}
	}
	rnd := newRand(3)
	random := func(exponents int) float32 {
		return math.Float32frombits(rnd.Uint32()&(1<<31|1<<23-1) | (one>>23+uint32(rnd.IntN(exponents)-exponents/2))<<23)
	}
	for range 100_000 {
		check(math.Float32frombits(rnd.Uint32()), math.Float32frombits(rnd.Uint32()), math.Float32frombits(rnd.Uint32()))
		x, y := random(20), random(20)
		check(x, y, random(100))
		// Sums that lie near halfway between two float32 values, and near the subnormals.
		half := math.Float32frombits(math.Float32bits(x*y)&^0xfff) * 0x1p-24
		check(x, y, half)
		check(math.Float32frombits(math.Float32bits(x)&^0xfff), math.Float32frombits(math.Float32bits(y)&^0xfff), random(100))
		check(x*0x1p-70, y*0x1p-70, random(4)*0x1p-126)
		check(x*0x1p-63, 0x1p-64, math.Float32frombits(rnd.Uint32N(1<<24)))
	}
}

// TestFMA32Instruction compares with the fused instruction of the machine, reached through
// products of two steps: z*1 + 0, then x*y + z.
func TestFMA32Instruction(t *testing.T) {
	eachImpl(t, func(t *testing.T) {
		f, _ := FormatOf(tensor.F32)
		rnd := newRand(5)
		w := make([]byte, f.PackedSize(lanes, 2))
		x := &Rows{N: 1, K: 2, F: make([]float32, 2)}
		var got, want [lanes]float32
		for range 20_000 {
			for i := 0; i < len(w); i += 4 {
				binary.LittleEndian.PutUint32(w[i:], rnd.Uint32())
			}
			x.F[0], x.F[1] = 1, math.Float32frombits(rnd.Uint32())
			f.MatMul(got[:], lanes, w, lanes, 2, 0, 1, x)
			for j := range want {
				z, v := element(tensor.F32, w[4*j:]), element(tensor.F32, w[4*(lanes+j):])
				want[j] = FMA32(v, x.F[1], FMA32(z, 1, 0))
			}
			if d := diffBits(want[:], got[:]); d != "" {
				t.Fatal(d)
			}
		}
	})
}
