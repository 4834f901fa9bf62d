package module

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/forest"
)

// TestRank compares the rank head with a plain computation.
func TestRank(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	random := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	const width, hidden = 8, 24
	b := &forest.Block{Rank: [4][]float32{random(hidden * (width + rankFeatures)), random(hidden), random(RankClasses * hidden), random(RankClasses)}}
	r, seen := NewRanks(b), map[int]bool{}
	for range 200 {
		state, logits := random(width), random(40)
		for i := range logits {
			logits[i] *= 3 * float32(rng.Float64())
		}
		largest := slices.Clone(logits)
		slices.Sort(largest)
		slices.Reverse(largest)
		sum := 0.0
		for _, l := range largest[:20] {
			sum += math.Exp(float64(l))
		}
		var in []float64
		for _, s := range state {
			in = append(in, float64(s))
		}
		for _, l := range largest[:10] {
			in = append(in, float64(l)-math.Log(sum))
		}
		p := math.Exp(float64(largest[0])) / sum
		in = append(in, float64(largest[0]-largest[1]), float64(largest[0]-largest[2]), float64(largest[0]-largest[4]), p, 0)
		for _, l := range largest[:20] {
			q := math.Exp(float64(l)) / sum
			in[len(in)-1] -= q * math.Log(q)
		}
		scores := make([]float64, RankClasses)
		for c := range scores {
			scores[c] = float64(b.Rank[3][c])
		}
		for i := range hidden {
			h := float64(b.Rank[1][i])
			for j, v := range in {
				h += v * float64(b.Rank[0][i*len(in)+j])
			}
			for c := range scores {
				scores[c] += float64(b.Rank[2][c*hidden+i]) * h / (1 + math.Exp(-h))
			}
		}
		want := slices.Index(scores, slices.Max(scores))
		if got := r.Class(state, logits); got != want {
			t.Fatalf("class %d, want %d of %v", got, want, scores)
		}
		seen[want] = true
	}
	if len(seen) < 3 {
		t.Errorf("classes %v alone", seen)
	}
	if n := testing.AllocsPerRun(20, func() { r.Class(make([]float32, width), make([]float32, 40)) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
