package programs

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"grove/internal/suite/modeltest"
	"grove/internal/suite/searchtest"
	"grove/search"
)

// of returns a model that writes the letter a with a probability, else b, and an end of a line behind each two letters; an answer has three lines.
func of(tb testing.TB, p float64) *searchtest.Toy {
	return searchtest.New(tb, 2, []string{"a", "b", "\n", ""}, func(answer string) []float64 {
		switch {
		case len(answer) == 9:
			return []float64{0, 0, 0, 1}
		case len(answer)%3 == 2:
			return []float64{0, 0, 1, 0}
		}
		return []float64{p, 1 - p, 0, 0}
	})
}

// arbitrageRun returns an answer, and the counts.
func arbitrageRun(t *testing.T, program string, seed uint64, s *search.Scorer) (string, map[string]float64) {
	t.Helper()
	m, guide := of(t, .8), of(t, .4)
	r, err := m.Run(t, program, 1, guide.Guide(1, search.Problem{Seed: seed, Scorer: s}))
	if err != nil {
		t.Fatal(err)
	}
	text, f := m.Text(r.Attempts[0].IDs), r.Figures
	if f["kept_tokens"]+f["model_tokens"] != float64(len(r.Tokens)) || f["routed"] > f["steps"] || math.Abs(f["draft_share"]-f["kept_tokens"]/float64(len(r.Tokens))) > 1e-9 {
		t.Errorf("%s: %d tokens, %v", program, len(r.Tokens), f)
	}
	return text, f
}

// plain returns the answer of a model alone.
func plain(t *testing.T, m *searchtest.Toy, seed uint64) string {
	t.Helper()
	p, done := m.Problem(t, 1, search.Problem{Seed: seed})
	defer done()
	r, err := p.DrawOne(t.Context(), p.First.Next)
	if err != nil {
		t.Fatal(err)
	}
	return m.Text(r.Attempts[0].IDs)
}

// TestThresholds: a threshold of 0 gives the model's own answer, one above 1 the guide's; between, a step is the guide's where the model finds it likely enough.
func TestThresholds(t *testing.T) {
	m, guide := of(t, .8), of(t, .4)
	for seed := range uint64(12) {
		for _, by := range []string{"odds", "probability"} {
			if text, f := arbitrageRun(t, "arbitrage,step=line,threshold=0,by="+by, seed, nil); text != plain(t, m, seed) || f["routed"] != f["steps"] || f["kept_tokens"] != 0 {
				t.Errorf("seed %d, threshold 0: %q, %v", seed, text, f)
			}
			if text, f := arbitrageRun(t, "arbitrage,step=line,threshold=1.5,by="+by, seed, nil); text != plain(t, guide, seed) || f["routed"] != 0 || f["discarded_tokens"] != 0 {
				t.Errorf("seed %d, threshold 1.5: %q, %v", seed, text, f)
			}
		}
		// The model gives bb a third of the guide's probability of each letter, ab more, and aa twice as much.
		first := plain(t, guide, seed)[:3]
		for by, advantage := range map[string]map[string]float64{
			"odds":        {"aa\n": 0, "ab\n": 1 - math.Cbrt(2./3), "ba\n": 1 - math.Cbrt(2./3), "bb\n": 1 - math.Cbrt(1./9)},
			"probability": {"aa\n": 1 - math.Cbrt(.64), "ab\n": 1 - math.Cbrt(.16), "ba\n": 1 - math.Cbrt(.16), "bb\n": 1 - math.Cbrt(.04)},
		} {
			for _, threshold := range []string{"0.3", "0.5"} {
				text, f := arbitrageRun(t, "arbitrage,step=line,threshold="+threshold+",by="+by, seed, nil)
				above := advantage[first] >= map[string]float64{"0.3": .3, "0.5": .5}[threshold]
				if got := strings.HasPrefix(text, first); !above && !got || above && text[:3] != plain(t, m, seed)[:3] {
					t.Errorf("seed %d, %s, threshold %s: %q behind a first step of %q; %v", seed, by, threshold, text, first, f)
				}
			}
		}
	}
}

// TestScores: a scorer routes by the score of the guide's step, or by what it gains; one that fails leaves the step to the model.
func TestScores(t *testing.T) {
	many := &search.Scorer{Score: func(_ context.Context, text string) (float64, error) {
		return float64(strings.Count(text, "a")) / 6, nil
	}}
	fails := &search.Scorer{Score: func(context.Context, string) (float64, error) { return 0, errors.New("no") }}
	m, guide := of(t, .8), of(t, .4)
	routed := 0.0
	for seed := range uint64(12) {
		text, f := arbitrageRun(t, "arbitrage,step=line,by=advantage,threshold=0.1", seed, many)
		if strings.Count(text, "a") < strings.Count(plain(t, guide, seed), "a") {
			t.Errorf("seed %d: %q is worse than the guide's", seed, text)
		}
		routed += f["routed"]
		if text, f := arbitrageRun(t, "arbitrage,step=line,by=score,threshold=-9", seed, many); text != plain(t, m, seed) || f["unscored"] != 0 {
			t.Errorf("seed %d: %q, %v", seed, text, f)
		}
		for _, by := range []string{"score", "advantage"} {
			if text, f := arbitrageRun(t, "arbitrage,step=line,threshold=0.5,by="+by, seed, fails); text != plain(t, m, seed) || f["unscored"] != f["steps"] {
				t.Errorf("seed %d, by %s: %q, %v", seed, by, text, f)
			}
		}
	}
	if routed == 0 || routed > 40 {
		t.Errorf("%v steps are routed", routed)
	}
}

// TestArbitrageOptions refuses options out of range, and problems without a guide or a scorer.
func TestArbitrageOptions(t *testing.T) {
	for _, bad := range []string{"arbitrage,step=word", "arbitrage,by=x", "arbitrage,length=0", "arbitrage,threshold=x"} {
		if _, err := search.Open(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	p, err := search.Open("arbitrage,by=score")
	if err != nil || p.Check(&search.Problem{Guides: []search.Guide{{Same: true}}}) == nil {
		t.Error(p, err)
	}
}

// TestArbitrageGuideContext: an answer ends where the guide's context has no place, whoever writes its steps.
func TestArbitrageGuideContext(t *testing.T) {
	letters := func(string) []float64 { return []float64{.5, .4, .1} }
	m := searchtest.New(t, 2, []string{"a", "b", "\n"}, letters)
	guide := searchtest.Of(t, 2, modeltest.Spec{Context: 40})
	guide.Words, guide.Next = m.Words, letters
	for _, by := range []string{"odds,threshold=0", "odds,threshold=1.5", "probability,threshold=0.5", "odds,threshold=0.05"} {
		for seed := range uint64(4) {
			r, err := m.Run(t, "arbitrage,step=line,by="+by, 1, guide.Guide(1, search.Problem{Seed: seed}))
			if err != nil || len(r.Tokens) < 40-len(searchtest.Prompt) {
				t.Errorf("by %s, seed %d: %+v, %v", by, seed, r, err)
			}
		}
	}
}
