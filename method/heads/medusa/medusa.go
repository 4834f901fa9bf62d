// Package medusa drafts with heads that each predict one of the next tokens from the target's last state alone (Medusa, Cai et al. 2024).
//
// Heads know nothing of each other's drafts, so one pass of all of them gives the candidates of every depth, and a path is worth the product of its
// candidates. Drafts above temperature 0 are those that the random numbers of the text draw from the heads' logits: the tree holds what the target will
// draw more often, and the rule is match. The paper's typical acceptance is the rule typical, which is lossy.
package medusa

import (
	"fmt"
	"strconv"
	"strings"

	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// most is the drafts of the published trees. The planner runs those that pay.
const most = 63

func init() {
	method.Register(method.Info{
		Name: "medusa", Paper: "Medusa: heads that predict the tokens behind the next one, 2024", Kind: method.KindHeads, Grade: method.Exact, RunsRows: true, Auto: true,
		Needs: "heads of the family medusa (--heads)", CheckNeeds: method.MeetsModule("medusa"),
		Open: opener(most), WithOption: sized, Options: fmt.Sprintf("n=%d", most),
	})
}

// sized reads the option n.
func sized(option string) (func(method.Env) (method.Method, error), string, error) {
	value, ok := strings.CutPrefix(option, "n=")
	n, err := strconv.Atoi(value)
	if !ok || err != nil || n < 1 || n > method.MaxLive {
		return nil, "", fmt.Errorf("option %q is not known; use n=N, the drafts of a tree, from 1 to %d", option, method.MaxLive)
	}
	return opener(n), fmt.Sprintf("n=%d", n), nil
}

func opener(drafts int) func(method.Env) (method.Method, error) {
	return func(e method.Env) (method.Method, error) {
		return medusa{e.Module("medusa"), drafts, e.Vocabulary}, nil
	}
}

// medusa is heads, and the drafts of a tree at most.
type medusa struct {
	module     *method.Module
	drafts     int
	vocabulary int
}

// NewDrafter implements [method.Method].
func (m medusa) NewDrafter(method.Trunk) (method.Drafter, error) {
	return module.NewProduct(module.NewHeads(m.module, m.vocabulary), m.module.Wants(), grow.MaxRanks, m.drafts, m.vocabulary), nil
}
