// specblock.go drafts with a module that drafts a block of tokens in one pass, and further blocks behind the best of them (SpecBlock, 2026).
//
// Slots of a block each give the logits of one token. A small head says of each slot how far down the right token is likely to stand in its list, and so how many children the
// tree has there: few where the module is sure, none where it is lost. The likeliest leaves, by their whole path, begin the blocks of the next pass. Two passes draft as deep as
// eight of a module that drafts token by token.

package heads

import (
	"grove/method"
	"grove/method/module"
)

// specblockFamily is the modules of slots.
var specblockFamily = module.Family{
	Name: "specblock", Has: func(m *method.Module) bool { return m.Block != nil && len(m.Block.Rank[0]) > 0 }, Lacks: "have no slots",
}

// specblockOptions are what a user may choose. The published ones are beam=10+blocks=2+drafts=60; on a processor, which pays for each row, less is more.
var specblockOptions = []method.Option{
	{Name: "beam", Is: "N, the children of a block's first slot and the blocks of a pass", Usual: 4, Least: 1, Most: 10},
	{Name: "blocks", Is: "N, the passes", Usual: 2, Least: 1, Most: 4},
	{Name: "drafts", Is: "N, the drafts of a tree", Usual: 24, Least: 1, Most: 256},
	{Name: "learn", Is: "N, 1 to adapt the rank head where that pays", Usual: 0, Least: 0, Most: 1},
}

func init() {
	method.Register(specblockFamily.Info(method.Info{
		Name: specblockFamily.Name, Paper: "SpecBlock: blocks of slots, and a head that says how widely to branch, 2026", RunsRows: true,
		NotAuto: "eagle2 drafts more behind the same text",
	}).Takes(specblockOptions, openSpecblock))
}

// openSpecblock prepares a module with options.
func openSpecblock(e method.Env, n []int) (method.Method, error) {
	m := e.Module(specblockFamily.Name)
	return &specblock{m, e.Vocabulary, module.NewTuning(m), n[0], n[1], n[2], n[3] > 0}, nil
}

// specblock is a module with its options.
type specblock struct {
	module               *method.Module
	vocabulary           int
	tuning               *module.Tuning // with learn=1
	beam, blocks, drafts int
	learn                bool
}

// NewDrafter implements [method.Method].
func (m *specblock) NewDrafter(method.Trunk) (method.Drafter, error) { return newDrafter(m), nil }
