// eagle.go drafts with modules that predict the target's next state from its last one and a token (EAGLE, EAGLE-2, Li et al. 2024; FSPAD, Gui et al. 2024; EAGLE-3, Li
// et al. 2025).
//
// They differ in the module and in the tree. EAGLE reads the final state and drafts a fixed tree; EAGLE-2 is the same module and a tree that
// grows where drafts are likely; FSPAD adds to the module a part that the token decides and a state for the logits alone; EAGLE-3 reads the stream at three places, and its tree grows likewise. Drafts above temperature 0 are those that
// the random numbers of the text draw from the module's logits, where the papers take the likeliest: so a tree holds what the target will draw
// more often, and the rule is match.

package heads

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

// all are the methods, each with the family of its modules and the shape of its trees.
var all = []struct {
	family string
	shape  grow.Shape
	method.Info
}{
	{"eagle", fixed, method.Info{Name: "eagle", Paper: "EAGLE: the next state from the last one and a token, 2024", NotAuto: "eagle2 has the better tree"}},
	{"eagle", dynamic, method.Info{Name: "eagle2", Paper: "EAGLE-2: dynamic draft trees, 2024", Auto: true}},
	{"fspad", dynamic, method.Info{Name: "fspad", Paper: "FSPAD: features that the token samples, and a state for logits alone, 2024", Auto: true}},
	{"eagle3", dynamic, method.Info{Name: "eagle3", Paper: "EAGLE-3: features of three layers, trained by their own drafts, 2025", Auto: true}},
}

func init() {
	for _, a := range all {
		a.RunsRows = true
		method.Register(module.Family{Name: a.family}.Method(a.Info, nil, func(m *method.Module, vocabulary int, _ []int) method.Drafter {
			return module.NewDrafter(a.shape, module.NewSource(m, vocabulary), m, vocabulary)
		}))
	}
}
