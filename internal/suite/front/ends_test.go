package front_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"grove"
	"grove/internal/gopher"
	"grove/internal/text/token"
)

// endless is how long an answer of these tests may take: the longest takes some seconds.
const endless = 2 * time.Minute

// everySearch returns all searches: those with options of [branching] and [steering], and each by its name alone.
func everySearch() (all []branch) {
	all = append(all, branching...)
	for _, s := range steering {
		all = append(all, branch{search: s.search})
	}
	for _, s := range grove.Searches() {
		i := slices.IndexFunc(all, func(b branch) bool { return strings.HasPrefix(b.search+",", s.Name+",") })
		if b := all[i]; b.search != s.Name && b.scorer == nil && !strings.Contains(b.search, "power=") { // what it needs is no option
			b.search = s.Name
			all = append(all, b)
		}
	}
	return append(all, branch{search: "adadec,threshold=0"}, branch{search: "arbitrage,guide=2,step=line,threshold=0"}, branch{search: "smc,power=2,moves=2"})
}

// anyText is a check that holds all texts legal and ends none.
func anyText() *grove.Constraint {
	return &grove.Constraint{Check: func([]byte) bool { return true }, Ends: func([]byte) bool { return false }, Weights: true}
}

// ending is a request of a search for an answer without a bound, behind so many tokens.
func ending(t *testing.T, m *grove.Model, b branch, tokens int) grove.Request {
	t.Helper()
	ids, err := m.Tokenize("package main\n\n// sum returns the sum of a list.\nfunc sum(list []int) int {\n\tn := 0\n\tfor _, v := range list {\n\t\tn += v\n\t}\n\treturn n\n}\n\n"+
		"// mean returns the mean of a list.\nfunc mean(list []int) int {\n\treturn sum(list) / len(list)\n}\n\n// least returns the least of a list.\nfunc least(list []int) int {\n", true, true)
	if err != nil || len(ids) < tokens {
		t.Fatal(len(ids), err)
	}
	seed := uint64(tokens)
	r := grove.Request{PromptIDs: ids[:tokens:tokens], Sampling: grove.Sampling{Temperature: .9}, Seed: &seed, Search: b.search, Scorer: b.scorer, IgnoreEnd: true}
	if b.check {
		r.Constraint = anyText()
	}
	return r
}

// within calls answerOf, and fails where that takes as long as a search without an end.
func within(t *testing.T, g *grove.Generation, name string) (a answer, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		a, err = answerOf(g)
	}()
	select {
	case <-done:
	case <-time.After(endless):
		t.Fatalf("%s has no end", name)
	}
	return a, err
}

// TestSearchesEnd: every search ends at the end of the context, wherever its prompt ends, with as many tokens as the context holds at most; and it ends
// when it is cancelled inside a turn, also in the last ones.
func TestSearchesEnd(t *testing.T) {
	const holds = 64
	m := open(t, gopher.NanoName, grove.Options{Context: holds, Parallel: 10, Guides: []string{gopher.NanoName, "gopher-draft"}, Forget: true})
	for _, b := range everySearch() {
		drew := 0 // tokens of the longest search
		for _, tokens := range []int{20, 33, 40, 41, 42, 43, holds - 2, holds - 1, holds} {
			r := ending(t, m, b, tokens)
			g, err := m.Generate(t.Context(), r)
			if err != nil {
				t.Fatal(b.search, err)
			}
			most := 0
			g.WatchSearch(func(p grove.SearchProgress) { most = max(most, p.Tokens) })
			a, err := within(t, g, b.search)
			drew = max(drew, most)
			n := len(a.Tokens)
			for n > 0 && a.Tokens[n-1].ID == token.None {
				n--
			}
			if n > holds-tokens || err != nil && !errors.Is(err, grove.ErrContext) {
				t.Errorf("%s behind %d tokens: %d tokens, %v", b.search, tokens, n, err)
			}
		}
		for _, after := range []int{1, 2, 7, drew / 2, drew - 1} {
			ctx, cancel := context.WithCancel(t.Context())
			g, err := m.Generate(ctx, ending(t, m, b, 20))
			if err != nil {
				t.Fatal(b.search, err)
			}
			cancelled := false
			g.WatchSearch(func(p grove.SearchProgress) {
				if cancelled = cancelled || p.Tokens >= after; cancelled {
					cancel()
				}
			})
			if _, err := within(t, g, b.search); cancelled && err != nil && !errors.Is(err, context.Canceled) || cancelled && err == nil && after < drew/2 {
				t.Errorf("%s, cancelled after %d of %d tokens: %v", b.search, after, drew, err)
			}
			cancel()
		}
		idleAll(t, m)
	}
}
