// standing.go drafts with rows of the target itself that stand behind the tokens of a step, see [module.Standing]: learned input vectors (Parallel Prompt Decoding, Chen et al. 2024),
// and rows that begin at a middle layer, as a product of a token's own stream there, and run the layers above (Hidden Transfer, Wu et al. 2024).

package heads

import (
	"grove/method"
	"grove/method/module"
)

func init() {
	standingRegister("ppd", "Parallel prompt decoding: learned input vectors, 2024", "ppd", "have no vectors")
	standingRegister("hidden-transfer", "Hidden transfer: rows that begin at a middle layer, 2024", "transfer", "have no matrices")
}

// standingRegister adds a method that drafts with the rows of a family of modules.
func standingRegister(name, paper, family, lacks string) {
	f := module.Family{Name: family, Has: func(m *method.Module) bool { return len(m.Rows) > 0 }, Lacks: lacks}
	method.Register(f.Method(method.Info{Name: name, Paper: paper, Auto: true}, nil, func(m *method.Module, vocabulary int, _ []int) method.Drafter {
		return module.NewStanding(m, vocabulary)
	}))
}
