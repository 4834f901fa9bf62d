package document

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// maxExponent bounds exponents: 1e999999999 would fill the memory.
const maxExponent = 1000

// rational returns the exact value of a number; nil after an error.
func (d *Document) rational(v *Value) *big.Rat {
	r, ok := rational(v.Text)
	if !ok {
		d.Fail(ErrUnsupported, v, "%s is beyond 1e%d, or has too many digits", Clip(v.Text), maxExponent)
		return nil
	}
	return r
}

func rational(text string) (*big.Rat, bool) {
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		if e, err := strconv.Atoi(text[at+1:]); err != nil || e > maxExponent || e < -maxExponent {
			return nil, false
		}
	}
	if len(text) > maxExponent {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// Canonical returns one text for all spellings of a number.
func Canonical(text string) string {
	r, ok := rational(text)
	if !ok {
		return text
	}
	return Decimal(r)
}

// Equal reports whether two JSON values are equal: numbers by value, objects in any order.
func Equal(v, w *Value) bool {
	if v.Kind != w.Kind || len(v.Items) != len(w.Items) {
		return false
	}
	switch v.Kind {
	case '"':
		return v.Text == w.Text
	case '0':
		return v.Text == w.Text || Canonical(v.Text) == Canonical(w.Text)
	case '[':
		return slices.EqualFunc(v.Items, w.Items, Equal)
	case '{':
		for i, name := range v.Names {
			if x := w.Get(name); x == nil || !Equal(v.Items[i], x) {
				return false
			}
		}
	}
	return true
}

// Decimal writes a number with all its digits; "" for nil.
func Decimal(r *big.Rat) string {
	if r == nil {
		return ""
	}
	digits, exact := r.FloatPrec()
	if !exact {
		panic("document: a number of JSON has endless digits")
	}
	text := r.FloatString(digits)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
