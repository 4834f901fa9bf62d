package bench

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestUnits finds the units of two texts: runs end with the text.
func TestUnits(t *testing.T) {
	u := UnitFinder{Threshold: 0.9}
	for _, text := range [][]float64{{.95, .2, .91, .99, .5, .9, .92}, {.99, .99, .1}} {
		for _, p := range text {
			u.Add(-math.Log(p))
		}
		u.End()
	}
	// Units .95 | .91 .99 | .92 | .99 .99; passes begin at .95, .2, .5, .9, .99 and .1.
	want := &UnitReport{Threshold: 0.9, Units: 4, Share: .6, Length: 1.5, Bound: 10. / 6}
	if d := cmp.Diff(want, u.Report(), cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Error(d)
	}
	none := UnitFinder{Threshold: 1}
	for range 5 {
		none.Add(0)
	}
	if r := none.Report(); r.Bound != 1 || r.Units != 0 {
		t.Errorf("above 1 there is nothing: %+v", r)
	}
}
