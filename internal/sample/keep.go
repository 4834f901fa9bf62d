package sample

import (
	"math"
	"slices"

	"grove/internal/kernel"
)

// Every way to truncate keeps a prefix of the tokens in one order: larger logits first, equal ones
// by id. A key is a token's place in that order as one number, so that smaller keys come first:
// the logit, mapped so that integers order as the floats do, descending, above the id.

// keyOf returns the key of a token.
func keyOf(l float32, id int) uint64 {
	b := math.Float32bits(l + 0) // minus zero becomes zero: they are equal, and so must the keys be
	if b>>31 == 0 {
		b |= 1 << 31
	} else {
		b = ^b
	}
	return uint64(^b)<<32 | uint64(uint32(id))
}

// idOf returns the token of a key.
func idOf(key uint64) int { return int(uint32(key)) }

// lowest is the smallest logit that is not masked.
const lowest = -math.MaxFloat32

// A cut is where truncation ends the order of one row's tokens.
type cut struct {
	logits []float32
	top    float32 // the largest logit, finite
	scale  float32 // factor of the logits that truncation sees: 1, or 1 / temperature
	floor  float32 // min-p keeps logits of at least this; never above top
	target float64 // top-p keeps tokens until their weights reach this
}

// keep returns the keys of the tokens that top-p and min-p keep of the whole vocabulary, at least one, in the sampler's
// scratch space. top is the largest logit, which is finite, and lse the log-sum-exp.
func (s *sampler) keep(logits []float32, top, lse float32) []uint64 {
	p := s.params
	c := cut{logits: logits, top: top, scale: 1, floor: lowest}
	if p.Order == TemperFirst {
		c.scale = s.invT
	}
	if p.MinP > 0 {
		// exp((l - top) * scale) >= min-p
		c.floor = max(lowest, top+float32(kernel.Log32(p.MinP)/c.scale))
	}
	if p.TopP == 0 {
		return s.above(logits, c.floor)
	}
	// Top-p refers to the mass of all tokens, or of those that an earlier min-p left.
	mass := float64(kernel.Exp32(lse - top))
	if p.Order == TemperFirst {
		mass = c.massOfAll(s.block)
	}
	c.target = float64(p.TopP) * mass
	const first, growth = 32, 8 // a few tokens are sorted first, which nearly always are enough
	for n := first; ; n *= growth {
		kept := s.best(logits, n)
		if m, ended := c.nucleus(kept); ended || len(kept) < n {
			return kept[:m]
		}
	}
}

// nucleus returns how many of the sorted keys top-p and the floor keep, at least one; ended is
// false where both keep all of them.
func (c *cut) nucleus(keys []uint64) (n int, ended bool) {
	sum := 0.0
	for i, k := range keys {
		l := c.logits[idOf(k)]
		if l < c.floor {
			return i, true
		}
		if sum += float64(weight(l, c.top, c.scale)); sum >= c.target {
			return i + 1, true
		}
	}
	return len(keys), false
}

// massOfAll returns the sum of the weights of all tokens that reach the floor, which it takes block
// by block through the kernel.
func (c *cut) massOfAll(block []float32) float64 {
	sum := 0.0
	for x := c.logits; len(x) > 0; x = x[min(len(x), len(block)):] {
		n := min(len(x), len(block))
		for i, l := range x[:n] {
			block[i] = float32((l - c.top) * c.scale)
			if l < c.floor {
				block[i] = float32(math.Inf(-1))
			}
		}
		if _, lse, some := kernel.LogSumExp(block[:n]); some {
			sum += float64(kernel.Exp32(lse))
		}
	}
	return sum
}

// above returns the keys of all logits of at least floor, by id.
func (s *sampler) above(logits []float32, floor float32) []uint64 {
	keys := s.keys[:0]
	for id, l := range logits {
		if l >= floor {
			keys = append(keys, keyOf(l, id))
		}
	}
	return keys
}

// best returns the sorted keys of the n best tokens, fewer only where fewer are not masked.
// It gathers what beats the n-th best so far and, whenever the space for that is full, forgets all but n: a compare for
// most tokens.
func (s *sampler) best(logits []float32, n int) []uint64 {
	keys, limit := s.keys[:0], scratch(n, len(logits))
	floor := float32(math.Inf(-1)) // of equal logits the earlier, which has the lower id, stays
	for id, l := range logits {
		if !(l > floor) {
			continue
		}
		if len(keys) == limit {
			smallest(keys, n)
			keys = keys[:n]
			if floor = logits[idOf(slices.Max(keys))]; !(l > floor) {
				continue
			}
		}
		keys = append(keys, keyOf(l, id))
	}
	n = min(n, len(keys))
	smallest(keys, n)
	slices.Sort(keys[:n])
	return keys[:n]
}

// smallest brings the n smallest keys to the front, in any order (Hoare's selection). All keys differ.
func smallest(keys []uint64, n int) {
	const few, maxTurns = 16, 64
	for turn := 0; n > 0 && n < len(keys); turn++ {
		if len(keys) <= few || turn == maxTurns { // it divides badly
			slices.Sort(keys)
			return
		}
		pivot := median(keys[0], keys[len(keys)/2], keys[len(keys)-1])
		i, j := 0, len(keys)-1
		for {
			for keys[i] < pivot {
				i++
			}
			for keys[j] > pivot {
				j--
			}
			if i >= j {
				break
			}
			keys[i], keys[j] = keys[j], keys[i]
			i++
			j--
		}
		// All before i are at most the pivot, all from i on at least.
		if n < i {
			keys = keys[:i]
		} else {
			keys, n = keys[i:], n-i
		}
	}
}

// median returns the middle one of three keys.
func median(a, b, c uint64) uint64 {
	return max(min(a, b), min(max(a, b), c))
}

// scratch returns how many keys best gathers to find n among vocab; n = 0 means all. Four times n
// keeps the sorting a small part of the work even where logits ascend.
func scratch(n, vocab int) int {
	if n == 0 || n > vocab/4 {
		return vocab
	}
	return min(max(4*n, 1024), vocab)
}
