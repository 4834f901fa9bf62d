package programs

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"grove/internal/engine"
	"grove/search"
)

// TestFirst chooses among samples of scripted lengths.
func TestFirst(t *testing.T) {
	for _, tt := range []struct {
		name    string
		lengths []int // negative: it did not end
		want    int
	}{
		{"the shortest", []int{5, 3, 4}, 1},
		{"of equal ones the first", []int{5, 3, 3}, 1},
		{"one that was cut is longer than all that ended", []int{-2, 7, 9}, 1},
		{"none ended", []int{-4, -4}, 0},
	} {
		if got := first(ffsSamples(tt.lengths)); got != tt.want {
			t.Errorf("%s: sample %d, want %d", tt.name, got, tt.want)
		}
	}
}

func ffsSamples(lengths []int) (all []search.Sample) {
	for i, n := range lengths {
		all = append(all, search.Sample{Index: i, Drawn: make([]engine.SampledToken, max(n, -n)), Ended: n > 0})
	}
	return all
}

// TestToy lets the rule choose where right answers are shorter, and where they are longer. P(right) is 0.6, lengths are
// normal, N(100, 20) and N(160, 40); the wanted chances are of a simulation of two hundred thousand runs.
func TestToy(t *testing.T) {
	const runs, tolerance = 10_000, 0.015
	rng := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		n              int
		short, swapped float64 // chance of a right answer
	}{{1, 0.600, 0.600}, {2, 0.797, 0.403}, {4, 0.892, 0.247}, {8, 0.911, 0.184}} {
		rights := [2]int{}
		for range runs {
			for swapped := range rights {
				lengths, right := make([]int, tt.n), make([]bool, tt.n)
				for i := range lengths {
					right[i] = rng.Float64() < 0.6
					mean, deviation := 160.0, 40.0
					if right[i] == (swapped == 0) {
						mean, deviation = 100, 20
					}
					lengths[i] = max(1, int(math.Round(mean+deviation*rng.NormFloat64())))
				}
				if right[first(ffsSamples(lengths))] {
					rights[swapped]++
				}
			}
		}
		for i, want := range []float64{tt.short, tt.swapped} {
			if got := float64(rights[i]) / runs; math.Abs(got-want) > tolerance {
				t.Errorf("%d samples, swapped %d: right in %.3f of the runs, want %.3f", tt.n, i, got, want)
			}
		}
	}
}

// FuzzOpen reads hostile names and options of searches.
func FuzzOpen(f *testing.F) {
	for _, text := range []string{"ffs", "ffs,n=4", "ffs,n=-1", "ffs,n=99999999999999999999", "ffs,n", "fss,=,=", ",", "ffs, n = 3 ,n=4"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := search.Open(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "search: ") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if n := p.Samples(); n < 1 || n > 1000 {
			t.Errorf("%q draws %d samples", text, n)
		}
	})
}
