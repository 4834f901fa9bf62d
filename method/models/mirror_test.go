package models

import (
	"context"
	"errors"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

func openMirror(t testing.TB, m *growtest.Model, p sample.Params) (*growtest.Text, *mirrorDrafter) {
	t.Helper()
	x := growtest.NewText(t, mirror{method.Env{Vocabulary: m.Dims.Vocabulary, Draft: m}})
	x.Noise.Sampling = p
	return x, x.Drafter.(*mirrorDrafter)
}

// TestOutcomes: the chain behind an outcome that was rolled out is what would be drafted behind it, and costs no pass when it is asked for.
func TestOutcomes(t *testing.T) {
	m := growtest.Cycle(40, 2)
	x, d := openMirror(t, m, sample.Params{})
	x.Begin(t, 1, 2)
	drafts := func(passes int, want ...token.ID) {
		t.Helper()
		m.Calls = 0
		if got := growtest.IDs(x.Draft(t, 64)); !slices.Equal(got, want) || m.Calls != passes {
			t.Errorf("drafts %v in %d passes, want %v", got, m.Calls, want)
		}
		d.Work(t.Context())
	}
	of := func(hits, misses int) {
		t.Helper()
		if d.hits != hits || d.misses != misses {
			t.Errorf("%d hits, %d misses", d.hits, d.misses)
		}
	}
	drafts(4, 3, 4, 5, 6)
	x.Add(3, 4, 5, 6, 7) // all drafts, and the likeliest token
	of(1, 0)
	drafts(0, 8, 9, 10, 11)
	x.Add(8, 10) // one draft, and the likeliest token besides the next
	of(2, 0)
	drafts(0, 11, 12, 13, 14)
	x.Add(35) // what nobody expects
	of(2, 1)
	drafts(4, 36, 37, 38, 39)
	x.Add(36, 37) // the second had no row, or the rule drew it
	drafts(0, 38, 39)
	x.Add(38, 39, 0)
	drafts(0, 1, 2, 3, 4)
	if s := d.model.Trunk.(*growtest.Sequence); s.Most > method.MaxLive || !slices.Equal(s.Trunk, d.text[:len(s.Trunk)]) || len(s.Trunk) < 8 {
		t.Errorf("a trunk of %v behind %v, %d rows", s.Trunk, d.text, s.Most)
	}
	m.Fail = errors.New("broken")
	d.Work(t.Context())
	if err := d.Draft(t.Context(), method.NewTree(4, 40)); !errors.Is(err, m.Fail) {
		t.Errorf("error %v", err)
	}
	if err := d.Close(); err != nil || !d.model.Trunk.(*growtest.Sequence).Shut {
		t.Errorf("closed: %v", err)
	}
}

// TestOver expects a step that has ended to leave short roll-outs, and a round that was not asked for to roll out nothing.
func TestOver(t *testing.T) {
	m := growtest.Cycle(40, 2)
	x, d := openMirror(t, m, sample.Params{})
	x.Begin(t, 1, 2)
	over, end := context.WithCancel(t.Context())
	end()
	d.Work(over)
	if m.Calls > 0 {
		t.Errorf("%d passes without a draft", m.Calls)
	}
	x.Draft(t, 64)
	d.Work(over)
	x.Add(3, 4, 5, 6, 7)
	if got := growtest.IDs(x.Draft(t, 64)); !slices.Equal(got, []token.ID{8, 9}) {
		t.Errorf("drafts %v", got)
	}
}

// TestAlwaysHits rolls out every token behind every draft: each outcome of a target that draws from other distributions is a hit, and the chain is that of a
// drafter that begins behind the same text.
func TestAlwaysHits(t *testing.T) {
	const vocabulary = 5
	target, m := growtest.Random(vocabulary, 1), growtest.Random(vocabulary, 2)
	target.Dims.Context, m.Dims.Context = 2000, 2000
	p := sample.Params{Temperature: 1, Seed: 6}
	chain, err := sample.NewChain(sample.Settings{Params: p}, vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	x, d := openMirror(t, m, p)
	d.length, d.outcomes = 2, 3*vocabulary
	d.best = make([]sample.Candidate, vocabulary)
	x.Begin(t, 0)
	last, rejected := token.ID(0), 0
	for range 300 {
		drafts := growtest.IDs(x.Draft(t, 64))
		y, other := openMirror(t, m, p)
		other.length = d.length
		y.Begin(t, x.IDs()...)
		if want := growtest.IDs(y.Draft(t, 64)); !slices.Equal(drafts, want) {
			t.Fatalf("behind %d tokens: %v, a new drafter drafts %v", len(x.IDs()), drafts, want)
		}
		d.Work(t.Context())
		var got []token.ID
		for right := true; right; {
			drawn, err := chain.Draw(0, target.Next([]token.ID{last}, forest.Row{}), len(x.IDs())+len(got))
			if err != nil {
				t.Fatal(err)
			}
			last = drawn.ID
			right = len(got) < len(drafts) && drafts[len(got)] == last
			got = append(got, last)
		}
		if len(got) <= len(drafts) {
			rejected++
		}
		x.Add(got...)
	}
	if d.misses > 0 || d.hits != 300 || rejected < 30 {
		t.Errorf("%d hits, %d misses, %d rejections", d.hits, d.misses, rejected)
	}
}
