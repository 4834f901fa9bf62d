// draft.go drafts by a second, smaller model: it grows a tree behind the text level by level, as long as the
// drafts are likely enough to pay (speculative decoding, Leviathan et al. 2023; trees by path probability, OPT-Tree,
// Wang et al. 2024; stopping by expected worth, SpecDec++, Huang et al. 2024).
//
// Where tokens are drawn at random, the methods of the grade exact share the noise of the target's draw: their drafts
// are the tokens that would be drawn from the draft model's logits (Gumbel coupling, Daliri et al. 2024). The others
// draw from the draft model's distributions.

package models

import (
	"grove/internal/verify"
	"grove/method"
	"grove/method/grow"
)

// drafting is a way to draft by a second model.
type drafting struct {
	name, paper string
	rule        verify.Rule // the zero value: drafts are the likeliest tokens; any other: they are drawn
	shape       grow.Shape
}

// all are the methods of the package. The planner cuts trees of the likeliest drafts to what pays, best first: with
// rates of ranks and probabilities that are learned online as scores this is OPT-Tree, EAGLE-2's tree and, for ranks
// alone, Sequoia's.
var all = []drafting{
	{name: "draft", paper: "OPT-Tree: a draft model's tree by path probability, 2024", shape: grow.Shape{Ranks: []int{4}, Beam: 4}},
	{name: "draft-chain", paper: "Speculative decoding with a draft model, 2023", shape: grow.Shape{Ranks: []int{1}, Beam: 1}},
	{name: "draft-fixed", paper: "SpecInfer: a fixed tree, 2023", shape: grow.Shape{Ranks: []int{3, 2, 1, 1}, Beam: 6, Growth: grow.Fixed}},
	{
		name: "draft-block", paper: "Block verification, 2024", rule: verify.Block,
		shape: grow.Shape{Draw: grow.WithoutReplacement, Ranks: []int{1}, Beam: 1},
	},
	{
		name: "draft-rsd", paper: "Recursive speculative decoding (RSD-C), 2024", rule: verify.Reject,
		shape: grow.Shape{Draw: grow.WithoutReplacement, Ranks: []int{3, 2, 1}, Beam: 6},
	},
	{
		name: "draft-rsd-s", paper: "Recursive speculative decoding (RSD-S), 2024", rule: verify.Reject,
		shape: grow.Shape{Draw: grow.WithoutReplacement, Ranks: []int{4}, Beam: 4, Growth: grow.Beams},
	},
	{
		name: "draft-traversal", paper: "Traversal verification of a tree of draws, 2025", rule: verify.Traversal,
		shape: grow.Shape{Draw: grow.WithoutReplacement, Ranks: []int{3, 2, 1}, Beam: 6},
	},
	{
		name: "draft-specinfer", paper: "SpecInfer: multi-step sampling of independent draws, 2023", rule: verify.SpecInfer,
		shape: grow.Shape{Draw: grow.WithReplacement, Ranks: []int{3}, Beam: 3, Depth: 3},
	},
	{
		name: "draft-dyspec", paper: "DySpec: a tree of draws, the best places first, 2024", rule: verify.Reject,
		shape: grow.Shape{Draw: grow.WithoutReplacement, Ranks: []int{8}, Beam: 6, Growth: grow.Slots, Drafts: 24},
	},
	{
		name: "draft-dyspec-q", paper: "DySpec by the draft model's probabilities, 2024", rule: verify.Reject,
		shape: grow.Shape{Draw: grow.WithoutReplacement, Ranks: []int{8}, Beam: 6, Growth: grow.Slots, Value: grow.ByProbability, Drafts: 24},
	},
	{
		name: "draft-dyspec-levels", paper: "DySpec by the draft model's probabilities, level by level, 2024", rule: verify.Reject,
		shape: grow.Shape{Draw: grow.WithoutReplacement, Ranks: []int{8}, Beam: 24, Growth: grow.Slots, Value: grow.ByProbability, Drafts: 24, Levels: true},
	},
	{
		name: "draft-sequoia", paper: "Sequoia: a tree of draws by the shares of their ranks, 2024", rule: verify.Reject,
		shape: grow.Shape{Draw: grow.WithoutReplacement, Ranks: []int{8}, Beam: 6, Growth: grow.Slots, Value: grow.ByRank, Drafts: 24},
	},
}

func init() {
	for _, a := range all {
		i := method.Info{
			Name: a.name, Paper: a.paper, Kind: method.KindModel, Grade: method.Exact, Rule: a.rule, Needs: "a draft model",
			Auto: a.name == "draft", RunsRows: true,
		}
		if !i.Auto && !a.draws() {
			i.NotAuto = "draft gives more"
		}
		if a.draws() {
			i.Grade = method.SameDistribution
			chain := a.shape.Ranks[0] == 1 // of one draw, which is with and without replacement
			i.Provides = verify.Properties{Distributions: true, WithReplacement: chain || a.shape.Draw == grow.WithReplacement, Chain: chain}
		}
		i.CheckNeeds = func(e method.Env) error { return grow.MeetsDraft(e, a.draws()) }
		i.Open = func(e method.Env) (method.Method, error) { return &trees{a.shape, e, grow.NewTrim(e)}, nil }
		if a.shape.Drafts > 0 {
			i = i.Takes([]method.Option{{Name: "n", Is: "N, the drafts of a tree", Usual: a.shape.Drafts, Least: 1, Most: method.MaxLive}}, func(e method.Env, n []int) (method.Method, error) {
				s := a.shape
				s.Drafts = n[0]
				return &trees{s, e, grow.NewTrim(e)}, nil
			})
		}
		method.Register(i)
	}
}

// draws reports whether drafts are drawn.
func (a *drafting) draws() bool { return a.shape.Draw != grow.Likeliest }

// trees is a draft model with the shape of its trees.
type trees struct {
	shape grow.Shape
	env   method.Env
	trim  *grow.Trim // nil: the whole vocabulary is drafted from
}

// NewDrafter implements [method.Method].
func (m *trees) NewDrafter(method.Trunk) (method.Drafter, error) {
	b := grow.NewBranch(m.env, m.trim)
	if m.env.VocabMap.Mapping() == method.ThroughText {
		return grow.NewRetokenize(b), nil
	}
	return grow.NewDrafter(m.shape, b, m.env), nil
}
