package kernel

import (
	"math"
	"testing"
)

// TestGateValues compares with float64 arithmetic, over magnitudes from 2^-30 to 2^7.
func TestGateValues(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(dst, x []float32)
		want func(x float64) float64
	}{
		{"Silu", Silu, func(x float64) float64 { return x / (1 + math.Exp(-x)) }},
		{"Sigmoid", Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
		{"Softplus", Softplus, func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }},
	} {
		var x []float32
		for e := -30.0; e < 6.5; e += 0.01 {
			x = append(x, float32(math.Exp2(e)), -float32(math.Exp2(e)))
		}
		dst := make([]float32, len(x))
		c.f(dst, x)
		for i, v := range x {
			if want := c.want(float64(v)); !(math.Abs(float64(dst[i])-want) <= 4e-7*math.Abs(want)+1e-36) {
				t.Errorf("%s of %v is %v, want %v", c.name, v, dst[i], want)
			}
		}
	}
}

// TestUnitNorm: the length of a vector becomes 1, and eps bounds the factor.
func TestUnitNorm(t *testing.T) {
	x := []float32{3, 0, -4, 0, 12}
	dst := make([]float32, len(x))
	UnitNorm(dst, x, 1e-6)
	for i, v := range x {
		if want := float64(v) / 13; !(math.Abs(float64(dst[i])-want) <= 1e-7) {
			t.Errorf("value %d is %v, want %v", i, dst[i], want)
		}
	}
	UnitNorm(dst, x, 26)
	for i, v := range x {
		if want := float64(v) / 26; !(math.Abs(float64(dst[i])-want) <= 1e-7) {
			t.Errorf("value %d is %v with a large eps, want %v", i, dst[i], want)
		}
	}
	clear(x)
	if UnitNorm(dst, x, 1e-6); dst[0] != 0 {
		t.Errorf("a vector of zeros gives %v", dst)
	}
}

// TestGaussTopK: what lies above the border is kept less the border, and the rest is 0; lengths are roots of means.
func TestGaussTopK(t *testing.T) {
	x := []float32{1, -2, 4, 0, 7, 2, 3, 1}
	mean, square := 2.0, 0.0
	for _, v := range x {
		square += (float64(v) - mean) * (float64(v) - mean)
	}
	border := mean + 0.5*math.Sqrt(square/7)
	dst := make([]float32, len(x))
	GaussTopK(dst, x, 0.5)
	for i, v := range x {
		if want := max(0, float64(v)-border); math.Abs(float64(dst[i])-want) > 1e-6 {
			t.Errorf("of %v %v is kept, want %v", v, dst[i], want)
		}
	}
	if got := RootMeanSquare([]float32{3, 4, 0, 0}, 1e-5); got != 2.5 {
		t.Errorf("the root mean square is %v, want 2.5", got)
	}
	if got := RootMeanSquare([]float32{0, 0}, 0.25); got != 0.5 {
		t.Errorf("the root of eps is %v, want 0.5", got)
	}
}
