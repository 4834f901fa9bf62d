package programs

import (
	"context"
	"errors"
	"slices"
	"testing"

	"grove/internal/engine"
	"grove/internal/suite/modeltest"
	"grove/internal/suite/searchtest"
	"grove/internal/text/token"
	"grove/search"
)

// table ranks x before y before z at the beginning of an answer, whatever the list says, and then gives the rest of an answer.
func table(tb testing.TB) *searchtest.Toy {
	rest := map[string]string{"x": "7", "y": "8", "z": "8"}
	words := []string{"x", "y", "z", "7", "8", " ", ""}
	return searchtest.New(tb, 1, words, func(answer string) []float64 {
		if answer == "" {
			return []float64{.3, .15, .1, 0, 0, .25, .2} // a blank and the end are likelier than y
		}
		p := make([]float64, len(words))
		next := slices.Index(words, rest[answer])
		if len(answer) == 2 {
			next = len(words) - 1
		}
		p[next] = 1
		return p
	})
}

// TestTable: the rounds begin with x, y and z, and no first token is used twice; the lists have the answers.
func TestTable(t *testing.T) {
	m := table(t)
	for _, tt := range []struct {
		options string
		lists   []string
		texts   []string
		answer  string
		votes   float64
	}{
		{"n=3", []string{"1. ", "1. x7\n2. ", "1. x7\n2. y8\n3. "}, []string{"x7", "y8", "z8"}, "x7", 0},
		{`n=2,ask="Others:\n",list="N) N: "`, []string{"Others:\n1) 1: ", "Others:\n1) 1: x7\n2) 2: "}, []string{"x7", "y8"}, "x7", 0},
		{"n=3,answer=number", nil, []string{"x7", "y8", "z8"}, "y8", 2},
		{"n=9", nil, []string{"x7", "y8", "z8"}, "x7", 0}, // no further token can begin one
		{"n=9,top=4", nil, []string{"x7", "y8"}, "x7", 0}, // z is the fifth
	} {
		var lists []string
		r, err := m.Run(t, "icn,"+tt.options, 1, search.Problem{MaxTokens: 8, Encode: func(text string) ([]token.ID, error) {
			lists = append(lists, text)
			return []token.ID{5, 5}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, a := range r.Attempts {
			texts = append(texts, m.Text(a.IDs))
		}
		answer := ""
		for _, d := range r.Tokens {
			answer += m.Words[d.ID]
		}
		if !slices.Equal(texts, tt.texts) || answer != tt.answer || r.Figures["votes"] != tt.votes || r.Figures["rounds"] != float64(len(texts)) || tt.lists != nil && !slices.Equal(lists, tt.lists) {
			t.Errorf("%s: %q, the answer %q of lists %q, %v", tt.options, texts, answer, lists, r.Figures)
		}
	}
}

// TestAlone: an answer behind its first token is the greedy one behind the prompt, with the same bits.
func TestAlone(t *testing.T) {
	m := searchtest.Of(t, 1, modeltest.Spec{Context: 300})
	r, err := m.Run(t, "icn,n=4", 0, search.Problem{MaxTokens: 12, Encode: func(text string) (ids []token.ID, err error) {
		for _, b := range []byte(text) {
			ids = append(ids, token.ID(b%40))
		}
		return ids, nil
	}})
	if err != nil || len(r.Attempts) != 4 {
		t.Fatal(r, err)
	}
	used := map[token.ID]bool{}
	for i, a := range r.Attempts {
		if used[a.IDs[0]] {
			t.Errorf("round %d begins with token %d again", i, a.IDs[0])
		}
		used[a.IDs[0]] = true
		p, done := m.Problem(t, 0, search.Problem{})
		first, err := p.First.Describe(t.Context(), a.IDs[0])
		if err == nil {
			err = p.First.Follow(a.IDs[0])
		}
		sum := float64(first.Logprob)
		for _, id := range a.IDs[1:] {
			d, e := p.First.Next(t.Context())
			if err = errors.Join(err, e); d.ID != id {
				t.Fatalf("round %d: token %d, alone %d", i, id, d.ID)
			}
			sum += float64(d.Logprob)
		}
		if done(); err != nil || sum != a.Logprob {
			t.Errorf("round %d: %v, alone %v; %v", i, a.Logprob, sum, err)
		}
	}
}

// TestIcnContext: where the list fits the context no longer, the rounds before it stay; where none does, that is the error.
func TestIcnContext(t *testing.T) {
	m := searchtest.Of(t, 1, modeltest.Spec{Context: 20})
	for first, want := range map[int]int{2: 4, 30: 0} {
		n := first
		r, err := m.Run(t, "icn,n=9", 0, search.Problem{MaxTokens: 3, Encode: func(string) ([]token.ID, error) {
			n += 5
			return make([]token.ID, n-5), nil
		}})
		if want > 0 && (err != nil || len(r.Attempts) != want) || want == 0 && !errors.Is(err, engine.ErrContext) {
			t.Errorf("a list of %d tokens: %+v, %v", first, r, err)
		}
	}
	failed := errors.New("no text")
	if _, err := m.Run(t, "icn", 0, search.Problem{Encode: func(string) ([]token.ID, error) { return nil, failed }}); !errors.Is(err, failed) {
		t.Error(err)
	}
}

// TestCancelled: a search that is cancelled between rounds leaves nothing.
func TestCancelled(t *testing.T) {
	m := table(t)
	ctx, cancel := context.WithCancel(t.Context())
	p, done := m.Problem(t, 0, search.Problem{MaxTokens: 8})
	rounds := 0
	p.Encode = func(string) ([]token.ID, error) {
		if rounds++; rounds == 2 {
			cancel()
		}
		return []token.ID{5}, nil
	}
	opened, err := search.Open("icn,n=3")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.Run(ctx, p); !errors.Is(err, context.Canceled) || rounds != 2 {
		t.Errorf("%v in round %d", err, rounds)
	}
	done()
}

// TestIcnOpen reads options.
func TestIcnOpen(t *testing.T) {
	p, err := search.Open(`icn,n=5,top=9,ask="a\n",list="N - ",answer=line`)
	c, ok := p.(icn)
	if err != nil || !ok || p.Samples() != 1 || c.n != 5 || c.top != 9 || c.ask != "a\n" || c.item != "N - " || c.extract == nil || p.Check(nil) != nil {
		t.Fatal(p, err)
	}
	for _, bad := range []string{"icn,n=1", "icn,top=1", `icn,list="N`, "icn,answer=x", "icn,m=2"} {
		if _, err := search.Open(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
