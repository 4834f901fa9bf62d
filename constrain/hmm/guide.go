package hmm

import (
	"grove/internal/sample"
	"grove/internal/text/token"
)

// A Guide adds what a [Stage] adds to the logits of the tokens that the automaton has, and leaves the others as they
// are: it stands beside a stage that forbids them. It forbids those behind which no legal text ends within the horizon,
// unless that is true of all. It implements [sample.Keeper], [sample.Forker] and [sample.Preparer].
type Guide struct{ stage *Stage }

// NewGuide returns the guide of an automaton, which was compiled with a model.
func NewGuide(a *Automaton) *Guide { return &Guide{NewStage(a)} }

// String returns the name of the stage.
func (g *Guide) String() string { return g.stage.String() }

// Start implements [sample.Stage].
func (g *Guide) Start(prompt []token.ID) sample.StageState { return g.stage.Start(prompt) }

// Next implements [sample.Stage].
func (g *Guide) Next(at sample.StageState, id token.ID) sample.StageState {
	return g.stage.Next(at, id)
}

// Keep implements [sample.Keeper].
func (g *Guide) Keep(at sample.StageState) sample.StageState { return g.stage.Keep(at) }

// Fork implements [sample.Forker].
func (g *Guide) Fork(at sample.StageState) (sample.Stage, sample.StageState) {
	f, to := g.stage.Fork(at)
	return &Guide{f.(*Stage)}, to
}

// Prepare implements [sample.Preparer].
func (g *Guide) Prepare(at sample.StageState) { g.stage.Prepare(at) }

// Apply implements [sample.Stage].
func (g *Guide) Apply(at sample.StageState, logits []float32) {
	n := &g.stage.nodes[at]
	g.stage.score(n)
	if n.at < 0 {
		return
	}
	scores := n.scores
	for _, e := range g.stage.a.rows[n.at] {
		for i, id := range e.tokens {
			logits[id] += scores[i]
		}
		scores = scores[len(e.tokens):]
	}
}
