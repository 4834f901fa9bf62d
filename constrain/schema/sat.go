package schema

import (
	"math"

	"grove/constrain/schema/document"
)

// noLow is the low of a proof that met no formula that is being proven.
const noLow = math.MaxInt

// maxProving bounds how deep required parts lead to required parts.
const maxProving = 5000

// sat reports whether some text satisfies a formula: the least fixed point over all formulas. While formulas are being proven or
// expanded, false may mean that it is not known yet; c.low is then below noLow.
func (c *compiler) sat(f *formula) bool {
	switch {
	case f.never:
		return false
	case f.proven:
		return f.some
	case f.depth > 0:
		c.low = min(c.low, f.depth)
		return false
	case c.doc.Err != nil || c.r.Err() != nil:
		return false
	}
	if c.proving++; c.proving > maxProving {
		c.doc.Fail(document.ErrBudget, f.at, "more than %d required parts inside of each other", maxProving)
		return false
	}
	outer := c.low
	f.depth, c.low = c.proving, noLow
	some := !c.scalarsOf(f).Empty() || c.sideSat(f, 0) || c.sideSat(f, 1)
	if !some && f.vague {
		c.low = openLow
	}
	met := c.low
	f.depth, c.low = 0, outer
	c.proving--
	switch {
	case some || met >= c.proving+1 && met != openLow:
		f.proven, f.some = true, some
	default:
		c.low = min(c.low, met)
	}
	return some
}

// openLow is the low of a proof that met a formula whose alternatives are being made, or whose strings are not all known: nothing
// is known of it.
const openLow = -1

// sideSat reports whether some array, or some object, satisfies a formula.
func (c *compiler) sideSat(f *formula, side int) bool {
	if f.never {
		return false
	}
	if f.opening[side] {
		c.low = openLow
		return false
	}
	if side == 0 {
		for _, a := range c.arraysOf(f) {
			if c.arraySat(a) {
				return true
			}
		}
		return false
	}
	for _, o := range c.objectsOf(f) {
		if c.objectSat(o) {
			return true
		}
	}
	return false
}

// impossible reports whether it is known that no text satisfies a formula.
func (c *compiler) impossible(f *formula) bool {
	if f.never {
		return true
	}
	outer := c.low
	c.low = noLow
	some := c.sat(f)
	certain := c.low == noLow
	c.low = outer
	return !some && certain && c.doc.Err == nil && c.r.Err() == nil
}
