package plan

import (
	"math"
	"math/rand/v2"
	"testing"

	"grove/method/vocabulary"
)

// zipf returns the shares of texts that the first groups make up, by Zipf's law with an exponent.
func zipf(groups int, exponent float64) []float64 {
	coverage, sum := make([]float64, groups), 0.0
	for i := range coverage {
		sum += math.Pow(float64(i+1), -exponent)
		coverage[i] = sum
	}
	for i := range coverage {
		coverage[i] /= sum
	}
	return coverage
}

// TestHeadChoice compares the choice with a sweep of all sizes, on random pairs of models whose heads take time in steps, as tiles do. The
// choice knows a few measured sizes and a fit of noisy shares; the sweep knows all.
func TestHeadChoice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	worst := 1.0
	for range 200 {
		tokens := []int{4096, 32000, 151936}[rng.IntN(3)]
		tile := []int{16, 64, 512}[rng.IntN(3)]
		layers, head := 1e-3*(1+9*rng.Float64()), 1e-7*rng.Float64()
		part := func(n int) float64 { return 2e-5 + head*float64((n+tile-1)/tile*tile) }
		draft, err := Tune(Sizes{Tokens: tokens, Layers: 4, Rows: 64, Context: 4096}, 0, func(p Probe) (float64, int, error) {
			switch {
			case p.Layers > 0:
				return layers * float64(p.Layers) / 4 * (1 + float64(p.Rows)/20), 0, nil
			case p.Tokens > 0:
				return part(p.Tokens), 0, nil
			}
			return part(tokens) * float64(p.Logits), 0, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slow := layers * (2 + 30*rng.Float64())
		target := &Cost{Rows: []int{1, 16, 32}, Layers: []float64{slow, slow * (1 + rng.Float64()), slow * (2 + rng.Float64())}}
		truth := vocabulary.Acceptance{Alpha: 0.3 + 0.65*rng.Float64(), Kappa: 0.3 + 1.2*rng.Float64()}
		coverage := zipf(tokens/16, 0.7+0.6*rng.Float64())
		var shares, accepted []float64
		for i := 1; i < len(coverage); i *= 2 {
			shares, accepted = append(shares, coverage[i-1]), append(accepted, truth.At(coverage[i-1])*(0.97+0.06*rng.Float64()))
		}
		shares, accepted = append(shares, 1), append(accepted, truth.Alpha)
		rate := func(groups int) float64 {
			h := NewHead(truth, target, Mixture{}, draft)
			best, _ := h.Rate(truth.At(coverage[groups-1]), h.Draft(0)-draft.Part.At(0)+part(min(tokens, groups*16)))
			return best
		}
		best := 0.0
		for groups := range coverage {
			best = max(best, rate(groups+1))
		}
		h := NewHead(vocabulary.Fit(shares, accepted), target, Mixture{}, draft)
		share := rate(h.Groups(coverage)) / best
		if worst = min(worst, share); share < 0.98 {
			t.Errorf("vocabulary %d, tiles of %d, %+v: %.1f %% of the best rate", tokens, tile, truth, 100*share)
		}
	}
	t.Logf("at worst %.2f %% of the best rate", 100*worst)
}

// TestHeadRate holds the rate to the sum that it stands for.
func TestHeadRate(t *testing.T) {
	target := &Cost{Rows: []int{1, 32}, Layers: []float64{1, 1.31}}
	h := NewHead(vocabulary.Usual, target, Mixture{}, &Cost{Rows: []int{1}, Layers: []float64{0.1}, Part: Curve{[]int{50, 100}, []float64{0.05, 0.1}}})
	for _, c := range []struct{ share, want float64 }{{1, 0.2}, {0.5, 0.15}, {0.75, 0.175}} {
		if got := h.Draft(c.share); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("a draft with %v of the vocabulary takes %v, want %v", c.share, got, c.want)
		}
	}
	rate, drafts := h.Rate(0.5, 0.2)
	// One draft: 1.5 / (0.2 + 1.01); two: 1.75 / (0.4 + 1.02); three: 1.875 / (0.6 + 1.03).
	if math.Abs(rate-1.5/1.21) > 1e-12 || drafts != 1 {
		t.Errorf("%v tokens a second by %d drafts", rate, drafts)
	}
	if rate, drafts = h.Rate(0.9, 0.01); drafts != 16 || math.Abs(rate-(1-math.Pow(0.9, 17))/0.1/(0.16+h.Steps[16])) > 1e-12 {
		t.Errorf("%v tokens a second by %d drafts", rate, drafts)
	}
	if got := NewHead(vocabulary.Usual, target, Mixture{}, &Cost{Rows: []int{1}, Layers: []float64{0.1}}).Draft(0.5); got != 0.1 {
		t.Errorf("a head that was not measured takes %v", got-0.1)
	}
}
