package plan

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// FuzzLoad reads hostile files of costs: what is taken over gives times that planners can compute with.
func FuzzLoad(f *testing.F) {
	good := &Cost{
		Rows: []int{1, 4, 16}, Layers: []float64{1, 2, 3}, Correction: []float64{1, 1, 1},
		Depth: Curve{[]int{1, 8}, []float64{1e-6, 2e-6}}, Head: Curve{[]int{1}, []float64{1e-3}}, Expert: 1e-5,
	}
	text, err := json.Marshal(good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"rows":[1],"layers":[0],"correction":[1]}`))
	f.Add([]byte(`{"Rows":[1,9223372036854775807],"Layers":[0,3e38],"Correction":[1,1e-38]}`))
	f.Add([]byte(`null`))
	path := filepath.Join(f.TempDir(), "cost.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		var k SharedCost
		k.Load(path)
		c := k.Get()
		if c == nil {
			return
		}
		for _, s := range []StepSize{{}, {Rows: 1, Logits: 1}, {Rows: 100_000, Depth: 1 << 20, Logits: 100_000, Experts: 1000}} {
			if v := c.Seconds(s); !(v >= 0 && v <= math.MaxFloat64) {
				t.Errorf("%s: a step of %+v takes %v s", text, s, v)
			}
			k.Observe(s, 1)
		}
		if !k.Get().Valid() {
			t.Errorf("%s: it is not valid any more: %+v", text, k.Get())
		}
	})
}

// TestCopies: what was got, or set, does not change with what is known.
func TestCopies(t *testing.T) {
	var k SharedCost
	set := &Cost{Rows: []int{1}, Layers: []float64{1}, Correction: []float64{1}}
	k.Set(set)
	got := k.Get()
	k.Observe(StepSize{Rows: 1}, 2)
	if set.Correction[0] != 1 || got.Correction[0] != 1 || k.Get().Correction[0] == 1 {
		t.Errorf("corrections: %v was set, %v was got, %v is known", set.Correction, got.Correction, k.Get().Correction)
	}
}
