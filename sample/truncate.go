package sample

import (
	"cmp"
	"math"
	"slices"

	"grove/internal/kernel"
	"grove/text/token"
)

// A pool is the tokens that are left of a row while truncation goes stage by stage.
type pool struct {
	logits  []float32
	keys    []uint64  // best first
	scale   float32   // factor of the logits in the probabilities
	weights []float64 // of the keys, as weigh left them, and their sum
	sum     float64
	order   []typicality
}

// typicality is how far the surprise of a key is from the entropy.
type typicality struct {
	distance float64
	at       int
}

// tempersAll reports whether the temperature depends on all tokens of the row.
func (p Params) tempersAll() bool {
	return p.Dynamic.Range > 0 && (p.Order == TemperFirst || p.Mirostat.Version != 0)
}

// truncateByStages is truncation with every stage there is, over the sorted candidates. Top-k comes first whatever the
// order says: it, min-p behind a temperature and top-n-sigma each keep a prefix of one order, which does not depend on
// the others. Without top-k it sorts the vocabulary.
func (s *sampler) truncateByStages(r row) ([]uint64, float32) {
	p, c := &s.params, &s.pool
	c.logits, c.scale = r.logits, 1
	if p.TopK > 0 && !p.tempersAll() {
		c.keys = s.best(r.logits, p.TopK)
	} else {
		c.keys = s.above(r.logits, lowest)
		slices.Sort(c.keys)
	}
	if p.Mirostat.Version != 0 {
		c.temper(p)
		c.mirostat(p.Mirostat.Version, r.mu, s.vocab)
		return c.keys, c.scale
	}
	if p.Order == TemperFirst {
		c.temper(p)
	}
	if p.TopK > 0 {
		c.keys = c.keys[:min(p.TopK, len(c.keys))]
	}
	c.topNSigma(p.TopNSigma)
	if p.Order == TemperFirst {
		c.minP(p.MinP, p.MinKeep)
	}
	c.typical(p.TypicalP, p.MinKeep)
	c.topP(p.TopP, p.MinKeep)
	if p.Order == TruncateFirst {
		c.minP(p.MinP, p.MinKeep)
	}
	if p.XTC.on() && kernel.Uniform(s.key(r.index, useXTC), 0) <= float64(p.XTC.Probability) {
		c.exclude(p.XTC.Threshold, p.MinKeep, s.ends)
	}
	if p.Order == TruncateFirst {
		c.temper(p)
	}
	return c.keys, c.scale
}

func (c *pool) logit(i int) float32 { return c.logits[idOf(c.keys[i])] }

// weigh computes the weights of the keys, relative to the first, and their sum.
func (c *pool) weigh() {
	c.weights, c.sum = c.weights[:0], 0
	for i := range c.keys {
		w := float64(weight(c.logit(i), c.logit(0), c.scale))
		c.weights = append(c.weights, w)
		c.sum += w
	}
}

// surprise returns minus the natural logarithm of the probability of a weighed key.
func (c *pool) surprise(i int) float64 {
	return kernel.Log64(c.sum) - float64(float32((c.logit(i)-c.logit(0))*c.scale))
}

// entropy returns the entropy of the weighed keys.
func (c *pool) entropy() float64 {
	h := 0.0
	for i, w := range c.weights {
		if w > 0 {
			h += float64(w * c.surprise(i))
		}
	}
	return h / c.sum
}

// temper sets the scale to one over the temperature. Where the temperature is so low that nothing but rounding would be
// left of the other tokens, the first stays alone.
func (c *pool) temper(p *Params) {
	t := float64(p.Temperature)
	if d := p.Dynamic; d.Range > 0 && len(c.keys) > 1 {
		c.weigh()
		low, part := max(0, t-float64(d.Range)), min(c.entropy()/kernel.Log64(float64(len(c.keys))), 1)
		if part > 0 {
			part = kernel.Pow64(part, float64(d.Exponent))
		}
		t = low + float64((t+float64(d.Range)-low)*part)
	}
	if t < greedyBelow {
		c.keys, c.scale = c.keys[:1], 1
		return
	}
	c.scale = 1 / float32(t)
}

// topNSigma removes the tokens whose logits are more than n standard deviations of the row below the largest. Masked
// tokens do not count.
func (c *pool) topNSigma(n float32) {
	if n == 0 {
		return
	}
	sum, count := 0.0, 0.0
	for _, l := range c.logits {
		if l >= lowest {
			sum += float64(l)
			count++
		}
	}
	mean, squares := sum/count, 0.0
	for _, l := range c.logits {
		if l >= lowest {
			d := float64(l) - mean
			squares += float64(d * d)
		}
	}
	floor := float64(c.logit(0)) - float64(float64(n)*math.Sqrt(squares/count))
	c.cut(func(i int) bool { return float64(c.logit(i)) < floor })
}

// cut removes the keys from the first on for which remove reports true; the first key of all stays.
func (c *pool) cut(remove func(i int) bool) {
	for i := 1; i < len(c.keys); i++ {
		if remove(i) {
			c.keys = c.keys[:i]
			return
		}
	}
}

// minP removes the tokens that are less than p times as likely as the first, but leaves keep.
func (c *pool) minP(p float32, keep int) {
	if p == 0 {
		return
	}
	floor := max(lowest, c.logit(0)+float32(kernel.Log32(p)/c.scale))
	c.cut(func(i int) bool { return i >= keep && c.logit(i) < floor })
}

// topP keeps the fewest first tokens whose probabilities reach p, and at least keep.
func (c *pool) topP(p float32, keep int) {
	if p == 0 {
		return
	}
	c.weigh()
	sum, target := 0.0, float64(p)*c.sum
	c.cut(func(i int) bool {
		sum += c.weights[i-1]
		return i >= keep && sum >= target
	})
}

// typical keeps the fewest tokens with a surprise nearest to the entropy whose probabilities exceed p, and at least
// keep.
func (c *pool) typical(p float32, keep int) {
	if p == 0 {
		return
	}
	c.weigh()
	h := c.entropy()
	c.order = c.order[:0]
	for i := range c.keys {
		c.order = append(c.order, typicality{math.Abs(c.surprise(i) - h), i})
	}
	slices.SortFunc(c.order, func(a, b typicality) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), a.at-b.at)
	})
	sum, n, target := 0.0, 0, float64(p)*c.sum
	for n < len(c.order) && (n < max(keep, 1) || sum <= target) {
		sum += c.weights[c.order[n].at]
		n++
	}
	slices.SortFunc(c.order[:n], func(a, b typicality) int { return a.at - b.at })
	for i, o := range c.order[:n] {
		c.keys[i] = c.keys[o.at] // o.at is i at least
	}
	c.keys = c.keys[:n]
}

// exclude removes all tokens with a probability of at least the threshold but the last, if keep tokens are left, and
// leaves the likeliest of the tokens that end a text where it would remove all of those.
func (c *pool) exclude(threshold float32, keep int, ends []token.ID) {
	c.weigh()
	last, limit := 0, float64(threshold)*c.sum
	for i := range c.keys {
		if c.weights[i] < limit {
			break
		}
		last = i
	}
	if last == 0 || len(c.keys)-last < keep {
		return
	}
	isEnd := func(key uint64) bool { return slices.Contains(ends, token.ID(idOf(key))) }
	removed, left := c.keys[:last], c.keys[last:]
	if end := slices.IndexFunc(removed, isEnd); end >= 0 && !slices.ContainsFunc(left, isEnd) {
		last--
		c.keys[last] = c.keys[end]
	}
	c.keys = c.keys[last:]
}
