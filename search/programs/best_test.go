package programs

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"grove/internal/suite/searchtest"
	"grove/search"
)

// answers is a model of four answers: a! with .4, aa! with .24, ab! with .36 .
func bestToy(tb testing.TB, slots int) *searchtest.Toy {
	return searchtest.New(tb, slots, []string{"a", "b", ""}, func(answer string) []float64 {
		switch answer {
		case "":
			return []float64{1, 0, 0}
		case "a":
			return []float64{.24, .36, .4}
		}
		return []float64{0, 0, 1}
	})
}

// TestBestLikeliest: the answer is the sample that is likeliest by sum and by mean, which differ, and the first of equal ones.
func TestBestLikeliest(t *testing.T) {
	m := bestToy(t, 8)
	for seed := range uint64(20) {
		for _, by := range []string{"mean", "sum"} {
			r, err := m.Run(t, "best,n=8,by="+by, 1, search.Problem{Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			wants := map[string]float64{"a": math.Log(.4) / 2, "aa": math.Log(.24) / 3, "ab": math.Log(.36) / 3}
			if by == "sum" {
				wants = map[string]float64{"a": math.Log(.4), "aa": math.Log(.24), "ab": math.Log(.36)}
			}
			first, most := -1, math.Inf(-1)
			for i, a := range r.Attempts {
				want := wants[m.Text(a.IDs)]
				if math.Abs(a.Score-want) > 1e-6 || !a.Ended {
					t.Errorf("%s of %q is %v, want %v", by, m.Text(a.IDs), a.Score, want)
				}
				if want > most {
					first, most = i, want
				}
			}
			if r.Index != first {
				t.Errorf("seed %d, by %s: sample %d of %+v", seed, by, r.Index, r.Attempts)
			}
		}
	}
}

// TestScorer takes the highest score, whatever is likely; names what has none, and takes the likeliest where nothing has one.
func TestScorer(t *testing.T) {
	m := bestToy(t, 8)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	for _, tt := range []struct {
		name   string
		score  func(ctx context.Context, text string) (float64, error)
		want   string // the answer
		fault  string // of some attempt; "": of none
		faults func(text string) bool
	}{
		{"long texts", func(_ context.Context, text string) (float64, error) { return float64(strings.Count(text, "a")), nil }, "aa", "", nil},
		{"it fails for some", func(_ context.Context, text string) (float64, error) {
			if text == "aa" {
				return 9, errors.New("of no use")
			}
			return float64(len(text)), nil
		}, "ab", "of no use", func(text string) bool { return text == "aa" }},
		{"it panics", func(context.Context, string) (float64, error) { panic("oh") }, "ab", "the scorer panics: oh", nil},
		{"no number", func(context.Context, string) (float64, error) { return math.NaN(), nil }, "ab", "NaN", nil},
		{"minus infinity", func(context.Context, string) (float64, error) { return math.Inf(-1), nil }, "ab", "minus infinity", nil},
		{"it hangs", func(context.Context, string) (float64, error) { <-hang; return 0, nil }, "ab", "more than 50ms", nil},
		{"it hangs at the second", func() func(context.Context, string) (float64, error) {
			n := 0
			return func(ctx context.Context, text string) (float64, error) {
				if n++; n > 1 {
					<-ctx.Done()
					return 1, ctx.Err()
				}
				return 1, nil
			}
		}(), "", "more than 50ms", nil},
	} {
		start := time.Now()
		r, err := m.Run(t, "best,n=8,by=score", 1, search.Problem{Seed: 2, Scorer: &search.Scorer{Score: tt.score, Timeout: 50 * time.Millisecond}})
		if err != nil {
			t.Fatal(tt.name, err)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%s: it takes %v", tt.name, d)
		}
		var text string
		some, faults := false, 0
		for _, a := range r.Attempts {
			if a.Index == r.Index {
				text = m.Text(a.IDs)
			}
			if some = some || a.Fault != ""; a.Fault != "" {
				if faults++; !strings.Contains(a.Fault, tt.fault) || tt.faults != nil && !tt.faults(m.Text(a.IDs)) {
					t.Errorf("%s: %+v", tt.name, a)
				}
			}
		}
		if tt.want != "" && text != tt.want || tt.want == "" && r.Index != 0 || some != (tt.fault != "") || r.Figures["scored"] != float64(8-faults) {
			t.Errorf("%s: %q, %v, attempts %+v", tt.name, text, r.Figures, r.Attempts)
		}
	}
}

// TestTurns: the answer and the attempts are the same with fewer free slots.
func TestTurns(t *testing.T) {
	m := bestToy(t, 8)
	for _, program := range []string{"best,n=8", "vote,n=8,answer=text"} {
		want, err := m.Run(t, program, 1, search.Problem{Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		for taken := range 7 {
			t.Run("", func(t *testing.T) {
				p, done := m.Problem(t, 1, search.Problem{Seed: 5})
				defer done()
				for range taken {
					f, err := p.First.Fork(99)
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
				}
				opened, err := search.Open(program)
				if err != nil {
					t.Fatal(err)
				}
				got, err := opened.Run(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				if got.Index != want.Index || len(got.Attempts) != 8 {
					t.Errorf("%s, %d slots taken: sample %d of %d, want %d", program, taken, got.Index, len(got.Attempts), want.Index)
				}
				for i := range got.Attempts {
					if m.Text(got.Attempts[i].IDs) != m.Text(want.Attempts[i].IDs) || got.Attempts[i].Score != want.Attempts[i].Score {
						t.Errorf("%s, %d slots taken, sample %d: %+v, want %+v", program, taken, i, got.Attempts[i], want.Attempts[i])
					}
				}
			})
		}
	}
}

// TestOrderStatistic: the expected best of n numbers grows as the order statistic: of uniform ones it is n/(n+1).
func TestOrderStatistic(t *testing.T) {
	m := searchtest.New(t, 8, []string{"0", "1", "2", "3", "4", "5", "6", "7", ""}, func(answer string) []float64 {
		if answer != "" {
			return []float64{0, 0, 0, 0, 0, 0, 0, 0, 1}
		}
		return []float64{.125, .125, .125, .125, .125, .125, .125, .125, 0}
	})
	score := func(_ context.Context, text string) (float64, error) { return float64(text[0] - '0'), nil }
	const runs = 300
	for n, options := range map[int]string{2: "best,n=2,by=score", 8: "best,n=8,by=score"} {
		sum, want := 0.0, 0.0
		for seed := range uint64(runs) {
			r, err := m.Run(t, options, 1, search.Problem{Seed: seed, Scorer: &search.Scorer{Score: score}})
			if err != nil {
				t.Fatal(err)
			}
			sum += r.Attempts[r.Index].Score
		}
		for k := range 8 { // sum of P(best > k)
			if k < 7 {
				want += 1 - math.Pow(float64(k+1)/8, float64(n))
			}
		}
		if math.Abs(sum/runs-want) > .4 {
			t.Errorf("the best of %d is %.2f in the mean, want %.2f", n, sum/runs, want)
		}
	}
}

// TestBestCheck refuses what cannot be searched.
func TestBestCheck(t *testing.T) {
	for _, bad := range []string{"best,n=1", "best,by=x", "best,m=2", "best,n=65"} {
		if _, err := search.Open(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	p, err := search.Open("best,n=3,by=score")
	if err != nil || p.Samples() != 3 {
		t.Fatal(p, err)
	}
	scorer := &search.Scorer{Score: func(context.Context, string) (float64, error) { return 0, nil }}
	for name, problem := range map[string]search.Problem{
		"few slots": {Slots: 2, Scorer: scorer}, "greedy": {Slots: 4, Greedy: true, Scorer: scorer}, "no scorer": {Slots: 4},
	} {
		if p.Check(&problem) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := p.Check(&search.Problem{Slots: 3, Scorer: scorer}); err != nil {
		t.Error(err)
	}
}
