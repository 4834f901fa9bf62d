// falcon.go drafts a block of tokens in one pass of a module that predicts the target's states so many places on (Falcon, Gao et al. 2025).
//
// A pass over the last pairs of a token and a state, two in the published modules, gives as many tokens behind the text; the rows of these pairs see each other, and an LSTM
// reads each behind those before it. Drafts and the states of such a pass are the pairs of the next one. The tree grows best first, and a pass is run for
// every so many of its levels; the paper's tree is fixed. Drafts above temperature 0 are those that the random numbers of the text draw from the module's logits, and the rule is match.

package heads

import (
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// falconShape is that of EAGLE-2's drafter here.
var falconShape = grow.Shape{Ranks: []int{4}, Beam: 4, Depth: 6}

func init() {
	method.Register(module.Family{Name: "falcon"}.Method(method.Info{
		Name: "falcon", Paper: "Falcon: blocks of states of several places on, 2025", RunsRows: true, NotAuto: "eagle2 drafts more behind the same text",
	}, nil, func(m *method.Module, vocabulary int, _ []int) method.Drafter {
		return module.NewDrafter(falconShape, module.NewPairs(m, vocabulary), m, vocabulary)
	}))
}
