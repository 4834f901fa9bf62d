package engine

import (
	"errors"
	"math"
	"slices"

	"grove/compute"
	"grove/forest"
	"grove/method"
	"grove/sample"
	"grove/text/token"
	"grove/verify"
)

// What a text's random numbers are for besides the draws of its tokens. Those of a node follow these, a stride
// apart; drafters use the even ones.
const (
	useTest sample.Use = 1 // of a guess
	useRest sample.Use = 3 // what follows where no guess is accepted
)

// walk turns the results of a round's rows into tokens, left in the queue, and the nodes that they passed, left in
// the path.
func (s *Sequence) walk() (err error) {
	sp := s.spec
	s.queue, s.path = s.queue[:0], append(s.path[:0], s.root)
	sp.outcomes = sp.outcomes[:0]
	rows := s.ownRows()
	for i := range rows {
		sp.outcomes = append(sp.outcomes, method.Outcome{ID: rows[i].ID, Parent: rowOf(rows, rows[i].Parent)})
	}
	sp.outcomes[0].Accepted = true
	switch {
	case sp.typical:
		err = s.walkTypical()
	case sp.tree.Laws() == nil:
		err = s.walkMatch()
	case sp.all.chain:
		err = s.walkBlock()
	default:
		err = s.walkReject()
	}
	if err != nil && len(s.queue) > 0 {
		return nil // plain decoding meets it when it gets there
	}
	return err
}

// walkMatch draws from the root down as plain decoding does.
func (s *Sequence) walkMatch() error {
	sp := s.spec
	return verify.Match(func(node int) (token.ID, error) {
		row, index := s.rowAt(node)
		d, err := s.pick(s.result(row).Logits, s.behind(node), index+1)
		if err == nil {
			s.queue = append(s.queue, d)
			sp.tree.Learn(node, d.ID)
		}
		return d.ID, err
	}, s.descend)
}

// descend goes to the child of a node with a token, where it was run.
func (s *Sequence) descend(node int, id token.ID) (int, bool) {
	sp := s.spec
	child, ok := sp.tree.Child(node, id)
	if !ok || sp.nodes[child] == forest.Trunk {
		return 0, false
	}
	s.path = append(s.path, sp.nodes[child])
	row, _ := s.rowAt(child)
	sp.outcomes[row].Accepted = true
	return child, true
}

// ownRows returns the sequence's rows of the step, and result what one of them gave.
func (s *Sequence) ownRows() []forest.Placed {
	return s.e.exec.Step.Rows()[s.first : s.first+s.rows]
}

func (s *Sequence) result(row int) *compute.Result { return s.e.exec.Result(s.first + row) }

// rowAt returns the sequence's row that ran a node of the tree, and its index in the text.
func (s *Sequence) rowAt(node int) (row, index int) {
	rows := s.ownRows()
	if node != method.Root {
		row = int(rowOf(rows, s.spec.nodes[node]))
	}
	return row, int(rows[row].Index)
}

// walkReject tests the children of each node against what they were drawn from.
func (s *Sequence) walkReject() error {
	sp := s.spec
	p := sp.laws(1, s.e.vocab)[0]
	for node := method.Root; ; {
		row, index := s.rowAt(node)
		logits := s.result(row).Logits
		if err := s.law(p, node, logits); err != nil {
			return err
		}
		sp.ids = sp.tree.Children(sp.ids[:0], node)
		for i, id := range sp.ids {
			if c, _ := sp.tree.Child(node, id); sp.nodes[c] == forest.Trunk {
				sp.ids = sp.ids[:i] // there was no room for the rest
				break
			}
		}
		k := sp.rules.Reject(p, sp.tree.Laws()[node+1], sp.ids, func(child int) float64 {
			return s.sampler.Number(s.answer.SampleIndex, index+1, useTest+method.NodeUses*sample.Use(child))
		})
		if k < 0 {
			return s.finish(node, p, logits, index)
		}
		id := sp.ids[k]
		if err := s.accept(node, id, logits); err != nil {
			return err
		}
		node, _ = s.descend(node, id)
	}
}

// walkBlock tests a chain as a whole.
func (s *Sequence) walkBlock() error {
	sp := s.spec
	sp.ids = sp.ids[:0]
	for i, n := range sp.tree.Nodes() {
		if sp.nodes[i] == forest.Trunk {
			break
		}
		sp.ids = append(sp.ids, n.ID)
	}
	p := sp.laws(len(sp.ids)+1, s.e.vocab)
	root := 0
	for i := range p {
		row, index := s.rowAt(i - 1)
		if i == 0 {
			root = index
		}
		if err := s.law(p[i], i-1, s.result(row).Logits); err != nil {
			return err
		}
	}
	n := sp.rules.Block(sp.ids, func(i int) []float64 { return p[i] }, sp.tree.Laws(), func(i int) float64 {
		return s.sampler.Number(s.answer.SampleIndex, root+1, useTest+method.NodeUses*sample.Use(i))
	})
	node := method.Root
	for _, id := range sp.ids[:n] {
		row, _ := s.rowAt(node)
		if err := s.accept(node, id, s.result(row).Logits); err != nil {
			return err
		}
		node, _ = s.descend(node, id)
	}
	row, index := s.rowAt(node)
	return s.finish(node, p[n], s.result(row).Logits, index)
}

// walkTypical takes the longest path of guesses that are likely enough, the likelier of equally long ones, and
// draws what follows from the likely tokens. It is lossy.
func (s *Sequence) walkTypical() error {
	sp := s.spec
	p := sp.laws(1, s.e.vocab)[0]
	best := sp.likely(s, p)
	if best == nil {
		return errors.New("engine: the model gives no distribution")
	}
	node := method.Root
	for _, child := range best[1:] {
		row, _ := s.rowAt(node)
		id := sp.tree.Nodes()[child].ID
		if err := s.accept(node, id, s.result(row).Logits); err != nil {
			return err
		}
		node, _ = s.descend(node, id)
	}
	row, index := s.rowAt(node)
	logits := s.result(row).Logits
	if err := s.law(p, node, logits); err != nil {
		return err
	}
	verify.DefaultTypicality.Truncate(p)
	return s.finish(node, p, logits, index)
}

// likely returns the path of typical acceptance, the root first; nil where the model's rows make no sense.
func (sp *speculation) likely(s *Sequence, p []float64) []int {
	nodes := sp.tree.Nodes()
	sp.sums = sp.sums[:0]
	for range nodes {
		sp.sums = append(sp.sums, math.NaN())
	}
	best, depth, most := method.Root, int32(0), 0.0
	for parent := method.Root; parent < len(nodes); parent++ {
		sum := 0.0
		if parent != method.Root {
			if sum = sp.sums[parent]; math.IsNaN(sum) {
				continue
			}
		}
		row, _ := s.rowAt(parent)
		if s.law(p, parent, s.result(row).Logits) != nil {
			return nil
		}
		least := verify.DefaultTypicality.Threshold(p)
		sp.ids = sp.tree.Children(sp.ids[:0], parent)
		for _, id := range sp.ids {
			child, _ := sp.tree.Child(parent, id)
			if sp.nodes[child] == forest.Trunk || p[id] <= least {
				continue
			}
			sp.sums[child] = sum + math.Log(p[id])
			if n := nodes[child].Depth; n > depth || n == depth && sp.sums[child] > most {
				best, depth, most = child, n, sp.sums[child]
			}
		}
	}
	sp.path = sp.path[:0]
	for ; best != method.Root; best = int(nodes[best].Parent) {
		sp.path = append(sp.path, best)
	}
	sp.path = append(sp.path, method.Root)
	slices.Reverse(sp.path)
	return sp.path
}

// laws returns room for n distributions.
func (sp *speculation) laws(n, vocabulary int) [][]float64 {
	for len(sp.dense) < n {
		sp.dense = append(sp.dense, make([]float64, vocabulary))
	}
	return sp.dense[:n]
}

// accept makes a guess part of the text.
func (s *Sequence) accept(node int, id token.ID, logits []float32) error {
	d := Drawn{Token: sample.Token{ID: id, Logprob: s.sampler.Logprob(logits, id)}}
	if err := s.report(&d, logits, s.shaper.Apply(logits, s.behind(node), s.prompt)); err != nil {
		return err
	}
	s.queue = append(s.queue, d)
	s.spec.tree.Learn(node, id)
	return nil
}

// finish draws the token behind the last accepted guess.
func (s *Sequence) finish(node int, p []float64, logits []float32, index int) error {
	id := s.sampler.Pick(p, s.answer.SampleIndex, index+1, useRest)
	if id == token.None {
		return errors.New("engine: nothing is left to draw")
	}
	return s.accept(node, id, logits)
}

// rowOf returns the place of a node among the rows, -1 where it is none of them.
func rowOf(rows []forest.Placed, n forest.Node) int32 {
	for i := range rows {
		if rows[i].Node == n {
			return int32(i)
		}
	}
	return -1
}
