package schema

import "grove/constrain/regex"

// bound is an end of an interval.
type bound struct {
	decimal
	open bool // the bound itself does not count
}

// interval is the spellings of the numbers between two bounds that have some places; places < 0: any. proven: they are all
// integers where places is 0; otherwise some of the scientific ones have more places.
func interval(s *regex.Store, r NumberRange, places int) (id regex.ID, proven bool, err error) {
	var low, high *bound
	for _, end := range []struct {
		text string
		open bool
		to   **bound
	}{{r.Min, r.ExclusiveMin, &low}, {r.Max, r.ExclusiveMax, &high}} {
		if end.text != "" {
			d, err := parse(end.text)
			if err != nil {
				return regex.Nothing, false, err
			}
			*end.to = &bound{d, end.open}
		}
	}
	positive, most := numberWithin(s, low, high, places)
	negative, least := numberWithin(s, high.opposite(), low.opposite(), places)
	return s.Or(positive, s.Concat(s.Literal("-"), negative)), most && least, s.Err()
}

func (b *bound) opposite() *bound {
	if b == nil {
		return nil
	}
	o := *b
	o.negative = !o.negative
	return &o
}

// numberWithin is the magnitudes between two bounds, which nil leaves out; proven as for interval.
func numberWithin(s *regex.Store, low, high *bound, places int) (id regex.ID, proven bool) {
	switch {
	case high != nil && (high.sign() < 0 || high.zero() && high.open):
		return regex.Nothing, true
	case high != nil && high.zero() && (low == nil || low.sign() < 0 || low.zero() && !low.open):
		return zeros(s), true
	case high != nil && high.zero():
		return regex.Nothing, true
	}
	plain := []regex.ID{decimals(s, places)}
	least, most := -maxExponent, maxExponent
	if places >= 0 {
		least = -places
	}
	switch {
	case low == nil || low.sign() < 0 || low.zero() && !low.open:
		low = nil
	case low.zero():
		plain, low = append(plain, s.Not(zeros(s))), nil
	default:
		plain = append(plain, s.Machine(newSide(low.decimal, false, !low.open), start))
		least = max(least, low.exponent())
	}
	if high != nil {
		plain = append(plain, s.Machine(newSide(high.decimal, true, !high.open), start))
		most = min(most, high.exponent())
	}
	ways := []regex.ID{s.And(plain...)}
	if places >= 0 && most-least < maxWays {
		for e := least; e <= most; e++ {
			ways = append(ways, power(s, e, e, min(e+places, maxFraction), low, high))
		}
		return s.Or(ways...), true
	}
	digits := maxFraction
	if places >= 0 {
		digits = max(min(most+places, maxFraction), 0)
	}
	first, last := least, most
	if low != nil && first == low.exponent() {
		ways = append(ways, power(s, first, first, digits, low, high))
		first++
	}
	if high != nil && last == high.exponent() && first <= last {
		ways = append(ways, power(s, last, last, digits, low, high))
		last--
	}
	return s.Or(append(ways, power(s, first, last, digits, nil, nil))...), false
}

// maxWays is how many exponents an interval spells one by one.
const maxWays = 8

// power is the scientific spellings with exponents from first to last, with a bound on the digits of the fraction, on the inner
// sides of the bounds that have the exponent first.
func power(s *regex.Store, first, last, digits int, low, high *bound) regex.ID {
	parts := []regex.ID{mantissa(s, digits)}
	if low != nil && low.exponent() == first {
		parts = append(parts, s.Machine(newSide(low.scaled(), false, !low.open), start))
	}
	if high != nil && high.exponent() == first {
		m := high.scaled()
		if high.open && m.digits == "1" { // one is the least mantissa: no other is less
			return regex.Nothing
		}
		parts = append(parts, s.Machine(newSide(m, true, !high.open), start))
	}
	return s.Concat(s.And(parts...), exponents(s, first, last))
}

// decimals is the plain decimals without sign that have some places; places < 0: any.
func decimals(s *regex.Store, places int) regex.ID {
	if places < 0 {
		return magnitude(s)
	}
	zeros := s.Repeat(s.Literal("0"), 0, -1)
	fraction := s.Concat(s.Literal("."), s.And(s.Concat(digits(s, 0, places), zeros), digits(s, 1, -1)))
	return s.Concat(natural(s), optional(s, fraction))
}

// zeros is the spellings of zero, without a sign.
func zeros(s *regex.Store) regex.ID {
	return s.Concat(s.Literal("0"), optional(s, s.Concat(s.Literal("."), s.Repeat(s.Literal("0"), 1, -1))))
}

// scaled is the mantissa: from 1 to less than 10.
func (d decimal) scaled() decimal {
	d.point, d.negative = 1, false
	return d
}

// side is the automaton of the plain magnitudes on one side of a bound that is more than zero. Its state counts the
// digits read and remembers how they compare with the bound's.
type side struct {
	whole, frac string // of the bound; frac has no zero at its end
	less, equal bool   // accept what is less, not more; accept the bound too
}

func newSide(b decimal, less, equal bool) side {
	whole, frac := b.plain()
	return side{whole, frac, less, equal}
}

// A state of side is place<<4 | phase<<2 | order+1. place counts digits of the phase, up to one more than the bound has.
const (
	inWhole = iota // before the point
	inZero         // after a first 0: only a point may follow
	inPoint        // after the point: a digit must follow
	inFrac         // after a digit of the fraction

	start = inWhole<<2 | 1
)

func numberPlace(at, phase, order int) int { return at<<4 | phase<<2 | (order + 1) }

// Step reads a byte.
func (m side) Step(state int, b byte) (int, bool) {
	at, phase, order := state>>4, state>>2&3, state&3-1
	switch {
	case b == '.' && phase <= inZero && at > 0:
		next := numberPlace(0, inPoint, m.compared(at, order))
		return next, m.alive(next)
	case b < '0' || b > '9' || phase == inZero:
		return 0, false
	}
	digits := m.whole
	if phase >= inPoint {
		digits = m.frac
	}
	other := byte('0')
	if at < len(digits) {
		other = digits[at]
	}
	switch {
	case order != 0 || phase == inWhole && at >= len(digits):
	case b < other:
		order = -1
	case b > other:
		order = 1
	}
	at = min(at+1, len(digits)+1)
	switch {
	case phase == inWhole && at == 1 && b == '0':
		phase = inZero
	case phase == inPoint:
		phase = inFrac
	}
	if phase == inFrac && order != 0 {
		at = 0 // decided: the place matters no longer
	}
	next := numberPlace(at, phase, order)
	return next, m.alive(next)
}

// compared is how a whole part of at digits compares with the bound's.
func (m side) compared(at, order int) int {
	switch {
	case at < len(m.whole):
		return -1
	case at > len(m.whole):
		return 1
	}
	return order
}

// Final reports whether a number may end in a state.
func (m side) Final(state int) bool {
	at, phase, order := state>>4, state>>2&3, state&3-1
	switch {
	case at == 0 && phase == inWhole || phase == inPoint:
		return false
	case phase <= inZero:
		order = m.compared(at, order)
		if order == 0 && m.frac != "" {
			order = -1
		}
	case order == 0 && at < len(m.frac):
		order = -1
	}
	return m.wanted(order)
}

func (m side) wanted(order int) bool {
	return order == 0 && m.equal || order < 0 && m.less || order > 0 && !m.less
}

// alive reports whether a number can go on from a state to a final one.
func (m side) alive(state int) bool {
	at, phase, order := state>>4, state>>2&3, state&3-1
	switch {
	case phase == inWhole && !m.less: // more digits make it as large as it must be
		return true
	case phase <= inZero:
		if phase == inWhole && at < len(m.whole) {
			return true
		}
		if order = m.compared(at, order); order != 0 {
			return m.wanted(order)
		}
		return !m.less || m.equal || m.frac != ""
	case order != 0:
		return m.wanted(order)
	case !m.less:
		return true // a fraction can always grow
	}
	return m.equal || at < len(m.frac)
}
