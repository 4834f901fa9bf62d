package vocabulary

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// TestFit finds the numbers that shares were made with.
func TestFit(t *testing.T) {
	coverage, want := make([]float64, 100), Acceptance{Alpha: 0.6, Kappa: 0.8}
	var accepted []float64
	for i := range coverage {
		coverage[i] = math.Log1p(float64(i+1)) / math.Log1p(100)
		c := coverage[i]
		accepted = append(accepted, want.At(c))
	}
	if got := Fit(coverage, accepted); math.Abs(got.Alpha-want.Alpha) > 1e-9 || math.Abs(got.Kappa-want.Kappa) > 1e-9 {
		t.Errorf("%+v, want %+v", got, want)
	}
	for name, accepted := range map[string][]float64{"nothing": nil, "no draft": make([]float64, 100)} {
		if got := Fit(coverage[:len(accepted)], accepted); got != Usual {
			t.Errorf("%s is accepted: %+v", name, got)
		}
	}
	if got := Fit([]float64{0.5, 1}, []float64{0.9, 0.6}); got.Kappa != 0 {
		t.Errorf("more are accepted with less: %+v", got)
	}
}

// TestVocabularyFile: what is kept is what was measured; what makes no sense counts as nothing.
func TestVocabularyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vocabulary.json")
	want := Measured{Acceptance{0.5, 0.25}, []uint32{3, 0, 7}, 32}
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	if got := Load(path, 3); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	none := Measured{Acceptance: Usual}
	if got := Load(path, 4); !reflect.DeepEqual(got, none) {
		t.Errorf("of another vocabulary: %+v", got)
	}
	for _, text := range []string{"", "null", "{", `{"alpha":2,"kappa":1,"counts":[1,2,3]}`, `{"alpha":0.5,"kappa":-1,"counts":[1,2,3]}`, `{"alpha":0.5,"kappa":1,"counts":[1,-2,3]}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Load(path, 3); !reflect.DeepEqual(got, none) {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
