// goose.go drafts trees of two kinds of drafts: a long spine, copied from where the text's last tokens occurred
// before, and short branches of successors from the model's earlier logits. How sure the copy is decides how many
// nodes each kind has (GOOSE, 2026).

package logits

import (
	"context"
	"math"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/method"
)

func init() {
	method.Register(method.Info{
		Name: "goose", Paper: "GOOSE: anisotropic speculation trees, 2026", Kind: method.KindLogits, Grade: method.Exact, Lasting: true,
		NotAuto: "sam and recycle give more",
		Open: func(e method.Env) (method.Method, error) {
			return goose{method.NewSuccessors(e.Vocabulary, pairs)}, nil
		},
	})
}

// The paper's sizes are for rows that cost nothing: 60 nodes, 20 to 100 tokens of a chain, ten successors. These are
// the same in proportion, for a CPU.
const (
	budget       = 24   // nodes of a tree, its root included, of a spine that is not sure
	chainMost    = 20   // tokens of one copy
	shortest     = 3    // tokens that must occur earlier for a copy to be made: from this many
	gooseLongest = 5    // to this many
	gooseDeepest = 6    // tokens of a path that leaves the spine
	least        = 0.01 // product of probabilities on the way down a branch
	longMatch    = 8    // tokens of a copy that is long
	onSpine      = 0.5  // share of the branches that leave the spine behind its first token
	gooseWidth   = method.SuccessorWidth
	memory       = 0.7 // share of the past in the average share of spines that was accepted
	pairs        = 1 << 14
)

// goose keeps the successors of all texts of an engine.
type goose struct{ *method.Successors }

// NewDrafter implements [method.Method].
func (g goose) NewDrafter(method.Trunk) (method.Drafter, error) {
	return &gooseDrafter{known: g.Successors, budget: budget}, nil
}

type gooseDrafter struct {
	history  *method.History
	known    *method.Successors
	budget   int     // nodes of a tree, its root included, of a spine that is not sure
	accepted float64 // share of a spine that was accepted, averaged

	spine  []token.ID // of the round
	key    []token.ID // the text's last tokens, and the spine
	nodes  []int      // of the spine, by place in the tree
	ready  []branch   // branches that may go on, in order
	shares []int      // of the spine's nodes
	matchN int        // tokens that are the same at the place that the spine is copied from
	sure   bool       // they were always followed by the same token
}

// branch is a draft off the spine.
type branch struct {
	node  int
	score float64
}

// Begin implements [method.Drafter].
func (d *gooseDrafter) Begin(h *method.History) error {
	d.history, d.spine, d.accepted = h, d.spine[:0], 0.5
	return nil
}

// Wants implements [method.Wanter].
func (*gooseDrafter) Wants() method.Wants { return method.Wants{Rows: forest.Want{Top: gooseWidth}} }

// Committed implements [method.Drafter]. The first tokens behind a spine tell how much of it was accepted.
func (d *gooseDrafter) Committed(r method.Update) {
	d.known.Learn(r.Rows, r.Before)
	if ids := r.IDs; len(d.spine) > 0 && len(ids) > 0 {
		n := 0
		for n < min(len(ids), len(d.spine)) && ids[n] == d.spine[n] {
			n++
		}
		share := float64(n) / float64(len(d.spine))
		if n == len(ids) {
			share = 1 // not all of the spine was run
		}
		d.accepted = memory*d.accepted + (1-memory)*share
		d.spine = d.spine[:0]
	}
}

// Draft implements [method.Drafter].
func (d *gooseDrafter) Draft(_ context.Context, t *method.Tree) error {
	if len(d.history.IDs()) == 0 {
		return nil
	}
	confidence := d.copy()
	total, spine := plan(d.budget, confidence, d.accepted)
	d.spine = d.spine[:min(len(d.spine), spine)]
	d.addSpine(t)
	d.addBranches(t, total-1-len(d.spine))
	return nil
}

// copy makes the spine and returns how sure it is, from 0 to 1.
func (d *gooseDrafter) copy() (confidence float64) {
	text := d.history.IDs()
	d.spine, d.key = d.spine[:0], append(d.key[:0], text[max(0, len(text)-gooseLongest):]...)
	d.matchN, d.sure = d.continued()
	confidence = confidenceOf(len(d.spine), d.sure)
	if confidence <= 0.6 {
		return confidence
	}
	for most := int(confidence * extended(d.budget)); len(d.spine) < most; {
		n, sure := d.continued()
		if n == 0 || confidence == 1 && !sure {
			break
		}
	}
	return confidence
}

// continued adds to the spine the tokens that followed the earliest place of its end, and returns how many tokens are
// the same there and whether the same token always followed; 0 where there is no such place.
func (d *gooseDrafter) continued() (n int, sure bool) {
	text := d.history.IDs()
	for n := gooseLongest; n >= shortest; n-- {
		m := d.history.Index(n).Find(text, d.key)
		if m.Count == 0 {
			continue
		}
		ids := text[m.End:min(int(m.End)+chainMost, len(text))]
		d.spine, d.key = append(d.spine, ids...), append(d.key, ids...)
		return n, m.Count > 1 && !m.Mixed
	}
	return 0, false
}

// confidenceOf is how sure a copy is by its length, and by whether its place was always followed by the same token.
func confidenceOf(length int, sure bool) float64 {
	switch {
	case length == 0:
		return 0
	case sure:
		return 1
	case length >= longMatch:
		return min(0.9, 0.7+0.2*float64(length-longMatch)/12)
	}
	return 0.6 * float64(length) / longMatch
}

// extended is the number of nodes of a bare spine that is sure, for a budget.
func extended(budget int) float64 { return float64(budget) * 5 / 3 }

// plan returns the nodes of the tree, root included, and how many of them the spine may have: more the surer it is, and
// the more of the last ones was accepted.
func plan(budget int, confidence, accepted float64) (total, spine int) {
	total = budget + int(confidence*(extended(budget)-float64(budget)))
	ratio := 0.5
	switch {
	case accepted < 0.2:
		ratio = 0.15
	case accepted < 0.4:
		ratio = 0.3
	}
	ratio += confidence * (1 - ratio)
	return total, int(float64(total) * ratio)
}

// addSpine adds the spine to the tree, which may refuse its end.
func (d *gooseDrafter) addSpine(t *method.Tree) {
	at := method.Root
	d.nodes = d.nodes[:0]
	for i, id := range d.spine {
		class, belief := min(d.matchN-shortest+i, spineClasses-1), float32(0.6)
		if d.sure {
			class, belief = class+spineClasses, 0.85
		}
		if at = t.Add(at, id, class, belief); at == method.Root {
			return
		}
		d.nodes = append(d.nodes, at)
	}
}

// Classes of drafts: the spine's by tokens that match if all before are accepted, twice, then branches by depth and rank.
const (
	spineClasses  = 16
	branchClasses = 2 * spineClasses
	branchDepths  = (method.Classes - branchClasses) / gooseWidth
)

// addBranches adds branches of room nodes at most: to the root, to the nodes of the spine, and then to branches.
func (d *gooseDrafter) addBranches(t *method.Tree, room int) {
	d.ready = d.ready[:0]
	if room <= 0 {
		return
	}
	spine := 0
	if len(d.nodes) > 0 {
		spine = max(1, int(onSpine*float64(room)))
	}
	left := room - d.grow(t, method.Root, d.spineAt(0), 1, room-spine)
	d.shares = harmonic(d.shares[:0], spine, len(d.nodes))
	for i, node := range d.nodes {
		left -= d.grow(t, node, d.spineAt(i+1), 1, d.shares[i])
	}
	for i := 0; i < len(d.ready) && left > 0; i++ {
		b := d.ready[i]
		if depth := int(t.Nodes()[b.node].Depth); depth < gooseDeepest {
			n := min(int(math.Ceil(float64(left)*b.score)), max(1, 10/depth))
			left -= d.grow(t, b.node, token.None, b.score, min(n, left))
		}
	}
}

// spineAt returns a token of the spine as far as it is in the tree.
func (d *gooseDrafter) spineAt(i int) token.ID {
	if i < len(d.nodes) {
		return d.spine[i]
	}
	return token.None
}

// harmonic appends the shares of places: in proportion to 1, 1/2, 1/3 and so on, at least one each as long as they last.
func harmonic(dst []int, shares, places int) []int {
	sum := 0.0
	for i := range places {
		sum += 1 / float64(i+1)
	}
	left := shares
	for i := range places {
		n := min(left, max(1, int(float64(shares)/(float64(i+1)*sum))))
		dst = append(dst, n)
		left -= n
	}
	return dst
}

// grow adds up to n successors of a node's token behind it, but for one, as long as the path's score, a product of
// probabilities, is not too small; it returns how many it added.
func (d *gooseDrafter) grow(t *method.Tree, node int, but token.ID, score float64, n int) (added int) {
	before, last, depth := d.around(t, node)
	var row method.SuccessorRow
	if n <= 0 || !d.known.Of(&row, before, last) {
		return 0
	}
	for rank, next := range row {
		s := score * float64(next.P)
		if added == n || s < least {
			break
		}
		if next.ID == but {
			continue
		}
		class := branchClasses + min(depth, branchDepths-1)*gooseWidth + rank
		if at := t.Add(node, next.ID, class, next.P/2); at != method.Root {
			d.ready = append(d.ready, branch{at, s})
			added++
		}
	}
	return added
}

// around returns a node's token, the one before it, and its depth.
func (d *gooseDrafter) around(t *method.Tree, node int) (before, last token.ID, depth int) {
	if node == method.Root {
		return d.history.Last(1), d.history.Last(0), 0
	}
	n := &t.Nodes()[node]
	if n.Parent == method.Root {
		return d.history.Last(0), n.ID, 1
	}
	return t.Nodes()[n.Parent].ID, n.ID, int(n.Depth)
}
