package schema

import (
	"strconv"

	"grove/constrain/regex"
)

// multiples is the spellings of the multiples of a number, of those that are integers if asked, and how many places they have.
func multiples(s *regex.Store, text string, integer bool) (id regex.ID, places int, err error) {
	d, err := parse(text)
	switch {
	case err != nil:
		return regex.Nothing, 0, err
	case d.sign() <= 0:
		return regex.Nothing, 0, ErrNumberDivisor
	}
	whole, frac := d.plain()
	modulus, err := strconv.Atoi(whole + frac)
	if err != nil || modulus > NumberMaxModulus {
		return regex.Nothing, 0, ErrNumberModulus
	}
	places = len(frac)
	if integer { // the integers among the multiples of p/q in lowest terms are the multiples of p
		for _, prime := range []int{2, 5} {
			for range len(frac) {
				if modulus%prime == 0 {
					modulus /= prime
				}
			}
		}
		places = 0
	}
	m, c := multiple{modulus, places}, scientific{modulus, places}
	return s.Concat(minus(s), s.Or(s.Machine(m, 0), s.Machine(c, 0))), places, s.Err()
}

// multiple is the automaton of the plain magnitudes that are a multiple of modulus/10^places. A state is
// (remainder*(places+1) + digits of the fraction)*5 + phase.
type multiple struct{ modulus, places int }

// Phases of automata that read digits.
const (
	begin  = iota // before the first digit
	before        // in the whole part
	first0        // behind a first 0: only a point may follow
	point         // behind the point
	behind        // in the fraction
)

func (m multiple) pack(r, f, phase int) int { return (r*(m.places+1)+f)*5 + phase }

func (m multiple) unpack(state int) (r, f, phase int) {
	return state / 5 / (m.places + 1), state / 5 % (m.places + 1), state % 5
}

// Step reads a byte.
func (m multiple) Step(state int, b byte) (int, bool) {
	r, f, phase := m.unpack(state)
	digit := int(b) - '0'
	switch {
	case b == '.' && (phase == before || phase == first0):
		return m.pack(r, 0, point), m.alive(r, 0)
	case digit < 0 || digit > 9 || phase == first0:
		return 0, false
	case phase == begin && digit == 0:
		return m.pack(0, 0, first0), true
	case phase <= before:
		return m.pack((r*10+digit)%m.modulus, 0, before), true // more digits can make it a multiple
	case f == m.places: // only zeros can follow
		return m.pack(r, f, behind), digit == 0 && m.alive(r, f)
	}
	r, f = (r*10+digit)%m.modulus, f+1
	return m.pack(r, f, behind), m.alive(r, f)
}

// alive reports whether digits of a fraction can make a remainder 0: those that are left spell 0 to 10^n-1.
func (m multiple) alive(r, f int) bool { return completes(r, m.places-f, m.modulus, false) }

// Final reports whether a number may end in a state.
func (m multiple) Final(state int) bool {
	r, f, phase := m.unpack(state)
	return phase != begin && phase != point && shift(r, m.places-f, m.modulus) == 0
}

// shift is r * 10^n modulo m.
func shift(r, n, m int) int {
	for ; n > 0 && r != 0; n-- {
		r = r * 10 % m
	}
	return r % m
}

// completes reports whether n more digits, which are not all 0 if some, can make r a multiple of m.
func completes(r, n, m int, some bool) bool {
	missing := (m - shift(r, n, m)) % m
	if missing == 0 && some {
		missing = m
	}
	limit := 1
	for ; n > 0 && limit <= missing; n-- {
		limit *= 10
	}
	return missing < limit
}

// scientific is the automaton of the scientific spellings of the multiples of modulus/10^places. A state packs the
// remainder of the digits, the number of digits behind the point and the phase; behind e, the least exponent that makes a
// multiple takes the place of the remainder.
type scientific struct{ modulus, places int }

// More phases, of scientific.
const (
	nonzero   = behind + 1 + iota // in the fraction, whose last digit is not 0
	zero                          // the fraction is 0
	exponent                      // behind e
	positive                      // behind e+
	negative                      // behind e-
	nPhases   = 10
	fractions = maxFraction + 1
)

func (m scientific) pack(r, f, phase int) int { return (r*fractions+f)*nPhases + phase + 1 } // 0 is the start

// Step reads a byte.
func (m scientific) Step(state int, b byte) (int, bool) {
	if state == 0 {
		if b < '1' || b > '9' {
			return 0, false
		}
		return m.pack(int(b-'0')%m.modulus, 0, before), true
	}
	phase, f, r := (state-1)%nPhases, (state-1)/nPhases%fractions, (state-1)/nPhases/fractions
	switch {
	case phase >= exponent:
		return m.stepExponent(r, f, phase, b)
	case b == 'e' || b == 'E':
		if least, ok := m.least(r, f); ok && phase != point && phase != behind {
			return m.pack(least+maxExponent, 0, exponent), true
		}
		return 0, false
	case b == '.' && phase == before:
		return m.pack(r, 0, point), true
	case b < '0' || b > '9' || phase == before || f == maxFraction:
		return 0, false
	}
	if phase == zero { // the 0 was the first of several digits
		r, f = r*10%m.modulus, 1
	}
	next, nr, nf := nonzero, (r*10+int(b-'0'))%m.modulus, f+1
	if b == '0' {
		next = behind
		if phase == point {
			next, nr, nf = zero, r, 0
			return m.pack(nr, nf, next), true
		}
	}
	return m.pack(nr, nf, next), m.alive(nr, nf, next)
}

// alive reports whether digits and an exponent can make a multiple. An exponent makes up for the factors 2 and 5.
func (m scientific) alive(r, f, phase int) bool {
	odd := m.modulus
	for _, p := range []int{2, 5} {
		for odd%p == 0 {
			odd /= p
		}
	}
	return completes(r%odd, maxFraction-f, odd, phase == behind)
}

// least is the least exponent that makes digits with remainder r, f of them behind the point, a multiple, and whether
// there is one.
func (m scientific) least(r, f int) (int, bool) {
	least := f - m.places
	for range 41 { // 2^40 is the largest modulus
		if r == 0 {
			return max(least, -maxExponent), least <= maxExponent
		}
		r = r * 10 % m.modulus
		least++
	}
	return 0, false
}

// stepExponent reads a byte behind e. f counts digits, r packs the least exponent and the digits' value.
func (m scientific) stepExponent(r, f, phase int, b byte) (int, bool) {
	const span = 2*maxExponent + 1
	least, value := r%span-maxExponent, r/span
	switch {
	case phase == exponent && b == '+':
		return m.pack(r, 0, positive), true
	case phase == exponent && b == '-':
		return m.pack(r, 0, negative), least <= 0
	case b < '0' || b > '9' || f == 3:
		return 0, false
	case phase == exponent:
		phase = positive
	}
	value, f = value*10+int(b-'0'), f+1
	if phase == negative {
		return m.pack(value*span+least+maxExponent, f, phase), -value >= least
	}
	if value >= least { // more digits make no difference: one state for all
		value, least = 0, -maxExponent
	}
	next := m.pack(value*span+least+maxExponent, f, phase)
	most := value
	for n := f; n < 3; n++ {
		most = most*10 + 9
	}
	return next, most >= least
}

// Final reports whether a number may end in a state.
func (m scientific) Final(state int) bool {
	if state == 0 {
		return false
	}
	phase, f, r := (state-1)%nPhases, (state-1)/nPhases%fractions, (state-1)/nPhases/fractions
	const span = 2*maxExponent + 1
	least, value := r%span-maxExponent, r/span
	switch {
	case phase < positive || f == 0:
		return false
	case phase == negative:
		value = -value
	}
	return value >= least
}
