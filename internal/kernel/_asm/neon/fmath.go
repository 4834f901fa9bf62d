package neon

import . "grove/internal/kernel/_asm/arm64"

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
)

var (
	expPoly = []float64{0x1.6a4f28p-9, 0x1.12398p-6, 0x1.5558aep-4, 0x1.555492p-2, 0x1.fffffcp-1, 2}
	logPoly = []float64{-0x1.38c974p-4, 0x1.055eaep-3, -0x1.0d8246p-3, 0x1.22d93p-3, -0x1.54728ap-3,
		0x1.99a01cp-3, -0x1.000226p-2, 0x1.555554p-2, -0.5}
)

// LoadExp loads the constants of Exp, or of Exp for what is not above 0.
func LoadExp(negative bool) {
	Float(expMin)
	if !negative {
		Float(expMax)
	}
	loadParts()
}

// LoadTanh loads those of Tanh.
func LoadTanh() {
	loadParts()
	Float(10)
	Float(1)
	Bits(1 << 31)
}

func loadParts() {
	for _, f := range append([]float64{log2e, roundMagic, ln2High, ln2Low}, expPoly...) {
		Float(f)
	}
	Bits(halfBits)
}

// LoadLog loads those of LogParts and Log1p.
func LoadLog() {
	for _, f := range append([]float64{ln2, 1}, logPoly...) {
		Float(f)
	}
	Bits(sqrtHalfBits)
}

// each emits a step for every register.
func each(v []V, step func(i int)) {
	for i := range v {
		step(i)
	}
}

// horner returns the polynomial c, highest power first, at x. It takes one register more than x.
func horner(x []V, c []float64) []V {
	h := Vecs(len(x))
	each(x, func(i int) {
		MOV(h[i], Float(c[1]))
		FMLA(S4, h[i], Float(c[0]), x[i])
	})
	spare := Vec()
	for _, k := range c[2:] {
		each(x, func(i int) {
			MOV(spare, Float(k))
			FMLA(S4, spare, h[i], x[i])
			h[i], spare = spare, h[i]
		})
	}
	Free(spare)
	return h
}

// expParts is its twin. It turns x into r.
func expParts(x []V) (h, r, s []V) {
	s, n := Vecs(len(x)), Vecs(len(x))
	each(x, func(i int) { MOV(s[i], Float(roundMagic)) })
	each(x, func(i int) { FMLA(S4, s[i], x[i], Float(log2e)) })
	each(x, func(i int) { FSUB(S4, n[i], s[i], Float(roundMagic)) })
	each(x, func(i int) { FMLS(S4, x[i], n[i], Float(ln2High)) })
	each(x, func(i int) { FMLS(S4, x[i], n[i], Float(ln2Low)) })
	Free(n...)
	each(x, func(i int) { SHL(S4, s[i], s[i], 23) })
	each(x, func(i int) { ADD(S4, s[i], s[i], Bits(halfBits)) })
	return horner(x, expPoly), x, s
}

// Exp turns x into Exp32 of x. Where negative is set, no x is above 0. A NaN passes, as FMAX and FMIN keep it.
func Exp(x []V, negative bool) {
	each(x, func(i int) { FMAX(S4, x[i], x[i], Float(expMin)) })
	if !negative {
		each(x, func(i int) { FMIN(S4, x[i], x[i], Float(expMax)) })
	}
	h, r, s := expParts(x)
	spare := Vec()
	each(x, func(i int) {
		MOV(spare, Float(2))
		FMLA(S4, spare, h[i], r[i])
		h[i], spare = spare, h[i]
	})
	each(x, func(i int) { FMUL(S4, x[i], h[i], s[i]) })
	Free(append(append(h, s...), spare)...)
}

// Tanh turns x into tanh32 of x.
func Tanh(x []V) {
	a := Vecs(len(x))
	each(x, func(i int) { FABS(S4, a[i], x[i]) })
	each(x, func(i int) { FMIN(S4, a[i], a[i], Float(10)) }) // a NaN passes
	each(x, func(i int) { FADD(S4, a[i], a[i], a[i]) })
	h, r, s := expParts(a)
	each(x, func(i int) { FMUL(S4, h[i], h[i], r[i]) })
	each(x, func(i int) { FADD(S4, r[i], s[i], s[i]) })
	each(x, func(i int) { FSUB(S4, r[i], r[i], Float(1)) })
	each(x, func(i int) { FMLA(S4, r[i], h[i], s[i]) })
	each(x, func(i int) { FADD(S4, h[i], r[i], Float(2)) })
	each(x, func(i int) { FDIV(S4, h[i], r[i], h[i]) })
	each(x, func(i int) { AND(B16, x[i], x[i], Bits(1<<31)) })
	each(x, func(i int) { ORR(B16, x[i], x[i], h[i]) })
	Free(append(append(h, s...), a...)...)
}

// LogParts returns logParts. It turns x into f.
func LogParts(x V) (e, f V) {
	e, shifted := Vec(), Vec()
	SUB(S4, e, x, Bits(sqrtHalfBits))
	SSHR(S4, e, e, 23)
	SHL(S4, shifted, e, 23)
	SUB(S4, x, x, shifted)
	FSUB(S4, x, x, Float(1))
	SCVTF(S4, e, e)
	Free(shifted)
	return e, x
}

// Log1p returns log1p. It turns f into the result and frees e.
func Log1p(e, f V) V {
	h, z := horner([]V{f}, logPoly)[0], Vec()
	FMUL(S4, z, f, f)
	FMLA(S4, f, z, h)
	FMLA(S4, f, e, Float(ln2))
	Free(e, h, z)
	return f
}
