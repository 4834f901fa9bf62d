package codec

import "math"

// Super-blocks are packed alike: fit the scale of each sub-block, round the scales under the block's half, then
// round the elements under what a reader will see.

func packQ2_K(b []byte, src []float32) bool {
	var scale, low [16]float32
	for s := range scale {
		scale[s], low[s] = fitAffine(src[16*s:][:16], 3, 15, false)
	}
	d, dmin, ok := putMaxima(b[Q2_KD:], scale[:], low[:], 15)
	clear(b[Q2_KQ:Q2_KD])
	for s := range scale {
		sc, m := clampRound(scale[s]*inverse(d), 0, 15), clampRound(low[s]*inverse(dmin), 0, 15)
		b[Q2_KScales+s] = byte(sc | m<<4)
		inv, base := inverse(d*float32(sc)), float32(dmin*float32(m))
		at, shift := q2At(16 * s)
		for i, x := range src[16*s:][:16] {
			b[Q2_KQ+at+i] |= byte(clampRound((x+base)*inv, 0, 3) << shift)
		}
	}
	return ok
}

// putMaxima writes the halves under which the largest scale and the largest low become top, and returns what a
// reader sees.
func putMaxima(b []byte, scale, low []float32, top float32) (d, dmin float32, ok bool) {
	ok = putHalf(b, maxOf(scale)/top)
	ok = putHalf(b[2:], maxOf(low)/top) && ok
	return half(b), half(b[2:]), ok
}

func packQ3_K(b []byte, src []float32) bool {
	var scale [16]float32
	for s := range scale {
		scale[s] = fitSymmetric(src[16*s:][:16], 4, 13)
	}
	ok := putHalf(b[Q3_KD:], peakOf(scale[:])/-32) // the peak becomes -32, the longer side of the range
	d := half(b[Q3_KD:])
	clear(b[:Q3_KD])
	for s := range scale {
		sc := clampRound(scale[s]*inverse(d), -32, 31)
		b[Q3_KScales+s%8] |= byte((sc+32)&15) << (s / 8 * 4)
		b[Q3_KScales+8+s%4] |= byte((sc+32)>>4) << (s / 4 * 2)
		inv := inverse(d * float32(sc))
		at, shift := q2At(16 * s)
		for i, x := range src[16*s:][:16] {
			q := clampRound(x*inv, -4, 3) + 4
			b[Q3_KQ+at+i] |= byte(q&3) << shift
			b[Q3_KHigh+(at+i)%32] |= byte(q>>2) << (s / 2)
		}
	}
	return ok
}

func packQ4_K(b []byte, src []float32) bool {
	return packNibbles(b[Q4_KD:], src, 15, func(j, i, q int) { b[Q4_KQ+j/2*32+i] |= byte(q << (j % 2 * 4)) })
}

func packQ5_K(b []byte, src []float32) bool {
	return packNibbles(b[Q5_KD:], src, 31, func(j, i, q int) {
		b[Q5_KQ+j/2*32+i] |= byte(q & 15 << (j % 2 * 4))
		b[Q5_KHigh+i] |= byte(q >> 4 << j)
	})
}

// packNibbles writes the halves and scales of a Q4_K or Q5_K block and calls put, the rest being clear, for
// the quants of each sub-block.
func packNibbles(b []byte, src []float32, top int, put func(j, i, q int)) bool {
	var scale, low [8]float32
	for j := range scale {
		scale[j], low[j] = fitAffine(src[32*j:][:32], top, 7, false)
	}
	d, dmin, ok := putMaxima(b, scale[:], low[:], 63)
	var sc, m [8]uint8
	for j := range sc {
		sc[j] = uint8(clampRound(scale[j]*inverse(d), 0, 63))
		m[j] = uint8(clampRound(low[j]*inverse(dmin), 0, 63))
	}
	putQ4KScales(b[Q4_KScales:Q4_KQ], &sc, &m)
	clear(b[Q4_KQ:])
	for j := range sc {
		inv, base := inverse(d*float32(sc[j])), float32(dmin*float32(m[j]))
		for i, x := range src[32*j:][:32] {
			put(j, i, clampRound((x+base)*inv, 0, top))
		}
	}
	return ok
}

func packQ6_K(b []byte, src []float32) bool {
	var scale [16]float32
	for s := range scale {
		scale[s] = fitSymmetric(src[16*s:][:16], 32, 5)
	}
	ok := putHalf(b[Q6_KD:], peakOf(scale[:])/-128) // the peak becomes -128, the longer side of int8
	d := half(b[Q6_KD:])
	clear(b[:Q6_KScales])
	for s := range scale {
		sc := clampRound(scale[s]*inverse(d), -128, 127)
		b[Q6_KScales+s] = byte(int8(sc))
		inv := inverse(d * float32(sc))
		at, ls, high, hs := q6At(16 * s)
		for i, x := range src[16*s:][:16] {
			q := clampRound(x*inv, -32, 31) + 32
			b[at+i] |= byte(q&15) << ls
			b[high+i] |= byte(q>>4) << hs
		}
	}
	return ok
}

func packIQ4_NL(b []byte, src []float32) bool {
	ok := putHalf(b[IQ4_NLD:], fitCodes(src))
	packCodes(b[IQ4_NLQ:], src, half(b[IQ4_NLD:]))
	return ok
}

func packIQ4_XS(b []byte, src []float32) bool {
	var scale [8]float32
	for j := range scale {
		scale[j] = fitCodes(src[32*j:][:32])
	}
	ok := putHalf(b[IQ4_XSD:], peakOf(scale[:])/-32)
	d := half(b[IQ4_XSD:])
	clear(b[IQ4_XSScales:IQ4_XSQ])
	for j := range scale {
		sc := clampRound(scale[j]*inverse(d), -32, 31)
		b[IQ4_XSScales+j/4] |= byte((sc+32)>>4) << (j % 4 * 2)
		b[IQ4_XSScales+2+j/2] |= byte((sc+32)&15) << (j % 2 * 4)
		packCodes(b[IQ4_XSQ+16*j:], src[32*j:], d*float32(sc))
	}
	return ok
}

// packCodes writes the nibbles of 32 elements.
func packCodes(b []byte, src []float32, d float32) {
	inv := inverse(d)
	code := func(x float32) byte { return iq4Nearest(float64(x * inv)) }
	for i := range 16 {
		b[i] = code(src[i]) | code(src[i+16])<<4
	}
}

// packMXFP4 takes the exponent that brings the peak below twice the largest value, or the next, whichever has
// the smaller squared error.
func packMXFP4(b []byte, src []float32) bool {
	e := 0
	if peak := float64(peakOf(src)); peak != 0 {
		_, log := math.Frexp(peak)
		e = min(max(log-3+127, 0), 254)
		if fp4Error(src, e+1) < fp4Error(src, e) {
			e++
		}
	}
	b[MXFP4E] = byte(e)
	inv := math.Ldexp(1, 128-e)
	for i := range 16 {
		b[MXFP4Q+i] = fp4Nearest(float64(src[i])*inv) | fp4Nearest(float64(src[i+16])*inv)<<4
	}
	return true
}

// fp4Error returns the squared error of x under an exponent.
func fp4Error(x []float32, e int) (sum float64) {
	d := math.Ldexp(1, e-128)
	for _, v := range x {
		miss := float64(v)/d - float64(FP4Values[fp4Nearest(float64(v)/d)])
		sum += float64(miss * miss)
	}
	return float64(sum * float64(d*d))
}

// fp4Nearest returns the number of the value of FP4Values nearest to v.
func fp4Nearest(v float64) byte {
	code := fp4Nearests[int(2*min(math.Abs(v), 10))]
	if v < 0 && code != 0 {
		code |= 8
	}
	return code
}

// fp4Nearests holds the numbers of the values nearest to steps of a half, which begin where two values are
// equally near.
var fp4Nearests = [21]byte{0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 7}
