package text

import (
	"slices"
	"testing"

	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

// openNgram opens the method, with a datastore of texts of 1000 tokens, if there are any.
func openNgram(t *testing.T, texts ...[]token.ID) *cache {
	t.Helper()
	env := method.Env{}
	if len(texts) > 0 {
		env.Datastore = growtest.Store(t, nil, texts...)
	}
	info, err := method.Find("ngram-cache")
	if err != nil {
		t.Fatal(err)
	}
	m, err := info.Open(env)
	if err != nil {
		t.Fatal(err)
	}
	return m.(*cache)
}

func text(t *testing.T, c *cache) *growtest.Text {
	t.Helper()
	return growtest.NewText(t, c)
}

// TestNgramDraft holds drafts to the thresholds: the first two cases are those that are known by hand.
func TestNgramDraft(t *testing.T) {
	for _, c := range []struct {
		name   string
		past   [][]token.ID // texts of the salt
		store  [][]token.ID
		prompt []token.ID
		want   []token.ID
	}{
		{"an order-3 context, seen once", nil, nil, []token.ID{1, 2, 1, 2, 1}, []token.ID{2, 1, 2, 1}},
		{"half of two is not enough for order 1", nil, nil, []token.ID{1, 2, 1, 3, 1}, nil},
		{"once is not enough for order 1", nil, nil, []token.ID{1, 2, 1}, nil},
		{"twice is", nil, nil, []token.ID{1, 2, 5, 1, 2, 6, 7, 1}, []token.ID{2}},
		{"nor for order 2", nil, nil, []token.ID{1, 2, 3, 4, 1, 2}, nil},
		{"once is for order 3", nil, nil, []token.ID{1, 2, 3, 4, 1, 2, 3}, []token.ID{4, 1, 2, 3}},
		{"another text, once", [][]token.ID{{1, 2, 3, 4}}, nil, []token.ID{1, 2, 3}, nil},
		{"another text, twice", [][]token.ID{{1, 2, 3, 4}, {1, 2, 3, 4}}, nil, []token.ID{1, 2, 3}, []token.ID{4}},
		{"a third of what followed in other texts is not enough", [][]token.ID{{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 5}, {1, 2, 3, 6}}, nil, []token.ID{1, 2, 3}, nil},
		{"the datastore alone", nil, [][]token.ID{{7, 8, 9}, {7, 8, 9}, {7, 8, 10}}, []token.ID{7, 8}, []token.ID{9}},
		{"the datastore, once", nil, [][]token.ID{{7, 8, 9}}, []token.ID{7, 8}, nil},
		{"the datastore among the text's own", nil, [][]token.ID{{2, 3, 5}}, []token.ID{1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3}, []token.ID{5, 1, 2, 3}},
		{"nothing", nil, [][]token.ID{{7, 8, 9}}, nil, nil},
	} {
		m := openNgram(t, c.store...)
		for _, past := range c.past {
			text(t, m).Begin(t, past...)
		}
		x := text(t, m)
		x.Begin(t, c.prompt...)
		got := growtest.IDs(x.Draft(t, 64))
		if len(got) > len(c.want) && len(c.want) > 0 && slices.Equal(got[:len(c.want)], c.want) {
			continue // more may follow what is drafted
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: drafts %v, want %v", c.name, got, c.want)
		}
	}
}

// TestAcrossBorders: what is committed in parts is counted as if it had come at once.
func TestAcrossBorders(t *testing.T) {
	ids := []token.ID{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3}
	whole, parts := text(t, openNgram(t)), text(t, openNgram(t))
	whole.Begin(t, ids...)
	parts.Begin(t, ids[:1]...)
	for _, id := range ids[1:] {
		parts.Add(id)
	}
	want := growtest.IDs(whole.Draft(t, 64))
	if got := growtest.IDs(parts.Draft(t, 64)); !slices.Equal(got, want) || len(want) != ngramLongest {
		t.Errorf("drafts %v, want %v", got, want)
	}
}

// TestApart: texts of another salt, which have a cache of their own, teach nothing; and a text that begins forgets the one before.
func TestApart(t *testing.T) {
	c, other := openNgram(t), openNgram(t)
	for range 3 {
		text(t, c).Begin(t, 1, 2, 3, 4, 5)
	}
	x := text(t, other)
	x.Begin(t, 1, 2, 3)
	if got := growtest.IDs(x.Draft(t, 64)); got != nil {
		t.Errorf("another salt drafts %v", got)
	}
	x.Begin(t, 1, 2, 9, 4)
	if got := growtest.IDs(x.Draft(t, 64)); got != nil {
		t.Errorf("behind what was not there: %v", got)
	}
	x.Begin(t, 1, 2)
	if got := growtest.IDs(x.Draft(t, 64)); got != nil {
		t.Errorf("behind a text that is over: %v", got)
	}
}

// TestNgramBounds: many texts fill no more than the bounds, and rounds of a text do not allocate.
func TestNgramBounds(t *testing.T) {
	c := openNgram(t)
	x := text(t, c)
	x.Begin(t, 1)
	ids := make([]token.ID, 1<<16)
	for round := range 3 {
		for i := range ids {
			ids[i] = token.ID((i*7919 + round*31 + i*i%977) % 1000)
		}
		x.Begin(t, ids...)
		x.Draft(t, 64)
	}
	if n := x.Drafter.(*ngramDrafter).context.Len(); n > contextMost {
		t.Errorf("%d n-grams of a text", n)
	}
	if n := c.dynamic.Len(); n > dynamicMost {
		t.Errorf("%d n-grams of texts", n)
	}
	x.Begin(t, ids[:100]...)
	tree, rates := method.NewTree(64, 1000), method.NewRates(1)
	if n := testing.AllocsPerRun(20, func() {
		tree.Reset(64, rates)
		if err := x.Drafter.Draft(t.Context(), tree); err != nil {
			t.Fatal(err)
		}
		x.Drafter.Committed(method.Update{})
	}); n > 0 {
		t.Errorf("%v allocations a round", n)
	}
}
