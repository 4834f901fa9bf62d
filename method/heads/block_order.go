package heads

import (
	"context"
	"math"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// follow is a tree that goes on behind the best drafts of each depth while that pays.
var follow = grow.Shape{Ranks: []int{3, 2}, Beam: 4, Depth: most}

// least is the probability that a path is accepted, as the module expects it, below which nothing is drafted behind the path.
const least = 0.1

// newOrdered returns a drafter of a module each of whose drafts adds to the logits behind it.
func newOrdered(m *method.Module, vocabulary int, n []int) method.Drafter {
	s := &ordered{Block: module.NewBlock(m, n[0], vocabulary), module: m}
	if m.Vocabulary != nil {
		s.dense = make([]float32, vocabulary)
	}
	return module.NewDrafter(follow, s, m, vocabulary)
}

// ordered is a [grow.LogitSource] of a module of which a draft adds to the logits behind it: these are the sum of what the block's row of the depth gives
// and of what a row of the draft gives. Where the module says how likely drafts are to be accepted, unlikely paths end.
type ordered struct {
	module.Block
	module *method.Module
	text   *method.History
	limit  int       // drafts of a path
	depths int       // rows of the block that give logits
	base   []float32 // these logits
	states []float32 // and the states of these rows, where the module judges drafts
	chance []float64 // that the path down to a node and the draft behind it are accepted, of the root and of nodes by place
	rows   []method.Row
	nodes  []int // of the last rows: their places in the tree
	depth  []int
	sum    []float32
	dense  []float32 // nil: the module drafts all tokens
}

// Begin implements [module.Following].
func (s *ordered) Begin(h *method.History) error {
	s.text = h
	return s.Block.Begin(h)
}

// BeginRound implements [module.Growing].
func (s *ordered) BeginRound(t *method.Tree) bool {
	s.limit = t.Depth()
	return true
}

// Root implements [grow.LogitSource].
func (s *ordered) Root(ctx context.Context) (bool, error) {
	first, n, err := s.Depths(ctx, s.limit)
	if n == 0 || err != nil {
		return false, err
	}
	s.depths, s.base, s.states, s.chance = n, s.base[:0], s.states[:0], s.chance[:0]
	for i := range n {
		r := s.Result(first + i)
		s.base, s.states = append(s.base, r.Logits...), append(s.states, r.State...)
	}
	s.rows, s.nodes, s.depth = s.rows[:0], s.nodes[:0], s.depth[:0]
	s.add(method.Root, s.text.Last(0), 0, 1)
	return true, s.ask(ctx)
}

// Expand implements [grow.LogitSource].
func (s *ordered) Expand(ctx context.Context, t *method.Tree, drafts []int) error {
	s.rows, s.nodes, s.depth = s.rows[:0], s.nodes[:0], s.depth[:0]
	for _, at := range drafts {
		n := &t.Nodes()[at]
		s.add(at, n.ID, int(n.Depth), s.chance[n.Parent+1])
	}
	return s.ask(ctx)
}

// add adds the row of a node's token at a depth, whose path is accepted with a probability.
func (s *ordered) add(node int, id token.ID, depth int, chance float64) {
	row := forest.Row{ID: id, Want: forest.Want{Logits: true}, Skip: forest.LayerRange(0, s.Size.Layers-1)}
	if s.module.Block.Trust > 0 {
		row.Vector, row.Want.State = s.states[depth*s.Size.Width:][:s.Size.Width], true
	}
	for len(s.chance) <= node+1 {
		s.chance = append(s.chance, 1)
	}
	s.chance[node+1] = chance
	s.rows, s.nodes, s.depth = append(s.rows, method.Row{Row: row}), append(s.nodes, node), append(s.depth, depth)
}

// ask runs the rows that were added. They are dropped: none has another behind it.
func (s *ordered) ask(ctx context.Context) error {
	if err := s.Grow(ctx, s.rows); err != nil {
		return err
	}
	if trust := s.module.Block.Trust; trust > 0 {
		for i, node := range s.nodes {
			s.chance[node+1] /= 1 + math.Exp(-float64(s.Result(i).State[trust]))
		}
	}
	return s.Trunk.Drop()
}

// Logits implements [grow.LogitSource].
func (s *ordered) Logits(i int) []float32 {
	of := s.Result(i).Logits
	s.sum = append(s.sum[:0], s.base[s.depth[i]*len(of):][:len(of)]...)
	for j, v := range of {
		if s.sum[j] += v; s.chance[s.nodes[i]+1] < least {
			s.sum[j] = compute.Masked
		}
	}
	if s.dense == nil {
		return s.sum
	}
	return module.Spread(s.dense, s.sum, s.module.Vocabulary)
}

// State implements [grow.LogitSource]: there is none.
func (s *ordered) State(int) []float32 { return nil }

// Room implements [grow.LogitSource].
func (s *ordered) Room() (drafts, depth int) {
	drafts, _ = s.Block.Room()
	return drafts, s.depths - 1
}
