package schema

import (
	"regexp"
	"strconv"
	"strings"
)

// decimal is an exact number: 0.digits times ten to the power of point, with the sign. digits has no zero at either end; zero has none.
type decimal struct {
	negative bool
	digits   string
	point    int
}

var number = regexp.MustCompile(`^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$`)

// parse reads a number of JSON.
func parse(text string) (decimal, error) {
	m := number.FindStringSubmatch(text)
	if m == nil {
		return decimal{}, ErrNumberSyntax
	}
	d := decimal{negative: m[1] != ""}
	all := m[2] + m[3]
	d.digits = strings.TrimLeft(all, "0")
	if d.digits == "" {
		return decimal{}, nil
	}
	zeros := len(all) - len(d.digits)
	d.digits = strings.TrimRight(d.digits, "0")
	power := 0
	if m[4] != "" {
		var err error
		if power, err = strconv.Atoi(m[4]); err != nil || power > NumberMaxDigits*NumberMaxDigits || power < -NumberMaxDigits*NumberMaxDigits {
			return decimal{}, ErrNumberDigits
		}
	}
	d.point = len(m[2]) - zeros + power
	if d.point > NumberMaxDigits || len(d.digits)-d.point > NumberMaxDigits || len(d.digits) > NumberMaxDigits {
		return decimal{}, ErrNumberDigits
	}
	return d, nil
}

func (d decimal) zero() bool { return d.digits == "" }

// exponent is that of the scientific spelling with one digit before the point.
func (d decimal) exponent() int { return d.point - 1 }

// plain returns the digits before and after the point of the magnitude; there is at least one before.
func (d decimal) plain() (whole, frac string) {
	switch {
	case d.zero():
		return "0", ""
	case d.point <= 0:
		return "0", strings.Repeat("0", -d.point) + d.digits
	case d.point >= len(d.digits):
		return d.digits + strings.Repeat("0", d.point-len(d.digits)), ""
	}
	return d.digits[:d.point], d.digits[d.point:]
}

// sign is -1, 0 or 1.
func (d decimal) sign() int {
	switch {
	case d.zero():
		return 0
	case d.negative:
		return -1
	}
	return 1
}
