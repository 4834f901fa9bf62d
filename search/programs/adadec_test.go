package programs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/suite/searchtest"
	"grove/search"
)

// worked is the worked example: behind c, d and e, with the log-probabilities -0.9, -1.0 and -1.2, four tokens follow whose log-probabilities sum
// to -4, -1 and -6. The scores are (a+s)/5: -0.98, -0.40 and -1.44.
func worked(tb testing.TB) *searchtest.Toy {
	each := map[byte]float64{'c': math.Exp(-1), 'd': math.Exp(-.25), 'e': math.Exp(-1.5)}
	return searchtest.New(tb, 4, []string{"c", "d", "e", "x", "y", "z", ""}, func(answer string) []float64 {
		switch {
		case answer == "":
			c, d, e := math.Exp(-.9), math.Exp(-1), math.Exp(-1.2)
			return []float64{c, d, e, 0, 0, 0, 0} // they sum to 1.08; the draw makes that 1
		case len(answer) < 5:
			p := each[answer[0]]
			rest := (1 - p) / 3 // below e^-1.5
			if rest >= p {
				rest = p * .9
			}
			return []float64{0, rest, rest, p, rest, rest, 0}
		}
		return []float64{0, 0, 0, 0, 0, 0, 1}
	})
}

// TestAdadecWorked: greedily c comes first; the continuations make it d.
func TestAdadecWorked(t *testing.T) {
	m := worked(t)
	for options, want := range map[string]string{"threshold=0.01,length=4": "d", "threshold=1000": "c", "threshold=0.01,length=0": "c"} {
		r, err := m.Run(t, "adadec,"+options, 0, search.Problem{MaxTokens: 6})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Text(r.Attempts[0].IDs); got[:1] != want || (r.Figures["other_tokens"] > 0) != (want == "d") {
			t.Errorf("%s: %q, %v", options, got, r.Figures)
		}
	}
}

// adadecReference is the method over texts: one token a time, and nothing of a continuation is kept.
func adadecReference(next func(string) []float64, words []string, a adadec, most int) (text string) {
	order := func(text string) []int {
		p := next(text)
		ids := []int{}
		for i := range p {
			if p[i] > 0 {
				ids = append(ids, i)
			}
		}
		slices.SortStableFunc(ids, func(x, y int) int {
			if p[x] > p[y] {
				return -1
			} else if p[x] < p[y] {
				return 1
			}
			return 0
		})
		return ids
	}
	for n := 0; n < most; n++ {
		p, ids := next(text), order(text)
		entropy := 0.0
		for _, q := range p {
			if q > 0 {
				entropy -= q * math.Log(q)
			}
		}
		best := ids[0]
		if entropy >= a.threshold {
			most, top := math.Inf(-1), ids[:min(a.n, len(ids))]
			for _, id := range top {
				at, sum, tokens := text+words[id], math.Log(p[id]), 1
				for id := id; tokens <= a.length && words[id] != "" && n+tokens < 12; tokens++ {
					id = order(at)[0]
					sum, at = sum+math.Log(next(at)[id]), at+words[id]
				}
				if sum/float64(tokens) > most+1e-9 {
					best, most = id, sum/float64(tokens)
				}
			}
		}
		if text += words[best]; words[best] == "" {
			return text + "."
		}
	}
	return text
}

// TestAdadecReference compares the search, which keeps what it has computed, with the reference on random tables.
func TestAdadecReference(t *testing.T) {
	other := 0.0
	for seed := range uint64(10) {
		next := func(answer string) []float64 {
			rng := rand.New(rand.NewPCG(seed, uint64(len(answer))*7919+hash(answer)))
			p, sum := make([]float64, 4), 0.0
			for i := range p {
				p[i] = math.Exp(2 * rng.NormFloat64())
				sum += p[i]
			}
			for i := range p {
				p[i] /= sum
			}
			return p
		}
		m := searchtest.New(t, 4, []string{"a", "b", "c", ""}, next)
		for _, threshold := range []float64{0, .4, .8, 1.1, 1000} {
			for _, n := range []int{2, 3} {
				a := adadec{threshold: threshold, n: n, length: 3}
				r, err := m.Run(t, fmt.Sprintf("adadec,threshold=%v,n=%d,length=3", threshold, n), 0, search.Problem{MaxTokens: 12})
				if err != nil {
					t.Fatal(err)
				}
				got := m.Text(r.Attempts[0].IDs) + map[bool]string{true: "."}[r.Attempts[0].Ended]
				if want := adadecReference(next, m.Words, a, 12); got != want {
					t.Errorf("seed %d, threshold %v, n %d: %q, want %q", seed, threshold, n, got, want)
				}
				other += r.Figures["other_tokens"]
			}
		}
	}
	if other == 0 {
		t.Error("no continuation changes a token")
	}
}

func hash(text string) (h uint64) {
	for _, b := range []byte(text) {
		h = h*31 + uint64(b)
	}
	return h
}

// TestLeaves finds the end of a function's body.
func TestLeaves(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "a": false, "return 1\n\treturn 2\n": false, "a\n}": true, "a\n\n  b": false, "a\n\n\n\n": true, "x\nfunc": true, "\n}": true,
	} {
		if got := leaves(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestLearn finds the threshold of observations that were made by one: a logistic chance that is one half there.
func TestLearn(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var all []AdadecObservation
	for range 20_000 {
		h := 3 * rng.Float64()
		all = append(all, AdadecObservation{h, rng.Float64() < 1/(1+math.Exp(6*(h-1.2)))})
	}
	l, err := AdadecLearn(all)
	if err != nil || math.Abs(l.Threshold-1.2) > .1 || l.Accuracy < .87 || l.Observations != len(all) || math.Abs(l.Pauses-.6) > .05 || math.Abs(l.Right-.4) > .02 {
		t.Errorf("%+v, %v", l, err)
	}
	if again, err := AdadecLearn(all); err != nil || *again != *l {
		t.Errorf("learned again: %+v, %v", again, err)
	}
	divided := []AdadecObservation{}
	for i := range 400 {
		divided = append(divided, AdadecObservation{float64(i) / 100, i < 150})
	}
	if l, err := AdadecLearn(divided); err != nil || math.Abs(l.Threshold-1.5) > .2 || l.Accuracy < .95 {
		t.Errorf("where they can be divided: %+v, %v", l, err)
	}
	var right, reversed []AdadecObservation
	for _, o := range all {
		right, reversed = append(right, AdadecObservation{o.Entropy, true}), append(reversed, AdadecObservation{o.Entropy, !o.Right})
	}
	for name, bad := range map[string][]AdadecObservation{"none": nil, "all right": right, "more entropy is better": reversed} {
		if _, err := AdadecLearn(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestAdadecOpen reads options.
func TestAdadecOpen(t *testing.T) {
	p, err := search.Open("adadec,threshold=0.7,n=4,length=6,leave=body")
	if err != nil || p.Samples() != 4 || p.(adadec) != (adadec{.7, 4, 6, true}) {
		t.Fatal(p, err)
	}
	for _, bad := range []string{"adadec,n=1", "adadec,threshold=-1", "adadec,threshold=NaN", "adadec,length=-1", "adadec,leave=x", "adadec,m=2"} {
		if _, err := search.Open(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if p.Check(&search.Problem{Slots: 2}) == nil || p.Check(&search.Problem{Slots: 4, Greedy: true}) != nil {
		t.Error("the check of slots")
	}
}
