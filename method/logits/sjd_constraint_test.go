package logits

import (
	"math"
	"slices"
	"testing"

	"grove/internal/engine"
	"grove/internal/gopher"
	"grove/internal/model"
	_ "grove/internal/model/all" // links the architecture
	"grove/internal/par"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/method"
)

// turns is a constraint of four states that follow each other: in each, some tokens are legal; in the last, one.
// Behind an illegal token none is legal.
type turns struct{}

const (
	states = 4
	lost   = states
)

func (turns) Start([]token.ID) sample.StageState { return 0 }

func (s turns) Next(from sample.StageState, id token.ID) sample.StageState {
	if !s.Allows(from, id) {
		return lost
	}
	return (from + 1) % states
}

func (turns) Allows(s sample.StageState, id token.ID) bool {
	if s == states-1 {
		return id == 300
	}
	return s != lost && int(id)%(states-1) == int(s)
}

func (turns) Forced(s sample.StageState) []token.ID {
	if s == states-1 {
		return []token.ID{300}
	}
	return nil
}

func (x turns) Apply(s sample.StageState, logits []float32) {
	for id := range logits {
		if !x.Allows(s, token.ID(id)) {
			logits[id] = float32(math.Inf(-1))
		}
	}
}

// TestConstraint expects texts under a constraint to be legal, and greedy ones to be those of plain decoding,
// although drafts that rows gave can be illegal.
func TestConstraint(t *testing.T) {
	f, err := gguf.Parse(gopher.Named(gopher.NanoName))
	if err != nil {
		t.Fatal(err)
	}
	pool := par.New(2)
	defer pool.Close()
	m, err := model.Open(f, pool, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(m, pool, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := method.Find("sjd")
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.OpenDrafting(t.Context(), []method.Info{info}, method.Env{})
	if err != nil {
		t.Fatal(err)
	}
	d.Eager()
	text := func(p sample.Params, d *engine.Drafting) (ids []token.ID, st engine.SpecStats) {
		t.Helper()
		q, err := e.NewSequence(engine.Answer{Sampling: p, Stages: []sample.Stage{turns{}}})
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		if d != nil {
			if err := q.SetDrafting(d, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Append(t.Context(), []token.ID{300, 301, 302}); err != nil {
			t.Fatal(err)
		}
		state := sample.StageState(0)
		for range 90 {
			drawn, err := q.Next(t.Context())
			if err != nil {
				t.Fatalf("token %d, %+v: %v", len(ids), p, err)
			}
			if !(turns{}).Allows(state, drawn.ID) {
				t.Fatalf("token %d, %+v: %d is illegal", len(ids), p, drawn.ID)
			}
			state, ids = turns{}.Next(state, drawn.ID), append(ids, drawn.ID)
		}
		return ids, q.SpecStats()
	}
	want, _ := text(sample.Params{}, nil)
	got, st := text(sample.Params{}, d)
	if !slices.Equal(got, want) {
		t.Errorf("greedy: %v, want %v", got, want)
	}
	if st.Accepted == 0 {
		t.Error("no draft accepted")
	}
	for seed := range uint64(5) {
		text(sample.Params{Temperature: 1, Seed: seed}, d)
	}
}
