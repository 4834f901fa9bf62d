package grow

import (
	"cmp"
	"slices"

	"grove/internal/text/token"
	"grove/method"
)

// slot is a place in the tree: that of the k-th draw behind a node. Whether it is filled depends on its value, which is known
// before the draw's token is: so [verify.Reject] may judge the tree.
type slot struct {
	node  int
	k     int
	left  float64 // probability of what is not drawn yet behind the node
	value float64
}

// draws are the tokens that may be drawn behind a node, in their order, once its row was run.
type draws struct {
	ran bool
	ids []token.ID
}

// published is how often the k-th draw behind a node is accepted, before anything is known: the vector that Sequoia was
// published with (Chen et al. 2024).
var published = []float32{0.6342, 0.1079, 0.0570, 0.0225, 0.0195, 0.0150}

// open notes the draws that there may be behind a node, which are in g.drawn.
func (g *Grower) open(t *method.Tree, node int) {
	d := g.drawsOf(node)
	d.ran, d.ids = true, append(d.ids[:0], g.drawn...)
	if node == method.Root {
		g.offerSlot(t, slot{node: node, left: 1, value: 1})
	}
}

// drawsOf returns the draws behind a node.
func (g *Grower) drawsOf(node int) *draws {
	for len(g.draws) <= node+1 {
		g.draws = append(g.draws, draws{})
	}
	return &g.draws[node+1]
}

// fill fills the slots of the highest values, and leaves the nodes to be expanded in g.next, best first. Best first, it ends
// where the next slot is behind a row that was not run, unless no more rows are run: last. Level by level it passes over such slots.
func (g *Grower) fill(t *method.Tree, last bool) {
	least := float64(t.Floor)
	if g.shape.Levels {
		least, last = max(least, 1/float64(g.shape.Drafts)), true
	}
	for t.Len() < g.shape.Drafts {
		at := g.bestSlot(least, last)
		if at < 0 || !g.draw(t, at) {
			break
		}
	}
	g.next = g.next[:0]
	for _, s := range slices.Backward(g.slots) {
		if s.value > least && !g.drawsOf(s.node).ran && t.Len()+len(g.next) < g.shape.Drafts {
			g.next = append(g.next, s.node)
		}
	}
}

// bestSlot returns the slot to fill next, above a value; -1: none.
func (g *Grower) bestSlot(least float64, last bool) int {
	for i, s := range slices.Backward(g.slots) {
		switch {
		case s.value <= least:
			return -1
		case g.drawsOf(s.node).ran:
			return i
		case !last:
			return -1
		}
	}
	return -1
}

// draw fills a slot, and offers that of the first draw behind the draft and that of the next one behind its parent, where there is
// one. It reports false where the tree is full.
//
// Source: DySpec (Xiong et al. 2024): the probability of a draw among those that are left stands for that of its acceptance.
func (g *Grower) draw(t *method.Tree, at int) bool {
	s := g.slots[at]
	g.slots = slices.Delete(g.slots, at, at+1)
	ids := g.drawsOf(s.node).ids
	q := g.dists[s.node+1].Of(ids[s.k])
	p := min(1, q/s.left)
	class, belief := g.slotClass(t, s.k, float32(p))
	node := g.add(t, s.node, s.k, ids[s.k], float32(q), class, belief)
	if node == method.Root {
		return false
	}
	if g.reaches(t, node) {
		g.offerSlot(t, slot{node: node, left: 1, value: s.value * p})
	}
	if s.k++; s.k < len(ids) {
		s.left -= q
		s.value *= 1 - p
		g.offerSlot(t, s)
	}
	return true
}

// averaged is the number of draws of a rank over which the share of those that are accepted is averaged.
const averaged = 64

// slotClass returns the class and the belief of the k-th draw behind a node, of probability p among those that are left.
func (g *Grower) slotClass(t *method.Tree, k int, p float32) (class int, belief float32) {
	class, belief = rankClass(k)
	if g.shape.Value != ByRank {
		class = Class(k, p)
		g.shares[k] += (t.Estimate(class, belief) - g.shares[k]) / averaged
	}
	return class, belief
}

// rankClass returns the class and the belief of a draft where its number among the draws counts alone.
func rankClass(k int) (class int, belief float32) { return k, published[min(k, len(published)-1)] }

// offerSlot adds a slot with its value.
func (g *Grower) offerSlot(t *method.Tree, s slot) {
	if g.shape.Value != ByProbability {
		s.value = float64(t.Score(s.node) * g.share(t, s.k))
	}
	at, _ := slices.BinarySearchFunc(g.slots, s, func(a, b slot) int {
		if c := cmp.Compare(a.value, b.value); c != 0 {
			return c
		}
		return 1 // of equal ones the earlier is filled first
	})
	g.slots = slices.Insert(g.slots, at, s)
}

// share returns how often the k-th draw behind a node is accepted. What was counted is made to fall with k: a draw needs those
// before it.
func (g *Grower) share(t *method.Tree, k int) float32 {
	share := float32(1)
	for j := range k + 1 {
		if g.shape.Value == ByRank {
			share = min(share, t.Estimate(rankClass(j)))
		} else {
			share = min(share, g.shares[j])
		}
	}
	return share
}
