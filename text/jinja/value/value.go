// Package value computes with the values of Python that templates know, as far as a render may still go.
package value

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Value is what a template computes with: nil (None), bool, int64, float64, [Text], [*List], [*Map], and
// what templates make themselves (namespaces, macros, loops).
type Value = any

// Text is a string, as code points. The characters that came from outside the template carry a mark.
type Text []rune

// marked is set in a code point that came from outside the template.
const marked = 1 << 30

// Template returns s as text that counts as the template's own.
func Template(s string) Text { return Text(s) }

// Input returns s as text from outside the template; bytes that are not UTF-8 become U+FFFD.
func Input(s string) Text {
	t := Text(s)
	for i := range t {
		t[i] |= marked
	}
	return t
}

// String returns the text without its marks.
func (t Text) String() string {
	var b strings.Builder
	b.Grow(len(t))
	for _, r := range t {
		b.WriteRune(r &^ marked)
	}
	return b.String()
}

// Span is a stretch of bytes of a string.
type Span struct{ From, To int }

// Inputs returns where in String() the characters lie that came from outside the template, in order.
func (t Text) Inputs() []Span {
	var spans []Span
	at := 0
	for i, r := range t {
		next := at + len(string(r&^marked))
		if r&marked != 0 {
			if i > 0 && t[i-1]&marked != 0 {
				spans[len(spans)-1].To = next
			} else {
				spans = append(spans, Span{at, next})
			}
		}
		at = next
	}
	return spans
}

// hasAt tells whether the text reads sub from i on.
func (t Text) hasAt(i int, sub Text) bool {
	if i < 0 || i+len(sub) > len(t) {
		return false
	}
	for k, r := range sub {
		if (t[i+k]^r)&^marked != 0 {
			return false
		}
	}
	return true
}

// List is a list or, if Tuple is set, a tuple.
type List struct {
	Items []Value
	Tuple bool
}

// Map is a dictionary, which keeps its entries in the order in which they were first set. The zero value is
// empty.
type Map struct {
	keys, values []Value
	index        map[Value]int // of a key that hash has made comparable
}

// Entries returns the keys and their values, in order. They must not be changed.
func (m *Map) Entries() (keys, values []Value) { return m.keys, m.values }

// Len returns the number of entries.
func (m *Map) Len() int { return len(m.keys) }

// Set gives a key its value. It reports whether a key of this type can be one.
func (m *Map) Set(key, v Value) bool {
	h, ok := hash(key)
	if !ok {
		return false
	}
	if at, ok := m.index[h]; ok {
		m.values[at] = v
		return true
	}
	if m.index == nil {
		m.index = map[Value]int{}
	}
	m.index[h] = len(m.keys)
	m.keys, m.values = append(m.keys, key), append(m.values, v)
	return true
}

// Get returns the value of a key.
func (m *Map) Get(key Value) (Value, bool) {
	h, ok := hash(key)
	if !ok {
		return nil, false
	}
	at, ok := m.index[h]
	if !ok {
		return nil, false
	}
	return m.values[at], true
}

// hash returns what stands for a key in Go's maps: equal keys, such as 1, 1.0 and True, have equal hashes.
func hash(key Value) (Value, bool) {
	switch k := key.(type) {
	case nil:
		return nil, true
	case bool:
		return toInt(k), true
	case int64:
		return k, true
	case float64:
		if k == math.Trunc(k) && math.Abs(k) < 1<<62 {
			return int64(k), true
		}
		return k, true
	case Text:
		return k.String(), true
	}
	return nil, false
}

// Undefined is the value of a name, key or attribute that is not there.
type Undefined struct{ What string }

// Object is a value that has attributes of its own making.
type Object interface {
	Attribute(name string) (Value, bool)
	TypeName() string
}

// Function is something to call.
type Function struct {
	Name string
	Call func(s *Steps, a Args) Value
}

func toInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// TypeName is the Python name of a value's type, for messages.
func TypeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case Undefined:
		return "undefined"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case Text:
		return "str"
	case *List:
		if v.Tuple {
			return "tuple"
		}
		return "list"
	case *Map:
		return "dict"
	case Object:
		return v.TypeName()
	}
	return "function"
}

// Truth is bool(v) of Python.
func Truth(v Value) bool {
	switch v := v.(type) {
	case nil, Undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case Text:
		return len(v) > 0
	case *List:
		return len(v.Items) > 0
	case *Map:
		return v.Len() > 0
	}
	return true
}

// Str is str(v) of Python.
func (s *Steps) Str(v Value) Text {
	switch v := v.(type) {
	case Text:
		return v
	case Undefined:
		return nil
	}
	return s.repr(v)
}

// repr is repr(v) of Python.
func (s *Steps) repr(v Value) Text {
	s.Enter()
	defer s.Leave()
	switch v := v.(type) {
	case nil:
		return Text("None")
	case Undefined:
		return Text("Undefined")
	case bool:
		if v {
			return Text("True")
		}
		return Text("False")
	case int64:
		return Text(strconv.FormatInt(v, 10))
	case float64:
		return Text(formatFloat(v, "nan", "inf"))
	case Text:
		s.Copied(len(v))
		return quote(v)
	case *List:
		out := Text{'['}
		if v.Tuple {
			out[0] = '('
		}
		for i, x := range v.Items {
			if i > 0 {
				out = append(out, ',', ' ')
			}
			out = s.Extend(out, s.repr(x))
		}
		switch {
		case v.Tuple && len(v.Items) == 1:
			return append(out, ',', ')')
		case v.Tuple:
			return append(out, ')')
		}
		return append(out, ']')
	case *Map:
		out := Text{'{'}
		for i, k := range v.keys {
			if i > 0 {
				out = append(out, ',', ' ')
			}
			out = append(s.Extend(out, s.repr(k)), ':', ' ')
			out = s.Extend(out, s.repr(v.values[i]))
		}
		return append(out, '}')
	}
	return Text("<" + TypeName(v) + ">")
}

// quote is repr of a string.
func quote(t Text) Text {
	q := '\''
	plain := t.String()
	if strings.Contains(plain, "'") && !strings.Contains(plain, `"`) {
		q = '"'
	}
	out := Text{q}
	for _, r := range t {
		m, c := r&marked, r&^marked
		escaped := ""
		switch {
		case c == q || c == '\\':
			escaped = `\` + string(c)
		case c == '\n':
			escaped = `\n`
		case c == '\r':
			escaped = `\r`
		case c == '\t':
			escaped = `\t`
		case c == ' ' || unicode.IsPrint(c):
		case c < 0x100:
			escaped = fmt.Sprintf(`\x%02x`, c)
		case c < 0x10000:
			escaped = fmt.Sprintf(`\u%04x`, c)
		default:
			escaped = fmt.Sprintf(`\U%08x`, c)
		}
		if escaped == "" {
			out = append(out, r)
		}
		for _, e := range escaped {
			out = append(out, e|m)
		}
	}
	return append(out, q)
}

// formatFloat writes a number as Python does.
func formatFloat(f float64, nan, inf string) string {
	switch {
	case math.IsNaN(f):
		return nan
	case math.IsInf(f, 1):
		return inf
	case math.IsInf(f, -1):
		return "-" + inf
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// Number returns a number, or a bool as one, as a float.
func Number(v Value) (float64, bool) {
	switch v := v.(type) {
	case bool:
		return float64(toInt(v)), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// Integer returns an int, or a bool as one.
func Integer(v Value) (int64, bool) {
	switch v := v.(type) {
	case bool:
		return toInt(v), true
	case int64:
		return v, true
	}
	return 0, false
}

// Equal is a == b of Python.
func (s *Steps) Equal(a, b Value) bool {
	s.Enter()
	defer s.Leave()
	if x, ok := Number(a); ok {
		if i, ok := Integer(a); ok {
			if j, ok := Integer(b); ok {
				return i == j
			}
		}
		y, ok := Number(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case Undefined:
		_, ok := b.(Undefined)
		return ok
	case Text:
		b, ok := b.(Text)
		if !ok || len(a) != len(b) {
			return false
		}
		s.Copied(len(a))
		return a.hasAt(0, b)
	case *List:
		b, ok := b.(*List)
		return ok && a.Tuple == b.Tuple && slices.EqualFunc(a.Items, b.Items, func(x, y Value) bool { return s.Equal(x, y) })
	case *Map:
		b, ok := b.(*Map)
		if !ok || a.Len() != b.Len() {
			return false
		}
		for i, k := range a.keys {
			if v, ok := b.Get(k); !ok || !s.Equal(a.values[i], v) {
				return false
			}
		}
		return true
	}
	return a == b
}

// Compare orders two values: below 0 where a < b. Values of different kinds have no order.
func (s *Steps) Compare(a, b Value) int {
	s.Enter()
	defer s.Leave()
	if i, ok := Integer(a); ok {
		if j, ok := Integer(b); ok {
			return order(i, j)
		}
	}
	if x, ok := Number(a); ok {
		if y, ok := Number(b); ok {
			return order(x, y)
		}
	}
	switch a := a.(type) {
	case Text:
		if b, ok := b.(Text); ok {
			s.Copied(min(len(a), len(b)))
			return slices.CompareFunc(a, b, func(x, y rune) int { return order(x&^marked, y&^marked) })
		}
	case *List:
		if b, ok := b.(*List); ok {
			return slices.CompareFunc(a.Items, b.Items, func(x, y Value) int { return s.Compare(x, y) })
		}
	}
	s.Fail("%s and %s have no order", TypeName(a), TypeName(b))
	return 0
}

func order[T int64 | float64 | rune](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
