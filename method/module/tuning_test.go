package module

import (
	"math/rand/v2"
	"testing"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/method"
)

// rankModule is a module with a random rank head of 8 hidden values for states of 4.
func rankModule() *method.Module {
	rng := rand.New(rand.NewPCG(1, 2))
	values := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64() / 4)
		}
		return v
	}
	return &method.Module{Module: forest.Module{Block: &forest.Block{Rank: [4][]float32{values(8 * (4 + rankFeatures)), values(8), values(RankClasses * 8), values(RankClasses)}}}}
}

// rankLogits are logits of 40 tokens whose k-th largest is the token k.
func rankLogits() []float32 {
	logits := make([]float32, 40)
	for id := range logits {
		logits[id] = -float32(id) / 4
	}
	return logits
}

// TestTuningLearns: the class that the tokens show is what the head says in the end, and the trained head stays.
func TestTuningLearns(t *testing.T) {
	m := rankModule()
	state, logits := []float32{1, -1, 2, 0.5}, rankLogits()
	before := NewRanks(m.Block).Class(state, logits)
	for class, right := range [RankClasses]token.ID{0, 2, 6, 30} {
		tuning, r := NewTuning(m), NewRanks(m.Block)
		tuning.arm = learning
		for range 50 {
			tuning.Begin(r)
			r.Class(state, logits)
			tuning.Learn(r, []token.ID{17, 3}, []token.ID{17, right}, 1)
		}
		tuning.Begin(r)
		if got := r.Class(state, logits); got != class {
			t.Errorf("token %d: class %d, want %d", right, got, class)
		}
		if got := NewRanks(m.Block).Class(state, logits); got != before {
			t.Errorf("the module's own head says %d, and said %d", got, before)
		}
		tuning.arm = trained
		if tuning.Begin(r); r.Class(state, logits) != before {
			t.Error("the trained arm has learned")
		}
	}
}

// TestTuningPath: a slot behind a token that did not come teaches nothing, nor does one whose token is not known.
func TestTuningPath(t *testing.T) {
	m := rankModule()
	tuning, r := NewTuning(m), NewRanks(m.Block)
	tuning.arm = learning
	before := append([]float32(nil), tuning.heads[learning].out...)
	for _, ids := range [][]token.ID{{5, 30}, {17}, nil} {
		tuning.Begin(r)
		r.Class([]float32{1, -1, 2, 0.5}, rankLogits())
		tuning.Learn(r, []token.ID{17}, ids, 1)
	}
	for i, v := range tuning.heads[learning].out {
		if v != before[i] {
			t.Fatal("the head has changed")
		}
	}
}

// TestBandit plays the arm with more tokens a second, and the other one now and then.
func TestBandit(t *testing.T) {
	for name, worth := range map[string][2]float64{"learning pays": {10, 12}, "its time costs more": {12, 10}} {
		tuning, r := NewTuning(rankModule()), NewRanks(rankModule().Block)
		var rounds [2]int
		for range 100 * tuningRounds {
			rounds[tuning.arm]++
			tuning.Begin(r)
			tuning.Learn(r, nil, nil, worth[tuning.arm])
		}
		best := trained
		if worth[learning] > worth[trained] {
			best = learning
		}
		if share := float64(rounds[best]) / float64(rounds[0]+rounds[1]); share < 0.8 || share > 0.95 {
			t.Errorf("%s: the better arm has %.0f %% of the rounds", name, 100*share)
		}
	}
}

// TestTuningAllocatesNothing in the steady state.
func TestTuningAllocatesNothing(t *testing.T) {
	m := rankModule()
	tuning, r := NewTuning(m), NewRanks(m.Block)
	state, logits := []float32{1, -1, 2, 0.5}, rankLogits()
	round := func() {
		tuning.Begin(r)
		r.Class(state, logits)
		tuning.Learn(r, []token.ID{17}, []token.ID{17, 2}, 1)
	}
	round()
	if n := testing.AllocsPerRun(200, round); n > 0 {
		t.Errorf("%v allocations a round", n)
	}
}
