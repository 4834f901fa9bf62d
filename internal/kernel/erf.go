package kernel

// erfPoly are the coefficients, from the highest power down, of -log(P(x)/P(-x)) / x as a polynomial in min(x*x, 32)/16 - 1,
// where P is the normal distribution: a fit at the Chebyshev nodes, rounded.
var erfPoly = [...]float32{
	0x1.1c7636p-10, -0x1.6d5d7cp-10, -0x1.3233c4p-9, 0x1.3026ccp-8, -0x1.5f6848p-9,
	0x1.5ff95ep-9, -0x1.f2a0b4p-9, 0x1.58ec38p-14, 0x1.7f2bdp-7, -0x1.5387b8p-5,
	0x1.189336p-3, -0x1.a2be82p-1, -0x1.4b85b2p+1,
}

// erfArg returns v with P(g) = 1 / (1 + e**v). Where |g| is above the square root of 32, P is within 1e-8 of 0 or 1.
func erfArg(g float32) float32 {
	s := float32(g * g)
	if s > 32 {
		s = 32
	}
	u := FMA32(s, 1.0/16, -1)
	p := erfPoly[0]
	for _, c := range erfPoly[1:] {
		p = FMA32(p, u, c)
	}
	return float32(g * p)
}

// GeluErfMul writes gelu(gate) * up to dst, which may be either of them, where gelu(x) = x P(x) with the normal distribution P
// (Hendrycks and Gimpel 2016, section 2; x/2 (1 + erf(x/sqrt(2)))), within 7e-8 + 2e-6 |gelu|. All have equal lengths.
//
// The order: u = FMA32(min(g*g, 32), 1/16, -1); v = g * p(u) by Horner's rule with FMA32; then (g / (1 + Exp32(v))) * up.
func GeluErfMul(dst, gate, up []float32) {
	sameLen(len(dst), gate, up)
	geluErfMul(dst, gate, up)
}

func geluErfMulGo(dst, gate, up []float32) {
	for i, g := range gate {
		s := g / (1 + Exp32(erfArg(g)))
		dst[i] = float32(s * up[i])
	}
}

// GeluErf writes gelu(x) to dst, which may be x and has equal length: [GeluErfMul] without the product.
func GeluErf(dst, x []float32) {
	sameLen(len(dst), x)
	geluErf(dst, x)
}

func geluErfGo(dst, x []float32) {
	for i, g := range x {
		dst[i] = g / (1 + Exp32(erfArg(g)))
	}
}
