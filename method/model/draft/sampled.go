package draft

import (
	"cmp"
	"context"
	"math"
	"slices"

	"grove/method"
	"grove/sample"
	"grove/text/token"
	"grove/verify"
)

// lawDrafter draws its guesses from the draft model's distributions, which go with them. What it draws stays in the
// tree; only whether to draw more depends on what was drawn.
type lawDrafter struct {
	drafter
	dense  []float32
	laws   []verify.Distribution
	values []value // of the root and of nodes, by place
	drawn  []token.ID
	scores []float64
	pool   []candidate // of a level of stochastic beam search
}

// value is what a shape's growth goes by.
type value struct {
	chance float64 // slots: that the node is accepted, if the draft model is the target
	path   float64 // beams: log-probability of the path
	score  float64 // beams: the same with noise
}

// candidate is a guess that may become one of a level's beams.
type candidate struct {
	node int // its parent in the tree
	row  int // that gave it
	id   token.ID
	value
}

// Draft implements [method.Drafter].
func (d *lawDrafter) Draft(ctx context.Context, t *method.Tree) error {
	logits, ok, err := d.begin(ctx)
	if !ok || err != nil {
		return err
	}
	d.values = append(d.values[:0], value{chance: 1})
	draw := func(l leaf, row int, logits []float32) error { return d.draw(t, l.guess, row, logits) }
	if err := draw(leaf{method.Root, none}, none, logits); err != nil {
		return err
	}
	d.settle(t)
	for pass := 1; d.goesOn(t, pass); pass++ {
		if err := d.expand(ctx, t, draw); err != nil {
			return err
		}
		d.settle(t)
	}
	return nil
}

// draw draws children of a node without replacement: the tokens with the highest sums of log-probability and noise.
func (d *lawDrafter) draw(t *method.Tree, node, row int, logits []float32) error {
	law := d.law(node + 1)
	law.IDs, law.P = law.IDs[:0], law.P[:0]
	d.drawn, d.scores = d.drawn[:0], d.scores[:0]
	depth := 0
	if node != method.Root {
		depth = int(t.Nodes()[node].Depth)
	}
	if err := d.sampler.Distribution(d.dense, logits, d.length+depth); err != nil {
		return err
	}
	use := 2 + method.NodeUses*sample.Use(node+1)
	for id, p := range d.dense {
		if p > 0 {
			law.IDs, law.P = append(law.IDs, token.ID(id)), append(law.P, p)
			noise := d.sampler.Noise(len(d.text), use, token.ID(id))
			d.offer(d.shape.guesses(depth), token.ID(id), math.Log(float64(p))+noise)
		}
	}
	t.Draw(node, *law)
	if d.shape.growth == beams {
		d.perturb(node, row, law)
		return nil
	}
	above := d.values[node+1]
	left := 1.0 // of the law, by what was drawn already
	for _, id := range d.drawn {
		if d.shape.growth == slots && above.chance <= max(leastSlot, float64(t.Floor)) {
			break
		}
		p := law.Of(id) / left
		if !d.take(t, node, row, id, value{chance: above.chance * p}) {
			break
		}
		above.chance *= 1 - p
		left -= law.Of(id)
	}
	return nil
}

// leastSlot is the chance of a place in the tree at which no guess is drawn for it.
const leastSlot = 0.04

// take adds a guess that was drawn; it reports false where the tree is full or deep enough, and so for all that
// would come.
func (d *lawDrafter) take(t *method.Tree, node, row int, id token.ID, v value) bool {
	p := d.laws[node+1].Of(id)
	at := t.Add(node, id, min(int(p*buckets), buckets-1), float32(max(0.3, p)))
	if at == method.Root {
		return false
	}
	d.values = append(d.values, v)
	d.leave(t, at, row)
	return true
}

// perturb puts the best of what was drawn behind a node into the pool: noise is lowered so that the best of them has the
// score of the node itself.
//
// Source: stochastic beam search, as RSD-S uses it (Jeon et al. 2024).
func (d *lawDrafter) perturb(node, row int, law *verify.Distribution) {
	above := d.values[node+1]
	for i, id := range d.drawn {
		score := above.score
		if i > 0 {
			// Log-probabilities of paths differ by the same constant from those of the law.
			v := above.score - (above.path + d.scores[i]) + math.Log1p(-math.Exp(d.scores[i]-d.scores[0]))
			score = above.score - max(0, v) - math.Log1p(math.Exp(-math.Abs(v)))
		}
		d.pool = append(d.pool, candidate{node, row, id, value{path: above.path + math.Log(law.Of(id)), score: score}})
	}
}

// settle makes the best of the pool the level's guesses.
func (d *lawDrafter) settle(t *method.Tree) {
	slices.SortStableFunc(d.pool, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	for _, c := range d.pool[:min(d.shape.beam, len(d.pool))] {
		if !d.take(t, c.node, c.row, c.id, c.value) {
			break
		}
	}
	d.pool = d.pool[:0]
}

// offer keeps the count tokens with the best scores, best first.
func (d *lawDrafter) offer(count int, id token.ID, score float64) {
	at := len(d.scores)
	for at > 0 && d.scores[at-1] < score {
		at--
	}
	if at == count {
		return
	}
	d.drawn, d.scores = slices.Insert(d.drawn, at, id), slices.Insert(d.scores, at, score)
	if len(d.drawn) > count {
		d.drawn, d.scores = d.drawn[:count], d.scores[:count]
	}
}

// law returns the storage of a node's law.
func (d *lawDrafter) law(i int) *verify.Distribution {
	for len(d.laws) <= i {
		d.laws = append(d.laws, verify.Distribution{})
	}
	return &d.laws[i]
}
