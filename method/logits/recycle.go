// recycle.go drafts trees from the model's earlier logits: behind each token, the likeliest successors that it
// had when the token was last run, whether it was accepted or not (Token Recycling, Luo et al. 2024).

package logits

import (
	"context"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/method"
)

func init() {
	method.Register(method.Info{
		Name: "recycle", Paper: "Token Recycling, 2024", Kind: method.KindLogits, Grade: method.Exact,
		Auto: true, Lasting: true,
		Open: func(e method.Env) (method.Method, error) {
			return recycle{method.NewSuccessors(e.Vocabulary, 0)}, nil
		},
	})
}

const (
	recycleWidth   = method.SuccessorWidth
	recycleDeepest = 6  // tokens of a path
	most           = 48 // drafts of a round

	primedClasses = recycleDeepest * recycleWidth // the first class of successors that no text taught, for depth 1 and for deeper ones
	primedBelief  = 0.5                           // of the beliefs in others
)

// recycle keeps the successors of all texts of an engine.
type recycle struct{ *method.Successors }

// NewDrafter implements [method.Method].
func (r recycle) NewDrafter(method.Trunk) (method.Drafter, error) {
	return &recycleDrafter{known: r.Successors, open: make([]int, 0, most)}, nil
}

type recycleDrafter struct {
	history *method.History
	known   *method.Successors
	open    []int // places in the tree of drafts that are not expanded yet
	added   int   // drafts of the round
}

// Begin implements [method.Drafter].
func (d *recycleDrafter) Begin(h *method.History) error { d.history = h; return nil }

// Wants implements [method.Wanter].
func (*recycleDrafter) Wants() method.Wants {
	return method.Wants{Rows: forest.Want{Top: recycleWidth}}
}

// Committed implements [method.Drafter].
func (d *recycleDrafter) Committed(r method.Update) { d.known.Learn(r.Rows, token.None) }

// Draft implements [method.Drafter]: it takes the draft with the best score again and again, and adds its successors.
// A draft's class is its depth and its rank among its siblings; those of primed tokens have classes of their own.
func (d *recycleDrafter) Draft(_ context.Context, t *method.Tree) error {
	d.open, d.added = d.open[:0], 0
	d.expand(t, method.Root, d.history.Last(0))
	for len(d.open) > 0 && d.added < most {
		best, last := 0, len(d.open)-1
		for i, at := range d.open {
			if t.Score(at) > t.Score(d.open[best]) {
				best = i
			}
		}
		at := d.open[best]
		d.open[best], d.open = d.open[last], d.open[:last]
		if node := &t.Nodes()[at]; node.Depth < recycleDeepest {
			d.expand(t, at, node.ID)
		}
	}
	return nil
}

// expand adds the successors of a token behind a node.
func (d *recycleDrafter) expand(t *method.Tree, parent int, id token.ID) {
	var row method.SuccessorRow
	if !d.known.Of(&row, token.None, id) {
		return
	}
	depth := t.DepthOf(parent)
	class, believed := depth*recycleWidth, float32(1)
	if d.known.Primed(id) {
		class, believed = primedClasses+min(depth, 1)*recycleWidth, primedBelief
	}
	for rank, next := range row {
		if d.added == most || next.P == 0 {
			return
		}
		at := t.Add(parent, next.ID, class+rank, believed*beliefs[rank])
		if at == method.Root {
			return // the next ones are less likely
		}
		d.open = append(d.open, at)
		d.added++
	}
}

// beliefs are how often a successor of a rank is accepted, before anything is known.
var beliefs = [recycleWidth]float32{0.3, 0.1, 0.06, 0.04, 0.03, 0.02, 0.02, 0.01}
