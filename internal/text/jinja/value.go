package jinja

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Value is a value of a template: nil (None), bool, int64, float64, [Text], [*List] or [*Map]. Templates make further ones,
// such as namespaces and macros, which never leave the package.
type Value = any

// List is a list or, if Tuple is set, a tuple.
type List struct {
	Items []Value
	Tuple bool
	once  bool // a generator: it can be iterated over once, and is nothing else
}

// markup is a text that the filter safe made within a sum: what is added to it is escaped for HTML.
type markup Text

// Map is a dict. It keeps its entries in the order in which they were first set. The zero value is empty.
type Map struct {
	keys, values []Value
	index        map[any]int // of keys as key returns them
}

// Len returns the number of entries.
func (m *Map) Len() int { return len(m.keys) }

// key returns a comparable form of a key. Strings, ints, bools and None can be keys; True is the key 1, as in Python.
func key(k Value) (any, bool) {
	if i, ok := integer(k); ok {
		return i, true
	}
	if t, ok := k.(Text); ok {
		return t.String(), true
	}
	return nil, k == nil
}

// Set gives a key its value. It reports whether the key can be one: a string, int, bool or None.
func (m *Map) Set(k, v Value) bool {
	h, ok := key(k)
	if !ok {
		return false
	}
	if at, ok := m.index[h]; ok {
		m.values[at] = v
		return true
	}
	if m.index == nil {
		m.index = map[any]int{}
	}
	m.index[h] = len(m.keys)
	m.keys, m.values = append(m.keys, k), append(m.values, v)
	return true
}

// Get returns the value of a key.
func (m *Map) Get(k Value) (Value, bool) {
	if h, ok := key(k); ok {
		if at, ok := m.index[h]; ok {
			return m.values[at], true
		}
	}
	return nil, false
}

// undefined is the value of a name, key or attribute that does not exist.
type undefined struct{ what string }

// namespace is the object whose attributes templates may set.
type namespace struct{ vars map[string]Value }

// function is a value that can be called.
type function struct {
	name string
	call func(s *state, a args) Value
}

var typeNames = map[string]string{
	"<nil>": "None", "int64": "int", "float64": "float", "jinja.Text": "str", "*jinja.List": "list", "*jinja.Map": "dict",
}

// typeName returns the Python name of a value's type, for errors.
func typeName(v Value) string {
	if l, ok := v.(*List); ok && l.Tuple {
		return "tuple"
	} else if ok && l.once {
		return "generator"
	}
	name := fmt.Sprintf("%T", v)
	return cmp.Or(typeNames[name], strings.TrimPrefix(strings.TrimPrefix(name, "*"), "jinja."))
}

// truth is bool(v) of Python.
func truth(v Value) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case Text:
		return len(v) > 0
	case *List:
		return v.once || len(v.Items) > 0
	case *Map:
		return v.Len() > 0
	}
	f, ok := number(v)
	return !ok || f != 0
}

// str is str(v) of Python.
func (s *state) str(v Value) Text {
	if t, ok := v.(Text); ok || isA[undefined](v) {
		return t
	}
	return s.repr(v)
}

// repr is repr(v) of Python.
func (s *state) repr(v Value) Text {
	switch v := v.(type) {
	case nil:
		return Text("None")
	case bool:
		return Text(map[bool]string{true: "True", false: "False"}[v])
	case int64:
		return Text(strconv.FormatInt(v, 10))
	case float64:
		return Text(formatFloat(v))
	case Text:
		s.copied(len(v))
		return quote(v)
	case undefined:
		return Text("Undefined")
	case *List, *Map:
		w := &writer{s: s, comma: Text(", "), colon: Text(": "), scalar: s.repr}
		w.value(v, 0)
		return w.out
	}
	return Text("<" + typeName(v) + ">")
}

var quoteEscapes = map[rune]string{'\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// quote is repr of a string.
func quote(t Text) Text {
	q := '\''
	if plain := t.String(); strings.Contains(plain, "'") && !strings.Contains(plain, `"`) {
		q = '"'
	}
	return t.escaped(q, func(c rune) string {
		short, ok := quoteEscapes[c]
		switch {
		case ok:
			return short
		case c == q:
			return `\` + string(c)
		case c == ' ' || unicode.IsPrint(c):
			return ""
		case c < 0x100:
			return fmt.Sprintf(`\x%02x`, c)
		case c < 0x10000:
			return fmt.Sprintf(`\u%04x`, c)
		}
		return fmt.Sprintf(`\U%08x`, c)
	})
}

// formatFloat writes a finite number as Python does.
func formatFloat(f float64) string {
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// integer returns an int, or a bool as one; number returns a number, or a bool as one, as a float.
func integer(v Value) (int64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return v, true
	}
	return 0, false
}

func number(v Value) (float64, bool) {
	if f, ok := v.(float64); ok {
		return f, true
	}
	i, ok := integer(v)
	return float64(i), ok
}

// equal is a == b of Python.
func (s *state) equal(a, b Value) bool {
	s.enter()
	defer s.leave()
	if x, ok := number(a); ok {
		i, okI := integer(a)
		j, okJ := integer(b)
		if okI && okJ {
			return i == j
		}
		y, ok := number(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case undefined:
		return isA[undefined](b)
	case Text:
		b, ok := b.(Text)
		if !ok || len(a) != len(b) {
			return false
		}
		s.copied(len(a))
		return a.hasAt(0, b)
	case *List:
		b, ok := b.(*List)
		return ok && a.Tuple == b.Tuple && (!a.once && !b.once && slices.EqualFunc(a.Items, b.Items, s.equal) || a == b)
	case *Map:
		b, ok := b.(*Map)
		if !ok || a.Len() != b.Len() {
			return false
		}
		for i, k := range a.keys {
			if v, ok := b.Get(k); !ok || !s.equal(a.values[i], v) {
				return false
			}
		}
		return true
	}
	if isA[Text](b) || isA[undefined](b) {
		return false
	}
	return a == b // nil, and the same object
}

// compare orders two numbers or two strings: below 0 where a < b.
func (s *state) compare(a, b Value) int {
	s.spend(1)
	i, okI := integer(a)
	j, okJ := integer(b)
	if okI && okJ {
		return cmp.Compare(i, j)
	}
	x, okX := number(a)
	y, okY := number(b)
	if okX && okY {
		return cmp.Compare(x, y)
	}
	t, okT := a.(Text)
	u, okU := b.(Text)
	if !okT || !okU {
		s.fail("%s and %s have no order", typeName(a), typeName(b))
	}
	s.copied(min(len(t), len(u)))
	return slices.CompareFunc(t, u, func(x, y rune) int { return cmp.Compare(x&point, y&point) })
}

func isA[T any](v Value) bool {
	_, ok := v.(T)
	return ok
}
