package layers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/forest"
)

// TestPlaces: the numbers of the paper's formula, and sets that shrink.
func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		options string
		layers  int
		counts  []int
		skips   []string // at these places
	}{
		{"to=4", 4, []int{4, 4, 4}, []string{"", "", ""}},
		{"to=2,over=3", 6, []int{6, 4, 2, 2, 2}, []string{"", "1-2", "1-4", "1-4"}},
		{"to=1,over=1,first=0", 3, []int{1, 1}, []string{"0-1", "0-1"}},
		{"from=5,to=3,first=2,over=5", 6, []int{5, 4, 4, 3, 3, 3}, []string{"2", "2-3", "2-3", "2-4"}},
		{"to=2,first=2,over=2", 4, []int{4, 2}, []string{"", "2-3"}},
	} {
		p, err := ParsePlaces(c.options)
		if err == nil {
			p, err = p.Fits(c.layers)
		}
		if err != nil || !p.On() {
			t.Fatal(c.options, err)
		}
		var counts []int
		for i := range c.counts {
			counts = append(counts, p.Count(i))
		}
		if diff := cmp.Diff(c.counts, counts); diff != "" {
			t.Errorf("%s: %s", c.options, diff)
		}
		var skips []string
		for i := range c.skips {
			skips = append(skips, Format(Set{p.Skip(c.layers, i), p.Skip(c.layers, i)}))
		}
		if diff := cmp.Diff(c.skips, skips); diff != "" {
			t.Errorf("%s: %s", c.options, diff)
		}
	}
	p, err := Places{To: 7, First: 2, Over: 1000}.Fits(40)
	if err != nil {
		t.Fatal(err)
	}
	before := forest.Layers{}
	for i := range 1100 {
		now := p.Skip(40, i)
		if before.Minus(now).Len() > 0 || now.Len() != 40-p.Count(i) || now.Has(0) || now.Has(1) || now.Has(39) {
			t.Fatalf("place %d skips %s, the one before %s", i, Format(Set{now, now}), Format(Set{before, before}))
		}
		before = now
	}
	if p, err := ParsePlaces(""); err != nil || p.On() {
		t.Error(p, err)
	}
}

// TestPlacesWrong: options that make no sense are named.
func TestPlacesWrong(t *testing.T) {
	for _, c := range []struct{ options, want string }{
		{"from=3", "to=N is missing"},
		{"to=0", `option "to=0" is not known`},
		{"to=3,to=2", `option "to=2" is not known`},
		{"to=3,first=-1", `option "first=-1" is not known`},
		{"to=3,over=99999999", `option "over=99999999" is not known`},
		{"typical", `option "typical" is not known`},
		{"to=3,from=9", "from=9: the model has 4 layers; it must be 1 to 4"},
		{"to=5", "to=5: it must be 1 to 4"},
		{"to=3,from=2", "to=3: it must be 1 to 2"},
		{"to=2,first=3", "first=3: it must be 0 to 2"},
	} {
		p, err := ParsePlaces(c.options)
		if err == nil {
			_, err = p.Fits(4)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.options, err)
		}
	}
	if _, err := (Places{To: 2, Over: -1}).Fits(4); err == nil {
		t.Error("a negative number of places")
	}
}
