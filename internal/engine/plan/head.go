package plan

import (
	"math"

	"grove/method/vocabulary"
)

// The chains that parts of a vocabulary are judged by.
const (
	chainLength = 16  // drafts of a round at most
	chainDepth  = 512 // tokens of a text
)

// NewHead returns the predictions for a target, of which experts is what rows touch, and a draft model, whose costs are known: of the
// draft model [Cost].Part too. Corrections by steps are left out: those of the draft model come from steps with any part of the head.
func NewHead(a vocabulary.Acceptance, target *Cost, experts Mixture, draft *Cost) *vocabulary.Head {
	h := &vocabulary.Head{Acceptance: a}
	for n := range chainLength + 1 {
		h.Steps = append(h.Steps, target.measured(StepSize{Rows: n + 1, Depth: chainDepth, Logits: n + 1, Experts: experts.Touched(n + 1)}))
	}
	part, row := draft.Part, Curve{draft.Rows, draft.Layers}.At(1)+chainDepth*draft.Depth.At(1)
	h.Draft = func(share float64) float64 {
		if len(part.X) == 0 {
			return row
		}
		return row + part.At(int(math.Ceil(share*float64(part.X[len(part.X)-1]))))
	}
	return h
}
