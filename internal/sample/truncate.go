package sample

import (
	"math"
	"slices"
	"sort"

	"grove/internal/kernel"
	"grove/internal/text/token"
)

// A pool is the tokens that are left of a row while truncation goes stage by stage.
type pool struct {
	logits  []float32
	keys    []uint64  // best first
	top     float32   // the largest logit of the keys
	scale   float32   // factor of the logits in the probabilities
	weights []float64 // of the keys, relative to the top, as weigh left them, with their sum and its logarithm
	sum     float64
	logSum  float64
}

// tempersAll reports whether the temperature depends on all tokens of the row.
func (p Params) tempersAll() bool {
	return p.DynamicTemperature.Range > 0 && (p.Order == TemperFirst || p.Mirostat.Version != 0)
}

// truncateByStages is truncation with every stage there is, over the sorted candidates. Top-k comes first whatever the
// order says: it, min-p behind a temperature and top-n-sigma each keep a prefix of one order, which does not depend on
// the others. top is the largest logit.
func (s *sampler) truncateByStages(r row, top float32) ([]uint64, float32) {
	p, c := &s.params, &s.pool
	c.logits, c.top, c.scale = r.logits, top, 1
	if p.Mirostat.Version != 0 {
		c.keys = s.above(r.logits, lowest)
		c.temper(p)
		s.mirostat(r.mu)
		return c.keys, c.scale
	}
	if p.Order == TemperFirst {
		if p.tempersAll() {
			c.keys = s.above(r.logits, lowest)
		}
		c.temper(p)
	}
	sigmas := c.sigmas(p.TopNSigma)
	if p.TopK > 0 {
		c.keys = s.best(r.logits, p.TopK)
	} else {
		c.keys = s.above(r.logits, max(c.leastLogit(p), math.Nextafter32(float32(sigmas), -math.MaxFloat32)))
		slices.Sort(c.keys)
	}
	c.cut(func(i int) bool { return float64(c.logit(i)) < sigmas })
	if p.Order == TemperFirst {
		c.minP(p.MinP, p.MinKeep)
	}
	c.typical(p.TypicalP, p.MinKeep)
	c.topP(p.TopP, p.MinKeep)
	if p.Order == TruncateFirst {
		c.minP(p.MinP, p.MinKeep)
	}
	if p.XTC.on() && kernel.Uniform(s.key(r.index, purposeXTC), 0) <= float64(p.XTC.Probability) {
		c.exclude(p.XTC.Threshold, p.MinKeep, s.ends)
	}
	if p.Order == TruncateFirst {
		c.temper(p)
	}
	return c.keys, c.scale
}

func (c *pool) logit(i int) float32 { return c.logits[idOf(c.keys[i])] }

// weigh computes the weights of the keys, in any order.
func (c *pool) weigh() {
	c.weights, c.sum = c.weights[:0], 0
	for i := range c.keys {
		w := float64(weight(c.logit(i), c.top, c.scale))
		c.weights = append(c.weights, w)
		c.sum += w
	}
	c.logSum = kernel.Log64(c.sum)
}

// mostSurprise bounds the surprise, so that it is finite: float32 gives no weight to a tenth of it.
const mostSurprise = 1000

// surprise returns minus the natural logarithm of the probability of a key, of those weighed or a part of them.
func (c *pool) surprise(i int) float64 {
	return min(c.logSum-float64(float32((c.logit(i)-c.top)*c.scale)), mostSurprise)
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

// temper sets the scale to one over the temperature, which is at least the lowest that is not greedy.
func (c *pool) temper(p *Params) {
	t := float64(p.Temperature)
	if d := p.DynamicTemperature; d.Range > 0 && len(c.keys) > 1 {
		c.weigh()
		low, part := max(0, t-float64(d.Range)), min(c.entropy()/kernel.Log64(float64(len(c.keys))), 1)
		if part > 0 {
			part = kernel.Pow64(part, float64(d.Exponent))
		}
		t = low + float64((t+float64(d.Range)-low)*part)
	}
	c.scale = 1 / float32(max(t, greedyBelow))
}

// leastLogit returns a logit below which min-p keeps no token, where nothing but top-n-sigma comes before it: what need
// not be sorted.
func (c *pool) leastLogit(p *Params) float32 {
	if p.MinP == 0 || p.MinKeep > 1 || p.Order == TruncateFirst && (p.TypicalP > 0 || p.TopP > 0) {
		return lowest
	}
	return c.minPFloor(p.MinP)
}

// sigmas returns the logit n standard deviations of the row below the largest; masked tokens do not count. For 0 it is
// the least of all.
func (c *pool) sigmas(n float32) float64 {
	if n == 0 {
		return lowest
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
	return float64(c.top) - float64(float64(n)*math.Sqrt(squares/count))
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
	floor := c.minPFloor(p)
	c.cut(func(i int) bool { return i >= keep && c.logit(i) < floor })
}

// minPFloor returns the logit of a token that is p times as likely as the likeliest.
func (c *pool) minPFloor(p float32) float32 {
	return max(lowest, c.top+float32(kernel.Log32(p)/c.scale))
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
// keep. They are neighbours: it goes from the entropy to both sides, and to the likelier one where both are as near.
func (c *pool) typical(p float32, keep int) {
	if p == 0 {
		return
	}
	c.weigh()
	h, n := c.entropy(), len(c.keys)
	from := sort.Search(n, func(i int) bool { return c.surprise(i) >= h })
	to := from
	sum, target := 0.0, float64(p)*c.sum
	for to-from < n && (to-from < max(keep, 1) || sum <= target) {
		if to == n || from > 0 && h-c.surprise(from-1) <= c.surprise(to)-h {
			from--
			sum += c.weights[from]
		} else {
			sum += c.weights[to]
			to++
		}
	}
	c.keys, c.top = c.keys[from:to], c.logit(from)
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
	c.keys, c.top = c.keys[last:], c.logit(last)
}
