package grove_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/gopher"
	"grove/text/token"
)

// branching are the searches that hold branches side by side, and samples that they need.
var branching = []struct {
	search string
	scorer *grove.Scorer
}{
	{search: "ffs,n=4"},
	{search: "groups,n=4"},
	{search: "best,n=4"},
	{search: "best,n=4,by=score", scorer: &grove.Scorer{Score: func(_ context.Context, text string) (float64, error) { return float64(strings.Count(text, "e")), nil }}},
	{search: "vote,n=4,answer=line,weigh=likelihood"},
	{search: "beam,n=4,length=0.7"},
	{search: "adadec,threshold=0.5"},
	{search: "cntp,n=4,low=0,high=0.5,clause=text"},
	{search: "smc,n=4,block=4,power=3,threshold=0.9,moves=1,rollouts=1,horizon=3"},
	{search: "smc,n=4,block=6,threshold=1", scorer: &grove.Scorer{Score: func(_ context.Context, text string) (float64, error) { return float64(strings.Count(text, "n")), nil }}},
}

// branched is a request for one of them.
func branched(i int, seed uint64) grove.Request {
	return grove.Request{
		Prompt: "package main\n\n// sum returns the sum of a list.\nfunc sum(list []int) int {\n\tn := 0\n\tfor _, v := range list {\n", MaxTokens: 24, Stop: []string{"\n}"},
		Sampling: grove.Sampling{Temperature: 1, TopP: .95}, Seed: &seed, Search: branching[i].search, Scorer: branching[i].scorer,
	}
}

// TestBranches: every branch of every search equals, bit for bit, its tokens run alone; the same seed gives the same answer and attempts, whatever
// the slots, the threads and the requests beside it.
func TestBranches(t *testing.T) {
	alone := openNano(t)
	crowd, err := grove.OpenBytes(gopher.Named(gopher.NanoName), grove.Options{Forget: true, Threads: 2, Parallel: 16, Eager: true})
	if err != nil {
		t.Fatal(err)
	}
	defer crowd.Close()
	var all sync.WaitGroup
	three := make(chan struct{}, 3) // at a time: their samples have slots
	for i, b := range branching {
		answers := map[string]bool{}
		for seed := range uint64(3) {
			r := branched(i, seed)
			want, stats := generate(t, alone, r)
			if stats.Grade != grove.Lossy || len(want.Tokens) == 0 {
				t.Errorf("%s: grade %s, %d tokens", b.search, stats.Grade, len(want.Tokens))
			}
			answers[fmt.Sprint(want.Tokens)] = true
			compareAlone(t, alone, r, want, stats.Attempts)
			for range 2 {
				all.Go(func() {
					three <- struct{}{}
					defer func() { <-three }()
					g, err := crowd.Generate(t.Context(), r)
					if err != nil {
						t.Error(err)
						return
					}
					got, err := answerOf(g)
					if d := cmp.Diff(want, got, sameBits) + cmp.Diff(stats.Attempts, g.Stats().Attempts) + cmp.Diff(stats.Figures, g.Stats().Figures); d != "" || err != nil {
						t.Errorf("%s, seed %d: %v (-want +got):\n%s", b.search, seed, err, d)
					}
				})
			}
		}
		if random := b.search[:3] != "gro" && b.search[:3] != "bea" && b.search[:3] != "ada"; random == (len(answers) == 1) {
			t.Errorf("%s: %d answers with 3 seeds", b.search, len(answers))
		}
	}
	all.Wait()
	for _, m := range []*grove.Model{alone, crowd} {
		if l := m.Load(); l.Open != 0 || l.Admitted != 0 || l.Pages.Used != 0 {
			t.Errorf("behind the searches there are %+v", l)
		}
	}
}

// compareAlone compares the answer's log-probabilities, and the sums of the attempts', with those of the tokens in one text.
func compareAlone(t *testing.T, m *grove.Model, r grove.Request, a answer, attempts []grove.Attempt) {
	t.Helper()
	prompt, err := m.Tokenize(r.Prompt, true, true)
	if err != nil {
		t.Fatal(err)
	}
	logprobs := func(ids []token.ID) (all []float32) {
		text := append(prompt[:len(prompt):len(prompt)], ids...)
		at := 0
		if err := m.Logprobs(t.Context(), text[:len(text)-1], func(row grove.LogprobRow) error {
			if at++; at >= len(prompt) {
				all = append(all, row.Of(text[at]))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	var ids []token.ID
	var got []float32
	for _, tok := range a.Tokens {
		if tok.ID != token.None {
			ids, got = append(ids, tok.ID), append(got, tok.Logprob)
		}
	}
	if d := cmp.Diff(logprobs(ids), got, sameBits); d != "" {
		t.Errorf("%s: the answer alone (-want +got):\n%s", r.Search, d)
	}
	for i, attempt := range attempts {
		if attempt.Logprob == 0 {
			continue // it gives none
		}
		sum := 0.0
		for _, l := range logprobs(attempt.IDs) {
			sum += float64(l)
		}
		if sum != attempt.Logprob {
			t.Errorf("%s, attempt %d: %v, alone %v", r.Search, i, attempt.Logprob, sum)
		}
	}
}

// TestBranchesCancelled: a search that is cancelled ends within a step or two, and all its branches are free.
func TestBranchesCancelled(t *testing.T) {
	m := openNano(t)
	for i, b := range branching {
		for _, after := range []int{1, 3, 8} {
			ctx, cancel := context.WithCancel(t.Context())
			r := branched(i, 1)
			r.Stop, r.IgnoreEnd, r.MaxTokens = nil, true, 100
			g, err := m.Generate(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			begun, at := m.Load().Steps, make(chan int, 1)
			go func() {
				for m.Load().Steps < begun+after {
					time.Sleep(50 * time.Microsecond)
				}
				cancel()
				at <- m.Load().Steps
			}()
			_, err = answerOf(g)
			steps := m.Load().Steps - <-at
			if l := m.Load(); !errors.Is(err, context.Canceled) || steps > 2 || l.Open != 0 || l.Admitted != 0 || l.Pages.Used != 0 {
				t.Errorf("%s, cancelled after %d steps: %v; %d steps later there are %+v", b.search, after, err, steps, l)
			}
		}
	}
}

// TestScorerRefused expects a scorer that nothing asks to be refused, and a search that has none.
func TestScorerRefused(t *testing.T) {
	m := open(t, goldenModel, grove.Options{})
	hot := grove.DefaultSampling()
	some := &grove.Scorer{Score: func(context.Context, string) (float64, error) { return 0, nil }}
	const asksNone = "a scorer is set, and the request has no search that asks one"
	for _, tt := range []struct {
		want string
		r    grove.Request
	}{
		{asksNone, grove.Request{Scorer: some, Sampling: hot}},
		{asksNone, grove.Request{Scorer: some, Search: "ffs,n=2", Sampling: hot}},
		{asksNone, grove.Request{Scorer: some, Search: "best,n=2", Sampling: hot}},
		{"the scorer has no function", grove.Request{Scorer: &grove.Scorer{}, Search: "best,n=2,by=score", Sampling: hot}},
		{"nothing scores the answers", grove.Request{Search: "best,n=2,by=score", Sampling: hot}},
	} {
		option := new(grove.OptionError)
		if _, err := m.Generate(t.Context(), tt.r); !errors.As(err, &option) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}
