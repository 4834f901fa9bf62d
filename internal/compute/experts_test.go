package compute

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/kernel"
	"grove/internal/par"
)

// routed sends rows of router logits to the used best of their experts.
func routed(used int, rows ...[]float32) (*Exec, *Routing) {
	x := &Exec{pool: par.New(1)}
	b := Buf{rows: len(rows), width: len(rows[0])}
	for _, r := range rows {
		b.f = append(b.f, r...)
	}
	return x, x.Route(b, &Router{ExpertsPerToken: used, Norm: true})
}

func TestRouteChoice(t *testing.T) {
	tests := []struct {
		name   string
		logits []float32
		want   []int32 // by rank
	}{
		{"falling logits", []float32{1, 5, -2, 3}, []int32{1, 3, 0}},
		{"all equal", []float32{2, 2, 2, 2}, []int32{0, 1, 2}},
		{"a tie for the last place", []float32{0, 7, 3, 3}, []int32{1, 2, 3}},
		{"a tie that leaves one out", []float32{3, 9, 3, 3}, []int32{1, 0, 2}},
		{"zeros of both signs", []float32{-1, float32(math.Copysign(0, -1)), 0, -1}, []int32{1, 2, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, r := routed(3, tt.logits)
			if x.err != nil {
				t.Fatal(x.err)
			}
			if d := cmp.Diff(tt.want, r.chosen); d != "" {
				t.Errorf("experts (-want +got):\n%s", d)
			}
			var sum, total float64
			for _, e := range tt.want {
				total += math.Exp(float64(tt.logits[e]))
			}
			for rank, e := range tt.want {
				want := math.Exp(float64(tt.logits[e])) / total
				if got := float64(r.weights[rank]); math.Abs(got-want) > 1e-6 {
					t.Errorf("rank %d has weight %v, want %v", rank, got, want)
				}
				sum += float64(r.weights[rank])
			}
			if math.Abs(sum-1) > 1e-6 {
				t.Errorf("the weights sum to %v", sum)
			}
		})
	}
}

// TestRoutePairs checks the places of the pairs: by expert, and then by row.
func TestRoutePairs(t *testing.T) {
	_, r := routed(2,
		[]float32{0, 9, 0, 5, 0}, // 1, 3
		[]float32{8, 0, 0, 9, 0}, // 3, 0
		[]float32{0, 9, 0, 8, 0}, // 1, 3
	)
	want := map[string][]int32{
		"start":  {0, 1, 3, 3, 6, 6},
		"busy":   {0, 1, 3},
		"source": {1, 0, 2, 0, 1, 2},
		"pair":   {1, 3, 4, 0, 2, 5},
	}
	got := map[string][]int32{"start": r.start, "busy": r.busy, "source": r.source, "pair": r.pair}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestMixOrder gives three experts results whose sum depends on the order: it is that of the ranks.
func TestMixOrder(t *testing.T) {
	x, r := routed(3, []float32{1, 1.1, 1.2, 0})
	results := []float32{1e8, 1, -1e8}
	in := Buf{rows: 3, width: 1, f: make([]float32, 3)}
	for rank, e := range r.chosen {
		in.f[r.pair[rank]] = results[e]
	}
	got := x.MixExperts(in, r).f[0]
	sum := func(ranks ...int) float32 {
		var s [1]float32
		for _, rank := range ranks {
			kernel.AddScaled(s[:], r.weights[rank], results[2-rank:3-rank])
		}
		return s[0]
	}
	if want := sum(0, 1, 2); got != want || got == sum(2, 1, 0) {
		t.Errorf("the sum is %v; by rank it is %v, by number %v", got, want, sum(2, 1, 0))
	}
}

// TestRouteNotFinite expects a router's NaN or infinity to end the step wherever it stands: an expert
// that is never chosen must not hide it.
func TestRouteNotFinite(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for at := range 4 {
			logits := []float32{4, 3, 2, 1}
			logits[at] = float32(bad)
			if x, _ := routed(2, []float32{1, 2, 3, 4}, logits); x.err == nil {
				t.Errorf("%v as logit %d of the router passes", bad, at)
			}
		}
	}
}

// TestWeighExperts: pairs are weighed by their experts, once.
func TestWeighExperts(t *testing.T) {
	x, r := routed(2, []float32{1, 3, 2, -1}, []float32{4, 0, 0, 5}, []float32{0, 1, 2, 3})
	weights := append([]float32(nil), r.weights...)
	a := Buf{f: make([]float32, 6*2), rows: 6, width: 2}
	for i := range a.f {
		a.f[i] = float32(i%2) + 1
	}
	x.WeighExperts(a, r)
	for i, w := range weights {
		if d := cmp.Diff([]float32{w, 2 * w}, a.row(int(r.pair[i]))); d != "" {
			t.Errorf("rank %d of row %d (-want +got):\n%s", i%2, i/2, d)
		}
		if r.weights[i] != 1 {
			t.Errorf("rank %d of row %d still weighs %v", i%2, i/2, r.weights[i])
		}
	}
}
