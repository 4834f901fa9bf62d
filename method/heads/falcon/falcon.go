// Package falcon drafts a block of tokens in one pass of a module that predicts the target's states so many places on (Falcon, Gao et al. 2025).
//
// A pass over the last pairs of a token and a state, two in the published modules, gives as many tokens behind the text; the rows of these pairs see each other, and an LSTM
// reads each behind those before it. Drafts and the states of such a pass are the pairs of the next one. The tree grows best first, and a pass is run for
// every so many of its levels; the paper's tree is fixed. Drafts above temperature 0 are those that the random numbers of the text draw from the module's logits, and the rule is match.
package falcon

import (
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// shape is that of EAGLE-2's drafter here.
var shape = grow.Shape{Ranks: []int{4}, Beam: 4, Depth: 6}

func init() {
	method.Register(method.Info{
		Name: "falcon", Paper: "Falcon: blocks of states of several places on, 2025", Kind: method.KindHeads, Grade: method.Exact, RunsRows: true,
		NotAuto: "eagle2 drafts more behind the same text",
		Needs:   "heads of the family falcon (--heads)", CheckNeeds: method.MeetsModule("falcon"),
		Open: func(e method.Env) (method.Method, error) { return falcon{e.Module("falcon"), e.Vocabulary}, nil },
	})
}

// falcon is a module.
type falcon struct {
	module     *method.Module
	vocabulary int
}

// NewDrafter implements [method.Method].
func (m falcon) NewDrafter(method.Trunk) (method.Drafter, error) {
	return module.NewDrafter(shape, module.NewPairs(m.module, m.vocabulary), m.module, m.vocabulary), nil
}
