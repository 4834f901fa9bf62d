package stat

import (
	"math"
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

func TestHomogeneity(t *testing.T) {
	a := map[string]float64{"x": 500, "y": 300, "z": 200, "rare": 3}
	for _, c := range []struct {
		name    string
		b       map[string]float64
		chi     float64
		freedom int
	}{
		{"the same counts", a, 0, 3},
		{"no counts", nil, 0, 1},
		{"another distribution", map[string]float64{"x": 300, "y": 500, "z": 200, "rare": 3}, 100, 3},
		{"another rare value", map[string]float64{"x": 500, "y": 300, "z": 200, "other": 3}, 0, 3},
		{"twice as many", map[string]float64{"x": 1000, "y": 600, "z": 400, "rare": 6}, 0, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			chi, freedom := Homogeneity(a, c.b)
			if math.Abs(chi-c.chi) > 1e-9 || freedom != c.freedom {
				t.Errorf("%v with %d degrees of freedom, want %v with %d", chi, freedom, c.chi, c.freedom)
			}
		})
	}
}

// TestLogistic: two sets that lie evenly about a number are divided there, also where they can be divided wholly, and a function that gave the sets is found.
func TestLogistic(t *testing.T) {
	for _, sets := range [][2][]float64{{{1, 2, 3.5}, {2.5, 4, 5}}, {{1, 2}, {4, 5}}} {
		if slope, at0 := Logistic(sets[0], sets[1]); !(slope > 0) || math.Abs(-at0/slope-3) > .05 {
			t.Errorf("%v: slope %v, and one half at %v", sets, slope, -at0/slope)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var sets [2][]float64
	for range 20_000 {
		x, kind := 3*rng.Float64(), 0
		if rng.Float64() < 1/(1+math.Exp(6*(x-1.2))) {
			kind = 1
		}
		sets[kind] = append(sets[kind], x)
	}
	if slope, at0 := Logistic(sets[0], sets[1]); math.Abs(slope+6) > .3 || math.Abs(at0-7.2) > .3 {
		t.Errorf("slope %v and %v at 0; the sets were drawn by -6 and 7.2", slope, at0)
	}
}
