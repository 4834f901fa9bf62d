package layers

import (
	"math"
	"testing"
)

// TestTokensPerLayer has the numbers of DEL for 32 layers: the best chain of each exit, the exit that is chosen, and plain decoding.
func TestTokensPerLayer(t *testing.T) {
	m := Units(32)
	for _, c := range []struct {
		alpha  float64
		layers int
		drafts int
		rate   float64
	}{{0.6, 4, 3, 0.04945}, {0.8, 8, 3, 0.05271}, {0.92, 16, 4, 0.04439}, {0, 8, 1, 0.025}, {1, 1, 18, 0.38}} {
		drafts, rate := Best(c.alpha, c.layers, 18, m.Exit)
		if drafts != c.drafts || math.Abs(rate-c.rate) > 5e-6 {
			t.Errorf("%v of the drafts of %d layers: %d drafts, %.5f; want %d, %.5f", c.alpha, c.layers, drafts, rate, c.drafts, c.rate)
		}
	}
	if got := m.Plain(); got != 0.03125 {
		t.Errorf("plain decoding: %v", got)
	}
	if _, rate := Best(0, 1, 18, m.Exit); rate >= m.Plain() {
		t.Errorf("without an accepted draft the rate is %v", rate)
	}
	if drafts, rate := Best(0.5, 4, 0, m.Exit); drafts != 0 || rate != 0 {
		t.Errorf("no draft: %d, %v", drafts, rate)
	}
}

// steps is a machine on which rows and the head take time.
type steps struct{}

func (steps) LayerSeconds(rows, layers int) float64 { return float64(layers) * float64(9+rows) / 10 }

func (steps) HeadSeconds(rows int) float64 { return 2 + float64(rows) }

// TestRounds holds the times of rounds to the sum of their parts.
func TestRounds(t *testing.T) {
	m := Model{steps{}, 10}
	for name, c := range map[string]struct{ got, want float64 }{
		"plain": {m.Plain(), 1 / (10. + 3)},
		"exit":  {m.Exit(4, 3), 3*(4+3) + 4 + 6*1.3 + (2 + 4)}, // three passes, the last draft's first layers, the rest of four rows
		"skip":  {m.Skip(4, 3), 3*(6+3) + 10*1.3 + (2 + 4)},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}
