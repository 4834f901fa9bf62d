package jinja

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// put sets a key of a dict.
func (s *state) put(m *Map, k, v Value) {
	t, _ := k.(Text)
	s.copied(len(t))
	if !m.Set(k, v) {
		s.fail("%s as a key of a dict: not supported; use a str, int, bool or None", typeName(k))
	}
}

// get looks a key up.
func (s *state) get(m *Map, k Value) (Value, bool) {
	t, _ := k.(Text)
	s.copied(len(t))
	return m.Get(k)
}

// defined refuses an undefined value.
func (s *state) defined(v Value) {
	if u, ok := v.(undefined); ok {
		s.fail("%.200s is undefined", u.what)
	}
}

// attribute is v.name: a method of that name, else an entry.
func (s *state) attribute(v Value, name string) Value {
	s.defined(v)
	switch v := v.(type) {
	case *namespace:
		if x, ok := v.vars[name]; ok {
			return x
		}
	case *loop:
		if of, ok := loopAttributes[name]; ok {
			return of(v)
		}
	case *Map:
		if m, ok := dictMethods[name]; ok {
			return bound(name, m, v)
		}
		if x, ok := v.Get(Text(name)); ok {
			return x
		}
	case Text:
		if m, ok := textMethods[name]; ok {
			return bound(name, m, v)
		}
	}
	return undefined{fmt.Sprintf("attribute %.40q of %s", name, typeName(v))}
}

func bound(name string, m operation, v Value) *function {
	return &function{name, func(s *state, a args) Value { return m(s, v, a) }}
}

// index is v[at]: an entry, else an attribute.
func (s *state) index(v, at Value) Value {
	s.defined(v)
	if m, ok := v.(*Map); ok {
		if x, ok := s.get(m, at); ok {
			return x
		}
	}
	if name, ok := at.(Text); ok {
		s.copied(len(name))
		return s.attribute(v, name.String())
	}
	if i, ok := integer(at); ok {
		switch v := v.(type) {
		case *List:
			if i, ok := position(i, len(v.Items)); ok && !v.once {
				return v.Items[i]
			}
		case Text:
			if i, ok := position(i, len(v)); ok {
				return v[i : i+1 : i+1]
			}
		}
	}
	return undefined{"an element of " + typeName(v)}
}

// position returns index i, counted from the end if it is negative, and whether it lies within n elements.
func position(i int64, n int) (int64, bool) {
	if i < 0 {
		i += int64(n)
	}
	return i, 0 <= i && i < int64(n)
}

// slice is v[from:to] of Python, or v[::-1] if reversed; a bound of None is left out.
func (s *state) slice(v, from, to Value, reversed bool) Value {
	s.defined(v)
	switch v := v.(type) {
	case *List:
		if !v.once {
			return &List{Items: sliceOf(s, v.Items, from, to, reversed), Tuple: v.Tuple}
		}
	case Text:
		return Text(sliceOf(s, v, from, to, reversed))
	}
	s.fail("%s cannot be sliced; a str, list or tuple can", typeName(v))
	return nil
}

func sliceOf[T any](s *state, x []T, from, to Value, reversed bool) []T {
	s.copied(len(x))
	if reversed {
		x = slices.Clone(x)
		slices.Reverse(x)
		return x
	}
	bound := func(v Value, otherwise int64) int64 {
		if v == nil {
			return otherwise
		}
		i, ok := integer(v)
		if !ok {
			s.fail("a slice has a bound of type %s; it needs an int", typeName(v))
		}
		if i < 0 {
			i += int64(len(x))
		}
		return max(0, min(i, int64(len(x))))
	}
	i, k := bound(from, 0), bound(to, int64(len(x)))
	return x[i:max(i, k):max(i, k)]
}

// items returns the elements that iterating over a value gives. The caller must not change them.
func (s *state) items(v Value) []Value {
	switch v := v.(type) {
	case undefined:
		return nil
	case *List:
		s.copied(len(v.Items))
		items := v.Items
		if v.once {
			v.Items = nil
		}
		return items
	case *Map:
		s.copied(len(v.keys))
		return v.keys
	case Text:
		s.spend(len(v))
		items := make([]Value, len(v))
		for i := range v {
			items[i] = v[i : i+1 : i+1]
		}
		return items
	}
	s.fail("%s cannot be iterated over; a str, list, tuple or dict can", typeName(v))
	return nil
}

// holds reports whether a comparison holds.
func (s *state) holds(op string, a, b Value) bool {
	switch op {
	case "==":
		return s.equal(a, b)
	case "!=":
		return !s.equal(a, b)
	case "in":
		return s.contains(b, a)
	case "not in":
		return !s.contains(b, a)
	}
	s.defined(a)
	s.defined(b)
	c := s.compare(a, b)
	return c < 0 && op[0] == '<' || c > 0 && op[0] == '>' || c == 0 && len(op) == 2
}

// contains is v in c.
func (s *state) contains(c, v Value) bool {
	switch c := c.(type) {
	case undefined:
		return false
	case *List:
		return slices.ContainsFunc(c.Items, func(x Value) bool { return s.equal(x, v) })
	case *Map:
		_, ok := s.get(c, v)
		return ok
	case Text:
		if sub, ok := v.(Text); ok {
			s.copied(2 * (len(c) + len(sub)))
			return strings.Contains(c.String(), sub.String())
		}
	}
	s.fail("%s cannot be in %s", typeName(v), typeName(c))
	return false
}

// repeat is t * n of Python.
func (s *state) repeat(t Text, n int64) Text {
	if len(t) == 0 || n <= 0 {
		return nil
	}
	if n > int64(s.left)*12/int64(len(t))+1 {
		s.spend(s.left + 1) // the product would not fit int
	}
	s.copied(int(n) * len(t))
	return slices.Repeat(t, int(n))
}

// binary is a op b, for the operators + - * / // % ** of Python and ~ of Jinja.
func (s *state) binary(op string, a, b Value) Value {
	x, y := unmarked(a), unmarked(b)
	if marked := isA[markup](a) || isA[markup](b); marked && op == "+" && isA[Text](x) && isA[Text](y) {
		return markup(s.extend(s.escape(a), s.escape(b)))
	} else if marked {
		return s.binary(op, x, y)
	}
	if op == "~" {
		x, y := s.str(a), s.str(b)
		s.copied(len(x) + len(y))
		return slices.Concat(x, y)
	}
	s.defined(a)
	s.defined(b)
	switch x := a.(type) {
	case Text:
		if y, ok := b.(Text); ok && op == "+" {
			s.copied(len(x) + len(y))
			return slices.Concat(x, y)
		}
		if n, ok := integer(b); ok && op == "*" {
			return s.repeat(x, n)
		}
		if op == "%" {
			return s.formatted(x, b)
		}
	case *List:
		if y, ok := b.(*List); ok && op == "+" && typeName(x) == typeName(y) && !x.once {
			s.copied(12 * (len(x.Items) + len(y.Items)))
			return &List{Items: slices.Concat(x.Items, y.Items), Tuple: x.Tuple}
		}
	}
	return s.arithmetic(op, a, b)
}

// negative is -v.
func (s *state) negative(v Value) Value {
	if f, ok := v.(float64); ok {
		return -f
	}
	return s.binary("-", int64(0), v)
}

// unmarked returns a value as it is outside of a sum.
func unmarked(v Value) Value {
	if t, ok := v.(markup); ok {
		return Text(t)
	}
	return v
}

var htmlEscapes = map[rune]string{'&': "&amp;", '<': "&lt;", '>': "&gt;", '"': "&#34;", '\'': "&#39;"}

// escape returns a text that is added to a markup, or is one.
func (s *state) escape(v Value) Text {
	if t, ok := v.(markup); ok {
		return slices.Clone(Text(t))
	}
	t := v.(Text)
	s.copied(len(t))
	out := t.escaped(0, func(c rune) string { return htmlEscapes[c] })
	return out[1 : len(out)-1]
}

// integers computes with ints. Results beyond 64 bits are refused.
func (s *state) integers(op string, i, j int64) int64 {
	x, y := big.NewInt(i), big.NewInt(j)
	switch op {
	case "+":
		x.Add(x, y)
	case "-":
		x.Sub(x, y)
	case "*":
		x.Mul(x, y)
	case "**":
		if x = power(x, j); x == nil {
			s.fail("%d %s %d is out of range; ints have 64 bits", i, op, j)
		}
	case "%", "//":
		if j == 0 {
			s.fail("%d %s 0: division by zero", i, op)
		}
		div, mod := new(big.Int).QuoRem(x, y, new(big.Int))
		if mod.Sign()*y.Sign() < 0 {
			mod.Add(mod, y)
			div.Sub(div, big.NewInt(1))
		}
		if x = mod; op == "//" {
			x = div
		}
	}
	if !x.IsInt64() {
		s.fail("%d %s %d is out of range; ints have 64 bits", i, op, j)
	}
	return x.Int64()
}
