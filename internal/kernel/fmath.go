package kernel

import "math"

// The functions of this file are written with [FMA32], bit tricks and no tables, so that a vector
// unit can follow them lane by lane to the same bits (N7). Their polynomials are least-maximum fits
// of the relative error, with coefficients rounded one after the other.

const (
	expMax = 0x1.62e42ep+6  // the largest x whose exponential is finite
	expMin = -0x1.5d589ep+6 // the smallest x whose exponential is a normal number

	log2e   = 0x1.715476p+0
	ln2High = 0x1.62e4p-1 // 15 bits, so that its product with an exponent is exact
	ln2Low  = 0x1.7f7d1cp-20
	ln2     = 0x1.62e43p-1

	roundMagic = 0x1.8p+23 // adding it rounds to an integer, which the low bits then hold

	exp2 = 0x1.fffffcp-2 // e**r = 1 + r (1 + r (exp2 + r (exp3 + ...)))
	exp3 = 0x1.555492p-3
	exp4 = 0x1.5558aep-5
	exp5 = 0x1.12398p-7
	exp6 = 0x1.6a4f28p-10

	sqrtHalfBits = 0x3f3504f3 // the bits of sqrt(1/2)

	log3 = 0x1.555554p-2 // log(1+f) = f + f f (-1/2 + f (log3 + f (log4 + ...)))
	log4 = -0x1.000226p-2
	log5 = 0x1.99a01cp-3
	log6 = -0x1.54728ap-3
	log7 = 0x1.22d93p-3
	log8 = -0x1.0d8246p-3
	log9 = 0x1.055eaep-3
	logA = -0x1.38c974p-4

	oneBits = 0x3f800000
	infBits = 0x7f800000
)

var (
	inf    = math.Float32frombits(infBits)
	negInf = -inf
)

// Exp32 returns e**x within 1 ulp. It is +Inf above 88.72283, 0 below -87.33654, where the result
// would be subnormal, and x itself where x is NaN.
func Exp32(x float32) float32 {
	switch {
	case x != x:
		return x
	case x > expMax:
		return inf
	case x < expMin:
		return 0
	}
	h, r, n := expParts(x)
	return math.Float32frombits(math.Float32bits(FMA32(h, r, 1)) + n<<23)
}

// expParts splits x = n ln(2) + r, |r| <= ln(2)/2, and returns h with e**r = 1 + h r. Only the low
// bits of n are the integer.
func expParts(x float32) (h, r float32, n uint32) {
	t := FMA32(x, log2e, roundMagic)
	k := t - roundMagic
	r = FMA32(k, -ln2High, x)
	r = FMA32(k, -ln2Low, r)
	h = FMA32(exp6, r, exp5)
	h = FMA32(h, r, exp4)
	h = FMA32(h, r, exp3)
	h = FMA32(h, r, exp2)
	h = FMA32(h, r, 1)
	return h, r, math.Float32bits(t)
}

// tanh32 returns the hyperbolic tangent within 3 ulp: m/(m+2) with m = e**2|x| - 1, which keeps its
// precision beside 0, and the sign of x.
func tanh32(x float32) float32 {
	a := math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
	if a > 10 { // where the result is 1; a NaN passes
		a = 10
	}
	h, r, n := expParts(a + a)
	s := math.Float32frombits(n<<23 + oneBits)
	m := FMA32(float32(h*r), s, s-1)
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
