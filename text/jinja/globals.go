package jinja

import (
	"strings"
	"time"

	"grove/text/jinja/value"
)

// globals are the functions that every template has.
var globals = map[string]value.Value{
	"range":           &value.Function{Name: "range", Call: globalRange},
	"dict":            &value.Function{Name: "dict", Call: func(s *value.Steps, a value.Args) value.Value { return makeDict(s, a) }},
	"namespace":       &value.Function{Name: "namespace", Call: globalNamespace},
	"raise_exception": &value.Function{Name: "raise_exception", Call: globalRaise},
}

func globalRange(s *value.Steps, a value.Args) value.Value {
	b := a.Bind(s, "range", "a", "b", "step")
	from, to := int64(0), s.IntArg("range", b[0], 0)
	if b[1] != value.Absent {
		from, to = to, s.IntArg("range", b[1], 0)
	}
	step := s.IntArg("range", b[2], 1)
	if step == 0 || b[0] == value.Absent {
		s.Fail("range needs an end, and a step that is not 0")
	}
	var items []value.Value
	for i := from; step > 0 && i < to || step < 0 && i > to; {
		s.Spend(2)
		items = append(items, i)
		next := i + step
		if (next > i) != (step > 0) { // overflow
			break
		}
		i = next
	}
	return &value.List{Items: items}
}

func makeDict(s *value.Steps, a value.Args) *value.Map {
	m := &value.Map{}
	if len(a.Pos) > 1 {
		s.Fail("dict takes one dict and names")
	}
	for _, v := range a.Pos {
		of, ok := v.(*value.Map)
		if !ok {
			s.Fail("dict of %s", value.TypeName(v))
		}
		keys, values := of.Entries()
		for i, k := range keys {
			s.Put(m, k, values[i])
		}
	}
	for i, name := range a.Names {
		s.Put(m, value.Text(name), a.Named[i])
	}
	return m
}

// namespace is the object whose attributes templates may set.
type namespace struct{ vars map[string]value.Value }

// TypeName implements [value.Object].
func (n *namespace) TypeName() string { return "namespace" }

// Attribute implements [value.Object].
func (n *namespace) Attribute(name string) (value.Value, bool) {
	v, ok := n.vars[name]
	return v, ok
}

func globalNamespace(s *value.Steps, a value.Args) value.Value {
	n := &namespace{map[string]value.Value{}}
	keys, values := makeDict(s, a).Entries()
	for i, k := range keys {
		if name, ok := k.(value.Text); ok {
			n.vars[name.String()] = values[i]
		}
	}
	return n
}

func globalRaise(s *value.Steps, a value.Args) value.Value {
	text := s.Str(a.Bind(s, "raise_exception", "message")[0])
	panic(&RaisedError{text[:min(len(text), 1000)].String()})
}

// directives are the letters of strftime and Go's words for them.
var directives = map[byte]string{
	'd': "02", 'm': "01", 'y': "06", 'Y': "2006", 'b': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday",
	'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'j': "002", 'Z': "MST", 'z': "-0700",
	'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06", 'R': "15:04",
	'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05", 'e': "_2",
}

// clock is strftime_now, at a time.
func clock(now time.Time) *value.Function {
	return &value.Function{Name: "strftime_now", Call: func(s *value.Steps, a value.Args) value.Value {
		format := s.TextArg("strftime_now", a.Bind(s, "strftime_now", "format")[0], "")
		s.Spend(len(format))
		return value.Text(formatTime(s, now, s.Plain(format)))
	}}
}

func formatTime(s *value.Steps, t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		short := format[i] == '-' && i+1 < len(format) // without the zeros in front
		if short {
			i++
		}
		layout, ok := directives[format[i]]
		switch {
		case format[i] == '%':
			b.WriteByte('%')
		case !ok:
			s.Fail("strftime_now does not know %q", "%"+format[i:i+1])
		case short:
			text := strings.TrimLeft(t.Format(layout), "0")
			if text == "" {
				text = "0"
			}
			b.WriteString(text)
		default:
			b.WriteString(t.Format(layout))
		}
	}
	return b.String()
}

// TypeName implements [value.Object].
func (l *loop) TypeName() string { return "loop" }

// Attribute implements [value.Object].
func (l *loop) Attribute(name string) (value.Value, bool) {
	n := len(l.items)
	neighbour := func(i int) value.Value {
		if i < 0 || i >= n {
			return value.Undefined{What: "loop." + name}
		}
		return l.items[i]
	}
	switch name {
	case "index":
		return int64(l.at + 1), true
	case "index0":
		return int64(l.at), true
	case "revindex":
		return int64(n - l.at), true
	case "revindex0":
		return int64(n - l.at - 1), true
	case "first":
		return l.at == 0, true
	case "last":
		return l.at == n-1, true
	case "length":
		return int64(n), true
	case "depth":
		return int64(l.depth + 1), true
	case "depth0":
		return int64(l.depth), true
	case "previtem":
		return neighbour(l.at - 1), true
	case "nextitem":
		return neighbour(l.at + 1), true
	case "cycle":
		return &value.Function{Name: name, Call: func(s *value.Steps, a value.Args) value.Value {
			if len(a.Pos) == 0 {
				s.Fail("cycle needs values")
			}
			return a.Pos[l.at%len(a.Pos)]
		}}, true
	case "changed":
		return &value.Function{Name: name, Call: func(s *value.Steps, a value.Args) value.Value {
			var now value.Value = &value.List{Items: a.Pos, Tuple: true}
			same := l.changed != nil && s.Equal(*l.changed, now)
			l.changed = &now
			return !same
		}}, true
	}
	return nil, false
}
