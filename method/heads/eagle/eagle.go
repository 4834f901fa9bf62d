// Package eagle drafts with modules that predict the target's next state from its last one and a token (EAGLE, EAGLE-2, Li et al. 2024; FSPAD, Gui et al. 2024; EAGLE-3, Li
// et al. 2025).
//
// They differ in the module and in the tree. EAGLE reads the final state and drafts a fixed tree; EAGLE-2 is the same module and a tree that
// grows where drafts are likely; FSPAD adds to the module a part that the token decides and a state for the logits alone; EAGLE-3 reads the stream at three places, and its tree grows likewise. Drafts above temperature 0 are those that
// the random numbers of the text draw from the module's logits, where the papers take the likeliest: so a tree holds what the target will draw
// more often, and the rule is match.
package eagle

import (
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// The published trees suit accelerators: 60 drafts in 7 passes. On a processor a row of the target costs more, so trees are smaller.
var (
	// fixed is EAGLE's tree by ranks: 4 drafts behind the text, then fewer.
	fixed = grow.Shape{Growth: grow.Fixed, Ranks: []int{4, 3, 2, 1, 1}, Beam: 4}
	// dynamic is EAGLE-2's: the best drafts of all levels so far are expanded, while that pays.
	dynamic = grow.Shape{Ranks: []int{4}, Beam: 4, Depth: 6}
)

func init() {
	register("eagle", "EAGLE: the next state from the last one and a token, 2024", "eagle", "eagle2 has the better tree", false, fixed)
	register("eagle2", "EAGLE-2: dynamic draft trees, 2024", "eagle", "", true, dynamic)
	register("fspad", "FSPAD: features that the token samples, and a state for logits alone, 2024", "fspad", "", true, dynamic)
	register("eagle3", "EAGLE-3: features of three layers, trained by their own drafts, 2025", "eagle3", "", true, dynamic)
}

// register adds a method that drafts with a family of modules.
func register(name, paper, family, notAuto string, auto bool, shape grow.Shape) {
	method.Register(module.Family{Name: family}.Method(method.Info{
		Name: name, Paper: paper, RunsRows: true, Auto: auto, NotAuto: notAuto,
	}, nil, func(m *method.Module, vocabulary int, _ []int) method.Drafter {
		return module.NewDrafter(shape, module.NewSource(m, vocabulary), m, vocabulary)
	}))
}
