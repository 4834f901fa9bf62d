package module

import (
	"math"
	"slices"
	"sync"

	"grove/internal/text/token"
	"grove/method"
)

// Tuning adapts the last product of a rank head to the texts that it serves, where that pays: the tokens that came are the right classes, for free. A bandit with two
// arms, the head as it was trained and the one that learns, plays each for some rounds, and then the one with more tokens a second, which the time of learning is part of
// (SpecBlock, 2026, has such a bandit; this form of it is an inference). Answers stay as they are: a rank decides what is drafted. It is safe for concurrent use.
type Tuning struct {
	vocabulary []token.ID // the target's id of each token of the module; nil: the same

	mu    sync.Mutex
	heads [2]head // by arm
	worth [2]float64
	tried [2]int
	arm   int
	turns int // windows so far
	left  int // rounds of the window
}

// The arms.
const (
	trained = iota
	learning
)

const (
	tuningRounds = 64  // of a window
	tuningAgain  = 8   // windows after which the other arm is played once
	tuningRate   = 0.5 // of a step, as a share of what would make the scores right
)

// head is the last product of a rank head.
type head struct{ out, bias []float32 }

// lesson is a slot of the likeliest path of a round, to be compared with the token that comes in its place.
type lesson struct {
	hidden []float64
	top    [10]int32 // the module's likeliest tokens
}

// NewTuning returns a tuning of the rank head of a module.
func NewTuning(m *method.Module) *Tuning {
	t := &Tuning{vocabulary: m.Vocabulary, left: tuningRounds}
	for arm := range t.heads {
		t.heads[arm] = head{slices.Clone(m.Block.Rank[2]), slices.Clone(m.Block.Rank[3])}
	}
	return t
}

// Begin makes a rank head, for a round, that of the arm in play. Lessons of the round before are forgotten.
func (t *Tuning) Begin(r *Ranks) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.tuning != t {
		r.tuning, r.out, r.outBias = t, slices.Clone(r.out), slices.Clone(r.outBias)
	}
	h := &t.heads[t.arm]
	copy(r.out, h.out)
	copy(r.outBias, h.bias)
	r.lessons = r.lessons[:0]
}

// note keeps what the head read of a slot.
func (r *Ranks) note() {
	if r.tuning == nil {
		return
	}
	n := len(r.lessons)
	if r.lessons = slices.Grow(r.lessons, 1)[:n+1]; len(r.lessons[n].hidden) != len(r.hidden) {
		r.lessons[n].hidden = make([]float64, len(r.hidden))
	}
	copy(r.lessons[n].hidden, r.hidden)
	copy(r.lessons[n].top[:], r.ids[:])
}

// Learn ends a round, behind which the tokens ids came: chain is the likeliest path of its first block, of whose slots from the second on r has been asked. rate is the tokens of a
// second so far, or of the round.
func (t *Tuning) Learn(r *Ranks, chain, ids []token.ID, rate float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.arm == learning {
		for k := 1; k < len(ids) && k <= len(r.lessons) && k <= len(chain) && chain[k-1] == ids[k-1]; k++ {
			t.heads[learning].step(r.lessons[k-1].hidden, t.class(&r.lessons[k-1], ids[k]))
		}
	}
	if t.left--; t.left > 0 {
		return
	}
	t.left = tuningRounds
	t.turns++
	if t.tried[t.arm]++; t.tried[t.arm] == 1 {
		t.worth[t.arm] = rate
	}
	t.worth[t.arm] += (rate - t.worth[t.arm]) / 2
	t.arm = t.next()
}

// next returns the arm of the next window.
func (t *Tuning) next() int {
	best := trained
	if t.worth[learning] > t.worth[trained] {
		best = learning
	}
	switch {
	case t.tried[learning] == 0:
		return learning
	case t.tried[trained] == 0 || t.turns%tuningAgain == 0:
		return 1 - best
	}
	return best
}

// class returns the class of a token's rank in a slot's list.
func (t *Tuning) class(l *lesson, id token.ID) int {
	for rank, own := range l.top {
		if t.vocabulary != nil {
			own = int32(t.vocabulary[own])
		}
		if token.ID(own) == id {
			return [...]int{0, 1, 1, 1, 2, 2, 2, 2, 2, 2}[rank]
		}
	}
	return RankClasses - 1
}

// step moves the head towards a class, by the gradient of the cross-entropy over the size of what it read: so a step is bounded.
func (h *head) step(hidden []float64, class int) {
	var score [RankClasses]float64
	size, most := 1.0, math.Inf(-1)
	for _, v := range hidden {
		size += v * v
	}
	for c := range score {
		score[c] = float64(h.bias[c])
		for i, v := range hidden {
			score[c] += float64(h.out[c*len(hidden)+i]) * v
		}
		most = max(most, score[c])
	}
	sum := 0.0
	for c := range score {
		score[c] = math.Exp(score[c] - most)
		sum += score[c]
	}
	for c := range score {
		move := -score[c] / sum
		if c == class {
			move++
		}
		move *= tuningRate / size
		h.bias[c] += float32(move)
		for i, v := range hidden {
			h.out[c*len(hidden)+i] += float32(move * v)
		}
	}
}
