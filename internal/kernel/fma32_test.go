package kernel

import (
	"math"
	"math/big"
	"testing"
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
		if err := equalBits([]float32{exactFMA(x, y, z)}, []float32{FMA32(x, y, z)}); err != nil {
			t.Fatalf("FMA32(%x, %x, %x): %v", x, y, z, err)
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
