package kernel

import "math"

// FMA32 returns x*y + z rounded once, to the nearest float32, ties to even: what a fused
// multiply-add instruction gives. It is the only float32 arithmetic of the chains of N1.
//
// The product is exact in float64, so the sum has one rounding, and rounding it again to float32
// changes nothing except where the sum lies halfway between two float32 values, or where the
// result has fewer bits than a normal float32: fma32Slow repairs these.
func FMA32(x, y, z float32) float32 {
	s := float64(x)*float64(y) + float64(z)
	if doubtful(s) {
		return fma32Slow(x, y, z)
	}
	return float32(s)
}

// doubtful reports whether rounding s to float32 may differ from rounding the exact sum once.
func doubtful(s float64) bool {
	b := math.Float64bits(s)
	return b&(1<<29-1) == 1<<28 || b<<1 < minNormal32<<1
}

// minNormal32 is the smallest normal float32, as the bits of a float64.
const minNormal32 = (1023 - 126) << 52

// fma32Slow rounds the sum to odd before it rounds to float32, which then sees on which side of
// the halfway point the exact value lies (Boldo and Melquiond 2008, theorem 3).
//
//go:noinline
func fma32Slow(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	// The exact error of the sum (Knuth's TwoSum). Every term is finite here, as the sum of an
	// infinity or a NaN has neither pattern that leads to this place.
	v := s - p
	err := (p - (s - v)) + (c - v)
	b := math.Float64bits(s)
	if err != 0 && b&1 == 0 {
		if (err > 0) == (s > 0) {
			b++
		} else {
			b--
		}
	}
	return float32(math.Float64frombits(b))
}
