package programs

import (
	"math/rand/v2"
	"testing"

	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/search"
)

// TestPick compares the choice among as many candidates as groups with that among all tokens.
func TestPick(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		all := make([]sample.Token, 12)
		l := float32(0)
		for i := range all {
			l -= float32(rng.ExpFloat64())
			all[i] = sample.Token{ID: token.ID(i), Logprob: l}
		}
		n, penalty := 2+rng.IntN(5), 2*rng.Float64()
		taken := map[token.ID]int{}
		for range rng.IntN(n) {
			taken[token.ID(rng.IntN(n))]++
		}
		if got, want := pick(all[:n], taken, penalty), pick(all, taken, penalty); got != want {
			t.Fatalf("token %d of %d candidates, %d of all", got, n, want)
		}
	}
	list := []sample.Token{{ID: 7, Logprob: -1}, {ID: 8, Logprob: -1.5}}
	for penalty, want := range map[float64]int{0: 0, .4: 0, .6: 1} {
		if got := pick(list, map[token.ID]int{7: 1}, penalty); got != want {
			t.Errorf("with a penalty of %v token %d is taken, want %d", penalty, got, want)
		}
	}
}

// TestGroupsOpen reads options.
func TestGroupsOpen(t *testing.T) {
	p, err := search.Open("groups,n=3,penalty=0.5")
	if err != nil || p.Samples() != 3 || p.(groups).penalty != .5 {
		t.Fatal(p, err)
	}
	for _, bad := range []string{"groups,n=1", "groups,penalty=-1", "groups,penalty=x", "groups,penalty=NaN", "groups,m=2"} {
		if _, err := search.Open(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if p.Check(&search.Problem{Slots: 2}) == nil || p.Check(&search.Problem{Slots: 3, Greedy: true}) != nil {
		t.Error("the check of slots")
	}
}
