package sample

import (
	"math"
	"slices"

	"grove/internal/kernel"
)

// mirostat keeps the tokens of the pool, in any order, that a limit of mu bits allows, and leaves them weighed.
func (s *sampler) mirostat(mu float64) {
	c := &s.pool
	c.weigh()
	switch s.params.Mirostat.Version {
	case 1:
		// Weights and keys have parted, and nothing below looks at a weight.
		c.keys = s.best(c.logits, min(zipfTokens, len(c.keys)))
		c.keys = s.best(c.logits, c.zipfCount(mu, s.vocab))
	case 2:
		limit, n := float64(mu*math.Ln2), 0
		for i, k := range c.keys {
			if c.surprise(i) <= limit {
				c.keys[n] = k
				n++
			}
		}
		if n == 0 {
			c.keys, n = s.best(c.logits, 1), 1
		}
		c.keys = c.keys[:n]
	}
	c.weigh()
}

// zipfTokens is the number of the likeliest tokens that mirostat estimates an exponent from.
const zipfTokens = 100

// zipfCount returns how many tokens give a mean surprise of mu bits, by Zipf's distribution, with the exponent of the likeliest,
// which are the keys.
func (c *pool) zipfCount(mu float64, vocab int) int {
	products, squares := 0.0, 0.0
	for i := 0; i+1 < len(c.keys); i++ {
		t := kernel.Log64(float64(i+2) / float64(i+1))
		products += float64(t * (c.surprise(i+1) - c.surprise(i)))
		squares += float64(t * t)
	}
	if squares == 0 {
		return 1
	}
	const flat = 1e-3 // exponents below this, where all tokens are equal, count as this
	s := max(products/squares, flat)
	n, e := float64(max(vocab, 2)), s-1
	x := 1 / kernel.Log64(n) // the limit of e / (1 - n**-e)
	if math.Abs(e) > 1e-6 {
		x = e / (1 - kernel.Pow64(n, -e))
	}
	k := kernel.Pow64(float64(x*kernel.Pow64(2, mu)), 1/s)
	return int(max(1, min(k, n)))
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
