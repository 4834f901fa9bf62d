package codec

import (
	"encoding/binary"
	"math"
)

func packQ8_0(b []byte, src []float32) bool {
	peak := peakOf(src)
	d := float32(math.Abs(float64(peak))) / 127
	inv := inverse(d)
	for i, x := range src {
		b[Q8_0Q+i] = byte(int8(math.Round(float64(x * inv)))) // half away from zero, as C's roundf
	}
	return putHalf(b[Q8_0D:], d)
}

func packQ4_0(b []byte, src []float32) bool {
	d := peakOf(src) / -8 // the peak becomes -8, the longer side of the range
	inv := inverse(d)
	nibble := func(x float32) byte { return byte(min(15, int(float32(x*inv)+8.5))) }
	for i := range 16 {
		b[Q4_0Q+i] = nibble(src[i]) | nibble(src[i+16])<<4
	}
	return putHalf(b[Q4_0D:], d)
}

func packQ4_1(b []byte, src []float32) bool {
	d, m, ok := packAffine(b[Q4_1D:], src, 15)
	inv := inverse(d)
	for i := range 16 {
		b[Q4_1Q+i] = byte(clampRound((src[i]-m)*inv, 0, 15) | clampRound((src[i+16]-m)*inv, 0, 15)<<4)
	}
	return ok
}

// packAffine writes the scale d and the offset m of a block as two halves and returns what a reader sees.
func packAffine(b []byte, src []float32, top int) (d, m float32, ok bool) {
	scale, low := fitAffine(src, top, 7, true)
	ok = putHalf(b, scale)
	ok = putHalf(b[2:], -low) && ok
	return half(b), half(b[2:]), ok
}

func packQ5_0(b []byte, src []float32) bool {
	ok := putHalf(b[Q5_0D:], fitSymmetric(src, 16, 7))
	inv := inverse(half(b[Q5_0D:]))
	put5(b[Q5_0High:], func(i int) int { return clampRound(src[i]*inv, -16, 15) + 16 })
	return ok
}

func packQ5_1(b []byte, src []float32) bool {
	d, m, ok := packAffine(b[Q5_1D:], src, 31)
	inv := inverse(d)
	put5(b[Q5_1High:], func(i int) int { return clampRound((src[i]-m)*inv, 0, 31) })
	return ok
}

// put5 writes the five bits of each element of a block of 32, the inverse of [q5].
func put5(b []byte, bits func(i int) int) {
	var high uint32
	for i := range 16 {
		lower, upper := bits(i), bits(i+16)
		b[4+i] = byte(lower&15 | upper&15<<4)
		high |= uint32(lower>>4)<<i | uint32(upper>>4)<<(i+16)
	}
	binary.LittleEndian.PutUint32(b, high)
}

// peakOf returns the element of largest magnitude with its sign, the first of equals.
func peakOf(x []float32) float32 {
	var peak, mag float32
	for _, v := range x {
		if a := max(v, -v); a > mag {
			peak, mag = v, a
		}
	}
	return peak
}

func maxOf(x []float32) float32 {
	m := x[0]
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

// inverse returns 1/d, or 0 where that is not finite: the scale of a block of zeros, or of values
// so small that its half is zero whatever the quants.
func inverse(d float32) float32 {
	if inv := 1 / d; inv-inv == 0 {
		return inv
	}
	return 0
}

// clampRound returns x rounded to the nearest integer, ties to even, within lo and hi, which are small.
func clampRound(x float32, lo, hi int) int {
	const rounder = 3 << 22
	return int(int32(clamp(x, float32(lo), float32(hi)) + rounder - rounder))
}
