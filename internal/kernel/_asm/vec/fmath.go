package vec

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The constants of fmath.go.
const (
	expMax = 0x1.62e42ep+6
	expMin = -0x1.5d589ep+6

	log2e   = 0x1.715476p+0
	ln2High = 0x1.62e4p-1
	ln2Low  = 0x1.7f7d1cp-20
	ln2     = 0x1.62e43p-1

	roundMagic = 0x1.8p+23

	sqrtHalfBits = 0x3f3504f3
	oneBits      = 0x3f800000
	infBits      = 0x7f800000
	absBits      = 0x7fffffff
)

var (
	expPoly = []float64{0x1.6a4f28p-10, 0x1.12398p-7, 0x1.5558aep-5, 0x1.555492p-3, 0x1.fffffcp-2, 1}
	logPoly = []float64{-0x1.38c974p-4, 0x1.055eaep-3, -0x1.0d8246p-3, 0x1.22d93p-3, -0x1.54728ap-3,
		0x1.99a01cp-3, -0x1.000226p-2, 0x1.555554p-2, -0.5}
)

// horner returns the polynomial c, highest power first, at x.
func horner(x reg.Register, c []float64) reg.VecVirtual {
	h := YMM()
	VMOVUPS(Float(c[0]), h)
	for _, k := range c[1:] {
		VFMADD213PS(Float(k), x, h)
	}
	return h
}

// expParts follows its twin: n holds the bits.
func expParts(x reg.Register) (h, r, n reg.VecVirtual) {
	n, r = YMM(), YMM()
	k := YMM()
	VMOVUPS(Float(log2e), n)
	VFMADD213PS(Float(roundMagic), x, n)
	VSUBPS(Float(roundMagic), n, k)
	VMOVAPS(x, r)
	VFNMADD231PS(Float(ln2High), k, r)
	VFNMADD231PS(Float(ln2Low), k, r)
	return horner(r, expPoly), r, n
}

// ExpNegative returns Exp32 of an x that is not above 0, or NaN.
func ExpNegative(x reg.Register) reg.VecVirtual {
	y, r, n := expParts(x)
	VFMADD213PS(Float(1), r, y)
	VPSLLD(U8(23), n, n)
	VPADDD(n, y, y)
	VCMPPS(Less, Float(expMin), x, n)
	VANDNPS(y, n, y)
	VMAXPS(x, y, y) // x where it is NaN: otherwise exp(x) is greater
	return y
}

// Exp returns Exp32 of any x.
func Exp(x reg.Register) reg.VecVirtual {
	y := ExpNegative(x)
	above, inf := YMM(), YMM()
	VCMPPS(Greater, Float(expMax), x, above)
	VMOVUPS(Bits(infBits), inf)
	VBLENDVPS(above, inf, y, y)
	return y
}

// Tanh returns tanh32.
func Tanh(x reg.Register) reg.VecVirtual {
	a, one := YMM(), YMM()
	VMOVUPS(Float(10), one)
	VANDPS(Bits(absBits), x, a)
	VMINPS(a, one, a) // a where it is NaN
	VADDPS(a, a, a)
	m, r, s := expParts(a)
	VPSLLD(U8(23), s, s)
	VPADDD(Bits(oneBits), s, s)
	VMULPS(r, m, m)
	VSUBPS(Float(1), s, r)
	VFMADD213PS(r, s, m)
	VADDPS(Float(2), m, r)
	VDIVPS(r, m, m)
	VANDPS(Bits(1<<31), x, r)
	VORPS(r, m, m)
	return m
}

// LogParts returns logParts.
func LogParts(x reg.Register) (e, f reg.VecVirtual) {
	e, f = YMM(), YMM()
	VPSUBD(Bits(sqrtHalfBits), x, e)
	VPSRAD(U8(23), e, e)
	VPSLLD(U8(23), e, f)
	VPSUBD(f, x, f)
	VSUBPS(Float(1), f, f)
	VCVTDQ2PS(e, e)
	return e, f
}

// Log1p returns log1p.
func Log1p(e, f reg.Register) reg.VecVirtual {
	h, z := horner(f, logPoly), YMM()
	VMULPS(f, f, z)
	VFMADD213PS(f, z, h)
	VFMADD231PS(Float(ln2), e, h)
	return h
}

// Negate flips the sign of v.
func Negate(v reg.Register) { VXORPS(Bits(1<<31), v, v) }
