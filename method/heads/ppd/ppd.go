// Package ppd drafts with learned input vectors of the target itself (Parallel Prompt Decoding, Chen et al. 2024): rows that stand behind the tokens of
// a step, see [module.Standing].
package ppd

import (
	"fmt"

	"grove/method"
	"grove/method/module"
)

// family is the family of modules.
const family = "ppd"

func init() {
	method.Register(method.Info{
		Name: "ppd", Paper: "Parallel prompt decoding: learned input vectors, 2024", Kind: method.KindHeads, Grade: method.Exact, Auto: true,
		Needs: "heads of the family " + family + " (--heads)", CheckNeeds: method.MeetsModule(family), Open: open,
	})
}

// open returns an error where the module has no vectors.
func open(e method.Env) (method.Method, error) {
	m := ppd{e.Module(family), e.Vocabulary}
	if len(m.module.Rows) == 0 {
		return nil, fmt.Errorf("ppd: %w: the heads have no vectors", method.ErrNeeds)
	}
	return m, nil
}

// ppd is the vectors, first the one right behind a token.
type ppd struct {
	module     *method.Module
	vocabulary int
}

// NewDrafter implements [method.Method].
func (m ppd) NewDrafter(method.Trunk) (method.Drafter, error) {
	return module.NewStanding(m.module, m.vocabulary), nil
}
