package kernel

import "math"

// Mul multiplies dst by x, which has equal length.
func Mul(dst, x []float32) {
	sameLen(len(dst), x)
	mulTwice(dst, dst, 1, x)
}

// Silu writes silu(x) to dst, which may be x and has equal length: [SiluMul] without the product.
//
// The order: x / (1 + Exp32(-x)).
func Silu(dst, x []float32) {
	sameLen(len(dst), x)
	silu(dst, x)
}

func siluGo(dst, x []float32) {
	for i, v := range x {
		dst[i] = v / (1 + Exp32(-v))
	}
}

// Sigmoid writes the logistic function of x to dst, which may be x and has equal length. A NaN passes; an infinity gives 0 or 1.
//
// The order: 1 / (1 + Exp32(-x)).
func Sigmoid(dst, x []float32) {
	sameLen(len(dst), x)
	sigmoid(dst, x)
}

func sigmoidGo(dst, x []float32) {
	for i, v := range x {
		dst[i] = 1 / (1 + Exp32(-v))
	}
}

// Softplus writes log(1 + e**x) to dst, which may be x and has equal length, within 4 ulp. A NaN passes; an infinity below zero gives 0.
//
// The order: e = Exp32(-|x|); k ln(2) + log(1+f) as [Log32] has it of 1+e, but f = e where k is 0, which keeps small e exact;
// max(x, 0) plus that.
func Softplus(dst, x []float32) {
	sameLen(len(dst), x)
	softplus(dst, x)
}

func softplusGo(dst, x []float32) {
	for i, v := range x {
		e := Exp32(-math.Float32frombits(math.Float32bits(v) &^ (1 << 31)))
		k, f := logParts(1 + e)
		if k == 0 {
			f = e
		}
		dst[i] = max(v, 0) + log1p(k, f)
	}
}

// UnitNorm writes x / max(sqrt(sum(x*x)), eps) to dst, which may be x and has equal length.
//
// The order: s = S32 of FMA32(x, x, s); r = 1 / max(sqrt(s), eps), every operation rounded; dst = x*r.
func UnitNorm(dst, x []float32, eps float32) {
	sameLen(len(dst), x)
	root := float32(math.Sqrt(float64(sumSquares(x))))
	scale(dst, x, 1/max(root, eps))
}
