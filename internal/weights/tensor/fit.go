package tensor

import "math"

// The searches for the scales of a sub-block. Every candidate gives integers, integers give the scales of
// least squared error in closed form, and those the error, without a second pass over the elements. All is
// float64 with every product rounded, so that no machine's fused operation changes a byte.

// maxSub is the elements of the largest sub-block.
const maxSub = 32

// rounder, added and subtracted, rounds a float64 of modest size to the nearest integer, ties to even.
const rounder = 3 << 51

// An affineFit looks for scale >= 0 and low such that x is near scale*q - low for integers q in 0..top.
type affineFit struct {
	x          []float32
	above      [maxSub]float64 // x less the smallest, or less zero
	w, wx      [maxSub]float64 // weights, and those times x
	sw, sx     float64         // sums of w and w*x
	sxx        float64         // and w*x*x
	top        float64
	anySign    bool // low may be negative
	best       float64
	scale, low float64
}

// fitAffine returns the best scale and low that trying some steps of scales around that of the range of
// x finds. Elements count by their magnitude, plus their root mean square where there are integers enough for
// small ones.
func fitAffine(x []float32, top, steps int, anySign bool) (scale, low float32) {
	f := affineFit{x: x, top: float64(top), anySign: anySign}
	lo, hi := x[0], x[0]
	for _, v := range x {
		if v < lo {
			lo = v
		} else if v > hi {
			hi = v
		}
	}
	if !anySign {
		lo = min(lo, 0)
	}
	if hi <= lo {
		return 0, -lo
	}
	f.weigh(float64(lo))
	rangeOf := float64(hi) - float64(lo)
	f.scale, f.low = rangeOf/f.top, -float64(lo)
	f.best = f.sxx * 2
	for i := range steps {
		f.try((f.top + 2*float64(i)/float64(steps-1) - 1) / rangeOf)
	}
	f.refine()
	return float32(f.scale), float32(f.low)
}

// weigh fills the weights and their sums.
func (f *affineFit) weigh(lo float64) {
	base := 0.0
	if f.top > 3 {
		for _, v := range f.x {
			base += float64(float64(v) * float64(v))
		}
		base = math.Sqrt(base / float64(len(f.x)))
	}
	for i, v := range f.x {
		v := float64(v)
		w := base + math.Abs(v)
		wx := float64(w * v)
		f.above[i], f.w[i], f.wx[i] = v-lo, w, wx
		f.sw, f.sx, f.sxx = f.sw+w, f.sx+wx, f.sxx+float64(wx*v)
	}
}

// try takes the integers of a scale, given by its inverse. Two chains of sums run side by side: one would wait for its
// additions.
func (f *affineFit) try(inv float64) {
	var sq0, sqq0, sxq0, sq1, sqq1, sxq1 float64
	y, top := f.above[:len(f.x)], f.top
	w, wx := f.w[:len(y)], f.wx[:len(y)]
	for i := 1; i < len(y); i += 2 {
		q0, q1 := float64(y[i-1]*inv)+rounder-rounder, float64(y[i]*inv)+rounder-rounder
		if q0 > top {
			q0 = top
		}
		if q1 > top {
			q1 = top
		}
		wq0, wq1 := float64(w[i-1]*q0), float64(w[i]*q1)
		sq0, sq1 = sq0+wq0, sq1+wq1
		sqq0, sqq1 = sqq0+float64(wq0*q0), sqq1+float64(wq1*q1)
		sxq0, sxq1 = sxq0+float64(wx[i-1]*q0), sxq1+float64(wx[i]*q1)
	}
	f.take(sq0+sq1, sqq0+sqq1, sxq0+sxq1)
}

// refine takes the integers of the best scale and low so far.
func (f *affineFit) refine() {
	if f.scale == 0 {
		return
	}
	var sq, sqq, sxq float64
	inv := 1 / f.scale
	for i, v := range f.x {
		q := clamp(float64((float64(v)+f.low)*inv), 0, f.top) + rounder - rounder
		wq := float64(f.w[i] * q)
		sq += wq
		sqq += float64(wq * q)
		sxq += float64(f.wx[i] * q)
	}
	f.take(sq, sqq, sxq)
}

// take keeps the scale and low of least error for integers of which the weighted sums are given, if that is
// the least so far.
func (f *affineFit) take(sq, sqq, sxq float64) {
	det := float64(f.sw*sqq) - float64(sq*sq)
	if det <= 0 || sqq <= 0 {
		return
	}
	scale := (float64(f.sw*sxq) - float64(sq*f.sx)) / det
	low := (float64(sq*sxq) - float64(sqq*f.sx)) / det
	if low < 0 && !f.anySign {
		scale, low = sxq/sqq, 0
	}
	e := float64(scale*(float64(scale*sqq)-2*sxq-float64(2*low*sq))) + float64(low*(float64(low*f.sw)+2*f.sx)) + f.sxx
	if scale > 0 && e < f.best {
		f.scale, f.low, f.best = scale, low, e
	}
}

// clamp returns x within lo and hi. The built-in functions would look for NaN and -0, which takes a while.
func clamp[T float32 | float64](x, lo, hi T) T {
	if x > hi {
		return hi
	}
	if x < lo {
		return lo
	}
	return x
}

// fitSymmetric returns a scale, of any sign, such that x is near scale*q for q in -n..n-1, elements
// counting by their square. It tries scales around the one that maps the peak of x to -n.
func fitSymmetric(x []float32, n, steps int) float32 {
	peak := float64(peakOf(x))
	if peak == 0 {
		return 0
	}
	w, wx := squareWeights(x, peak)
	bottom, top := float64(-n), float64(n-1)
	best, scale := 0.0, 0.0
	for s := range steps {
		inv := (bottom + 2*float64(s)/float64(steps-1) - 1) / peak
		var sqq, sxq float64
		for i, v := range x {
			q := clamp(float64(float64(v)*inv), bottom, top) + rounder - rounder
			sqq += float64(float64(w[i]*q) * q)
			sxq += float64(wx[i] * q)
		}
		if score := sxq * sxq; score > float64(best*sqq) {
			best, scale = score/sqq, sxq/sqq
		}
	}
	return float32(scale * peak)
}

// squareWeights returns weights, the squares of x over its peak, and those times x over its peak.
func squareWeights(x []float32, peak float64) (w, wx [maxSub]float64) {
	for i, v := range x {
		v := float64(v) / peak
		w[i] = float64(v * v)
		wx[i] = float64(w[i] * v)
	}
	return w, wx
}

// fitCodes returns a scale, of any sign, such that x is near scale times values of iq4Values, elements
// counting by their square. It tries scales around those that map the peak of x to either end.
func fitCodes(x []float32) float32 {
	peak := float64(peakOf(x))
	if peak == 0 {
		return 0
	}
	w, wx := squareWeights(x, peak)
	best, scale := 0.0, 0.0
	for _, end := range [...]float64{float64(iq4Values[0]), float64(iq4Values[15])} {
		for step := -12.0; step <= 12; step += 4 {
			inv := (end + step) / peak
			var sqq, sxq float64
			for i, v := range x {
				q := float64(iq4Values[iq4Nearest(float64(float64(v)*inv))])
				sqq += float64(float64(w[i]*q) * q)
				sxq += float64(wx[i] * q)
			}
			if score := float64(sxq * sxq); score > float64(best*sqq) {
				best, scale = score/sqq, sxq/sqq
			}
		}
	}
	return float32(scale * peak)
}
