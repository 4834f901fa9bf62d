package search_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"grove/search"
)

// TestShares has weights that are far apart, and dead samples.
func TestShares(t *testing.T) {
	w := search.Shares([]float64{-1000, math.Inf(-1), -1000 + math.Log(3)})
	for i, want := range []float64{.25, 0, .75} {
		if math.Abs(w[i]-want) > 1e-12 {
			t.Errorf("share %d is %v, want %v", i, w[i], want)
		}
	}
	if e := search.Effective(w); math.Abs(e-1.6) > 1e-12 {
		t.Errorf("%v samples, want 1.6", e)
	}
}

// TestSystematic: each sample gets its share of the copies, rounded up or down, and as many in the mean.
func TestSystematic(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		logs := make([]float64, 1+rng.IntN(6))
		for i := range logs {
			logs[i] = 3 * rng.NormFloat64()
			if rng.IntN(4) == 0 && i > 0 {
				logs[i] = math.Inf(-1)
			}
		}
		w, mean := search.Shares(logs), make([]float64, len(logs))
		const runs = 500
		for k := range runs {
			copies := search.Systematic(w, (float64(k)+.5)/runs)
			sum := 0
			for i, n := range copies {
				if exact := w[i] * float64(len(w)); float64(n) < math.Floor(exact-1e-9) || float64(n) > math.Ceil(exact+1e-9) {
					t.Fatalf("weights %v: copies %v", w, copies)
				}
				sum, mean[i] = sum+n, mean[i]+float64(n)/runs
			}
			if sum != len(w) {
				t.Fatalf("weights %v: copies %v", w, copies)
			}
		}
		for i := range w {
			if math.Abs(mean[i]-w[i]*float64(len(w))) > .01 {
				t.Fatalf("weights %v: %v copies in the mean", w, mean)
			}
		}
	}
}

// TestChoose draws by shares and never a dead sample.
func TestChoose(t *testing.T) {
	w := []float64{0, .25, .75, 0}
	for u, want := range map[float64]int{0: 1, .2: 1, .3: 2, .999999: 2, 1: 2} {
		if got := search.Choose(w, u); got != want {
			t.Errorf("%v chooses sample %d, want %d", u, got, want)
		}
	}
}

// TestEntropy has the worked number, which a shift of the logits does not change.
func TestEntropy(t *testing.T) {
	for _, shift := range []float32{0, 50, -50} {
		logits := []float32{2 + shift, 1 + shift, .5 + shift, shift, -1 + shift}
		if e := search.Entropy(logits); math.Abs(e-1.2065) > 1e-4 {
			t.Errorf("shifted by %v: %v, want 1.2065", shift, e)
		}
	}
	if e := search.Entropy([]float32{3, float32(math.Inf(-1))}); e != 0 {
		t.Errorf("of a sure token: %v", e)
	}
}
