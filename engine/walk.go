package engine

import (
	"slices"

	"grove/compute"
	"grove/forest"
	"grove/method"
	"grove/sample"
	"grove/text/token"
	"grove/verify"
)

// walk turns the results of a round's rows into tokens, left in the queue, and the nodes that they passed, left in
// the path: by the rule of the methods.
func (s *Sequence) walk() error {
	sp := s.spec
	s.queue, s.path = s.queue[:0], append(s.path[:0], s.root)
	sp.outcomes = sp.outcomes[:0]
	rows := s.ownRows()
	for i := range rows {
		sp.outcomes = append(sp.outcomes, method.Outcome{ID: rows[i].ID, Parent: rowOf(rows, rows[i].Parent)})
	}
	sp.outcomes[0].Accepted = true
	sp.view.drawn = sp.view.drawn[:0]
	err := sp.acceptor.Accept(&sp.view, &sp.outcome)
	node := method.Root
	for _, child := range sp.outcome.Accepted {
		if err := s.accept(node, sp.tree.Nodes()[child].ID); err != nil {
			return s.unlessQueued(err)
		}
		s.path = append(s.path, sp.nodes[child])
		row, _ := s.rowAt(child)
		sp.outcomes[row].Accepted = true
		node = child
	}
	if err == nil {
		err = s.accept(node, sp.outcome.Next)
	}
	return s.unlessQueued(err)
}

// unlessQueued drops an error where tokens were drawn before it: plain decoding meets it when it gets there.
func (s *Sequence) unlessQueued(err error) error {
	if len(s.queue) > 0 {
		return nil
	}
	return err
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

// accept adds the token behind a node to the queue.
func (s *Sequence) accept(node int, id token.ID) error {
	d, err := s.drawnAt(node, id)
	if err != nil {
		return err
	}
	s.queue = append(s.queue, d)
	s.spec.tree.Learn(node, id)
	return nil
}

// drawnAt returns the token behind a node with what is reported of it: as it was drawn, where the rule drew it.
func (s *Sequence) drawnAt(node int, id token.ID) (Drawn, error) {
	for _, d := range s.spec.view.drawn {
		if d.node == node && d.ID == id {
			return d.Drawn, nil
		}
	}
	row, index := s.rowAt(node)
	logits := s.result(row).Logits
	d := Drawn{Token: sample.Token{ID: id, Logprob: s.chain.Logprob(logits, id)}}
	return d, s.report(&d, logits, s.behind(node), index+1)
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

// view implements [verify.View] for a round of a sequence.
type view struct {
	s     *Sequence
	p     []float64
	ids   []token.ID
	drawn []drawnBehind
}

// drawnBehind is a token that was drawn behind a node.
type drawnBehind struct {
	node int
	Drawn
}

// Children leaves out the draws behind a node from the first one that was not run: it has no row because there are too
// many drafts before it, whatever they are, so that the text keeps its distribution.
func (v *view) Children(dst []int, node int) []int {
	tree, drawn := v.s.spec.tree, len(v.Drafts(node).IDs) > 0
	v.ids = tree.Children(v.ids[:0], node)
	for _, id := range v.ids {
		child, _ := tree.Child(node, id)
		if drawn && !v.Ran(child) {
			break
		}
		dst = append(dst, child)
	}
	return dst
}

func (v *view) Token(node int) token.ID { return v.s.spec.tree.Nodes()[node].ID }

func (v *view) Ran(node int) bool { return v.s.spec.nodes[node] != forest.Trunk }

func (v *view) Samples(node int) uint64 {
	n := v.s.spec.tree.Nodes()[node]
	if len(v.Drafts(int(n.Parent)).IDs) == 0 {
		return 0
	}
	v.ids = v.s.spec.tree.Children(v.ids[:0], int(n.Parent))
	return 1 << slices.Index(v.ids, n.ID)
}

func (v *view) Drafts(node int) verify.Distribution {
	if laws := v.s.spec.tree.Laws(); laws != nil {
		return laws[node+1]
	}
	return verify.Distribution{}
}

func (v *view) Draw(node int) (token.ID, error) {
	row, index := v.s.rowAt(node)
	d, err := v.s.pick(v.s.result(row).Logits, v.s.behind(node), index+1)
	if err != nil {
		return token.None, err
	}
	v.drawn = append(v.drawn, drawnBehind{node, d})
	return d.ID, nil
}

func (v *view) Probs(node int) ([]float64, error) {
	if v.p == nil {
		v.p = make([]float64, v.s.e.vocab)
	}
	row, index := v.s.rowAt(node)
	return v.p, v.s.chain.Probs(v.p, v.s.behind(node), v.s.result(row).Logits, index+1)
}

func (v *view) Number(node int, use verify.Use) float64 {
	_, index := v.s.rowAt(node)
	return v.s.chain.Number(index+1, use)
}

func (v *view) Pick(node int, p []float64) token.ID {
	_, index := v.s.rowAt(node)
	return v.s.chain.Pick(p, index+1, verify.UseRest)
}
