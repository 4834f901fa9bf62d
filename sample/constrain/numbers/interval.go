package numbers

import "grove/sample/constrain/regex"

// interval is the spellings of the numbers between two bounds.
func interval(s *regex.Store, r Range) (regex.ID, error) {
	positive := []regex.ID{unsigned(s)}
	negative := []regex.ID{unsigned(s)}
	if r.Min != "" {
		low, err := parse(r.Min)
		if err != nil {
			return regex.Nothing, err
		}
		positive = append(positive, atLeast(s, low, !r.ExclusiveMin))
		negative = append(negative, atMost(s, low.opposite(), !r.ExclusiveMin))
	}
	if r.Max != "" {
		high, err := parse(r.Max)
		if err != nil {
			return regex.Nothing, err
		}
		positive = append(positive, atMost(s, high, !r.ExclusiveMax))
		negative = append(negative, atLeast(s, high.opposite(), !r.ExclusiveMax))
	}
	return s.Or(s.And(positive...), s.Concat(s.Literal("-"), s.And(negative...))), s.Err()
}

func (d decimal) opposite() decimal {
	d.negative = !d.negative
	return d
}

// unsigned is Spellings without a sign.
func unsigned(s *regex.Store) regex.ID {
	return s.Or(magnitude(s), s.Concat(mantissa(s), exponents(s, -maxExponent, maxExponent)))
}

// atLeast is the magnitudes of at least b, or of more.
func atLeast(s *regex.Store, b decimal, equal bool) regex.ID {
	switch {
	case b.sign() < 0 || b.zero() && equal:
		return unsigned(s)
	case b.zero():
		nonzero := s.And(magnitude(s), s.Not(zeros(s)))
		return s.Or(nonzero, s.Concat(mantissa(s), exponents(s, -maxExponent, maxExponent)))
	}
	return s.Or(
		s.Machine(newSide(b, false, equal), start),
		s.Concat(mantissa(s), exponents(s, b.exponent()+1, maxExponent)),
		s.Concat(s.And(mantissa(s), s.Machine(newSide(b.scaled(), false, equal), start)), exponents(s, b.exponent(), b.exponent())),
	)
}

// atMost is the magnitudes of at most b, or of less.
func atMost(s *regex.Store, b decimal, equal bool) regex.ID {
	switch {
	case b.sign() < 0 || b.zero() && !equal:
		return regex.Nothing
	case b.zero():
		return zeros(s)
	}
	same := regex.Nothing // one is the least mantissa: no other is less
	if m := b.scaled(); equal || m.digits != "1" {
		same = s.And(mantissa(s), s.Machine(newSide(m, true, equal), start))
	}
	return s.Or(
		s.Machine(newSide(b, true, equal), start),
		s.Concat(mantissa(s), exponents(s, -maxExponent, b.exponent()-1)),
		s.Concat(same, exponents(s, b.exponent(), b.exponent())),
	)
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

func place(at, phase, order int) int { return at<<4 | phase<<2 | (order + 1) }

// Step reads a byte.
func (m side) Step(state int, b byte) (int, bool) {
	at, phase, order := state>>4, state>>2&3, state&3-1
	switch {
	case b == '.' && phase <= inZero && at > 0:
		next := place(0, inPoint, m.compared(at, order))
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
	next := place(at, phase, order)
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
