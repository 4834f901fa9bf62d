package draft

import (
	"errors"
	"fmt"

	"grove/method"
)

// A shape says how the tree of guesses grows behind the text, level by level.
type shape struct {
	name, paper string
	rule        method.Rule // Match: guesses are the likeliest tokens; any other: they are drawn
	ranks       []int       // guesses behind a node, by its depth; the last number counts below, too
	beam        int         // nodes of a level that the draft model reads, the likeliest
	growth      growth
}

// growth says which guesses of a level are made.
type growth int

const (
	worthy growth = iota // as many behind each node as its depth has, and further levels while they are worth a pass
	fixed                // the same, and as many levels as there are numbers, whatever they are worth
	beams                // the best of all nodes together, as many as the beam, by stochastic beam search
	slots                // behind each node until it is unlikely that another one is accepted
)

// shapes are the methods of the package. Trees of the likeliest guesses are cut to what pays by the planner, best first:
// with online rates of ranks and probabilities as scores this is OPT-Tree, EAGLE-2's tree, and for ranks alone Sequoia's.
var shapes = []shape{
	{name: "draft", paper: "OPT-Tree: a draft model's tree by path probability, 2024", ranks: []int{4}, beam: 4},
	{name: "draft-chain", paper: "Speculative decoding with a draft model, 2023", ranks: []int{1}, beam: 1},
	{name: "draft-fixed", paper: "SpecInfer: a fixed tree, 2023", ranks: []int{3, 2, 1, 1}, beam: 6, growth: fixed},
	{name: "draft-block", paper: "Block verification, 2024", rule: method.Block, ranks: []int{1}, beam: 1},
	{name: "draft-rsd", paper: "Recursive speculative decoding (RSD-C), 2024", rule: method.Reject, ranks: []int{3, 2, 1}, beam: 6},
	{name: "draft-rsd-s", paper: "Recursive speculative decoding (RSD-S), 2024", rule: method.Reject, ranks: []int{4}, beam: 4, growth: beams},
	{name: "draft-dyspec", paper: "DySpec, level by level, 2024", rule: method.Reject, ranks: []int{maxRanks}, beam: 6, growth: slots},
}

const (
	maxRanks = 8  // guesses behind a node
	buckets  = 16 // of probabilities, by which guesses are classed
	deepest  = 16 // levels
)

func init() {
	for _, s := range shapes {
		i := method.Info{
			Name: s.name, Paper: s.paper, Kind: method.KindModel, Grade: method.Exact, Rule: s.rule, Needs: "a draft model",
			Auto: s.name == "draft",
		}
		if s.rule != method.Match {
			i.Grade = method.SameDistribution
		}
		i.Open = func(e method.Env) (method.Method, error) {
			if e.Draft == nil {
				return nil, method.ErrNeeds
			}
			if s.rule != method.Match && e.Words.Way() != method.SameVocabulary {
				return nil, fmt.Errorf("%w: a draft model with the same vocabulary (this one's: %v)", method.ErrNeeds, e.Words)
			}
			return newTrees(s, e), nil
		}
		method.Register(i)
	}
}

// trees is a draft model with the shape of its trees.
type trees struct {
	shape      shape
	runner     method.Runner
	vocabulary int // of the target
	words      *method.VocabMap
	trim       *trim // nil: the whole vocabulary is drafted from
}

func newTrees(s shape, e method.Env) *trees {
	return &trees{s, e.Draft, e.Vocabulary, e.Words, newTrim(e)}
}

// NewDrafter implements [method.Method].
func (m *trees) NewDrafter() (method.Drafter, error) {
	b, err := m.runner.Branch()
	if err != nil {
		return nil, err
	}
	d := &drafter{
		shape: m.shape, runner: m.runner, branch: b, words: m.words, vocabulary: min(m.vocabulary, m.runner.Vocabulary()),
	}
	if m.trim != nil {
		var ok bool
		if d.trimmer, ok = b.(method.Trimmer); !ok {
			return nil, errors.Join(fmt.Errorf("%w: a draft model that can leave out a part of its vocabulary", method.ErrNeeds), b.Close())
		}
		d.trim = m.trim
	}
	switch m.words.Way() {
	case method.SharedTokens:
		d.vocabulary = m.vocabulary
		d.dense = make([]float32, m.vocabulary)
	case method.ThroughText:
		d.vocabulary = m.runner.Vocabulary()
		return newTextDrafter(d), nil
	}
	if m.shape.rule == method.Match {
		return d, nil
	}
	return &lawDrafter{drafter: *d, dense: make([]float32, d.vocabulary)}, nil
}

// guesses returns how many guesses stand behind a node of a depth.
func (s *shape) guesses(depth int) int { return s.ranks[min(depth, len(s.ranks)-1)] }
