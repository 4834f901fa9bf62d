package compute

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRouter compares choices and weights with the formulas of DeepSeek-V2 and V3 and of gpt-oss in float64.
func TestRouter(t *testing.T) {
	logits := []float32{1, -2, 0.5, 3, 2.5, -1, 2, 0}
	sig := func(e int) float64 { return 1 / (1 + math.Exp(-float64(logits[e]))) }
	all := 0.0
	for _, l := range logits {
		all += math.Exp(float64(l))
	}
	soft := func(e int) float64 { return math.Exp(float64(logits[e])) / all }
	bias := Vector{F: []float32{0, 9, 0, 0, 0, 0, 0, -9}}
	tests := []struct {
		name   string
		router Router
		want   []int32
		weight func(e int) float64
	}{
		{"softmax", Router{Used: 3}, []int32{3, 4, 6}, soft},
		{"softmax, scaled", Router{Used: 2, Scale: 2.5}, []int32{3, 4}, func(e int) float64 { return 2.5 * soft(e) }},
		{"softmax among the chosen", Router{Used: 2, Norm: true}, []int32{3, 4}, func(e int) float64 { return soft(e) / (soft(3) + soft(4)) }},
		{"softmax with a bias", Router{Used: 2, Bias: bias}, []int32{1, 3}, soft},
		{"softmax with a bias among the chosen", Router{Used: 2, Bias: bias, Norm: true}, []int32{1, 3},
			func(e int) float64 { return soft(e) / (soft(1) + soft(3)) }},
		{"groups by their best", Router{Used: 2, Groups: 4, GroupsUsed: 1}, []int32{3, 2}, soft},
		{"sigmoid", Router{Used: 2, Sigmoid: true}, []int32{3, 4}, sig},
		{"sigmoid, shares, bias, scale", Router{Used: 2, Sigmoid: true, Norm: true, Bias: bias, Scale: 2}, []int32{1, 3},
			func(e int) float64 { return 2 * sig(e) / (sig(1) + sig(3)) }},
		{"groups by their two best", Router{Used: 2, Sigmoid: true, Groups: 2, GroupsUsed: 1}, []int32{4, 6}, sig},
		{"groups of one", Router{Used: 2, Sigmoid: true, Groups: 8, GroupsUsed: 2}, []int32{3, 4}, sig},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, _ := route(1, logits)
			r := x.Route(Buf{rows: 1, width: len(logits), f: logits}, &tt.router)
			if d := cmp.Diff(tt.want, r.chosen); d != "" {
				t.Fatalf("experts (-want +got):\n%s", d)
			}
			for rank, e := range tt.want {
				if got, want := float64(r.weights[rank]), tt.weight(int(e)); math.Abs(got-want) > 1e-6 {
					t.Errorf("expert %d has weight %v, want %v", e, got, want)
				}
			}
		})
	}
}

// TestRouterExtremes expects finite weights where every affinity is 0.
func TestRouterExtremes(t *testing.T) {
	logits := []float32{-3e38, -2e38, -2.5e38}
	for _, c := range []Router{{Used: 2, Sigmoid: true, Norm: true}, {Used: 2, Norm: true}, {Used: 2}, {Used: 2, Sigmoid: true}} {
		x, _ := route(1, logits)
		r := x.Route(Buf{rows: 1, width: 3, f: logits}, &c)
		for _, w := range r.weights {
			if !(w >= 0 && w <= 1) {
				t.Errorf("%+v: weight %v", c, w)
			}
		}
	}
}
