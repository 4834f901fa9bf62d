package vec

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The functions below compute in several registers at once and interleave their instructions, so that
// independent chains hide each other's latency.

// The constants of fmath.go.
const (
	expMax = 88.9
	expMin = -87.5

	log2e   = 0x1.715476p+0
	ln2High = 0x1.62e4p-1
	ln2Low  = 0x1.7f7d1cp-20
	ln2     = 0x1.62e43p-1

	roundMagic = 0x1.8p+23

	sqrtHalfBits = 0x3f3504f3
	halfBits     = 0x3f000000
	absBits      = 0x7fffffff
)

var (
	expPoly = []float64{0x1.6a4f28p-9, 0x1.12398p-6, 0x1.5558aep-4, 0x1.555492p-2, 0x1.fffffcp-1, 2}
	logPoly = []float64{-0x1.38c974p-4, 0x1.055eaep-3, -0x1.0d8246p-3, 0x1.22d93p-3, -0x1.54728ap-3,
		0x1.99a01cp-3, -0x1.000226p-2, 0x1.555554p-2, -0.5}
)

// Vecs are registers that go through the same steps.
type Vecs []reg.VecVirtual

// New returns as many new registers as v has.
func (v Vecs) New() Vecs {
	w := make(Vecs, len(v))
	for i := range w {
		w[i] = Vector()
	}
	return w
}

// Each emits a step for every register.
func (v Vecs) Each(step func(i int)) {
	for i := range v {
		step(i)
	}
}

// Clamp bounds x from below and, unless it cannot be positive, from above, as Exp wants it. A NaN
// passes.
func Clamp(x Vecs, negative bool) {
	bound := Vector()
	VMOVUPS(Float(expMin), bound)
	x.Each(func(i int) { VMAXPS(x[i], bound, x[i]) })
	if !negative {
		VMOVUPS(Float(expMax), bound)
		x.Each(func(i int) { VMINPS(x[i], bound, x[i]) })
	}
}

// horner returns the polynomial c, highest power first, at x.
func horner(x Vecs, c []float64) Vecs {
	h := x.New()
	h.Each(func(i int) { VMOVUPS(Float(c[0]), h[i]) })
	for _, k := range c[1:] {
		h.Each(func(i int) { VFMADD213PS(Float(k), x[i], h[i]) })
	}
	return h
}

// expParts is its twin. It turns x into r.
func expParts(x Vecs) (h, r, s Vecs) {
	t, n := x.New(), x.New()
	t.Each(func(i int) { VMOVUPS(Float(log2e), t[i]) })
	t.Each(func(i int) { VFMADD213PS(Float(roundMagic), x[i], t[i]) })
	t.Each(func(i int) { VSUBPS(Float(roundMagic), t[i], n[i]) })
	t.Each(func(i int) { VFNMADD231PS(Float(ln2High), n[i], x[i]) })
	t.Each(func(i int) { VFNMADD231PS(Float(ln2Low), n[i], x[i]) })
	t.Each(func(i int) { VPSLLD(U8(23), t[i], t[i]) })
	t.Each(func(i int) { VPADDD(Bits(halfBits), t[i], t[i]) })
	return horner(x, expPoly), x, t
}

// Exp turns x into Exp32 of x. Where negative is set, no x is above 0.
func Exp(x Vecs, negative bool) {
	Clamp(x, negative)
	h, r, s := expParts(x)
	h.Each(func(i int) { VFMADD213PS(Float(2), r[i], h[i]) })
	h.Each(func(i int) { VMULPS(s[i], h[i], x[i]) })
}

// Tanh returns tanh32.
func Tanh(x Vecs) Vecs {
	a, top := x.New(), YMM()
	VMOVUPS(Float(10), top)
	a.Each(func(i int) { VANDPS(Bits(absBits), x[i], a[i]) })
	a.Each(func(i int) { VMINPS(a[i], top, a[i]) }) // a where it is NaN
	a.Each(func(i int) { VADDPS(a[i], a[i], a[i]) })
	m, r, s := expParts(a)
	m.Each(func(i int) { VMULPS(r[i], m[i], m[i]) })
	m.Each(func(i int) { VADDPS(s[i], s[i], r[i]) })
	m.Each(func(i int) { VSUBPS(Float(1), r[i], r[i]) })
	m.Each(func(i int) { VFMADD213PS(r[i], s[i], m[i]) })
	m.Each(func(i int) { VADDPS(Float(2), m[i], r[i]) })
	m.Each(func(i int) { VDIVPS(r[i], m[i], m[i]) })
	m.Each(func(i int) { VANDPS(Bits(1<<31), x[i], r[i]) })
	m.Each(func(i int) { VORPS(r[i], m[i], m[i]) })
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
func Log1p(e, f reg.VecVirtual) reg.VecVirtual {
	h, z := horner(Vecs{f}, logPoly)[0], YMM()
	VMULPS(f, f, z)
	VFMADD213PS(f, z, h)
	VFMADD231PS(Float(ln2), e, h)
	return h
}

// Negate flips the sign of v.
func Negate(v reg.Register) { VXORPS(Bits(1<<31), v, v) }
