package sample_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/sample"
	"grove/internal/text/token"
)

// picky is a stage that allows some tokens and remembers the rankings that it saw.
type picky struct {
	allowed func(token.ID) bool
	seen    []token.ID
	mass    float64
	applied int
}

func (p *picky) Start([]token.ID) sample.StageState                     { return 0 }
func (p *picky) Next(s sample.StageState, _ token.ID) sample.StageState { return s }
func (p *picky) Allows(_ sample.StageState, id token.ID) bool           { return p.allowed(id) }
func (p *picky) Forced(sample.StageState) []token.ID                    { return nil }
func (p *picky) LogWeight(sample.StageState) float64                    { return -2 }
func (p *picky) Pick(_ sample.StageState, r *sample.Ranking) (token.ID, bool) {
	p.seen, p.mass = p.seen[:0], 0
	picked, ok := token.None, false
	for id, more := r.Next(); more; id, more = r.Next() {
		if v := r.Probability(); v > r.Most()*(1+1e-6) {
			panic("a probability above the largest")
		}
		p.seen, p.mass = append(p.seen, id), p.mass+r.Probability()
		if !ok && p.allowed(id) {
			picked, ok = id, true
		}
	}
	return picked, ok
}

func (p *picky) Apply(_ sample.StageState, logits []float32) {
	p.applied++
	for id := range logits {
		if !p.allowed(token.ID(id)) {
			logits[id] = float32(math.Inf(-1))
		}
	}
}

// lift is a stage that adds 2 to the logit of a token.
type lift struct{ id token.ID }

func (lift) Start([]token.ID) sample.StageState                     { return 0 }
func (lift) Next(s sample.StageState, _ token.ID) sample.StageState { return s }
func (l lift) Apply(_ sample.StageState, logits []float32)          { logits[l.id] += 2 }

// TestPicker compares the ranking of a draw with what draws give that forbid, one after the other, all that they gave.
func TestPicker(t *testing.T) {
	const vocab = 50
	rng := rand.New(rand.NewPCG(1, 2))
	for _, params := range []sample.Params{{}, {Temperature: 1, Seed: 3}, {Temperature: .2, Seed: 4}} {
		p := &picky{allowed: func(id token.ID) bool { return id%7 == 3 }}
		bias := []sample.Bias{{ID: 5, Add: float32(math.Inf(-1))}, {ID: 6, Add: 2}}
		c, err := sample.NewChain(sample.Settings{Params: params, Stages: []sample.Stage{lift{7}, p, lift{8}}, Penalties: sample.Penalties{Bias: bias}}, vocab)
		if err != nil {
			t.Fatal(err)
		}
		logits := make([]float32, vocab)
		for id := range logits {
			logits[id] = float32(rng.NormFloat64())
		}
		logits[9], logits[10] = 1.5, 1.5 // equal ones
		before := slices.Clone(logits)
		got, err := c.Draw(0, logits, 7)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(logits, before) || p.applied > 0 {
			t.Errorf("%+v: the row changed, or Apply ran %d times", params, p.applied)
		}
		plain, err := sample.NewChain(sample.Settings{Params: params}, vocab)
		if err != nil {
			t.Fatal(err)
		}
		logits[5], logits[6], logits[7], logits[8] = float32(math.Inf(-1)), logits[6]+2, logits[7]+2, logits[8]+2
		var want []token.ID
		first := token.None
		for range vocab - 1 {
			d, err := plain.Draw(0, logits, 7)
			if err != nil {
				t.Fatal(err)
			}
			logits[d.ID] = float32(math.Inf(-1))
			if want = append(want, d.ID); first == token.None && p.allowed(d.ID) {
				first = d.ID
			}
		}
		if !slices.Equal(p.seen, want) || got.ID != first {
			t.Errorf("%+v: token %d of %v, want %d of %v", params, got.ID, p.seen, first, want)
		}
		if math.Abs(p.mass-1) > 1e-4 {
			t.Errorf("%+v: the probabilities sum to %v", params, p.mass)
		}
		if w, some := c.LogWeight(0); w != -2 || !some {
			t.Errorf("weight %v, %v; want -2", w, some)
		}
		if w, some := plain.LogWeight(0); w != 0 || some {
			t.Errorf("weight %v, %v of a chain without a stage", w, some)
		}
	}
}

// TestPickerApplies has chains in which a picker is a stage like others: one that truncates, and one with two of them.
func TestPickerApplies(t *testing.T) {
	odd := func(id token.ID) bool { return id%2 == 1 }
	for name, s := range map[string]sample.Settings{
		"truncation": {Params: sample.Params{Temperature: 1, TopK: 3}, Stages: []sample.Stage{&picky{allowed: odd}}},
		"two":        {Params: sample.Params{Temperature: 1}, Stages: []sample.Stage{&picky{allowed: odd}, &picky{allowed: odd}}},
	} {
		c, err := sample.NewChain(s, 8)
		if err != nil {
			t.Fatal(err)
		}
		d, err := c.Draw(0, make([]float32, 8), 0)
		if p := s.Stages[0].(*picky); err != nil || !odd(d.ID) || p.applied != 1 || p.seen != nil {
			t.Errorf("%s: token %d, error %v, Apply ran %d times", name, d.ID, err, p.applied)
		}
	}
	c, err := sample.NewChain(sample.Settings{Stages: []sample.Stage{&picky{allowed: func(token.ID) bool { return false }}}}, 8)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Draw(0, make([]float32, 8), 0); !errors.Is(err, sample.ErrAllMasked) {
		t.Errorf("nothing is allowed: %v, want %v", err, sample.ErrAllMasked)
	}
	if _, err := c.Draw(0, make([]float32, 7), 0); err == nil {
		t.Error("a row of another length is taken")
	}
	if _, err := c.Draw(0, []float32{0, 0, float32(math.NaN()), 0, 0, 0, 0, 0}, 0); !errors.Is(err, sample.ErrNotFinite) {
		t.Errorf("a row that is not finite: %v", err)
	}
}
