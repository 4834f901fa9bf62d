// predict.go says how fast rounds of drafts are at the cost of other models.

package bench

import (
	"grove/internal/engine"
	"grove/internal/engine/plan"
)

// StepShape is a model by the cost of its steps.
type StepShape struct {
	Name   string
	Layers int
	Cost   *engine.Cost
}

// depth is the length of the texts for which steps of other models are predicted.
const depth = 256

// PredictAt returns the speed-up at the cost of each shape: that of the best number of drafts in hindsight, if as many of them are accepted there. A pass of a
// drafter runs the same share of the target's layers there, or as many layers as a module has in weights, and the head. The passes are those
// that were run, also where fewer drafts are best.
func PredictAt(shapes []StepShape, s engine.SpecStats) map[string]float64 {
	speed := map[string]float64{}
	rounds := float64(max(1, s.Rounds))
	for _, shape := range shapes {
		drafting := s.Drafting.Seconds() / rounds // of drafters that run no rows
		if n := s.Ran.Passes; n > 0 {
			rows := max(1, (s.Ran.Rows+n/2)/n)
			layers := shape.Cost.Seconds(plan.StepSize{Rows: rows, Depth: depth})
			head := shape.Cost.Seconds(plan.StepSize{Rows: rows, Depth: depth, Logits: rows}) - layers
			drafting = (layers*(s.Ran.Share+s.Ran.Layers/float64(shape.Layers)) + head*float64(n)) / rounds
		}
		speed[shape.Name] = Hindsight(s, shape.Cost, depth, drafting)
	}
	return speed
}

// Hindsight returns the speed-up of the best fixed number n of draft tokens a step, given how often the draft tokens of each
// place were accepted: the largest E(n) T(1) / (T(1+n) + drafting), where E(n) is the mean number of tokens a step and drafting the seconds of making
// the drafts of one; 1 for n = 0.
func Hindsight(s engine.SpecStats, c *engine.Cost, depth int, drafting float64) float64 {
	best := 1.0
	if s.Rounds == 0 || c == nil {
		return best
	}
	expected := 1.0
	one := c.Seconds(plan.StepSize{Rows: 1, Depth: depth, Logits: 1})
	for n := 1; n <= len(s.AcceptedByRank); n++ {
		expected += float64(s.AcceptedByRank[n-1]) / float64(s.Rounds)
		best = max(best, expected*one/(c.Seconds(plan.StepSize{Rows: n + 1, Depth: depth, Logits: n + 1})+drafting))
	}
	return best
}
