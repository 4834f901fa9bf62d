package sample

import (
	"math"
	"slices"

	"grove/internal/kernel"
)

// mirostat keeps the first tokens as its version says, at a limit of mu bits. It leaves them weighed.
func (c *pool) mirostat(version int, mu float64, vocab int) {
	c.weigh()
	switch version {
	case 1:
		c.keys = c.keys[:min(max(1, c.mirostatCount(mu, vocab)), len(c.keys))]
	case 2:
		limit := float64(mu * math.Ln2)
		c.cut(func(i int) bool { return c.surprise(i) > limit })
	}
	c.weigh()
}

// mirostatCount returns how many tokens give a mean surprise of mu bits, by Zipf's law, whose exponent it estimates
// from the likeliest 100.
func (c *pool) mirostatCount(mu float64, vocab int) int {
	const most = 100
	products, squares := 0.0, 0.0
	for i := 0; i+1 < min(most, len(c.keys)) && c.weights[i+1] > 0; i++ {
		t := kernel.Log64(float64(i+2) / float64(i+1))
		b := c.surprise(i+1) - c.surprise(i)
		products += float64(t * b)
		squares += float64(t * t)
	}
	const flat = 1e-3 // an exponent below this, where all counts are the same to a double
	s := products / squares
	if !(squares > 0) {
		return 1
	}
	s = max(s, flat)
	n, e := float64(vocab), s-1
	x := 1 / kernel.Log64(max(n, 2)) // the limit of e / (1 - n**-e)
	if math.Abs(e) > 1e-6 {
		x = e / (1 - kernel.Pow64(n, -e))
	}
	k := kernel.Pow64(float64(x*kernel.Pow64(2, mu)), 1/s)
	if !(k < n) {
		return vocab
	}
	return int(k)
}

// firstMu returns mirostat's limit at the beginning of an answer.
func (c *Chain) firstMu() float64 { return 2 * float64(c.settings.Params.Mirostat.Tau) }

// A surprise is that of a token that mirostat kept, in bits, among the kept.
type surprise struct {
	id   uint32
	bits float64
}

// mu returns mirostat's limit behind a state: that of the state before it, changed by the surprise of the token
// between the two where the logits there were seen and the token was kept.
func (c *Chain) mu(s State) float64 {
	n := &c.nodes[s]
	if s == 0 {
		return n.mu
	}
	parent := &c.nodes[n.parent]
	mu := c.mu(n.parent)
	seen := c.seen[parent.seen.from:parent.seen.to]
	at, ok := slices.BinarySearchFunc(seen, uint32(n.id), func(x surprise, id uint32) int { return int(x.id) - int(id) })
	if ok {
		m := c.settings.Params.Mirostat
		mu -= float64(float64(m.Eta) * (seen[at].bits - float64(m.Tau)))
	}
	return mu
}

// see remembers the surprises of the tokens that mirostat has just kept behind a state.
func (c *Chain) see(s State) {
	p, n := &c.sampler.pool, &c.nodes[s]
	if n.seen.to == len(c.seen) {
		c.seen = c.seen[:n.seen.from]
	}
	if n.seen.to-n.seen.from < len(p.keys) || n.seen.to > len(c.seen) {
		n.seen.from = len(c.seen)
		for range p.keys {
			c.seen = append(c.seen, surprise{})
		}
	}
	n.seen.to = n.seen.from + len(p.keys)
	seen := c.seen[n.seen.from:n.seen.to]
	for i, k := range p.keys {
		seen[i] = surprise{uint32(idOf(k)), p.surprise(i) / math.Ln2}
	}
	slices.SortFunc(seen, func(a, b surprise) int { return int(a.id) - int(b.id) })
}
