package kernel

import "math"

// The functions of this file are written with [FMA32], bit tricks and no tables, so that a vector
// unit can follow them lane by lane to the same bits (N7). Their polynomials are least-maximum fits
// of the relative error, with coefficients rounded one after the other.

const (
	expMax = 88.9  // above, e**x overflows
	expMin = -87.5 // below, Exp32 is 0

	log2e   = 0x1.715476p+0
	ln2High = 0x1.62e4p-1 // 15 bits, so that its product with an exponent is exact
	ln2Low  = 0x1.7f7d1cp-20
	ln2     = 0x1.62e43p-1

	roundMagic = 0x1.8p+23 // adding it rounds to an integer, which the low bits then hold

	exp1 = 2 // 2 e**r = exp1 + r (exp1 + r (exp2 + r (exp3 + ...)))
	exp2 = 0x1.fffffcp-1
	exp3 = 0x1.555492p-2
	exp4 = 0x1.5558aep-4
	exp5 = 0x1.12398p-6
	exp6 = 0x1.6a4f28p-9

	sqrtHalfBits = 0x3f3504f3 // the bits of sqrt(1/2)

	log3 = 0x1.555554p-2 // log(1+f) = f + f f (-1/2 + f (log3 + f (log4 + ...)))
	log4 = -0x1.000226p-2
	log5 = 0x1.99a01cp-3
	log6 = -0x1.54728ap-3
	log7 = 0x1.22d93p-3
	log8 = -0x1.0d8246p-3
	log9 = 0x1.055eaep-3
	logA = -0x1.38c974p-4

	halfBits = 0x3f000000 // of 1/2
	infBits  = 0x7f800000
)

var (
	inf     = math.Float32frombits(infBits)
	negInf  = -inf
	negZero = math.Float32frombits(1 << 31)
)

// Exp32 returns e**x within 1 ulp. It is +Inf where that overflows, 0 below -86.99, where e**x is less
// than 2**-125.5, and NaN where x is NaN.
func Exp32(x float32) float32 {
	if x < expMin {
		x = expMin
	}
	if x > expMax {
		x = expMax
	}
	h, r, s := expParts(x)
	return float32(FMA32(h, r, exp1) * s)
}

// expParts splits an x from expMin to expMax into n ln(2) + r, |r| <= ln(2)/2, and returns h and s
// with 2 e**r = 2 + h r and s = 2**(n-1), which is 0 for an n of -126.
func expParts(x float32) (h, r, s float32) {
	t := FMA32(x, log2e, roundMagic)
	n := t - roundMagic
	r = FMA32(n, -ln2High, x)
	r = FMA32(n, -ln2Low, r)
	h = FMA32(exp6, r, exp5)
	h = FMA32(h, r, exp4)
	h = FMA32(h, r, exp3)
	h = FMA32(h, r, exp2)
	h = FMA32(h, r, exp1)
	return h, r, math.Float32frombits(math.Float32bits(t)<<23 + halfBits)
}

// tanh32 returns the hyperbolic tangent within 3 ulp: m/(m+2) with m = e**2|x| - 1, which keeps its
// precision beside 0, and the sign of x.
func tanh32(x float32) float32 {
	a := math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
	if a > 10 { // where the result is 1; a NaN passes
		a = 10
	}
	h, r, s := expParts(a + a)
	m := FMA32(float32(h*r), s, s+s-1)
	t := math.Float32bits(m / (m + 2))
	return math.Float32frombits(t | math.Float32bits(x)&(1<<31))
}

// Log32 returns the natural logarithm of x within 2 ulp, for subnormal x too. It is -Inf at 0, NaN
// below, and x itself where x is +Inf or NaN.
func Log32(x float32) float32 {
	switch {
	case x != x || x == inf:
		return x
	case x < 0:
		return float32(math.NaN())
	case x == 0:
		return negInf
	case x < 0x1p-126:
		e, f := logParts(x * 0x1p+23)
		return log1p(e-23, f)
	}
	return log1p(logParts(x))
}

// logParts splits a positive normal x = 2**e (1+f) with sqrt(1/2) <= 1+f < sqrt(2).
func logParts(x float32) (e, f float32) {
	b := math.Float32bits(x)
	k := int32(b-sqrtHalfBits) >> 23
	return float32(k), math.Float32frombits(b-uint32(k)<<23) - 1
}

// log1p returns e ln(2) + log(1+f) for an f between sqrt(1/2)-1 and sqrt(2)-1.
func log1p(e, f float32) float32 {
	h := FMA32(logA, f, log9)
	h = FMA32(h, f, log8)
	h = FMA32(h, f, log7)
	h = FMA32(h, f, log6)
	h = FMA32(h, f, log5)
	h = FMA32(h, f, log4)
	h = FMA32(h, f, log3)
	h = FMA32(h, f, -0.5)
	return FMA32(e, ln2, FMA32(float32(f*f), h, f))
}
