package programs

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"grove/internal/suite/searchtest"
	"grove/search"
)

// binary is the worked example: 1 has .3 at each of two steps, and a point follows; the reward of 11 is 3, of others 1.
func binary(tb testing.TB, slots int) *searchtest.Toy {
	return searchtest.New(tb, slots, []string{"0", "1", "."}, func(answer string) []float64 {
		if len(answer) < 2 {
			return []float64{.7, .3, 0}
		}
		return []float64{0, 0, 1}
	})
}

func smcScorer(reward func(text string) float64) *search.Scorer {
	return &search.Scorer{Score: func(_ context.Context, text string) (float64, error) { return math.Log(reward(text)), nil }}
}

func triple(text string) float64 {
	if strings.HasPrefix(text, "11") {
		return 3
	}
	return 1
}

// moments are the mean of numbers and its deviation.
type moments struct{ n, sum, squares float64 }

func (m *moments) add(x float64) { m.n, m.sum, m.squares = m.n+1, m.sum+x, m.squares+x*x }

func (m *moments) mean() (mean, deviation float64) {
	mean = m.sum / m.n
	return mean, math.Sqrt(math.Max(m.squares/m.n-mean*mean, 0) / m.n)
}

// TestNormaliser: the estimate of the normaliser is unbiased with two samples, with and without resampling, moves and rollouts.
func TestNormaliser(t *testing.T) {
	m := binary(t, 2)
	const runs = 1200
	for _, options := range []string{"threshold=0", "threshold=1", "threshold=0.9,rollouts=1,horizon=2", "threshold=1,moves=2", "threshold=1,rollouts=2,moves=1,horizon=2"} {
		var z moments
		for seed := range uint64(runs) {
			r, err := m.Run(t, "smc,n=2,block=1,"+options, 1, search.Problem{Seed: seed, MaxTokens: 2, Scorer: smcScorer(triple)})
			if err != nil {
				t.Fatal(err)
			}
			z.add(math.Exp(r.Figures["log_normaliser"]))
		}
		if mean, deviation := z.mean(); math.Abs(mean-1.18) > 4*deviation+1e-9 || deviation > .05 {
			t.Errorf("%s: %.4f (deviation %.4f), want 1.18", options, mean, deviation)
		}
	}
}

// TestEnumerated: the same on random tables with rewards of each beginning, and answers that end at different places, against the sum over
// all answers.
func TestEnumerated(t *testing.T) {
	rng := func(text string) *rand.Rand {
		h := fnv.New64a()
		h.Write([]byte(text))
		return rand.New(rand.NewPCG(7, h.Sum64()))
	}
	next := func(answer string) []float64 {
		p, sum := []float64{0, 0, 0}, 0.0
		for i := range p {
			p[i] = .1 + rng("p"+answer+string(rune('a'+i))).Float64()
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
		}
		return p
	}
	reward := func(text string) float64 { // a product over beginnings
		product := 1.0
		for i := range text {
			product *= .2 + 2*rng("r"+text[:i+1]).Float64()
		}
		return product
	}
	words := []string{"a", "b", ""}
	want, power := 0.0, 0.0
	var walk func(text string, p float64, tokens int)
	walk = func(text string, p float64, tokens int) {
		for i, q := range next(text) {
			if i == 2 || tokens == 3 {
				want += p * q * reward(text+words[i])
				power += math.Pow(p*q, 1.7)
				continue
			}
			walk(text+words[i], p*q, tokens+1)
		}
	}
	walk("", 1, 0)
	m := searchtest.New(t, 3, words, next)
	for _, options := range []string{"block=1,threshold=1", "block=2,threshold=0.9,moves=1", "block=1,threshold=0.8,rollouts=1", "block=1,threshold=0.9,power=1.7"} {
		var z moments
		p := search.Problem{MaxTokens: 4, Scorer: smcScorer(reward)}
		normaliser := want
		if strings.Contains(options, "power") {
			p.Scorer, normaliser = nil, power
		}
		for p.Seed = range uint64(800) {
			r, err := m.Run(t, "smc,n=3,"+options, 1, p)
			if err != nil {
				t.Fatal(err)
			}
			z.add(math.Exp(r.Figures["log_normaliser"]))
		}
		if mean, deviation := z.mean(); math.Abs(mean-normaliser) > 4*deviation || deviation > .1*normaliser {
			t.Errorf("%s: %.4f (deviation %.4f), want %.4f", options, mean, deviation, normaliser)
		}
	}
}

// TestTarget: with many samples the answers come near the target, which is worked out; the moves alone bring two samples there.
func TestTarget(t *testing.T) {
	want := map[string]float64{"00": .4153, "01": .1780, "10": .1780, "11": .2288}
	for options, runs := range map[string]int{"n=32,block=1,threshold=0.5": 500, "n=2,block=2,threshold=1,moves=8": 1000} {
		m, got := binary(t, 32), map[string]float64{}
		for seed := range uint64(runs) {
			r, err := m.Run(t, "smc,"+options, 1, search.Problem{Seed: seed, MaxTokens: 3, Scorer: smcScorer(triple)})
			if err != nil {
				t.Fatal(err)
			}
			got[m.Text(r.Attempts[r.Index].IDs)[:2]] += 1 / float64(runs)
		}
		for text, p := range want {
			if deviation := math.Sqrt(p * (1 - p) / float64(runs)); math.Abs(got[text]-p) > 3.5*deviation {
				t.Errorf("%s: %q has %.4f, want %.4f (deviation %.4f)", options, text, got[text], p, deviation)
			}
		}
	}
}

// TestExactAhead: where the reward of a beginning has what is expected behind it, 1 and 1.6, the first token has the marginal of the target, and no
// weight changes behind it but by what the last token brings.
func TestExactAhead(t *testing.T) {
	m := binary(t, 32)
	reward := func(text string) float64 { return map[string]float64{"0": 1, "1": 1.6, "11": 3}[text] }
	exact := func(text string) float64 {
		if r := reward(text); r > 0 {
			return r
		}
		return 1
	}
	var z moments
	ones := 0.0
	const runs = 500
	for seed := range uint64(runs) {
		r, err := m.Run(t, "smc,n=32,block=1,threshold=1", 1, search.Problem{Seed: seed, MaxTokens: 2, Scorer: smcScorer(exact)})
		if err != nil {
			t.Fatal(err)
		}
		z.add(math.Exp(r.Figures["log_normaliser"]))
		if strings.HasPrefix(m.Text(r.Attempts[r.Index].IDs), "1") {
			ones += 1. / runs
		}
	}
	if mean, deviation := z.mean(); math.Abs(mean-1.18) > 4*deviation {
		t.Errorf("a normaliser of %v, deviation %v", mean, deviation)
	}
	if math.Abs(ones-.4068) > .08 {
		t.Errorf("1 comes first in %.3f of the answers, want .4068", ones)
	}
}

// TestPlain: with equal rewards each sample is the plain one, all weigh the same, and the normaliser is 1.
func TestPlain(t *testing.T) {
	m := binary(t, 4)
	for seed := range uint64(10) {
		r, err := m.Run(t, "smc,n=4,block=1", 1, search.Problem{Seed: seed, MaxTokens: 3, Scorer: smcScorer(func(string) float64 { return 1 })})
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range r.Attempts {
			p, done := m.Problem(t, 1, search.Problem{Seed: seed, Index: i})
			want := ""
			for range 3 {
				d, err := p.First.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				want += m.Words[d.ID]
			}
			if done(); m.Text(a.IDs) != want || a.Weight != .25 {
				t.Errorf("seed %d, sample %d: %q with %v, want %q", seed, i, m.Text(a.IDs), a.Weight, want)
			}
		}
		if f := r.Figures; math.Abs(f["effective"]-4) > 1e-9 || math.Abs(f["log_normaliser"]) > 1e-9 || f["resamplings"] != 0 {
			t.Errorf("figures %v", f)
		}
	}
}

// TestFaults: samples without reward are replaced, one whose scorer fails has no weight, and where none has any the error says so; a scorer
// that hangs ends the search by its deadline, with the samples as they are.
func TestFaults(t *testing.T) {
	m := binary(t, 8)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	no := func(text string) float64 {
		if strings.Contains(text, "0") {
			return 0
		}
		return 1
	}
	r, err := m.Run(t, "smc,n=8,block=1,pick=best", 1, search.Problem{Seed: 2, MaxTokens: 3, Scorer: smcScorer(no)})
	if err != nil || m.Text(r.Attempts[r.Index].IDs) != "11." || r.Figures["resamplings"] == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	_, err = m.Run(t, "smc,n=8,block=1", 1, search.Problem{Seed: 2, MaxTokens: 3, Scorer: smcScorer(func(string) float64 { return 0 })})
	if err == nil || !strings.Contains(err.Error(), "no sample has any weight: search: the scorer gives minus infinity") {
		t.Errorf("%v", err)
	}
	fails := &search.Scorer{Score: func(_ context.Context, text string) (float64, error) {
		if strings.HasPrefix(text, "0") {
			return 0, errors.New("a bad start")
		}
		return 0, nil
	}}
	r, err = m.Run(t, "smc,n=8,block=3,threshold=0", 1, search.Problem{Seed: 2, MaxTokens: 3, Scorer: fails})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Attempts {
		if bad := strings.HasPrefix(m.Text(a.IDs), "0"); bad != (a.Weight == 0) || bad != (a.Fault == "a bad start") {
			t.Errorf("%q: %+v", m.Text(a.IDs), a)
		}
	}
	for _, options := range []string{"block=1", "block=1,rollouts=2,threshold=1", "block=1,moves=2,threshold=1"} {
		for at := range 30 {
			var calls atomic.Int64
			start := time.Now()
			hangs := &search.Scorer{Timeout: 20 * time.Millisecond, Score: func(context.Context, string) (float64, error) {
				if calls.Add(1) > int64(at) {
					<-hang
				}
				return 0, nil
			}}
			r, err := m.Run(t, "smc,n=4,"+options, 1, search.Problem{Seed: 3, MaxTokens: 3, Scorer: hangs})
			if err != nil || time.Since(start) > 2*time.Second {
				t.Fatal(options, at, err)
			}
			sum := 0.0
			for _, a := range r.Attempts {
				if sum += a.Weight; calls.Load() > int64(at) && !strings.Contains(a.Fault, "did not return in time") {
					t.Errorf("%s, a scorer that hangs at call %d: %+v", options, at, a)
				}
			}
			if math.Abs(sum-1) > 1e-9 || len(r.Tokens) == 0 {
				t.Errorf("%s, a scorer that hangs at call %d: %+v", options, at, r)
			}
		}
	}
}

// TestSmcOpen reads options, and refuses what cannot be searched.
func TestSmcOpen(t *testing.T) {
	p, err := search.Open("smc,n=3,block=4,power=2,threshold=1,moves=2,rollouts=3,horizon=5,pick=best")
	if err != nil || p.Samples() != 3 || p.(smc) != (smc{3, 4, 2, 1, 2, 3, 5, true}) {
		t.Fatal(p, err)
	}
	for _, bad := range []string{"n=1", "block=0", "power=0", "threshold=2", "moves=99", "rollouts=-1", "horizon=0", "pick=x", "m=2"} {
		if _, err := search.Open("smc," + bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	for name, problem := range map[string]search.Problem{"few slots": {Slots: 2}, "greedy": {Slots: 4, Greedy: true}} {
		if p.Check(&problem) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	plain, err := search.Open("smc,n=3")
	if err != nil {
		t.Fatal(err)
	}
	if err := fmt.Sprint(plain.Check(&search.Problem{Slots: 3})); !strings.Contains(err, "nothing weighs the answers") {
		t.Error(err)
	}
	if p.Check(&search.Problem{Slots: 3}) != nil || plain.Check(&search.Problem{Slots: 3, Scorer: smcScorer(triple)}) != nil {
		t.Error("a good problem is refused")
	}
}
