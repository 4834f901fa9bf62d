package front_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/gopher"
	"grove/internal/text/token"
)

// A branch is a search, and what it needs.
type branch struct {
	search string
	scorer *grove.Scorer
	check  bool // the answers are held to a check that weighs them
	greedy bool // nothing is random
	mixed  bool // the branches share their rows, so that there are no such ones alone
}

// branching are searches of all programs.
var branching = []branch{
	{search: "ffs,n=4"},
	{search: "groups,n=4", greedy: true},
	{search: "best,n=4"},
	{search: "best,n=4,by=score", scorer: &grove.Scorer{Score: func(_ context.Context, text string) (float64, error) { return float64(strings.Count(text, "e")), nil }}},
	{search: "vote,n=4,answer=line,weigh=likelihood"},
	{search: "beam,n=4,length=0.7", greedy: true},
	{search: "adadec,threshold=0.5", greedy: true},
	{search: "cntp,n=4,low=0,high=0.5,clause=text"},
	{search: "smc,n=4,block=4,power=3,threshold=0.9,moves=1,rollouts=1,horizon=3"},
	{search: "smc,n=4,block=6,threshold=1", scorer: &grove.Scorer{Score: func(_ context.Context, text string) (float64, error) { return float64(strings.Count(text, "n")), nil }}},
	{search: "awrs,n=4", check: true},
	{search: "superposed,k=3", greedy: true, mixed: true},
	{search: "contrastive", greedy: true},
	{search: "contrastive,k=6,alpha=0.8,back=16", greedy: true},
	{search: "dola"},
	{search: "dola,layers=0+1,alpha=0.3"},
	{search: "icn,n=3,top=20,answer=line", greedy: true},
}

// branched is a request for one of them.
func branched(i int, seed uint64) grove.Request {
	b := &branching[i]
	r := grove.Request{
		Prompt: "package main\n\n// sum returns the sum of a list.\nfunc sum(list []int) int {\n\tn := 0\n\tfor _, v := range list {\n", MaxTokens: 24, Stop: []string{"\n}"},
		Sampling: grove.Sampling{Temperature: 1, TopP: .95}, Seed: &seed, Search: b.search, Scorer: b.scorer,
	}
	if b.check {
		r.Sampling.TopP = 0
		r.Constraint = &grove.Constraint{Check: func(text []byte) bool { return !bytes.ContainsAny(text, "xyz") }, Ends: func([]byte) bool { return false }, Weights: true}
	}
	return r
}

// TestBranching: the searches above, and those that guides steer, are of all programs.
func TestBranching(t *testing.T) {
	var all []string
	for _, b := range branching {
		all = append(all, b.search)
	}
	for _, s := range steering {
		all = append(all, s.search)
	}
	for _, s := range grove.Searches() {
		if !slices.ContainsFunc(all, func(search string) bool { return strings.HasPrefix(search+",", s.Name+",") }) {
			t.Errorf("no search of %s is compared with its branches alone", s.Name)
		}
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
			if !b.mixed {
				compareAlone(t, alone, r, want, stats.Attempts)
			}
			for range crowds(seed) {
				all.Go(func() {
					three <- struct{}{}
					defer func() { <-three }()
					compareSearch(t, crowd, r, want, stats)
				})
			}
		}
		if b.greedy != (len(answers) == 1) {
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

// compareSearch expects a model to answer a search's request as it was answered, with what the search tells of its progress.
func compareSearch(t *testing.T, m *grove.Model, r grove.Request, want answer, stats grove.Stats) {
	g, err := m.Generate(t.Context(), r)
	if err != nil {
		t.Error(err)
		return
	}
	var last grove.SearchProgress
	g.WatchSearch(func(p grove.SearchProgress) { last = p })
	got, err := answerOf(g)
	if last.Tokens < len(got.Tokens) || last.Samples < 1 {
		t.Errorf("%s, seed %d: an answer of %d tokens, and %+v is told", r.Search, *r.Seed, len(got.Tokens), last)
	}
	if d := cmp.Diff(want, got, sameBits) + cmp.Diff(stats.Attempts, g.Stats().Attempts) + cmp.Diff(stats.Figures, g.Stats().Figures); d != "" || err != nil {
		t.Errorf("%s, seed %d: %v (-want +got):\n%s", r.Search, *r.Seed, err, d)
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

// TestBranchesCancelled: a search that is cancelled ends within a step, and all its branches are free.
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
			at := 0 // steps when it is cancelled
			g.WatchSearch(func(p grove.SearchProgress) {
				if at == 0 && p.Tokens >= after {
					at = m.Load().Steps
					cancel()
				}
			})
			_, err = answerOf(g)
			steps := m.Load().Steps - at
			if l := m.Load(); !errors.Is(err, context.Canceled) || steps > 1 || l.Open != 0 || l.Admitted != 0 || l.Pages.Used != 0 {
				t.Errorf("%s, cancelled after %d tokens: %v; %d steps later there are %+v", b.search, after, err, steps, l)
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
