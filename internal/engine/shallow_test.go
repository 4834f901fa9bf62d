package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"grove/internal/engine"
	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/layers"
)

// shallow opens a sequence whose tokens behind the first prompt skip layers.
func shallow(t *testing.T, e *engine.Engine, p layers.Places) *engine.Sequence {
	t.Helper()
	s, err := e.NewSequence(engine.Answer{Sampling: sample.Params{Temperature: 1, Seed: 9}, Places: p})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// six is a model of six layers, and places that leave two of them.
func six(t *testing.T) (*bed, layers.Places) {
	return newBed(t, few(), modeltest.Spec{Context: 300, Layers: 6}.File(t)), layers.Places{From: 5, To: 2, First: 1, Over: 40}
}

// TestShallow expects the answer of places beside others, of forks, of cut texts and of texts whose pages were taken, and that no text
// shares the pages of what skipped layers, or takes over those of what did not.
func TestShallow(t *testing.T) {
	b, places := six(t)
	ids := text(150)
	want := draw(t, shallow(t, b.engine(t, engine.Config{}), places), 120, ids)
	plain := draw(t, sequence(t, b.engine(t, engine.Config{})), 120, ids)
	if slices.Equal(want, plain) {
		t.Fatal("skipping layers changes nothing")
	}
	if got := draw(t, shallow(t, b.engine(t, engine.Config{}), layers.Places{From: 6, To: 6, First: 1, Over: 9}), 120, ids); !slices.Equal(got, plain) {
		t.Errorf("all layers at all places: %v, want %v", got, plain)
	}
	if got := draw(t, shallow(t, b.engine(t, engine.Config{Chunk: 7}), places), 120, ids); !slices.Equal(got, want) {
		t.Errorf("steps of 7 rows: %v, want %v", got, want)
	}
	e := b.engine(t, engine.Config{Seqs: 3})
	s := shallow(t, e, places)
	if got := draw(t, s, 120, ids); !slices.Equal(got, want) {
		t.Errorf("beside others: %v, want %v", got, want)
	}
	besideShallow(t, b, e, ids, want, plain)
	if err := s.Truncate(190); err != nil {
		t.Fatal(err)
	}
	if got := draw(t, s, 80); !slices.Equal(got, want[40:]) {
		t.Errorf("cut behind the prompt: %v, want %v", got, want[40:])
	}
	f, err := s.Fork(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{230, 151, 150} {
		if err := f.Truncate(n); err != nil {
			t.Fatal(err)
		}
		if got := draw(t, f, 270-n); !slices.Equal(got, want[n-150:]) {
			t.Errorf("a fork that was cut to %d: %v, want %v", n, got, want[n-150:])
		}
	}
}

// TestShallowPreempted: a text whose pages were taken is computed anew with the layers of its places, though the cache has the pages of the
// same tokens with all layers.
func TestShallowPreempted(t *testing.T) {
	b, places := six(t)
	ids := text(150)
	want := draw(t, shallow(t, b.engine(t, engine.Config{}), places), 120, ids)
	e := b.engine(t, engine.Config{Seqs: 1})
	e.Impatient()
	first := shallow(t, e, places)
	got := draw(t, first, 60, ids)
	long := ids[:150:150]
	for _, d := range got {
		long = append(long, d.ID)
	}
	other := sequence(t, e)
	draw(t, other, 1, long)
	if got = append(got, draw(t, first, 60)...); !slices.Equal(got, want) {
		t.Errorf("a text whose pages were taken: %v, want %v", got, want)
	}
	if load := e.Load(); load.Preempted == 0 || other.Reused() != 128 {
		t.Errorf("%d texts lost their pages, and %d tokens were found: the test shows nothing", load.Preempted, other.Reused())
	}
}

// TestShallowRows holds the logits of places to those of rows that hang from the prompt's trunk and find their ancestors one by one.
func TestShallowRows(t *testing.T) {
	b, places := six(t)
	ids := text(50)
	s := shallow(t, b.engine(t, engine.Config{}), places)
	drawn := draw(t, s, 50, ids)
	branch, err := b.engine(t, engine.Config{}).Model().Open()
	if err != nil {
		t.Fatal(err)
	}
	defer branch.Close()
	var rows []method.Row
	for i, id := range ids {
		rows = append(rows, method.Row{Row: forest.Row{ID: id}, After: i})
	}
	got, err := branch.Grow(t.Context(), rows)
	if err == nil {
		err = branch.Commit(got[49].Node)
	}
	if err != nil {
		t.Fatal(err)
	}
	rows = rows[:0]
	for i, d := range drawn {
		rows = append(rows, method.Row{Row: forest.Row{ID: d.ID, Skip: places.Skip(6, i), Want: forest.Want{Logits: true}}, After: i})
	}
	if got, err = branch.Grow(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	for n := 100; n > 50; n-- {
		if err := s.Truncate(n); err != nil {
			t.Fatal(err)
		}
		logits, err := s.Logits(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(logits, got[n-51].Logits) {
			t.Fatalf("the logits behind %d tokens differ", n)
		}
	}
}

// TestShallowRefused goes through sequences whose tokens cannot skip layers.
func TestShallowRefused(t *testing.T) {
	b, places := six(t)
	for _, c := range []struct {
		name string
		e    *engine.Engine
		p    layers.Places
		want string
		is   bool
	}{
		{"more layers than the model", b.engine(t, engine.Config{}), layers.Places{From: 7, To: 2, Over: 9}, "from=7: the model has 6 layers", false},
		{"more at last than at first", b.engine(t, engine.Config{}), layers.Places{From: 3, To: 4, Over: 9}, "to=4: it must be 1 to 3", false},
		{"first layers", b.engine(t, engine.Config{}), layers.Places{To: 2, First: 3, Over: 9}, "first=3: it must be 0 to 2", false},
		{"no places", b.engine(t, engine.Config{}), layers.Places{To: 2}, "over=0: it must be 1 to", false},
		{"an encoder-decoder", reader(t).engine(t, engine.Config{}), places, "by an encoder", true},
		{"recurrent layers", newBed(t, 1, modeltest.Spec{Arch: "mamba2"}.File(t)).engine(t, engine.Config{}), places, "layer 0 of mamba2 is recurrent", true},
		{"shared keys", newBed(t, 1, modeltest.Spec{Arch: "gemma3n"}.File(t)).engine(t, engine.Config{}), places, "reads the keys of layer", true},
	} {
		_, err := c.e.NewSequence(engine.Answer{Places: c.p})
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, engine.ErrPlaces) != c.is {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	s := shallow(t, b.engine(t, engine.Config{}), places)
	if err := s.SetDrafting(nil, nil); !errors.Is(err, engine.ErrPlaces) {
		t.Errorf("drafting: %v", err)
	}
}

// besideShallow draws texts of all layers in an engine that has an answer whose rows skip some: they find the prompt's pages, and no page of the answer.
func besideShallow(t *testing.T, b *bed, e *engine.Engine, ids []token.ID, answer, plain []sample.Token) {
	t.Helper()
	other := sequence(t, e)
	if got := draw(t, other, 120, ids); !slices.Equal(got, plain) || other.Reused() != 128 {
		t.Errorf("a text of all layers, of which %d tokens were found: %v, want %v", other.Reused(), got, plain)
	}
	long := ids[:150:150]
	for _, d := range answer[:110] {
		long = append(long, d.ID)
	}
	last := draw(t, sequence(t, b.engine(t, engine.Config{})), 1, long)
	if err := other.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if got := draw(t, other, 1, long); !slices.Equal(got, last) {
		t.Errorf("a prompt with the answer: %v, want %v", got, last)
	}
}
