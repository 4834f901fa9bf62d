package programs

import (
	"math"
	"testing"

	"grove/search"
)

// logits returns the logarithms of numbers, and some number more.
func logits(more float64, p ...float64) (row []float32) {
	for _, v := range p {
		row = append(row, float32(math.Log(v)+more))
	}
	return row
}

// TestContrastCombine: of tokens at least a tenth as likely as the likeliest, the probabilities are expert^(1+beta) / amateur^beta, and the others are 0, as is what one of the models
// does not have.
func TestContrastCombine(t *testing.T) {
	expert, amateur := []float64{.5, .3, .14, .05, .01}, []float64{.6, .1, .04, .06, .2}
	for _, tt := range []struct {
		alpha, beta float32
		kept        int
	}{{.1, .5, 4}, {.1, 0, 4}, {0, 1, 5}, {.5, 2, 2}, {1, 1, 1}} {
		c := contrastContrast{alpha: tt.alpha, beta: tt.beta}
		row := logits(3, append(expert, 0, .4)...)
		if n := c.combine(row, logits(-7, append(amateur, .3, 0)...)); n != tt.kept {
			t.Errorf("%+v: %d tokens are plausible", tt, n)
		}
		var want [7]float64
		sum, all := 0.0, 0.0
		for i := range tt.kept {
			want[i] = math.Pow(expert[i], 1+float64(tt.beta)) / math.Pow(amateur[i], float64(tt.beta))
			sum += want[i]
		}
		for _, l := range row {
			all += math.Exp(float64(l))
		}
		for i, l := range row {
			if got := math.Exp(float64(l)) / all; math.Abs(got-want[i]/sum) > 1e-6 {
				t.Errorf("%+v: token %d has %v, want %v", tt, i, got, want[i]/sum)
			}
		}
	}
}

// TestContrastOptions refuses options out of range.
func TestContrastOptions(t *testing.T) {
	for _, bad := range []string{"contrast,alpha=2", "contrast,beta=-1", "contrast,guide=0", "contrast,n=2"} {
		if _, err := search.Open(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if p, err := search.Open("contrast"); err != nil || p.Samples() != 1 || p.Check(&search.Problem{}) == nil {
		t.Error(p, err)
	}
}
