// Package block drafts a block of tokens in one pass of a module that reads the target's stream at some places (DFlash, DFlare, DSpark, P-EAGLE, 2026).
//
// The features of the text are the module's context. Behind it hangs the block, the text's last token and mask tokens, whose rows each give the logits of
// one further token: a pass costs the same whether one draft is accepted or all. The rows know nothing of the drafts before them, so a tree is
// the product of one list of candidates a depth. Those of P-EAGLE begin with the text's last row, which stays, and so
// read the text and draft in one pass. DSpark's modules add to a row's logits what the draft before it says, so its tree grows draft by draft.
package block

import (
	"fmt"

	"grove/method"
	"grove/method/module"
)

const most = 64 // rows of a block

// options are what a user may choose. A processor pays for each row of a block, so there are fewer than modules are trained for. Passes with fewer draft nearly as well: the rows
// that are left out are those that see the least.
var options = []method.Option{{Name: "rows", Is: "N, the rows of a block at most", Usual: 8, Least: 2, Most: most}}

func init() {
	register("dflash", "DFlash: a block of drafts in one pass over the target's stream, 2026", unmeasured, newProduct)
	register("dflare", "DFlare: a block whose layers each weigh the places of the target's stream, 2026", unmeasured, newProduct)
	register("peagle", "P-EAGLE: EAGLE-3's layers give a block of drafts in one pass, 2026", "", newProduct)
	register("dspark", "DSpark: a block whose logits follow the drafts before them, 2026", unmeasured, newOrdered)
}

// unmeasured is why automatic mode leaves a method out.
const unmeasured = "it was not measured beside eagle3"

// register adds a method that drafts with the modules of its name.
func register(name, paper, notAuto string, drafter func(m *block) method.Drafter) {
	method.Register(method.Info{
		Name: name, Paper: paper, Kind: method.KindHeads, Grade: method.Exact, RunsRows: true, Auto: notAuto == "", NotAuto: notAuto,
		Needs: "heads of the family " + name + " (--heads)", CheckNeeds: meets(name),
	}.Takes(options, func(e method.Env, n []int) (method.Method, error) {
		return &block{e.Module(name), n[0], e.Vocabulary, drafter}, nil
	}))
}

// meets returns the check that there is a module of a family, and that it drafts blocks.
func meets(family string) func(method.Env) error {
	has := method.MeetsModule(family)
	return func(e method.Env) error {
		if err := has(e); err != nil {
			return err
		}
		if e.Module(family).Block == nil {
			return fmt.Errorf("%w; the heads that are open draft no blocks", method.ErrNeeds)
		}
		return nil
	}
}

// block is a module with the rows of its blocks.
type block struct {
	module     *method.Module
	rows       int
	vocabulary int
	drafter    func(m *block) method.Drafter
}

// NewDrafter implements [method.Method].
func (m *block) NewDrafter(method.Trunk) (method.Drafter, error) { return m.drafter(m), nil }

const ranks, drafts = 4, 32 // candidates of a depth, and drafts of a tree

// newProduct returns a drafter of a module whose rows know nothing of the drafts before them.
func newProduct(m *block) method.Drafter {
	s := module.NewBlock(m.module, m.rows, m.vocabulary)
	return module.NewProduct(&s, m.module.Wants(), ranks, drafts, m.vocabulary)
}
