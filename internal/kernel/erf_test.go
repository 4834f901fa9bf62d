package kernel

import (
	"math"
	"testing"
)

// TestGeluErf compares with float64's erfc, over magnitudes from 2^-30 to 2^5.
func TestGeluErf(t *testing.T) {
	var x, ones []float32
	for e := -30.0; e < 5; e += 0.001 {
		x = append(x, float32(math.Exp2(e)), -float32(math.Exp2(e)))
	}
	for range x {
		ones = append(ones, 1)
	}
	dst, product := make([]float32, len(x)), make([]float32, len(x))
	GeluErf(dst, x)
	GeluErfMul(product, x, ones)
	for i, v := range x {
		want := float64(v) / 2 * math.Erfc(-float64(v)/math.Sqrt2)
		if !(math.Abs(float64(dst[i])-want) <= 7e-8+2e-6*math.Abs(want)) {
			t.Errorf("gelu(%v) is %v, want %v", v, dst[i], want)
		}
		if product[i] != dst[i] {
			t.Errorf("gelu(%v) times 1 is %v, want %v", v, product[i], dst[i])
		}
	}
}
