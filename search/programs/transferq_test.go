package programs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"grove/internal/suite/searchtest"
	"grove/internal/text/token"
	"grove/search"
)

// behind is the model's probability of "a" behind a beginning of an answer; that of "b" is the rest. Answers have three words.
var behind = map[string]float64{"": .6, "a": .3, "b": .8, "aa": .5, "ab": .9, "ba": .2, "bb": .4}

// rewards are those of answers.
var rewards = map[string]float64{"aaa": 1, "aab": -.5, "aba": 0, "abb": 2, "baa": .7, "bab": -1, "bba": 1.2, "bbb": .1}

// probability returns the model's probability of an answer behind a beginning of it.
func probability(answer, from string) float64 {
	p := 1.0
	for i := len(from); i < len(answer); i++ {
		if a := behind[answer[:i]]; answer[i] == 'a' {
			p *= a
		} else {
			p *= 1 - a
		}
	}
	return p
}

// optimum returns the probabilities of answers that the reward tilts the model's to: those of the most reward less the divergence from the model, over weight.
func optimum(weight float64) map[string]float64 {
	best, sum := map[string]float64{}, 0.0
	for answer, r := range rewards {
		best[answer] = probability(answer, "") * math.Exp(weight*r)
		sum += best[answer]
	}
	for answer := range best {
		best[answer] /= sum
	}
	return best
}

// transferqToy is the model; with flat every word is as likely as the other.
func transferqToy(tb testing.TB, slots int, flat bool) *searchtest.Toy {
	return searchtest.New(tb, slots, []string{"a", "b", ""}, func(answer string) []float64 {
		p, ok := behind[answer]
		if !ok {
			return []float64{0, 0, 1}
		}
		if flat {
			p = .5
		}
		return []float64{p, 1 - p, 0}
	})
}

// TestOptimum: with the exact values of all tokens the answers have the probabilities of the optimum. The values are estimated from each answer of a flat guide once, which is what that
// gives in the mean, less the guide's own reward.
func TestOptimum(t *testing.T) {
	for _, weight := range []float64{0.01, .5, 2} {
		x := transfer{weight: weight, indirect: true}
		for answer, want := range optimum(weight) {
			p := 1.0
			for i := range answer {
				var of [2][]float64
				for end := range rewards {
					if end[:i] == answer[:i] { // the guide's own reward is log(guide/model)/weight
						guide := math.Pow(.5, float64(2-i))
						of[end[i]-'a'] = append(of[end[i]-'a'], rewards[end]-math.Log(guide/probability(end, end[:i+1]))/weight)
					}
				}
				v := x.estimate([]token.ID{0, 1}, of[:])
				a, b := behind[answer[:i]]*math.Exp(weight*v[0]), (1-behind[answer[:i]])*math.Exp(weight*v[1])
				if answer[i] == 'b' {
					a, b = b, a
				}
				p *= a / (a + b)
			}
			if math.Abs(p-want) > 1e-12 {
				t.Errorf("weight %v: %s has %v, want %v", weight, answer, p, want)
			}
		}
	}
}

// transferqShares returns how often each answer comes, of n.
func transferqShares(t *testing.T, m, guide *searchtest.Toy, program string, n int, s *search.Scorer) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for seed := range uint64(n) {
		r, err := m.Run(t, program, 1, guide.Guide(1, search.Problem{Seed: seed, MaxTokens: 3, Scorer: s}))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, d := range r.Tokens {
			text.WriteString(m.Words[d.ID])
		}
		all[text.String()] += 1 / float64(n)
	}
	return all
}

// distance is half the sum of differences.
func distance(a, b map[string]float64) (d float64) {
	for answer := range rewards {
		d += math.Abs(a[answer]-b[answer]) / 2
	}
	return d
}

var transferqScorer = &search.Scorer{Score: func(_ context.Context, text string) (float64, error) { return rewards[text], nil }}

// TestDrawn: answers are drawn by the optimum where a flat guide's rollouts are many and reweighted; without weight, and with a constant reward, by the model's own probabilities.
func TestDrawn(t *testing.T) {
	const n = 400
	m, guide := transferqToy(t, 8, false), transferqToy(t, 8, true)
	constant := &search.Scorer{Score: func(context.Context, string) (float64, error) { return 3, nil }}
	for _, tt := range []struct {
		program string
		s       *search.Scorer
		want    map[string]float64
	}{
		{"transferq,k=2,length=2,rollouts=16,by=score,transfer=indirect,weight=1.5", transferqScorer, optimum(1.5)},
		{"transferq,k=2,length=2,by=score,weight=0", transferqScorer, optimum(0)},
		{"transferq,k=2,length=2,by=score,weight=3", constant, optimum(0)},
	} {
		if d := distance(transferqShares(t, m, guide, tt.program, n, tt.s), tt.want); d > .1 {
			t.Errorf("%s: %.3f from the optimum", tt.program, d)
		}
	}
	if d := distance(optimum(1.5), optimum(0)); d < .2 {
		t.Errorf("the optimum differs by %.3f alone", d)
	}
}

// TestDirect: a guide that is sure of the best end of each beginning gives the best answer at a large weight, with any number of slots.
func TestDirect(t *testing.T) {
	m := transferqToy(t, 8, false)
	guide := searchtest.New(t, 3, []string{"a", "b", ""}, func(answer string) []float64 {
		best, end := math.Inf(-1), ""
		for a, r := range rewards {
			if len(answer) < 3 && strings.HasPrefix(a, answer) && r > best {
				best, end = r, a[len(answer):]
			}
		}
		p := []float64{0, 0, 0}
		switch {
		case strings.HasPrefix(end, "a"):
			p[0] = 1
		case strings.HasPrefix(end, "b"):
			p[1] = 1
		default:
			p[2] = 1
		}
		return p
	})
	for seed := range uint64(10) {
		r, err := m.Run(t, "transferq,k=2,length=2,rollouts=3,by=score,alpha=0.001", 1, guide.Guide(1, search.Problem{Seed: seed, MaxTokens: 3, Scorer: transferqScorer}))
		if err != nil {
			t.Fatal(err)
		}
		if text := m.Text(r.Attempts[0].IDs); text != "abb" || r.Figures["rollouts"] != 18 {
			t.Errorf("%q, %v", text, r.Figures)
		}
	}
}

// TestScorers: a scorer that fails, or gives minus infinity, leaves an answer; one that hangs is asked once.
func TestScorers(t *testing.T) {
	m, guide := transferqToy(t, 4, false), transferqToy(t, 4, true)
	calls := 0
	for name, s := range map[string]*search.Scorer{
		"fails": {Score: func(context.Context, string) (float64, error) { return 0, errors.New("no") }},
		"fails for some": {Score: func(_ context.Context, text string) (float64, error) {
			if text[0] == 'a' {
				return 0, errors.New("no")
			}
			return 1, nil
		}},
		"minus infinity": {Score: func(context.Context, string) (float64, error) { return math.Inf(-1), nil }},
		"hangs": {Timeout: 20 * time.Millisecond, Score: func(ctx context.Context, _ string) (float64, error) {
			calls++
			<-ctx.Done()
			return 0, ctx.Err()
		}},
	} {
		r, err := m.Run(t, "transferq,k=2,by=score", 1, guide.Guide(1, search.Problem{MaxTokens: 3, Scorer: s}))
		if err != nil || len(r.Tokens) != 3 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if calls != 1 {
		t.Errorf("a scorer that hangs is asked %d times", calls)
	}
	never := &search.Scorer{Score: func(_ context.Context, text string) (float64, error) {
		if strings.Contains(text, "b") {
			return math.Inf(-1), nil
		}
		return 0, nil
	}}
	for seed := range uint64(20) {
		r, err := m.Run(t, "transferq,k=2,length=0,by=score", 1, guide.Guide(1, search.Problem{MaxTokens: 3, Scorer: never, Seed: seed}))
		if err != nil || m.Text(r.Attempts[0].IDs) != "aaa" {
			t.Errorf("%v: %v", r, err)
		}
	}
}

// TestTransferqOptions refuses options out of range, and problems without a guide or a scorer.
func TestTransferqOptions(t *testing.T) {
	for _, bad := range []string{"transferq,k=0", "transferq,weight=-1", "transferq,alpha=0", "transferq,alpha=1,weight=1", "transferq,by=x", "transferq,transfer=x", "transferq,rollouts=0"} {
		if _, err := search.Open(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	p, err := search.Open("transferq,k=3,rollouts=2,by=score")
	if err != nil || p.Samples() != 1 || search.Slots(p) != 6 {
		t.Fatal(p, err)
	}
	guides := []search.Guide{{Same: true}}
	for name, bad := range map[string]search.Problem{"no scorer": {Guides: guides}, "no guide": {Scorer: transferqScorer}} {
		if p.Check(&bad) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := p.Check(&search.Problem{Guides: guides, Scorer: transferqScorer}); err != nil {
		t.Error(fmt.Errorf("a guide and a scorer: %w", err))
	}
}
