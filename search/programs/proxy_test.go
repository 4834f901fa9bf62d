package programs

import (
	"math"
	"testing"

	"grove/search"
)

// TestProxyCombine: the probabilities are base * (tuned / untuned)^weight, and 0 where a model does not have the token.
func TestProxyCombine(t *testing.T) {
	base, tuned, untuned := []float64{.5, .3, .2, .1, .1, .1}, []float64{.1, .2, .7, 0, 1, 1}, []float64{.4, .4, .2, 1, 0, 1}
	log := func(p []float64) (row []float32) {
		for _, v := range p {
			row = append(row, float32(math.Log(v)))
		}
		return row
	}
	for _, weight := range []float64{0, 1, 2.5, -1} {
		row, sum := log(base), 0.0
		row[5] = float32(math.Inf(-1)) // a constraint forbids it
		(&proxy{weight: float32(weight)}).combine(row, log(tuned), log(untuned))
		want := make([]float64, len(base))
		for i := range 3 {
			want[i] = base[i] * math.Pow(tuned[i]/untuned[i], weight)
			sum += want[i]
		}
		all := 0.0
		for _, l := range row {
			all += math.Exp(float64(l))
		}
		for i, l := range row {
			if got := math.Exp(float64(l)) / all; math.Abs(got-want[i]/sum) > 1e-6 {
				t.Errorf("weight %v: token %d has %v, want %v", weight, i, got, want[i]/sum)
			}
		}
	}
}

// TestProxyOptions refuses options out of range, and problems without two guides.
func TestProxyOptions(t *testing.T) {
	for _, bad := range []string{"proxy,tuned=2", "proxy,weight=x", "proxy,untuned=0"} {
		if _, err := search.Open(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	p, err := search.Open("proxy")
	if err != nil || p.Check(&search.Problem{Guides: []search.Guide{{Same: true}}}) == nil || p.Check(&search.Problem{Guides: []search.Guide{{Same: true}, {}}}) == nil {
		t.Error(p, err)
	}
	if err := p.Check(&search.Problem{Guides: []search.Guide{{Same: true}, {Same: true}}}); err != nil {
		t.Error(err)
	}
}
