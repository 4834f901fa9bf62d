package bench

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/forest"
)

// lost is a text of two parts, where a place loses what the layers that a row passes over are worth to it; the likeliest token stays while
// that is below 1.
func lost(layers int, worth ...[][]float64) PatternPass {
	return func(_ context.Context, part int, ask func(int) []PatternSet, tell func(int, PatternScore, []PatternScore)) error {
		for place, w := range worth[part] {
			var scores []PatternScore
			for _, set := range ask(place) {
				s := PatternScore{Loss: 2}
				for l := range layers {
					if !set.Has(l) {
						s.Loss += w[l]
					}
				}
				s.Same = s.Loss < 3
				scores = append(scores, s)
			}
			tell(place, PatternScore{Loss: 2, Same: true}, scores)
		}
		return nil
	}
}

// of lists the layers of some sets.
func of(sets ...PatternSet) (all [][]int) {
	for _, s := range sets {
		all = append(all, members(s))
	}
	return all
}

// TestStudy has an answer that is known: losses add up, and layer 1 costs nothing.
func TestStudy(t *testing.T) {
	pass := lost(4, [][]float64{{1, 0, 0.5, 0.75}}, [][]float64{{0.25, 0, 2, 4}, {4, 0, 2, 0.5}})
	for _, patterns := range []int{6, 2, 1} {
		r, err := PatternStudy(t.Context(), PatternOptions{Layers: 4, Least: 1, Patterns: patterns}, pass)
		if err != nil {
			t.Fatal(err)
		}
		if r.Layers != 4 || r.Places != 2 || r.Full != 2 || r.Needed != 2 || len(r.Budgets) != 3 {
			t.Errorf("%d patterns: %+v", patterns, r)
		}
		want := []struct {
			set    []int
			fixed  PatternMean
			oracle PatternMean
			first  PatternMean
		}{
			{[]int{0, 2, 3}, PatternMean{2, 1}, PatternMean{2, 1}, PatternMean{2 + 2.25, 0.5}},
			{[]int{0, 3}, PatternMean{4, 0}, PatternMean{2.375, 1}, PatternMean{2 + 4.25, 0}},
			{[]int{0}, PatternMean{2 + 4.25, 0}, PatternMean{2 + (2.25+2.5)/2, 0}, PatternMean{2 + 4.25, 0}},
		}
		for i, w := range want {
			b := r.Budgets[i]
			if diff := cmp.Diff(w.set, b.Set); diff != "" {
				t.Errorf("%d patterns, %d layers: the fixed set: %s", patterns, b.Layers, diff)
			}
			if b.Layers != 3-i || b.Fixed != w.fixed || b.Oracle != w.oracle || b.First != w.first {
				t.Errorf("%d patterns, %d layers: %+v; want %+v", patterns, b.Layers, b, w)
			}
			if b.Best.Loss > b.Random.Loss || b.Oracle.Loss > b.Best.Loss {
				t.Errorf("%d patterns, %d layers: %+v", patterns, b.Layers, b)
			}
		}
	}
}

// TestAllLayers: where no layer is left out, nothing is searched, and what is compared is the model.
func TestAllLayers(t *testing.T) {
	r, err := PatternStudy(t.Context(), PatternOptions{Layers: 3, Least: 3, Patterns: 1}, lost(3, nil, [][]float64{{1, 2, 3}, {3, 2, 1}}))
	want := &PatternReport{Layers: 3, Places: 2, Full: 2, Needed: 3}
	if diff := cmp.Diff(want, r); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// TestBeam: each size is searched as a whole where it has few sets, else from the best of the size above.
func TestBeam(t *testing.T) {
	s := &study{PatternOptions: PatternOptions{Layers: 4, Patterns: 4}}
	if diff := cmp.Diff([][]int{{0, 1, 2}, {0, 1, 3}, {0, 2, 3}, {1, 2, 3}}, of(s.next(nil, 3)...)); diff != "" {
		t.Error(diff)
	}
	beam := []PatternSet{forest.LayerRange(0, 3), forest.LayerRange(1, 4)}
	if diff := cmp.Diff([][]int{{1, 2}, {0, 2}, {0, 1}, {2, 3}, {1, 3}}, of(s.next(beam, 2)...)); diff != "" {
		t.Error(diff)
	}
	if n := s.width(2); n != 2 {
		t.Errorf("a beam of %d", n)
	}
	for _, c := range []struct{ n, size, want int }{{12, 6, 924}, {12, 12, 1}, {128, 1, 128}, {128, 64, PatternMaxPatterns + 1}, {18, 9, 48620}} {
		if got := subsets(c.n, c.size); got != c.want {
			t.Errorf("%d of %d layers: %d sets, want %d", c.size, c.n, got, c.want)
		}
		if c.want < 1000 && len(choose(nil, PatternSet{}, 0, c.n, c.size)) != c.want {
			t.Errorf("%d of %d layers: not all %d sets", c.size, c.n, c.want)
		}
	}
}

// TestWrong: options out of range, and a pass that fails.
func TestWrong(t *testing.T) {
	fails := errors.New("the model is gone")
	none := func(context.Context, int, func(int) []PatternSet, func(int, PatternScore, []PatternScore)) error {
		return fails
	}
	for _, c := range []struct {
		o    PatternOptions
		want string
	}{
		{PatternOptions{Layers: 1, Least: 1, Patterns: 1}, "the model has 1 layers; a choice of layers needs 2"},
		{PatternOptions{Layers: 4, Least: 5, Patterns: 1}, "the fewest layers are 5; they must be from 1 to the model's 4"},
		{PatternOptions{Layers: 4, Least: -1, Patterns: 1}, "the fewest layers are -1"},
		{PatternOptions{Layers: 4, Least: 1}, "0 patterns; it must be from 1 to 65536"},
		{PatternOptions{Layers: 4, Least: 1, Patterns: math.MaxInt}, "it must be from 1 to 65536"},
		{PatternOptions{Layers: 4, Least: 1, Patterns: 1}, "the model is gone"},
		{PatternOptions{Layers: 4, Least: 4, Patterns: 1}, "the model is gone"},
	} {
		if _, err := PatternStudy(t.Context(), c.o, none); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}

// TestTold: progress ends with all passes.
func TestTold(t *testing.T) {
	var told []int
	o := PatternOptions{Layers: 3, Least: 1, Patterns: 9, Told: func(done, all int) { told = append(told, done, all) }}
	if _, err := PatternStudy(t.Context(), o, lost(3, [][]float64{{1, 1, 1}}, [][]float64{{1, 1, 1}})); err != nil {
		t.Fatal(err)
	}
	if want := []int{1, 4, 2, 4, 3, 4, 4, 4}; !slices.Equal(told, want) {
		t.Errorf("told %v", told)
	}
}
