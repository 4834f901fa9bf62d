package programs

import (
	"math"
	"testing"

	"grove/internal/suite/searchtest"
	"grove/search"
)

// TestMajority: where the right answer is likelier than each other one, more samples give it more often.
func TestMajority(t *testing.T) {
	m := searchtest.New(t, 16, []string{"=7", "=8", "=9", ""}, func(answer string) []float64 {
		if answer != "" {
			return []float64{0, 0, 0, 1}
		}
		return []float64{.5, .3, .2, 0}
	})
	const runs = 200
	right := map[string]float64{}
	for _, program := range []string{"vote,n=2", "vote,n=16"} {
		for seed := range uint64(runs) {
			r, err := m.Run(t, program, 1, search.Problem{Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			votes, winner := 0, r.Attempts[r.Index].Answer
			for _, a := range r.Attempts {
				if a.Answer == winner {
					votes++
				}
			}
			if float64(votes) != r.Figures["votes"] {
				t.Fatalf("%v votes of %+v", r.Figures, r.Attempts)
			}
			if winner == "7" {
				right[program] += 1. / runs
			}
		}
	}
	if math.Abs(right["vote,n=2"]-.5) > .1 || math.Abs(right["vote,n=16"]-.789) > .09 { // three deviations, of the exact chances
		t.Errorf("right: %v", right)
	}
}

// TestVoteCheck refuses what cannot be searched.
func TestVoteCheck(t *testing.T) {
	for _, bad := range []string{"vote,n=1", "vote,answer=x", "vote,weigh=2", "vote,m=2"} {
		if _, err := search.Open(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	p, err := search.Open("vote,n=3,answer=boxed,weigh=likelihood")
	if err != nil || p.Samples() != 3 {
		t.Fatal(p, err)
	}
	if p.Check(&search.Problem{Slots: 2}) == nil || p.Check(&search.Problem{Slots: 4, Greedy: true}) == nil || p.Check(&search.Problem{Slots: 3}) != nil {
		t.Error("the check of slots and temperature")
	}
}
