package compute

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/compute/weight"
)

// choose returns the experts of one row, and their weights.
func choose(c Router, logits ...float32) (chosen []int32, weights []float32) {
	chosen, weights = make([]int32, c.ExpertsPerToken), make([]float32, c.ExpertsPerToken)
	c.Choose(&Scratch{}, chosen, weights, logits)
	return chosen, weights
}

// TestRouter compares choices and weights with the formulas of DeepSeek-V2 and V3 and of gpt-oss in float64.
func TestRouter(t *testing.T) {
	logits := []float32{1, -2, 0.5, 3, 2.5, -1, 2, 0}
	sig := func(e int) float64 { return 1 / (1 + math.Exp(-float64(logits[e]))) }
	all := 0.0
	for _, l := range logits {
		all += math.Exp(float64(l))
	}
	soft := func(e int) float64 { return math.Exp(float64(logits[e])) / all }
	bias := weight.Vector{F: []float32{0, 9, 0, 0, 0, 0, 0, -9}}
	tests := []struct {
		name   string
		router Router
		want   []int32
		weight func(e int) float64
	}{
		{"softmax", Router{ExpertsPerToken: 3}, []int32{3, 4, 6}, soft},
		{"softmax, scaled", Router{ExpertsPerToken: 2, Scale: 2.5}, []int32{3, 4}, func(e int) float64 { return 2.5 * soft(e) }},
		{"softmax among the chosen", Router{ExpertsPerToken: 2, Norm: true}, []int32{3, 4}, func(e int) float64 { return soft(e) / (soft(3) + soft(4)) }},
		{"softmax with a bias", Router{ExpertsPerToken: 2, Bias: bias}, []int32{1, 3}, soft},
		{"softmax with a bias among the chosen", Router{ExpertsPerToken: 2, Bias: bias, Norm: true}, []int32{1, 3},
			func(e int) float64 { return soft(e) / (soft(1) + soft(3)) }},
		{"groups by their best", Router{ExpertsPerToken: 2, Groups: 4, GroupsUsed: 1}, []int32{3, 2}, soft},
		{"sigmoid", Router{ExpertsPerToken: 2, Sigmoid: true}, []int32{3, 4}, sig},
		{"sigmoid, shares, bias, scale", Router{ExpertsPerToken: 2, Sigmoid: true, Norm: true, Bias: bias, Scale: 2}, []int32{1, 3},
			func(e int) float64 { return 2 * sig(e) / (sig(1) + sig(3)) }},
		{"groups by their two best", Router{ExpertsPerToken: 2, Sigmoid: true, Groups: 2, GroupsUsed: 1}, []int32{4, 6}, sig},
		{"groups of one", Router{ExpertsPerToken: 2, Sigmoid: true, Groups: 8, GroupsUsed: 2}, []int32{3, 4}, sig},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			chosen, weights := choose(tt.router, logits...)
			if d := cmp.Diff(tt.want, chosen); d != "" {
				t.Fatalf("experts (-want +got):\n%s", d)
			}
			for rank, e := range tt.want {
				if got, want := float64(weights[rank]), tt.weight(int(e)); math.Abs(got-want) > 1e-6 {
					t.Errorf("expert %d has weight %v, want %v", e, got, want)
				}
			}
		})
	}
}

// TestRouterExtremes expects finite weights where every affinity is 0.
func TestRouterExtremes(t *testing.T) {
	logits := []float32{-3e38, -2e38, -2.5e38}
	for _, c := range []Router{{ExpertsPerToken: 2, Sigmoid: true, Norm: true}, {ExpertsPerToken: 2, Norm: true}, {ExpertsPerToken: 2}, {ExpertsPerToken: 2, Sigmoid: true}} {
		_, weights := choose(c, logits...)
		for _, w := range weights {
			if !(w >= 0 && w <= 1) {
				t.Errorf("%+v: weight %v", c, w)
			}
		}
	}
}

// TestSparseMixer compares with sparsemixer of modeling_phimoe.py as it is without training, on numbers by hand: an expert is near the best of
// those that are left where their distance is at most a part of the larger of the two.
func TestSparseMixer(t *testing.T) {
	share := func(own float64, others ...float64) float64 {
		sum := 1.0
		for _, o := range others {
			sum += math.Exp(o - own)
		}
		return 1 / sum
	}
	for _, tt := range []struct {
		name   string
		near   float32
		logits []float32
		want   []int32
		weight []float64
	}{
		{"far apart", 0.02, []float32{1, 5, 3, -4}, []int32{1, 2}, []float64{1, 1}},
		{"two near", 0.02, []float32{1, 4.95, 5, -4}, []int32{2, 1}, []float64{share(5, 4.95), 1}},
		{"three near", 0.02, []float32{4.92, 4.95, 5, -4}, []int32{2, 1}, []float64{share(5, 4.95, 4.92), share(4.95, 4.92)}},
		{"near the second alone", 0.02, []float32{4.86, 4.95, 5, -4}, []int32{2, 1}, []float64{share(5, 4.95), share(4.95, 4.86)}},
		{"a far one is large below 0", 0.5, []float32{1, 0.9, -30, -1}, []int32{0, 1}, []float64{share(1, 0.9), 1}},
		{"all below 0", 0.5, []float32{-1, -1.5, -4, -2.5}, []int32{0, 1}, []float64{share(-1, -1.5), share(-1.5, -2.5)}},
		{"zeros are near", 0.02, []float32{0, 0, -1, -2}, []int32{0, 1}, []float64{0.5, 1}},
		{"ties", 0.02, []float32{3, 3, 3, 1}, []int32{0, 1}, []float64{1. / 3, 0.5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			chosen, weights := choose(Router{ExpertsPerToken: 2, Near: tt.near}, tt.logits...)
			if d := cmp.Diff(tt.want, chosen); d != "" {
				t.Fatalf("experts (-want +got):\n%s", d)
			}
			for rank, want := range tt.weight {
				if got := float64(weights[rank]); math.Abs(got-want) > 1e-6 {
					t.Errorf("rank %d weighs %v, want %v", rank, got, want)
				}
			}
		})
	}
}
