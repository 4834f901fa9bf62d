package schema

import (
	"errors"

	"grove/constrain/regex"
)

// Bounds of this package.
const (
	NumberMaxDigits  = 1000    // digits of a bound written as a plain decimal
	NumberMaxModulus = 1 << 40 // MultipleOf without its point
	maxFraction      = 20      // digits after the point of a scientific spelling
	maxExponent      = 999
)

// Errors of bounds and of texts that are no numbers.
var (
	ErrNumberSyntax  = errors.New("numbers: this is no number of JSON")
	ErrNumberDigits  = errors.New("numbers: this number has more than 1000 digits")
	ErrNumberModulus = errors.New("numbers: multipleOf without its point is more than 1099511627776")
	ErrNumberDivisor = errors.New("numbers: multipleOf must be more than 0")
)

// NumberRange bounds a number. Bounds are numbers of JSON, as text; "" is none.
type NumberRange struct {
	Min, Max                   string
	ExclusiveMin, ExclusiveMax bool // the bound itself does not count
	MultipleOf                 string
	Integer                    bool // 1, 1.0 and 1e0 are integers
	NoFraction                 bool // with Integer: only 1 is, as in draft 4 of JSON Schema
}

// NumberAll is every number of JSON in every spelling.
func NumberAll(s *regex.Store) regex.ID {
	sign := s.Bytes(bytesOf("+-"))
	exponent := s.Concat(s.Bytes(bytesOf("eE")), optional(s, sign), digits(s, 1, -1))
	return s.Concat(plain(s), optional(s, exponent))
}

// NumberSpellings is the numbers that the other languages of this package choose from; see the package comment.
func NumberSpellings(s *regex.Store) regex.ID {
	return s.Or(plain(s), s.Concat(minus(s), mantissa(s, maxFraction), exponents(s, -maxExponent, maxExponent)))
}

// NumberLanguage is the numbers that meet a range: all spellings if it asks nothing, otherwise a part of [NumberSpellings]. Errors
// are ErrSyntax, ErrDigits, ErrModulus, ErrDivisor, and that of a spent budget of s.
func NumberLanguage(s *regex.Store, r NumberRange) (regex.ID, error) {
	var parts []regex.ID
	places := -1 // of the decimals that are allowed
	if r.Integer {
		places = 0
	}
	if r.MultipleOf != "" {
		id, n, err := multiples(s, r.MultipleOf, r.Integer)
		if err != nil {
			return regex.Nothing, err
		}
		parts, places = append(parts, id), n
	}
	proven := false
	if r.Min != "" || r.Max != "" {
		id, all, err := interval(s, r, places)
		if err != nil {
			return regex.Nothing, err
		}
		parts, proven = append(parts, id), all
	}
	if r.NoFraction && r.Integer || r.Integer && r.MultipleOf == "" && !proven {
		parts = append(parts, integers(s, r.NoFraction))
	}
	if len(parts) == 0 {
		return NumberAll(s), s.Err()
	}
	return s.And(parts...), s.Err()
}

// NumberEqual is the spellings of the number that text spells, within [NumberSpellings]. Errors are ErrSyntax, ErrDigits, and that of
// a spent budget of s.
func NumberEqual(s *regex.Store, text string) (regex.ID, error) {
	d, err := parse(text)
	if err != nil {
		return regex.Nothing, err
	}
	whole, frac := d.plain()
	ways := []regex.ID{}
	zeros := s.Repeat(s.Literal("0"), 0, -1)
	if frac == "" {
		ways = append(ways, s.Concat(s.Literal(whole), optional(s, s.Concat(s.Literal(".0"), zeros))))
	} else {
		ways = append(ways, s.Concat(s.Literal(whole+"."+frac), zeros))
	}
	sign := s.Literal("-")
	switch {
	case d.zero():
		sign = optional(s, sign)
	case len(d.digits) <= 1+maxFraction:
		number := s.Literal(d.digits[:1])
		if len(d.digits) > 1 {
			number = s.Literal(d.digits[:1] + "." + d.digits[1:])
		} else {
			number = s.Concat(number, optional(s, s.Literal(".0")))
		}
		ways = append(ways, s.Concat(number, exponents(s, d.exponent(), d.exponent())))
	}
	if !d.negative && !d.zero() {
		sign = regex.Epsilon
	}
	return s.Concat(sign, s.Or(ways...)), s.Err()
}

// integers is the integers of Spellings.
func integers(s *regex.Store, noFraction bool) regex.ID {
	whole := s.Concat(minus(s), natural(s))
	if noFraction {
		return whole
	}
	zeros := s.Concat(s.Literal("."), s.Repeat(s.Literal("0"), 1, -1))
	return s.Or(s.Concat(whole, optional(s, zeros)), s.Concat(minus(s), s.Machine(scientific{modulus: 1}, 0)))
}
