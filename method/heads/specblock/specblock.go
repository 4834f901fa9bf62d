// Package specblock drafts with a module that drafts a block of tokens in one pass, and further blocks behind the best of them (SpecBlock, 2026).
//
// Slots of a block each give the logits of one token. A small head says of each slot how far down the right token is likely to stand in its list, and so how many children the
// tree has there: few where the module is sure, none where it is lost. The likeliest leaves, by their whole path, begin the blocks of the next pass. Two passes draft as deep as
// eight of a module that drafts token by token.
package specblock

import (
	"fmt"
	"strconv"
	"strings"

	"grove/method"
	"grove/method/module"
)

const family = "specblock"

// options are what a user may choose. The published ones are beam=10+blocks=2+drafts=60; on a processor, which pays for each row, less is more.
type options struct{ beam, blocks, drafts, learn int }

var (
	usual = options{beam: 4, blocks: 2, drafts: 24}
	least = options{1, 1, 1, 0}
	most  = options{10, 4, 256, 1}
)

func init() {
	method.Register(method.Info{
		Name: family, Paper: "SpecBlock: blocks of slots, and a head that says how widely to branch, 2026", Kind: method.KindHeads, Grade: method.Exact, RunsRows: true,
		NotAuto: "eagle2 drafts more behind the same text",
		Needs:   "heads of the family " + family + " (--heads)", CheckNeeds: meets, Open: opener(usual), WithOption: set, Options: usual.String(),
	})
}

// String returns the options as a user writes them.
func (o options) String() string {
	return fmt.Sprintf("beam=%d+blocks=%d+drafts=%d+learn=%d", o.beam, o.blocks, o.drafts, o.learn)
}

// set reads the options, with a + between them.
func set(option string) (func(method.Env) (method.Method, error), string, error) {
	o, given := usual, map[string]bool{}
	for one := range strings.SplitSeq(option, "+") {
		name, value, _ := strings.Cut(one, "=")
		at, low, high := o.field(name), least.field(name), most.field(name)
		n, err := strconv.Atoi(value)
		if at == nil || err != nil || given[name] || n < *low || n > *high {
			return nil, "", fmt.Errorf("option %q is not known; use beam=N, the children of a block's first slot and the blocks of a pass, from 1 to %d, blocks=N, the passes, from 1 to %d, drafts=N, the drafts of a tree, from 1 to %d, and learn=1, to adapt the rank head where that pays, with a + between them", option, most.beam, most.blocks, most.drafts)
		}
		*at, given[name] = n, true
	}
	return opener(o), o.String(), nil
}

// field returns an option by its name; nil: there is none.
func (o *options) field(name string) *int {
	return map[string]*int{"beam": &o.beam, "blocks": &o.blocks, "drafts": &o.drafts, "learn": &o.learn}[name]
}

func opener(o options) func(method.Env) (method.Method, error) {
	return func(e method.Env) (method.Method, error) {
		return &specblock{e.Module(family), e.Vocabulary, module.NewTuning(e.Module(family)), o}, nil
	}
}

// meets checks that there is a module of slots.
func meets(e method.Env) error {
	if err := method.MeetsModule(family)(e); err != nil {
		return err
	}
	if b := e.Module(family).Block; b == nil || len(b.Rank[0]) == 0 {
		return fmt.Errorf("%w; the heads that are open have no slots", method.ErrNeeds)
	}
	return nil
}

// specblock is a module with its options.
type specblock struct {
	module     *method.Module
	vocabulary int
	tuning     *module.Tuning // with learn=1
	options
}

// NewDrafter implements [method.Method].
func (m *specblock) NewDrafter(method.Trunk) (method.Drafter, error) { return newDrafter(m), nil }
