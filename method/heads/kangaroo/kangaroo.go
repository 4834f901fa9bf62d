// Package kangaroo drafts with the target's first layers and a trained adapter behind them, and lets the verifying step run the other layers alone (Kangaroo, Liu
// et al. 2024).
//
// It exits twice: the layers early, and the drafting behind the first draft that is not likely enough. The adapter is attention without a feed-forward
// block, and the target's head gives the logits.
package kangaroo

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// family is the family of modules.
const family = "kangaroo"

// The paper's values, where no option is given.
const (
	least = 60 // hundredths: the probability of a draft behind which drafting goes on
	depth = 6  // drafts of a chain at most
)

// deepest bounds the option depth.
const deepest = 25

func init() {
	method.Register(method.Info{
		Name: "kangaroo", Paper: "Kangaroo: double early exiting with an adapter, 2024", Kind: method.KindHeads, Grade: method.Exact, RunsRows: true, Auto: true,
		Needs: "heads of the family " + family + " (--heads)", CheckNeeds: meets, Open: opener(options{least, depth}),
		WithOption: set, Options: options{least, depth}.String(),
	})
}

// meets returns an error where there is no module, or no target whose layers could draft.
func meets(e method.Env) error {
	if err := method.MeetsModule(family)(e); err != nil {
		return err
	}
	if e.Target == nil {
		return fmt.Errorf("%w: the answer is on record", method.ErrNeeds)
	}
	return nil
}

// options are what a user may choose.
type options struct {
	least int // in hundredths
	depth int
}

// String returns the options as a user writes them.
func (o options) String() string {
	return fmt.Sprintf("least=%s+depth=%d", strconv.FormatFloat(float64(o.least)/100, 'g', -1, 64), o.depth)
}

// set reads the options least and depth, with a + between them where both are given.
func set(option string) (func(method.Env) (method.Method, error), string, error) {
	o, given := options{least, depth}, map[string]bool{}
	for _, one := range strings.Split(option, "+") {
		name, value, _ := strings.Cut(one, "=")
		p, err := strconv.ParseFloat(value, 64)
		hundredths := math.Round(100 * p)
		n, notWhole := strconv.Atoi(value)
		switch {
		case given[name]:
			err = strconv.ErrSyntax
		case name == "least" && err == nil && p >= 0 && p <= 1 && math.Abs(100*p-hundredths) < 1e-6:
			o.least = int(hundredths)
		case name == "depth" && notWhole == nil && n >= 1 && n <= deepest:
			o.depth, err = n, nil
		default:
			err = strconv.ErrSyntax
		}
		if err != nil {
			return nil, "", fmt.Errorf("option %q is not known; use least=P, the probability of a draft behind which drafting goes on, from 0 to 1 in hundredths, and depth=N, the drafts of a chain, from 1 to %d, with a + between the two", option, deepest)
		}
		given[name] = true
	}
	return opener(o), o.String(), nil
}

func opener(o options) func(method.Env) (method.Method, error) {
	return func(e method.Env) (method.Method, error) {
		return &kangaroo{e.Module(family), e.Target.Size(), o}, nil
	}
}

// kangaroo is an adapter with the target's sizes.
type kangaroo struct {
	module *method.Module
	target method.Size
	options
}

// NewDrafter implements [method.Method].
func (m *kangaroo) NewDrafter(own method.Trunk) (method.Drafter, error) {
	if own == nil {
		return nil, fmt.Errorf("%w: the answer is on record", method.ErrNeeds)
	}
	shape := grow.Shape{Ranks: []int{1}, Beam: 1, Depth: m.depth, Spine: true, Least: float32(m.least) / 100}
	return module.NewDrafter(shape, module.NewAdapter(own, m.target, m.module), m.module, m.target.Vocabulary), nil
}
