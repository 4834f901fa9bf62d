// medusa.go drafts with heads that each predict one of the next tokens from the target's last state alone (Medusa, Cai et al. 2024).
//
// Heads know nothing of each other's drafts, so one pass of all of them gives the candidates of every depth, and a path is worth the product of its
// candidates. Drafts above temperature 0 are those that the random numbers of the text draw from the heads' logits: the tree holds what the target will
// draw more often, and the rule is match. The paper's typical acceptance is the rule typical, which is lossy.

package heads

import (
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// medusaOptions are what a user may choose. The usual one is the drafts of the published trees: the planner runs those that pay.
var medusaOptions = []method.Option{{Name: "n", Is: "N, the drafts of a tree", Usual: 63, Least: 1, Most: method.MaxLive}}

func init() {
	method.Register(module.Family{Name: "medusa"}.Method(method.Info{
		Name: "medusa", Paper: "Medusa: heads that predict the tokens behind the next one, 2024", RunsRows: true, Auto: true,
	}, medusaOptions, func(m *method.Module, vocabulary int, n []int) method.Drafter {
		return module.NewProduct(module.NewHeads(m, vocabulary), m.Wants(), grow.MaxRanks, n[0], vocabulary)
	}))
}
