package front_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grove"
	"grove/internal/engine/plan"
)

const goodCost = `{"rows":[1,4],"layers":[1,2],"depth":{"x":[1],"y":[0]},"head":{"x":[1],"y":[0]},"expert":0,"correction":[1,1]}`

// FuzzCost reads hostile costs of steps: what is taken over gives times that planners can compute with.
func FuzzCost(f *testing.F) {
	f.Add(goodCost)
	f.Add(`{"rows":[1,9223372036854775807],"layers":[0,3e38],"correction":[1,1e-38]}`)
	f.Add(`{"rows":[`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := grove.ReadCost(strings.NewReader(text))
		if err != nil {
			return
		}
		if s := c.Seconds(plan.StepSize{Rows: 40, Depth: 100, Logits: 40}); !(s >= 0) || math.IsInf(s, 0) {
			t.Errorf("%s: a step takes %v s", text, s)
		}
	})
}

// TestCosts: the costs of bench/costs can be read, and are of steps of the sizes that the table names.
func TestCosts(t *testing.T) {
	for name, most := range map[string]float64{"0.5b-q8_0": 0.03, "7b-q4_0": 0.2, "gopher": 0.0003} {
		f, err := os.Open(filepath.Join("../../../bench", "costs", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := grove.ReadCost(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if s := c.Seconds(plan.StepSize{Rows: 1, Logits: 1}); s > most || s < most/10 {
			t.Errorf("%s: a step takes %v s", name, s)
		}
	}
}
