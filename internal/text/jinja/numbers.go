package jinja

import (
	"math"
	"math/big"
)

// arithmetic is a op b of Python for numbers, the operators + - * / // % **.
func (s *state) arithmetic(op string, a, b Value) Value {
	i, okI := integer(a)
	j, okJ := integer(b)
	if okI && okJ && op != "/" && (op != "**" || j >= 0) {
		return s.integers(op, i, j)
	}
	x, okX := number(a)
	y, okY := number(b)
	if !okX || !okY {
		s.fail("%s %s %s: not supported", typeName(a), op, typeName(b))
	}
	if y == 0 && (op == "/" || op == "//" || op == "%") || op == "**" && x == 0 && y < 0 {
		s.fail("%s %s 0: division by zero", formatFloat(x), op)
	}
	return s.finite(floats(op, x, y))
}

// finite refuses a number that is none, which Python has other texts for.
func (s *state) finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		s.fail("a float is out of range")
	}
	return f
}

// floats computes with floats.
func floats(op string, x, y float64) float64 {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		return x / y
	case "**":
		return math.Pow(x, y)
	}
	mod := math.Mod(x, y)
	if mod != 0 && (mod < 0) != (y < 0) {
		mod += y
	}
	if op == "%" {
		if mod == 0 {
			return math.Copysign(0, y)
		}
		return mod
	}
	div := (x - mod) / y
	if floor := math.Floor(div); div-floor > 0.5 {
		return floor + 1
	} else if div != 0 {
		return floor
	}
	return math.Copysign(0, x/y)
}

// power is x ** j for ints, 0 or more; nil where it is beyond 64 bits.
func power(x *big.Int, j int64) *big.Int {
	if x.CmpAbs(big.NewInt(1)) <= 0 { // it is 0, 1 or -1
		return new(big.Int).Exp(x, big.NewInt(min(j, 2+j%2)), nil)
	}
	if j > 64 {
		return nil
	}
	return new(big.Int).Exp(x, big.NewInt(j), nil)
}

// filterAbs is the amount of a number.
func filterAbs(s *state, v Value, _ []Value) Value {
	if i, ok := integer(v); ok {
		if i < 0 {
			return s.integers("-", 0, i)
		}
		return i
	}
	f, ok := v.(float64)
	if !ok {
		s.fail("abs: %s; it needs a number", typeName(v))
	}
	return math.Abs(f)
}

// filterFloat is a number, or a text as one, as a float.
func filterFloat(s *state, v Value, a []Value) Value {
	if f, ok := number(v); ok {
		return f
	}
	if t, ok := v.(Text); ok {
		s.copied(len(t))
		if f, ok := parseFloat(t.String()); ok {
			return f
		}
	}
	return a[0]
}

// filterRound rounds a number to places behind the point: the even neighbour of a half, or up, or down.
func filterRound(s *state, v Value, a []Value) Value {
	x, ok := number(v)
	places := a[0].(int64)
	if !ok || places < -300 || places > 300 {
		s.fail("round: %s to %d places: not supported; it needs a number", typeName(v), places)
	}
	switch method := a[1].(Text).String(); method {
	case "common":
		i, isInt := integer(v)
		switch {
		case isInt && places >= 0:
			return i
		case isInt:
			return int64(roundDecimal(x, int(places)))
		}
		return s.finite(roundDecimal(x, int(places)))
	case "ceil":
		f := math.Pow(10, float64(places))
		return s.finite(math.Ceil(x*f) / f)
	case "floor":
		f := math.Pow(10, float64(places))
		return s.finite(math.Floor(x*f) / f)
	default:
		s.fail("round: method %.20q: not supported; use common, ceil or floor", method)
	}
	return nil
}
