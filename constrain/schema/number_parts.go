package schema

import "grove/constrain/regex"

// bytesOf is the set of the bytes of a text.
func bytesOf(text string) (set regex.Set) {
	for _, b := range []byte(text) {
		set.Add(b, b)
	}
	return set
}

// between is the set of the digits from lo to hi.
func between(lo, hi int) (set regex.Set) {
	set.Add('0'+byte(lo), '0'+byte(hi))
	return set
}

func optional(s *regex.Store, id regex.ID) regex.ID { return s.Or(regex.Epsilon, id) }

func minus(s *regex.Store) regex.ID { return optional(s, s.Literal("-")) }

// digits is lo to hi digits; hi < 0: without bound.
func digits(s *regex.Store, lo, hi int) regex.ID {
	return s.Repeat(s.Bytes(between(0, 9)), lo, hi)
}

// natural is 0, 1, 2 and so on.
func natural(s *regex.Store) regex.ID {
	return s.Or(s.Literal("0"), s.Concat(s.Bytes(between(1, 9)), digits(s, 0, -1)))
}

// magnitude is the plain decimals without sign.
func magnitude(s *regex.Store) regex.ID {
	return s.Concat(natural(s), optional(s, s.Concat(s.Literal("."), digits(s, 1, -1))))
}

// plain is the plain decimals.
func plain(s *regex.Store) regex.ID { return s.Concat(minus(s), magnitude(s)) }

// mantissa is what stands before the exponent of a scientific spelling, without sign, with a bound on its fraction.
func mantissa(s *regex.Store, most int) regex.ID {
	fraction := s.Literal("0")
	if most > 0 {
		fraction = s.Or(fraction, s.Concat(digits(s, 0, most-1), s.Bytes(between(1, 9))))
	}
	return s.Concat(s.Bytes(between(1, 9)), optional(s, s.Concat(s.Literal("."), fraction)))
}

// exponents is e or E and an exponent from lo to hi, in at most three digits.
func exponents(s *regex.Store, lo, hi int) regex.ID {
	lo, hi = max(lo, -maxExponent), min(hi, maxExponent)
	if lo > hi {
		return regex.Nothing
	}
	var ways []regex.ID
	for width := 1; width <= 3; width++ {
		if hi >= 0 {
			ways = append(ways, s.Concat(optional(s, s.Literal("+")), naturals(s, max(lo, 0), hi, width)))
		}
		if lo <= 0 {
			ways = append(ways, s.Concat(s.Literal("-"), naturals(s, max(-hi, 0), -lo, width)))
		}
	}
	return s.Concat(s.Bytes(bytesOf("eE")), s.Or(ways...))
}

// naturals is the numbers from lo to hi written in width digits, with zeros before them.
func naturals(s *regex.Store, lo, hi, width int) regex.ID {
	if width == 0 {
		return regex.Epsilon
	}
	unit := 1
	for range width - 1 {
		unit *= 10
	}
	if hi = min(hi, 10*unit-1); lo > hi {
		return regex.Nothing
	}
	if lo == 0 && hi == 10*unit-1 {
		return digits(s, width, width)
	}
	var ways []regex.ID
	for d := lo / unit; d <= hi/unit; d++ {
		rest := naturals(s, max(lo-d*unit, 0), min(hi-d*unit, unit-1), width-1)
		ways = append(ways, s.Concat(s.Bytes(between(d, d)), rest))
	}
	return s.Or(ways...)
}
