package value

import (
	"math"
	"slices"
)

// Put sets a key of a dictionary.
func (s *Steps) Put(m *Map, key, v Value) {
	if t, ok := key.(Text); ok {
		s.Copied(len(t))
	}
	if !m.Set(key, v) {
		s.Fail("%s cannot be a key", TypeName(key))
	}
}

// Get looks a key up.
func (s *Steps) Get(m *Map, key Value) (Value, bool) {
	if t, ok := key.(Text); ok {
		s.Copied(len(t))
	}
	return m.Get(key)
}

// Attribute is v.name: what Python's objects have of that name, then an entry.
func (s *Steps) Attribute(v Value, name string) Value {
	s.Defined(v)
	switch v := v.(type) {
	case Object:
		if x, ok := v.Attribute(name); ok {
			return x
		}
	case *Map:
		if f, ok := dictMethods[name]; ok {
			return &Function{name, func(s *Steps, a Args) Value { return f(s, v, a) }}
		}
		if x, ok := v.Get(Text(name)); ok {
			return x
		}
	case Text:
		if f, ok := textMethods[name]; ok {
			return &Function{name, func(s *Steps, a Args) Value { return f(s, v, a) }}
		}
	case *List:
		if f, ok := listMethods[name]; ok {
			return &Function{name, func(s *Steps, a Args) Value { return f(s, v, a) }}
		}
	}
	return Undefined{TypeName(v) + " has no attribute " + name}
}

// Defined refuses an Undefined value, where one is used.
func (s *Steps) Defined(v Value) {
	if u, ok := v.(Undefined); ok {
		s.Fail("%.200s is undefined", u.What)
	}
}

// Index is v[at]: an entry, then what attribute finds.
func (s *Steps) Index(v, at Value) Value {
	s.Defined(v)
	if m, ok := v.(*Map); ok {
		if x, ok := s.Get(m, at); ok {
			return x
		}
	}
	if i, ok := Integer(at); ok {
		n := int64(-1)
		switch v := v.(type) {
		case *List:
			if n = int64(len(v.Items)); i < 0 {
				i += n
			}
			if 0 <= i && i < n {
				return v.Items[i]
			}
		case Text:
			if n = int64(len(v)); i < 0 {
				i += n
			}
			if 0 <= i && i < n {
				return v[i : i+1 : i+1]
			}
		}
		return Undefined{TypeName(v) + " has no such element"}
	}
	if name, ok := at.(Text); ok {
		return s.Attribute(v, s.Plain(name))
	}
	return Undefined{TypeName(v) + " has no such element"}
}

// Slice is v[lo:hi:step] of Python; a bound of nil (None) is left out.
func (s *Steps) Slice(v, lo, hi, step Value) Value {
	s.Defined(v)
	bound := func(v Value) *int64 {
		if v == nil {
			return nil
		}
		i, ok := Integer(v)
		if !ok {
			s.Fail("a slice has the bound %s", TypeName(v))
		}
		return &i
	}
	from, to, by := bound(lo), bound(hi), bound(step)
	switch v := v.(type) {
	case *List:
		return &List{slice(s, v.Items, from, to, by), v.Tuple}
	case Text:
		return Text(slice(s, v, from, to, by))
	}
	s.Fail("cannot slice %s", TypeName(v))
	return nil
}

// slice is x[lo:hi:step] of Python.
func slice[T any](s *Steps, x []T, lo, hi, step *int64) []T {
	n, by := int64(len(x)), int64(1)
	if step != nil {
		by = *step
	}
	if by == 0 {
		s.Fail("a slice has the step 0")
	}
	first, last := int64(0), n // where it may begin and end
	if by < 0 {
		first, last = -1, n-1
	}
	clamp := func(p *int64, otherwise int64) int64 {
		if p == nil {
			return otherwise
		}
		i := *p
		if i < 0 {
			i += n
		}
		return max(first, min(last, i))
	}
	from, to := clamp(lo, first), clamp(hi, last)
	if by < 0 {
		from, to = clamp(lo, last), clamp(hi, first)
	}
	s.Copied(len(x))
	if by == 1 {
		return x[from:max(from, to):max(from, to)]
	}
	var out []T
	for i := from; by > 0 && i < to || by < 0 && i > to; {
		out = append(out, x[i])
		if next := i + by; by > 0 && next < i || by < 0 && next > i { // overflow
			break
		}
		i += by
	}
	return out
}

// Items returns what iterating over a value gives. It must not be changed.
func (s *Steps) Items(v Value) []Value {
	switch v := v.(type) {
	case Undefined:
		return nil
	case *List:
		s.Copied(len(v.Items))
		return v.Items
	case *Map:
		s.Copied(len(v.keys))
		return v.keys
	case Text:
		s.Spend(len(v))
		items := make([]Value, len(v))
		for i := range v {
			items[i] = v[i : i+1 : i+1]
		}
		return items
	}
	s.Fail("cannot iterate over %s", TypeName(v))
	return nil
}

// Holds tells whether a comparison holds.
func (s *Steps) Holds(op string, a, b Value) bool {
	switch op {
	case "==":
		return s.Equal(a, b)
	case "!=":
		return !s.Equal(a, b)
	case "in":
		return s.Contains(b, a)
	case "not in":
		return !s.Contains(b, a)
	}
	s.Defined(a)
	s.Defined(b)
	c := s.Compare(a, b)
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// Contains is v in c.
func (s *Steps) Contains(c, v Value) bool {
	switch c := c.(type) {
	case Undefined:
		return false
	case *List:
		return slices.ContainsFunc(c.Items, func(x Value) bool { return s.Equal(x, v) })
	case *Map:
		_, ok := s.Get(c, v)
		return ok
	case Text:
		sub, ok := v.(Text)
		if !ok {
			s.Fail("%s cannot be in a str", TypeName(v))
		}
		return s.find(c, sub, 0) >= 0
	}
	s.Fail("cannot look into %s", TypeName(c))
	return false
}

// find returns where sub first begins in t, not before from, or -1.
func (s *Steps) find(t, sub Text, from int) int {
	compared := 0
	for i := from; i+len(sub) <= len(t); i++ {
		k := 0
		for k < len(sub) && (t[i+k]^sub[k])&^marked == 0 {
			k++
		}
		if compared += k + 1; compared > 1000 {
			s.Copied(compared)
			compared = 0
		}
		if k == len(sub) {
			s.Copied(compared)
			return i
		}
	}
	s.Copied(compared)
	return -1
}

// Repeat is v * n of strings and lists.
func (s *Steps) Repeat(v, times Value) (Value, bool) {
	n, ok := Integer(times)
	if !ok {
		return nil, false
	}
	room := func(size int) int {
		if size == 0 || n <= 0 {
			return 0
		}
		if n > int64(s.Left)*12/int64(size)+1 {
			s.Spend(s.Left + 1)
		}
		s.Copied(int(n) * size)
		return int(n)
	}
	switch v := v.(type) {
	case Text:
		return Text(slices.Repeat(v, room(len(v)))), true
	case *List:
		return &List{slices.Repeat(v.Items, room(12*len(v.Items))), v.Tuple}, true
	}
	return nil, false
}

// Unary is +v or -v.
func (s *Steps) Unary(op string, v Value) Value {
	s.Defined(v)
	i, isInt := Integer(v)
	f, ok := Number(v)
	switch {
	case !ok:
		s.Fail("%s has no sign", TypeName(v))
	case isInt && op == "-":
		return -i
	case isInt:
		return i
	case op == "-":
		return -f
	}
	return f
}

// Binary is a op b, for the operators + - * / // % ** of Python and ~ of templates.
func (s *Steps) Binary(op string, a, b Value) Value {
	if op == "~" {
		x, y := s.Str(a), s.Str(b)
		s.Copied(len(x) + len(y))
		return slices.Concat(x, y)
	}
	s.Defined(a)
	s.Defined(b)
	switch x := a.(type) {
	case Text:
		if y, ok := b.(Text); ok && op == "+" {
			s.Copied(len(x) + len(y))
			return slices.Concat(x, y)
		}
		if op == "%" {
			return s.Format(x, b)
		}
	case *List:
		if y, ok := b.(*List); ok && op == "+" && x.Tuple == y.Tuple {
			s.Copied(12 * (len(x.Items) + len(y.Items)))
			return &List{slices.Concat(x.Items, y.Items), x.Tuple}
		}
	}
	if op == "*" {
		if v, ok := s.Repeat(a, b); ok {
			return v
		}
		if v, ok := s.Repeat(b, a); ok {
			return v
		}
	}
	if v, ok := s.arithmetic(op, a, b); ok {
		return v
	}
	s.Fail("cannot compute %s %s %s", TypeName(a), op, TypeName(b))
	return nil
}

// arithmetic computes with numbers. Integers beyond 64 bits are refused.
func (s *Steps) arithmetic(op string, a, b Value) (Value, bool) {
	i, okI := Integer(a)
	j, okJ := Integer(b)
	if okI && okJ && op != "/" && !(op == "**" && j < 0) {
		return s.integers(op, i, j), true
	}
	x, okX := Number(a)
	y, okY := Number(b)
	if !okX || !okY {
		return nil, false
	}
	if y == 0 && (op == "/" || op == "//" || op == "%") {
		s.Fail("division by zero")
	}
	switch op {
	case "+":
		return x + y, true
	case "-":
		return x - y, true
	case "*":
		return x * y, true
	case "/":
		return x / y, true
	case "//":
		return math.Floor(x / y), true
	case "%":
		return x - y*math.Floor(x/y), true
	}
	return math.Pow(x, y), true
}

func (s *Steps) integers(op string, i, j int64) int64 {
	var r int64
	fits := true
	switch op {
	case "+":
		r = i + j
		fits = (r > i) == (j > 0)
	case "-":
		r = i - j
		fits = (r < i) == (j > 0)
	case "*":
		r = multiply(i, j, &fits)
	case "**":
		r = 1
		for ; j > 0 && fits && i != 1 && !(i == 0 || i == -1 && j%2 == 0); j-- {
			r = multiply(r, i, &fits)
		}
		if j > 0 && i == 0 {
			r = 0
		}
	default:
		if j == 0 {
			s.Fail("division by zero")
		}
		if r = i / j; i%j != 0 && (i < 0) != (j < 0) {
			r--
		}
		if op == "%" {
			r = i - r*j
		}
	}
	if !fits {
		s.Fail("%d %s %d is out of range", i, op, j)
	}
	return r
}

func multiply(i, j int64, fits *bool) int64 {
	r := i * j
	if i != 0 && (r/i != j || i == -1 && j == math.MinInt64) {
		*fits = false
	}
	return r
}
