package models

import (
	"errors"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

func begin(t testing.TB, draft, middle *growtest.Model, p sample.Params) *growtest.Text {
	t.Helper()
	e := method.Env{Vocabulary: middle.Dims.Vocabulary, Draft: draft, Middle: middle}
	if err := levelsMeets(e); err != nil {
		t.Fatal(err)
	}
	x := growtest.NewText(t, levels{e})
	x.Noise.Sampling = p
	return x
}

func TestLevelsNeeds(t *testing.T) {
	m := growtest.Cycle(9, 1)
	for _, e := range []method.Env{{Vocabulary: 9}, {Vocabulary: 9, Draft: m}, {Vocabulary: 9, Middle: m}} {
		if err := levelsMeets(e); !errors.Is(err, method.ErrNeeds) {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

// TestList expects the middle model's own text, of at least 6 tokens, whatever the draft model drafts, and fewer passes of the middle model where the
// two agree.
func TestList(t *testing.T) {
	agree, middle := growtest.Cycle(10, 1), growtest.Cycle(10, 1)
	garbage := growtest.Table(10, func(id, next int) float64 { return -float64((next - id - 5 + 20) % 10) })
	want := []token.ID{4, 5, 6, 7, 8, 9, 0, 1}
	for _, c := range []struct {
		name   string
		draft  *growtest.Model
		list   int
		passes int
	}{{"a draft model that agrees", agree, 8, 2}, {"one that does not", garbage, 6, 6}} {
		middle.Calls = 0
		x := begin(t, c.draft, middle, sample.Params{})
		x.Begin(t, 1, 2, 3)
		if got := growtest.IDs(x.Draft(t, 64)); !slices.Equal(got, want[:c.list]) || middle.Calls != c.passes {
			t.Errorf("%s: %v in %d passes", c.name, got, middle.Calls)
		}
		x.Add(4, 5, 9) // the target accepts two
		if got := growtest.IDs(x.Draft(t, 3)); !slices.Equal(got, []token.ID{0, 1, 2}) {
			t.Errorf("%s: behind a rejection %v", c.name, got)
		}
		trunk := x.Drafter.(*levelsDrafter).middle.Trunk.(*growtest.Sequence).Trunk
		if !slices.Equal(trunk, []token.ID{1, 2, 3, 4, 5}) {
			t.Errorf("%s: the middle model's trunk is %v", c.name, trunk)
		}
		x.Begin(t, 7)
		if got := growtest.IDs(x.Draft(t, 2)); !slices.Equal(got, []token.ID{8, 9}) {
			t.Errorf("%s: another text: %v", c.name, got)
		}
		if err := x.Drafter.(method.Closer).Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLevelsCoupled draws at random: the list is the text that the middle model would draw by the text's noise, for any draft model. So a
// middle model that is the target has every draft accepted.
func TestLevelsCoupled(t *testing.T) {
	middle := growtest.Random(8, 3)
	for seed := range uint64(40) {
		p := sample.Params{Temperature: 1, Seed: seed}
		x := begin(t, growtest.Random(8, seed), middle, p)
		x.Begin(t, 1, 2)
		chain, err := sample.NewChain(sample.Settings{Params: p}, 8)
		if err != nil {
			t.Fatal(err)
		}
		last := token.ID(2)
		got := growtest.IDs(x.Draft(t, 64))
		if len(got) < enough {
			t.Fatalf("%d drafts", len(got))
		}
		for i, id := range got {
			want, err := chain.Draw(0, middle.Next([]token.ID{last}, forest.Row{}), 2+i)
			if err != nil {
				t.Fatal(err)
			}
			if id != want.ID {
				t.Fatalf("seed %d, draft %d: %d, the target draws %d", seed, i, id, want.ID)
			}
			last = id
		}
	}
}
