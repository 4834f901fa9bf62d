// Package hiddentransfer drafts with rows of the target itself that begin at a middle layer, as a product of a token's own stream there (Hidden Transfer,
// Wu et al. 2024). They stand behind the tokens of a step and run the layers above, see [module.Standing].
package hiddentransfer

import (
	"fmt"

	"grove/method"
	"grove/method/module"
)

// family is the family of modules.
const family = "transfer"

func init() {
	method.Register(method.Info{
		Name: "hidden-transfer", Paper: "Hidden transfer: rows that begin at a middle layer, 2024", Kind: method.KindHeads, Grade: method.Exact, Auto: true,
		Needs: "heads of the family " + family + " (--heads)", CheckNeeds: method.MeetsModule(family), Open: open,
	})
}

// open returns an error where the module has no rows.
func open(e method.Env) (method.Method, error) {
	m := transfer{e.Module(family), e.Vocabulary}
	if len(m.module.Rows) == 0 {
		return nil, fmt.Errorf("hidden-transfer: %w: the heads have no matrices", method.ErrNeeds)
	}
	return m, nil
}

// transfer is the rows, first the one right behind a token.
type transfer struct {
	module     *method.Module
	vocabulary int
}

// NewDrafter implements [method.Method].
func (m transfer) NewDrafter(method.Trunk) (method.Drafter, error) {
	return module.NewStanding(m.module, m.vocabulary), nil
}
