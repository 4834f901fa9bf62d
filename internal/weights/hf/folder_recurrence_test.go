package hf

import (
	"math"
	"testing"
)

// TestDecay compares the exponential with that of package math.
func TestDecay(t *testing.T) {
	for x := float32(-80); x < 80; x += 0.0137 {
		want := -math.Exp(float64(x))
		if got := float64(Decay(0, x)); math.Abs(got-want) > 6.1e-8*math.Abs(want) {
			t.Fatalf("Decay(%v) is %v, want %v", x, got, want)
		}
	}
}
