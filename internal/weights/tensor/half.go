package tensor

import "math"

// F16ToF32 returns the value of an IEEE 754 binary16 number. It is exact; a NaN keeps its sign and
// payload and comes out quiet, as the conversion instructions of x86 and ARM do it.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	rest := uint32(h & 0x7fff)
	switch {
	case rest < 0x400: // zero or subnormal: a count of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(rest)*0x1p-24))
	case rest < 0x7c00: // normal: widen the fraction, rebase the exponent from 15 to 127
		return math.Float32frombits(sign | rest<<13 + 112<<23)
	case rest == 0x7c00:
		return math.Float32frombits(sign | 0x7f800000)
	default:
		return math.Float32frombits(sign | 0x7fc00000 | rest&0x3ff<<13)
	}
}

// F32ToF16 rounds f to the nearest IEEE 754 binary16 number, ties to even. Values of magnitude
// 65520 and more become infinity; a NaN stays a NaN, quiet, with its sign and the top of its payload.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | uint16(b>>13)&0x3ff
	case b >= 0x47800000: // 65536, beyond the largest number that could round down
		return sign | 0x7c00
	case b >= 0x38800000: // 2^-14, the smallest normal half; a carry may reach infinity, rightly
		b += 0xfff + b>>13&1
		return sign | uint16((b-112<<23)>>13)
	default:
		// Beside 0.5 one unit in the last place is 2^-24, a half's subnormal step, so the
		// addition itself rounds to nearest even and leaves the count in the low bits.
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
}

// BF16ToF32 returns the value of a bfloat16 number, the upper half of a float32. It is exact.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds f to the nearest bfloat16 number, ties to even. Values beyond the largest
// finite one become infinity; a NaN stays a NaN, quiet, with its sign and the top of its payload.
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
