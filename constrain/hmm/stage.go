package hmm

import (
	"math"
	"slices"

	"grove/constrain/vocab"
	"grove/internal/kernel"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// A Stage lets an answer be a text of an automaton, and adds to the logarithm of each token's probability that of the
// text's legal end behind it, as the model estimates it. It implements [sample.Legal], [sample.Keeper], [sample.Forker],
// [sample.Preparer] and [sample.Ender]. A token behind which no legal text ends within the horizon is forbidden, but
// where that is true of all.
type Stage struct {
	a       *Automaton
	nodes   []node
	weights []float32
	kept    []float32
}

// A node is a text.
type node struct {
	at     int32     // its state; ended, astray
	tokens int       // that it has
	ahead  []float32 // how likely each hidden state is to emit the next token
	scores []float32 // of the tokens, in the order of the edges; nil: not yet known
}

// States of a text that the automaton has not.
const (
	ended  = -1
	astray = -2
)

// least is the smallest estimate of a token that is legal: an estimate forbids nothing.
const least = 1e-30

// NewStage returns the stage of an automaton.
func NewStage(a *Automaton) *Stage {
	s := &Stage{a: a}
	s.Start(nil)
	return s
}

// String returns the name of the stage.
func (s *Stage) String() string { return "looking ahead" }

// Start implements [sample.Stage].
func (s *Stage) Start([]token.ID) sample.StageState {
	n := node{}
	if s.a.model != nil {
		n.ahead = s.a.model.start
	}
	s.nodes = append(s.nodes[:0], n)
	return 0
}

// Next implements [sample.Stage].
func (s *Stage) Next(at sample.StageState, id token.ID) sample.StageState {
	n := s.nodes[at]
	next := node{at: s.a.next(n.at, id), tokens: n.tokens + 1}
	if s.a.model != nil {
		next.ahead = s.a.model.read(n.ahead, id)
	}
	s.nodes = append(s.nodes, next)
	return sample.StageState(len(s.nodes) - 1)
}

// next returns the state behind a token.
func (a *Automaton) next(at int32, id token.ID) int32 {
	if a.vocab.Kind(id) == vocab.End && a.mayEnd(at) {
		return ended
	}
	if at < 0 || a.vocab.Kind(id) != vocab.Ordinary {
		return astray
	}
	state := a.states[at]
	for _, b := range a.vocab.Bytes(id) {
		var alive bool
		if state, alive = a.machine.Step(state, b); !alive {
			return astray
		}
	}
	return a.numbers[state]
}

func (a *Automaton) mayEnd(at int32) bool {
	return at == ended || at >= 0 && a.machine.Final(a.states[at])
}

// read returns how likely each hidden state is to emit the token behind id, by how likely each was to emit id.
func (m *Model) read(ahead []float32, id token.ID) []float32 {
	n := m.states
	next := make([]float32, n)
	mass := float32(0)
	for z, p := range ahead {
		if int(id) < m.vocab {
			p = float32(p * m.emit[int(id)*n+z])
		}
		mass += p
		for y, q := range m.move[z*n : z*n+n] {
			next[y] += float32(p * q)
		}
	}
	if mass == 0 { // the model excludes the token: it tells nothing
		return ahead
	}
	for y := range next {
		next[y] /= mass
	}
	return next
}

// Keep implements [sample.Keeper].
func (s *Stage) Keep(at sample.StageState) sample.StageState {
	s.nodes = append(s.nodes[:0], s.nodes[at])
	return 0
}

// Fork implements [sample.Forker].
func (s *Stage) Fork(at sample.StageState) (sample.Stage, sample.StageState) {
	return &Stage{a: s.a, nodes: []node{s.nodes[at]}}, 0
}

// Allows implements [sample.Legal].
func (s *Stage) Allows(at sample.StageState, id token.ID) bool {
	n := &s.nodes[at]
	switch to := s.a.next(n.at, id); to {
	case astray:
		return false
	case ended:
		return true
	default:
		l, ok := s.level(n)
		return !ok || !math.IsInf(l.scale[to], -1)
	}
}

// level returns the level behind the next token of a text; false where no level forbids a token.
func (s *Stage) level(n *node) (level, bool) {
	if s.a.model == nil || n.at < 0 {
		return level{}, false
	}
	l := s.a.level(s.a.horizon - n.tokens - 1)
	ok := s.a.mayEnd(n.at) || slices.ContainsFunc(s.a.rows[n.at], func(e edge) bool { return !math.IsInf(l.scale[e.to], -1) })
	return l, ok
}

// Forced implements [sample.Legal]: nothing is known to be forced.
func (s *Stage) Forced(sample.StageState) []token.ID { return nil }

// Ended implements [sample.Ender].
func (s *Stage) Ended(at sample.StageState) bool {
	n := &s.nodes[at]
	return n.at == ended || n.at >= 0 && len(s.a.rows[n.at]) == 0 && s.a.mayEnd(n.at)
}

// Prepare implements [sample.Preparer].
func (s *Stage) Prepare(at sample.StageState) { s.score(&s.nodes[at]) }

// score computes the scores of a text.
func (s *Stage) score(n *node) {
	if n.scores != nil || n.at < 0 {
		return
	}
	n.scores = []float32{}
	l, some := s.level(n)
	for _, e := range s.a.rows[n.at] {
		from := len(n.scores)
		n.scores = slices.Grow(n.scores, len(e.tokens))[:from+len(e.tokens)]
		scores := n.scores[from:]
		switch {
		case !some:
			clear(scores)
		case math.IsInf(l.scale[e.to], -1):
			for i := range scores {
				scores[i] = float32(math.Inf(-1))
			}
		default:
			s.scoreEdge(scores, n.ahead, l, e)
		}
	}
}

// scoreEdge computes the scores of the tokens of an edge: P(legal, x) / P(x) behind the text.
func (s *Stage) scoreEdge(scores, ahead []float32, l level, e edge) {
	h := s.a.model.states
	value := l.value[int(e.to)*h : int(e.to)*h+h]
	s.weights = slices.Grow(s.weights[:0], 2*h)[:2*h]
	all, legal := s.weights[:h], s.weights[h:]
	var sumAll, sumLegal float32
	for z, p := range ahead {
		all[z] = float32(float64(p) / s.a.usable[z])
		legal[z] = float32(all[z] * value[z])
		sumAll, sumLegal = sumAll+all[z], sumLegal+legal[z]
	}
	for i, id := range e.tokens {
		a, b := dots(s.a.emissions(id), all, legal)
		if a == 0 { // the model excludes the token, or has not got it
			a, b = sumAll, sumLegal
		}
		scores[i] = float32(kernel.Log64(max(float64(b/a), least)) + l.scale[e.to])
	}
}

// dots returns the products of p with two vectors of its length. Four sums each keep the processor from waiting.
func dots(p, x, y []float32) (a, b float32) {
	var x0, x1, x2, x3, y0, y1, y2, y3 float32
	for len(p) >= 4 && len(x) >= 4 && len(y) >= 4 {
		p0, p1, p2, p3 := p[0], p[1], p[2], p[3]
		x0, x1, x2, x3 = x0+float32(p0*x[0]), x1+float32(p1*x[1]), x2+float32(p2*x[2]), x3+float32(p3*x[3])
		y0, y1, y2, y3 = y0+float32(p0*y[0]), y1+float32(p1*y[1]), y2+float32(p2*y[2]), y3+float32(p3*y[3])
		p, x, y = p[4:], x[4:], y[4:]
	}
	for k, v := range p {
		x0, y0 = x0+float32(v*x[k]), y0+float32(v*y[k])
	}
	return x0 + x1 + (x2 + x3), y0 + y1 + (y2 + y3)
}

// Apply implements [sample.Stage].
func (s *Stage) Apply(at sample.StageState, logits []float32) {
	n := &s.nodes[at]
	s.score(n)
	s.kept = slices.Grow(s.kept[:0], len(logits))[:len(logits)]
	for id := range s.kept {
		s.kept[id] = float32(math.Inf(-1))
	}
	if n.at >= 0 {
		scores := n.scores
		for _, e := range s.a.rows[n.at] {
			for i, id := range e.tokens {
				s.kept[id] = logits[id] + scores[i]
			}
			scores = scores[len(e.tokens):]
		}
	}
	if s.a.mayEnd(n.at) {
		for _, id := range s.a.vocab.End() {
			s.kept[id] = logits[id]
		}
	}
	copy(logits, s.kept)
}
