package programs

import (
	"math"
	"strings"
	"testing"

	"grove/internal/suite/searchtest"
	"grove/search"
)

// TestTrials has the worked numbers of both formulas, with 10 trials at most, from 0.01 to 1.5 nats.
func TestTrials(t *testing.T) {
	for formula, want := range map[string][]int{"program": {1, 2, 5, 8, 10}, "paper": {1, 1, 4, 7, 10}} {
		c := cntp{10, .01, 1.5, formula, false}
		for i, h := range []float64{.005, .2, .7, 1.2, 2} {
			if got := c.trials(h); got != want[i] {
				t.Errorf("%s, %v nats: %d trials, want %d", formula, h, got, want[i])
			}
		}
		if got := c.trials(math.Inf(1)); got != 10 {
			t.Errorf("%s, no bound: %d trials", formula, got)
		}
	}
}

// TestPerplexity has the worked numbers of two trials.
func TestPerplexity(t *testing.T) {
	for want, probs := range map[float64][]float64{1.4907: {.5, .9}, 2.2361: {.5, .4}} {
		if got := perplexity(probs); math.Abs(got-want) > 5e-5 {
			t.Errorf("%v: %v, want %v", probs, got, want)
		}
	}
	if e := entropy([]float64{.5630, .2071, .1256, .0762, .0280}); math.Abs(e-1.2065) > 2e-4 {
		t.Errorf("an entropy of %v, want 1.2065", e)
	}
}

// cntpToy is a model whose first token is a or b with .5; behind a follows a point with .9, behind b with .4.
func cntpToy(tb testing.TB) *searchtest.Toy {
	return searchtest.New(tb, 10, []string{"a", "b", "c", ".", ""}, func(answer string) []float64 {
		switch answer {
		case "":
			return []float64{.5, .5, 0, 0, 0}
		case "a":
			return []float64{0, 0, .1, .9, 0}
		case "b":
			return []float64{0, 0, .6, .4, 0}
		case "ac", "bc":
			return []float64{0, 0, 0, 1, 0}
		}
		return []float64{0, 0, 0, 0, 1}
	})
}

// TestLikeliestTrial: of trials the one with the lowest perplexity wins whenever it is drawn; "a." has 1.4907, "bc." 1.4938.
func TestLikeliestTrial(t *testing.T) {
	m := cntpToy(t)
	perplexities := map[string]float64{"a.": 1.4907, "ac.": math.Pow(.05, -1./3), "b.": 2.2361, "bc.": math.Pow(.3, -1./3)}
	texts := map[string]int{}
	for seed := range uint64(40) {
		r, err := m.Run(t, "cntp,n=3,low=0,high=0.5", 1, search.Problem{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		got := m.Text(r.Attempts[0].IDs)
		texts[got]++
		if r.Figures["branchings"] != 1 || r.Figures["trials"] != 3 || !r.Attempts[0].Ended {
			t.Errorf("%q: %v", got, r.Figures)
		}
		// The trials are the plain samples 0, 1 and 2 up to their point.
		best := ""
		for i := range 3 {
			plain, err := m.Run(t, "cntp,n=2,low=999,high=1000", 1, search.Problem{Seed: seed, Index: i})
			if err != nil {
				t.Fatal(err)
			}
			if text := m.Text(plain.Attempts[0].IDs); best == "" || perplexities[text] < perplexities[best] {
				best = text
			}
		}
		if got != best {
			t.Errorf("seed %d: %q, want %q", seed, got, best)
		}
	}
	if len(texts) < 2 {
		t.Errorf("answers %v", texts)
	}
}

// TestSure: where no entropy asks for trials, the answer is the plain sample, token for token.
func TestSure(t *testing.T) {
	m := cntpToy(t)
	for seed := range uint64(10) {
		p, done := m.Problem(t, 1, search.Problem{Seed: seed})
		var want strings.Builder
		for {
			d, err := p.First.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if want.WriteString(m.Words[d.ID]); p.Ends(d.ID) {
				break
			}
		}
		done()
		r, err := m.Run(t, "cntp,low=500,high=1000", 1, search.Problem{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Text(r.Attempts[0].IDs); got != want.String() || r.Figures["trials"] != 0 {
			t.Errorf("%q, want %q", got, want.String())
		}
	}
}

// TestEdges: a trial that ends the answer, punctuation first, a bound of tokens within a trial, and words that end with punctuation.
func TestEdges(t *testing.T) {
	m := searchtest.New(t, 4, []string{"a", "b. ", ".", ""}, func(answer string) []float64 {
		return []float64{.4, .3, .2, .1}
	})
	ended := 0
	for seed := range uint64(20) {
		for _, clause := range []string{"token", "text"} {
			r, err := m.Run(t, "cntp,n=4,low=0,high=0.1,clause="+clause, 1, search.Problem{Seed: seed, MaxTokens: 7})
			if err != nil {
				t.Fatal(err)
			}
			a := r.Attempts[0]
			if a.Ended {
				ended++
			}
			if a.Tokens == 0 || a.Tokens > 7 || !a.Ended && a.Tokens != 7 || r.Figures["trials"] != 4*r.Figures["branchings"] {
				t.Errorf("%+v, %v", a, r.Figures)
			}
			if tokens := r.Figures["trial_tokens"]; tokens < r.Figures["trials"] {
				t.Errorf("trials of %v tokens: %v", tokens, r.Figures)
			}
		}
	}
	if ended == 0 || ended == 40 {
		t.Errorf("%d of 40 answers end", ended)
	}
}

// TestCntpOpen reads options, and refuses what cannot be searched.
func TestCntpOpen(t *testing.T) {
	p, err := search.Open("cntp,n=3,low=0.1,high=2,trials=paper,clause=text")
	if err != nil || p.Samples() != 3 || p.(cntp) != (cntp{3, .1, 2, "paper", true}) {
		t.Fatal(p, err)
	}
	for _, bad := range []string{"cntp,n=1", "cntp,low=2", "cntp,high=NaN", "cntp,trials=x", "cntp,clause=x", "cntp,m=2"} {
		if _, err := search.Open(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if p.Check(&search.Problem{Slots: 2}) == nil || p.Check(&search.Problem{Slots: 4, Greedy: true}) == nil || p.Check(&search.Problem{Slots: 3}) != nil {
		t.Error("the check of slots and temperature")
	}
}
