// Package recycle drafts trees from what the model said before: behind each token, the likeliest successors that it
// had when the token was last run, whether it was accepted or not (Token Recycling, Luo et al. 2024).
package recycle

import (
	"context"
	"sync"

	"grove/method"
	"grove/token"
)

func init() {
	method.Register(method.Info{
		Name: "recycle", Paper: "Token Recycling, 2024", Kind: method.KindLogits, Grade: method.Exact, Auto: true,
		Open: func(e method.Env) (method.Method, error) {
			return &successors{rows: make([]row, e.Vocabulary), seen: make([]uint64, (e.Vocabulary+63)/64)}, nil
		},
	})
}

const (
	width   = 8  // successors of a token
	deepest = 6  // tokens of a path
	most    = 48 // guesses of a round
)

// row holds the successors of a token, likeliest first; those behind the last are token.None.
type row [width]token.ID

// successors is what all texts of an engine have taught. Its size is that of the vocabulary.
type successors struct {
	mu   sync.RWMutex
	rows []row
	seen []uint64 // tokens that have a row, a bit each
}

// NewDrafter implements [method.Method].
func (s *successors) NewDrafter() (method.Drafter, error) { return &drafter{all: s}, nil }

type drafter struct {
	all  *successors
	last token.ID // of the text
}

// Begin implements [method.Drafter].
func (d *drafter) Begin(t method.Text) error {
	d.last = token.None
	d.Extend(t.Prompt)
	return nil
}

// Extend implements [method.Drafter].
func (d *drafter) Extend(ids []token.ID) {
	if len(ids) > 0 {
		d.last = ids[len(ids)-1]
	}
}

// Draft implements [method.Drafter]: it takes the guess with the best score again and again, and adds its
// successors. A guess's class is its depth and its rank among its siblings.
func (d *drafter) Draft(_ context.Context, t *method.Tree) error {
	d.all.mu.RLock()
	defer d.all.mu.RUnlock()
	var own [most]int // places in the tree of guesses that are not expanded yet
	n, added := 0, 0
	d.expand(t, method.Root, d.last, 1, &own, &n, &added)
	for n > 0 && added < most {
		best := 0
		for i := range n {
			if t.Score(own[i]) > t.Score(own[best]) {
				best = i
			}
		}
		at := own[best]
		n--
		own[best] = own[n]
		node := &t.Nodes()[at]
		if node.Depth < deepest {
			d.expand(t, at, node.ID, int(node.Depth)+1, &own, &n, &added)
		}
	}
	return nil
}

// expand adds the successors of a token behind a node.
func (d *drafter) expand(t *method.Tree, parent int, id token.ID, depth int, own *[most]int, n, added *int) {
	if id < 0 || int(id) >= len(d.all.rows) || d.all.seen[id/64]&(1<<(id%64)) == 0 {
		return
	}
	for rank, next := range d.all.rows[id] {
		if *added == most {
			return
		}
		at := t.Add(parent, next, (depth-1)*width+rank, beliefs[rank])
		if at == method.Root {
			return // the next ones are less likely
		}
		own[*n] = at
		*n++
		*added++
	}
}

// beliefs are how often a successor of a rank is right, before anything is known.
var beliefs = [width]float32{0.3, 0.1, 0.06, 0.04, 0.03, 0.02, 0.02, 0.01}

// Top implements [method.Watcher].
func (*drafter) Top() int { return width }

// Watch implements [method.Watcher]. Where a token stands in several rows, the accepted one counts, then the one
// nearest to the text: it is written last.
func (d *drafter) Watch(rows []method.Outcome) {
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	for _, accepted := range []bool{false, true} {
		for i := len(rows) - 1; i >= 0; i-- {
			if rows[i].Accepted == accepted {
				d.all.keep(&rows[i])
			}
		}
	}
}

func (s *successors) keep(o *method.Outcome) {
	if o.ID < 0 || int(o.ID) >= len(s.rows) {
		return
	}
	r := &s.rows[o.ID]
	for i := range r {
		r[i] = token.None
		if i < len(o.Top) {
			r[i] = o.Top[i].ID
		}
	}
	s.seen[o.ID/64] |= 1 << (o.ID % 64)
}
