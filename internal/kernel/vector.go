package kernel

import "math"

// Sums over a vector go in the order S32: element i belongs to partial accumulator i mod 32, which
// takes its elements in ascending order from +0; then halves fold, p[j] += p[j+w] for w = 16, 8, 4,
// 2, 1 and j < w. Maxima go in the same order, as the sign of a zero depends on it, and take the
// later value only where it is greater: a NaN never wins.

// sameLen panics unless every vector has n values.
func sameLen(n int, vectors ...[]float32) {
	for _, v := range vectors {
		if len(v) != n {
			panic("kernel: vectors of different lengths")
		}
	}
}

// fold32 adds up the partial accumulators of S32 and overwrites them.
func fold32(p *[32]float32) float32 {
	for w := 16; w > 0; w /= 2 {
		for j := range w {
			p[j] += p[j+w]
		}
	}
	return p[0]
}

// RMSNorm writes x / sqrt(mean(x*x) + eps) * w to dst. dst may be x. All have equal lengths.
//
// The order: s = S32 of FMA32(x, x, s); r = 1 / sqrt(s/n + eps), every operation rounded;
// dst = (x*r) * w.
func RMSNorm(dst, x, w []float32, eps float32) {
	sameLen(len(dst), x, w)
	if len(x) == 0 {
		return
	}
	mean := sumSquares(x) / float32(len(x))
	root := float32(math.Sqrt(float64(mean + eps))) // rounds as a float32 square root does
	mulTwice(dst, x, 1/root, w)
}

// LayerNorm writes (x-m) / sqrt(mean((x-m)*(x-m)) + eps) * w + b to dst, m = mean(x). dst may be x. All
// have equal lengths; an empty b is none.
//
// The order: m = S32 of x, over n; d = x-m; s = S32 of FMA32(d, d, s); r = 1 / sqrt(s/n + eps), every
// operation rounded; dst = (d*r) * w, and then + b.
func LayerNorm(dst, x, w, b []float32, eps float32) {
	sameLen(len(dst), x, w)
	if len(x) == 0 {
		return
	}
	shift(dst, x, -(sum(x) / float32(len(x))))
	RMSNorm(dst, dst, w, eps)
	if len(b) > 0 {
		Add(dst, b)
	}
}

func sumGo(x []float32) float32 {
	var p [32]float32
	for i, v := range x {
		p[i%32] += v
	}
	return fold32(&p)
}

// shiftGo writes x+a to dst.
func shiftGo(dst, x []float32, a float32) {
	for i, v := range x {
		dst[i] = v + a
	}
}

func sumSquaresGo(x []float32) float32 {
	var p [32]float32
	for i, v := range x {
		p[i%32] = FMA32(v, v, p[i%32])
	}
	return fold32(&p)
}

// mulTwiceGo writes (x*a) * w to dst.
func mulTwiceGo(dst, x []float32, a float32, w []float32) {
	for i, v := range x {
		dst[i] = float32(float32(v*a) * w[i])
	}
}

// Add adds x to dst, which has equal length.
func Add(dst, x []float32) {
	sameLen(len(dst), x)
	add(dst, x)
}

func addGo(dst, x []float32) {
	for i, v := range x {
		dst[i] += v
	}
}

// Scale multiplies dst by a.
func Scale(dst []float32, a float32) { scale(dst, dst, a) }

// scaleGo writes x*a to dst.
func scaleGo(dst, x []float32, a float32) {
	for i, v := range x {
		dst[i] = float32(v * a)
	}
}

// AddScaled adds a*x to dst, which has equal length: dst = FMA32(a, x, dst).
func AddScaled(dst []float32, a float32, x []float32) {
	sameLen(len(dst), x)
	addScaled(dst, a, x)
}

func addScaledGo(dst []float32, a float32, x []float32) {
	for i, v := range x {
		// FMA32 by hand, twice as fast: the compiler does not inline it.
		s := float64(a)*float64(v) + float64(dst[i])
		if doubtful(s) {
			dst[i] = fma32Slow(a, v, dst[i])
			continue
		}
		dst[i] = float32(s)
	}
}

// SiluMul writes silu(gate) * up to dst, which may be either of them. All have equal lengths.
//
// The order: (g / (1 + Exp32(-g))) * u.
func SiluMul(dst, gate, up []float32) {
	sameLen(len(dst), gate, up)
	siluMul(dst, gate, up)
}

func siluMulGo(dst, gate, up []float32) {
	for i, g := range gate {
		s := g / (1 + Exp32(-g))
		dst[i] = float32(s * up[i])
	}
}

const (
	gelu1 = -0x1.988454p+0 // -2 sqrt(2/pi)
	gelu3 = -0x1.2444f2p-4 // the same, times 0.044715
)

// GeluMul writes gelu(gate) * up to dst, which may be either of them, in the approximation by tanh.
// All have equal lengths.
//
// With 1 + tanh(z) = 2 / (1 + e**-2z), gelu(g) = g / (1 + e**-2z), z = sqrt(2/pi) (g + 0.044715 g**3).
// The order: v = g * FMA32(g*g, gelu3, gelu1), which is -2z; then (g / (1 + Exp32(v))) * u.
func GeluMul(dst, gate, up []float32) {
	sameLen(len(dst), gate, up)
	geluMul(dst, gate, up)
}

func geluMulGo(dst, gate, up []float32) {
	for i, g := range gate {
		v := float32(g * FMA32(float32(g*g), gelu3, gelu1))
		s := g / (1 + Exp32(v))
		dst[i] = float32(s * up[i])
	}
}

// Gelu writes gelu(x) to dst, which may be x and has equal length: [GeluMul] without the product.
func Gelu(dst, x []float32) {
	sameLen(len(dst), x)
	gelu(dst, x)
}

func geluGo(dst, x []float32) {
	for i, g := range x {
		v := float32(g * FMA32(float32(g*g), gelu3, gelu1))
		dst[i] = g / (1 + Exp32(v))
	}
}

// Relu writes max(x, 0) to dst, which may be x and has equal length. A NaN passes, and an infinity below zero becomes NaN.
//
// The order: x, times 0 and plus 0 where x is not above 0.
func Relu(dst, x []float32) {
	sameLen(len(dst), x)
	for i, v := range x {
		if !(v > 0) {
			v = float32(v*0) + 0
		}
		dst[i] = v
	}
}

// ReluSquared writes the square of max(x, 0) to dst, which may be x and has equal length. A NaN passes, and an infinity
// below zero becomes NaN.
//
// The order: m = x, times 0 where x is not above 0; dst = m*m, every operation rounded.
func ReluSquared(dst, x []float32) {
	sameLen(len(dst), x)
	for i, v := range x {
		if v <= 0 {
			v *= 0
		}
		dst[i] = float32(v * v)
	}
}

// XIELU is the settings of [XIELU.Forward], as they enter the formula.
type XIELU struct{ P, N, Beta, Eps float32 }

// Forward writes xIELU (Huang and Schlag 2024) to dst, which may be x and has equal length: P x*x + Beta x where x is
// above 0, else N (e**x - 1 - x) + Beta x, whose exponent is at most Eps. A NaN passes, and an infinity gives no finite
// value.
//
// The order: FMA32(P*x, x, Beta*x), or with e = Exp32(min(x, Eps)) - 1, FMA32(N, e-x, Beta*x).
func (a XIELU) Forward(dst, x []float32) {
	sameLen(len(dst), x)
	for i, v := range x {
		linear := float32(a.Beta * v)
		if v > 0 {
			dst[i] = FMA32(float32(a.P*v), v, linear)
			continue
		}
		e := Exp32(min(v, a.Eps)) - 1
		dst[i] = FMA32(a.N, e-v, linear)
	}
}

// Softcap bounds the values of x smoothly to ±limit, which is positive: limit * tanh32(x/limit).
func Softcap(x []float32, limit float32) { softcap(x, limit) }

func softcapGo(x []float32, limit float32) {
	for i, v := range x {
		x[i] = float32(limit * tanh32(v/limit))
	}
}

// Rope rotates x, heads*size values, in place: the first rot of each head in pairs, by angles whose
// cosines and sines are given, rot/2 of each. Pairs are (i, i+rot/2) where neox is set, else
// (2i, 2i+1).
//
// The order: y0 = FMA32(x0, cos, -(x1*sin)), y1 = FMA32(x0, sin, x1*cos).
func Rope(x []float32, heads, size, rot int, cos, sin []float32, neox bool) {
	if rot < 0 || rot > size || rot%2 != 0 || heads < 0 || len(x) != heads*size {
		panic("kernel: rotation does not fit its heads")
	}
	sameLen(rot/2, cos, sin)
	if heads > 0 && rot > 0 {
		rope(x, heads, size, cos, sin, neox)
	}
}

// ropeGo rotates the pairs from i0 on.
func ropeGo(x []float32, heads, size, i0 int, cos, sin []float32, neox bool) {
	for h := range heads {
		v := x[h*size : (h+1)*size]
		for i := i0; i < len(cos); i++ {
			p0, p1 := 2*i, 2*i+1
			if neox {
				p0, p1 = i, i+len(cos)
			}
			x0, x1 := v[p0], v[p1]
			v[p0] = FMA32(x0, cos[i], -float32(x1*sin[i]))
			v[p1] = FMA32(x0, sin[i], float32(x1*cos[i]))
		}
	}
}

// MaxAbsFinite returns the largest magnitude in x, 0 where x is empty, and whether all its values
// are finite. Where they are not, max is not finite either.
func MaxAbsFinite(x []float32) (max float32, finite bool) {
	b := maxAbsBits(x)
	return math.Float32frombits(b), b < infBits
}

// maxAbsBitsGo returns the bits of the largest magnitude; those of infinities and NaNs are larger
// than those of all finite values.
func maxAbsBitsGo(x []float32) uint32 {
	var m uint32
	for _, v := range x {
		m = max(m, math.Float32bits(v)&^(1<<31))
	}
	return m
}
