package grow

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
)

// value is by what stochastic beam search decides where to grow.
type value struct {
	path  float64 // log-probability of the path
	score float64 // the same with noise
}

// entry is a draw that may become one of a level's beams.
type entry struct {
	node int // its parent
	k    int // its number among the draws behind the parent
	id   token.ID
	value
}

// distribution returns the distribution behind a node, and tells the tree that the node's children are drawn from it.
func (g *Grower) distribution(t *method.Tree, node int, logits []float32) (*verify.Distribution, error) {
	if g.dense == nil {
		g.dense = make([]float32, g.vocabulary)
	}
	if err := g.sampler.Distribution(g.dense, logits, g.index+t.DepthOf(node)); err != nil {
		return nil, err
	}
	q := g.at(t, node)
	q.IDs, q.P = q.IDs[:0], q.P[:0]
	for id, p := range g.dense {
		if p > 0 {
			q.IDs, q.P = append(q.IDs, token.ID(id)), append(q.P, p)
		}
	}
	t.SetDistribution(node, *q)
	return q, nil
}

// at returns the room of the distribution behind a node: that of all nodes of a tree of draws is made at once.
func (g *Grower) at(t *method.Tree, node int) *verify.Distribution {
	n := method.Support(g.sampler.Params(), g.vocabulary)
	if all := n * (t.MaxDraws() + 1); cap(g.pairs.IDs) != all {
		g.pairs, g.dists = verify.Distribution{IDs: make([]token.ID, 0, all), P: make([]float32, 0, all)}, g.dists[:0]
	}
	for len(g.dists) <= node+1 {
		q, from := verify.Distribution{}, len(g.dists)*n
		if to := from + n; to <= cap(g.pairs.IDs) {
			q.IDs, q.P = g.pairs.IDs[from:from:to], g.pairs.P[from:from:to]
		}
		g.dists = append(g.dists, q)
	}
	return &g.dists[node+1]
}

// distinct draws children of a node without replacement: the tokens with the highest sums of log-probability and
// noise. All draws stay in the tree; only whether to draw more depends on them.
func (g *Grower) distinct(t *method.Tree, node int, logits []float32) error {
	q, err := g.distribution(t, node, logits)
	if err != nil {
		return err
	}
	g.drawn, g.scores = g.drawn[:0], g.scores[:0]
	most, use := g.ranks(t.DepthOf(node)), method.PurposeDraft+method.NodePurposes*sample.Purpose(node+1)
	for i, id := range q.IDs {
		g.offer(most, id, math.Log(float64(q.P[i]))+g.sampler.Noise(g.index, use, id))
	}
	switch g.shape.Growth {
	case Beams:
		g.perturb(node, q)
	case Slots:
		g.open(t, node)
	default:
		for k, id := range g.drawn {
			if !g.take(t, node, k, id, value{}) {
				break
			}
		}
	}
	return nil
}

// take adds the k-th draw behind a node. It reports false where the tree is full or deep enough, and so for all that
// follow.
func (g *Grower) take(t *method.Tree, node, k int, id token.ID, v value) bool {
	p := float32(g.dists[node+1].Of(id))
	at := g.add(t, node, k, id, p, Class(0, p), Belief(0, p))
	if at == method.Root {
		return false
	}
	for len(g.values) <= at+1 {
		g.values = append(g.values, value{}) // others' drafts may precede it
	}
	g.values[at+1] = v
	return true
}

// add adds the k-th draw behind a node, of probability p, and returns its place; [method.Root] where there is no room for it.
func (g *Grower) add(t *method.Tree, node, k int, id token.ID, p float32, class int, belief float32) int {
	at := t.AddSample(node, id, k, class, belief)
	if at != method.Root {
		g.chain.tell(id, p, g.source)
		g.leave(t, at)
	}
	return at
}

// perturb offers the draws behind a node to the level: noise is lowered so that the best of them has the score of the node
// itself.
//
// Source: stochastic beam search, as RSD-S uses it (Jeon et al. 2024).
func (g *Grower) perturb(node int, q *verify.Distribution) {
	above := g.values[node+1]
	for k, id := range g.drawn {
		score := above.score
		if k > 0 {
			// Log-probabilities of paths differ by the same constant from those of q.
			v := above.score - (above.path + g.scores[k]) + math.Log1p(-math.Exp(g.scores[k]-g.scores[0]))
			score = above.score - max(0, v) - math.Log1p(math.Exp(-math.Abs(v)))
		}
		g.entries = append(g.entries, entry{node, k, id, value{path: above.path + math.Log(q.Of(id)), score: score}})
	}
}

// settle makes drafts of what a pass has opened: the best entries of a level, or the best slots. last says that no pass follows.
func (g *Grower) settle(t *method.Tree, last bool) {
	if g.shape.Growth == Slots {
		g.fill(t, last)
		return
	}
	slices.SortStableFunc(g.entries, func(a, b entry) int { return cmp.Compare(b.score, a.score) })
	for _, e := range g.entries[:min(g.shape.Beam, len(g.entries))] {
		if !g.take(t, e.node, e.k, e.id, e.value) {
			break
		}
	}
	g.entries = g.entries[:0]
}

// offer keeps the most tokens with the best scores, best first.
func (g *Grower) offer(most int, id token.ID, score float64) {
	at := len(g.scores)
	for at > 0 && g.scores[at-1] < score {
		at--
	}
	if at == most {
		return
	}
	g.drawn, g.scores = slices.Insert(g.drawn, at, id), slices.Insert(g.scores, at, score)
	if len(g.drawn) > most {
		g.drawn, g.scores = g.drawn[:most], g.scores[:most]
	}
}

// independent draws one token behind a node for each chain that has reached it. The number of draws that there is
// room for is decided before anything is drawn, so that no draw is left out because of its token.
func (g *Grower) independent(t *method.Tree, node int, logits []float32) error {
	q, err := g.distribution(t, node, logits)
	if err != nil {
		return err
	}
	draws := g.shape.Ranks[0]
	if node != method.Root {
		draws = bits.OnesCount64(t.Nodes()[node].Samples)
	}
	for k := range min(draws, t.Room()) {
		use := method.PurposeDraft + method.NodePurposes*sample.Purpose((node+1)*method.MaxSamples+k)
		i := pick(q.P, g.sampler.Number(g.index, use))
		at := t.AddSample(node, q.IDs[i], k, Class(0, q.P[i]), Belief(0, q.P[i]))
		if at == method.Root {
			return nil // the tree is deep enough
		}
		if t.Nodes()[at].Samples == 1<<k { // it is new
			g.leave(t, at)
		}
	}
	return nil
}

// pick returns the place where the sum of p exceeds u.
func pick(p []float32, u float64) int {
	for i, v := range p {
		if u -= float64(v); u < 0 {
			return i
		}
	}
	return len(p) - 1 // rounding
}
