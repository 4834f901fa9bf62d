// block.go drafts a block of tokens in one pass of a module that reads the target's stream at some places (DFlash, DFlare, DSpark, P-EAGLE, 2026).
//
// The features of the text are the module's context. Behind it hangs the block, the text's last token and mask tokens, whose rows each give the logits of
// one further token: a pass costs the same whether one draft is accepted or all. The rows know nothing of the drafts before them, so a tree is
// the product of one list of candidates a depth. Those of P-EAGLE begin with the text's last row, which stays, and so
// read the text and draft in one pass. DSpark's modules add to a row's logits what the draft before it says, so its tree grows draft by draft.

package heads

import (
	"grove/method"
	"grove/method/module"
)

const most = 64 // rows of a block

// blockOptions are what a user may choose. A processor pays for each row of a block, so there are fewer than modules are trained for. Passes with fewer draft nearly as well: the rows
// that are left out are those that see the least.
var blockOptions = []method.Option{{Name: "rows", Is: "N, the rows of a block at most", Usual: 8, Least: 2, Most: most}}

func init() {
	blockRegister("dflash", "DFlash: a block of drafts in one pass over the target's stream, 2026", unmeasured, newProduct)
	blockRegister("dflare", "DFlare: a block whose layers each weigh the places of the target's stream, 2026", unmeasured, newProduct)
	blockRegister("peagle", "P-EAGLE: EAGLE-3's layers give a block of drafts in one pass, 2026", "", newProduct)
	blockRegister("dspark", "DSpark: a block whose logits follow the drafts before them, 2026", unmeasured, newOrdered)
}

// unmeasured is why automatic mode leaves a method out.
const unmeasured = "it was not measured beside eagle3"

// blockRegister adds a method that drafts with the modules of its name.
func blockRegister(name, paper, notAuto string, draft func(m *method.Module, vocabulary int, n []int) method.Drafter) {
	family := module.Family{Name: name, Has: func(m *method.Module) bool { return m.Block != nil }, Lacks: "draft no blocks"}
	method.Register(family.Method(method.Info{Name: name, Paper: paper, RunsRows: true, Auto: notAuto == "", NotAuto: notAuto}, blockOptions, draft))
}

const ranks, drafts = 4, 32 // candidates of a depth, and drafts of a tree

// newProduct returns a drafter of a module whose rows know nothing of the drafts before them.
func newProduct(m *method.Module, vocabulary int, n []int) method.Drafter {
	s := module.NewBlock(m, n[0], vocabulary)
	return module.NewProduct(&s, m.Wants(), ranks, drafts, vocabulary)
}
