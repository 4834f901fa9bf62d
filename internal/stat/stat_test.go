package stat

import (
	"math/rand/v2"
	"testing"
)

// TestLimit compares the approximation, which errs upwards, with the quantiles of tables.
func TestLimit(t *testing.T) {
	for freedom, want := range map[int]float64{1: 15.14, 2: 18.42, 3: 21.11, 7: 29.88, 26: 60.14} {
		if got := ChiSquareLimit(freedom); got < want || got > 1.08*want {
			t.Errorf("%d degrees of freedom: %.2f, want %.2f", freedom, got, want)
		}
	}
}

func TestChiSquare(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := []float64{0.5, 0.3, 0.199, 0.001, 0}
	const draws = 3000
	counts, expected := make([]float64, len(p)), make([]float64, len(p))
	for range draws {
		x := r.Float64()
		for i, v := range p {
			if x -= v; x < 0 {
				counts[i]++
				break
			}
		}
	}
	for i, v := range p {
		expected[i] = v * draws
	}
	if err := ChiSquare(counts, expected); err != nil {
		t.Errorf("counts of the distribution: %v", err)
	}
	for name, c := range map[string][]float64{
		"another distribution":  {1300, 1100, 597, 3, 0},
		"a cell that cannot be": {1500, 900, 596, 3, 1},
		"counts outside":        {1500, 900, 590, 3, 0},
		"too few cells":         {1500, 1500},
	} {
		if ChiSquare(c, expected) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
