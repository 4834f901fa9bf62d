package programs

import (
	"slices"
	"testing"

	"grove/search"
)

// TestAwrsCheck refuses what cannot be searched.
func TestAwrsCheck(t *testing.T) {
	p, err := search.Open("awrs,n=3")
	if err != nil || p.Samples() != 3 {
		t.Fatal(p, err)
	}
	for name, problem := range map[string]search.Problem{
		"few slots": {Slots: 2, Weighed: true}, "greedy": {Slots: 4, Greedy: true, Weighed: true}, "no weights": {Slots: 4},
	} {
		if p.Check(&problem) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := p.Check(&search.Problem{Slots: 3, Weighed: true}); err != nil {
		t.Error(err)
	}
	if !slices.ContainsFunc(search.All(), func(i search.Info) bool { return i.Name == "awrs" }) {
		t.Error("awrs is not registered")
	}
}
