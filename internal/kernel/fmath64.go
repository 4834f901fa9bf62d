package kernel

import "math"

// The functions of this file make rotary tables, once a model and position, so they need to be the
// same on every machine, and need not be fast. No product is fused with a sum.

const (
	ln2High64 = 0x1.62e42fefa38p-1 // 42 bits: its product with an exponent is exact
	ln2Low64  = 0x1.ef35793c7673p-45

	// pi/2 as a sum, the first two of 30 bits: their products with counts below 2**23 are exact.
	halfPi1 = 0x1.921fb54p+0
	halfPi2 = 0x1.10b46118p-30
	halfPi3 = 0x1.313198a2e037p-61
)

// Exp64 returns e**x within 2 ulp for |x| <= 700. It is +Inf above 709 and 0 below -708.
func Exp64(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > 709:
		return math.Inf(1)
	case x < -708:
		return 0
	}
	n := math.RoundToEven(x * (1 / math.Ln2))
	r := x - float64(n*ln2High64) - float64(n*ln2Low64)
	p := 1.0
	for k := 14.0; k > 0; k-- { // Taylor's series, (1 + r/1 (1 + r/2 (1 + ...)))
		p = 1 + float64(p*r)/k
	}
	return math.Ldexp(p, int(n))
}

// Log64 returns the natural logarithm of a positive, normal, finite x within 2 ulp, or within 1e-16
// beside 1.
func Log64(x float64) float64 {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = m*2, e-1
	}
	// log(m) = 2 artanh(s), a series in odd powers of s with |s| < 0.172.
	s := (m - 1) / (m + 1)
	z := float64(s * s)
	p := 0.0
	for k := 23.0; k > 1; k -= 2 {
		p = float64(p*z) + 1/k
	}
	p = float64(p * z)
	return float64(float64(e)*ln2High64) + (float64(2*(s+float64(s*p))) + float64(float64(e)*ln2Low64))
}

// Pow64 returns x**y for a positive, normal, finite x, with a relative error below
// (2 + |y log x|) 2**-52.
func Pow64(x, y float64) float64 { return Exp64(float64(y * Log64(x))) }

// SinCos64 returns the sine and the cosine of x radians within 1e-15 for |x| <= 1e7, and NaN beyond.
func SinCos64(x float64) (sin, cos float64) {
	if !(math.Abs(x) <= 1e7) {
		return math.NaN(), math.NaN()
	}
	n := math.RoundToEven(x * (2 / math.Pi))
	r := x - float64(n*halfPi1) - float64(n*halfPi2) - float64(n*halfPi3)
	z := float64(r * r)
	s, c := 1.0, 1.0
	for k := 18.0; k > 0; k -= 2 { // Taylor's series, as in Exp64
		s = 1 - float64(s*z)/(k*(k+1))
		c = 1 - float64(c*z)/(k*(k-1))
	}
	s = float64(s * r)
	switch int(n) & 3 {
	case 0:
		return s, c
	case 1:
		return c, -s
	case 2:
		return -s, -c
	default:
		return -c, s
	}
}
