package quant

import "math"

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

// packQ4_K fits scale and minimum of each sub-block, rounds those to 6 bits under the block's two
// halves, then rounds the elements under what the reader will see.
func packQ4_K(b []byte, src []float32) bool {
	var scale, low [8]float32
	for j := range 8 {
		scale[j], low[j] = fitAffine(src[32*j:][:32])
	}
	d, dmin := maxOf(scale[:])/63, maxOf(low[:])/63
	ok := putHalf(b[Q4_KD:], d) && putHalf(b[Q4_KMin:], dmin)
	d, dmin = half(b[Q4_KD:]), half(b[Q4_KMin:])

	var sc, m [8]uint8
	for j := range 8 {
		sc[j] = uint8(clampRound(scale[j]*inverse(d), 0, 63))
		m[j] = uint8(clampRound(low[j]*inverse(dmin), 0, 63))
	}
	putQ4KScales(b[Q4_KScales:Q4_KQ], &sc, &m)

	for j := range 8 {
		inv, base := inverse(d*float32(sc[j])), float32(dmin*float32(m[j]))
		q := b[Q4_KQ+j/2*32:][:32]
		for i, x := range src[32*j:][:32] {
			n := byte(clampRound((x+base)*inv, 0, 15))
			if j%2 == 0 {
				q[i] = n
			} else {
				q[i] |= n << 4
			}
		}
	}
	return ok
}

// fitAffine returns scale > 0 and low >= 0 such that x is near scale*q - low for q in 0..15.
// It starts from the range of x and improves twice by least squares over the quants found.
func fitAffine(x []float32) (scale, low float32) {
	lo, hi := float32(0), x[0]
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	if hi <= lo {
		return 0, -lo
	}
	scale, low = (hi-lo)/15, -lo
	best := affineError(x, scale, low)
	for range 2 {
		inv := inverse(scale)
		var n, sq, sqq, sx, sqx float64
		for _, v := range x {
			q := float64(clampRound((v+low)*inv, 0, 15))
			n, sq, sqq, sx, sqx = n+1, sq+q, sqq+float64(q*q), sx+float64(v), sqx+float64(q*float64(v))
		}
		det := float64(n*sqq) - float64(sq*sq)
		if det <= 0 {
			break
		}
		s := float32((float64(n*sqx) - float64(sq*sx)) / det)
		l := float32((float64(sq*sqx) - float64(sqq*sx)) / det)
		if l < 0 { // a minimum cannot be positive: fit the line through zero
			s, l = float32(sqx/sqq), 0
		}
		e := affineError(x, s, l)
		if s <= 0 || e >= best {
			break
		}
		scale, low, best = s, l, e
	}
	return scale, low
}

// affineError returns the squared error of x under the best quants for scale and low.
func affineError(x []float32, scale, low float32) (sum float64) {
	inv := inverse(scale)
	for _, v := range x {
		q := clampRound((v+low)*inv, 0, 15)
		e := float64(float32(scale*float32(q))) - float64(low) - float64(v)
		sum += float64(e * e)
	}
	return sum
}

// packQ6_K gives each sub-block the scale that maps its peak to -32, refined by least squares,
// rounds the scales to 8 bits under the block's half, then rounds the elements under those.
func packQ6_K(b []byte, src []float32) bool {
	var scale [16]float32
	for s := range 16 {
		scale[s] = fitSymmetric(src[16*s:][:16])
	}
	peak := peakOf(scale[:])
	ok := putHalf(b[Q6_KD:], peak/-128) // the peak becomes -128, the longer side of int8
	d := half(b[Q6_KD:])
	clear(b[:Q6_KScales])
	for s := range 16 {
		sc := clampRound(scale[s]*inverse(d), -128, 127)
		b[Q6_KScales+s] = byte(int8(sc))
		inv := inverse(d * float32(sc))
		for i, x := range src[16*s:][:16] {
			q := clampRound(x*inv, -32, 31) + 32
			low, ls, high, hs := q6At(16*s + i)
			b[low] |= byte(q&15) << ls
			b[high] |= byte(q>>4) << hs
		}
	}
	return ok
}

// fitSymmetric returns a scale, of any sign, such that x is near scale*q for q in -32..31.
func fitSymmetric(x []float32) float32 {
	scale := peakOf(x) / -32
	inv := inverse(scale)
	var sqq, sqx float64
	for _, v := range x {
		q := float64(clampRound(v*inv, -32, 31))
		sqq, sqx = sqq+float64(q*q), sqx+float64(q*float64(v))
	}
	if sqq == 0 {
		return 0
	}
	return float32(sqx / sqq)
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

// clampRound returns x rounded to the nearest integer within lo and hi.
func clampRound(x float32, lo, hi int) int {
	return int(min(max(math.RoundToEven(float64(x)), float64(lo)), float64(hi)))
}
