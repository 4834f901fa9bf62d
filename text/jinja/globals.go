package jinja

import (
	"strings"
	"time"
)

// globals are the functions that every template has.
var globals = map[string]Value{
	"range":           &function{"range", globalRange},
	"namespace":       &function{"namespace", globalNamespace},
	"raise_exception": &function{"raise_exception", globalRaise},
}

// call calls a value.
func (s *state) call(v Value, a args) Value {
	s.defined(v)
	f, ok := v.(*function)
	if !ok {
		s.fail("%s cannot be called; a macro, function or method can", typeName(v))
	}
	a.of = f.name
	return f.call(s, a)
}

// globalRange is range(end), range(begin, end) or range(begin, end, step).
func globalRange(s *state, a args) Value {
	n := len(a.pos)
	if n == 0 || n > 3 || len(a.names) > 0 {
		s.fail("range: %d arguments, %d of them with a name; it takes 1 to 3 without a name", n+len(a.names), len(a.names))
	}
	bound := func(i int) int64 { return s.argument(a.of, "a bound", a.pos[i], int64(0)).(int64) }
	from, to, step := int64(0), bound(0), int64(1)
	if n > 1 {
		from, to = to, bound(1)
	}
	if n > 2 {
		step = bound(2)
	}
	if step == 0 {
		s.fail("range: the step is 0; it needs another int")
	}
	l := &List{}
	for i := from; step > 0 && i < to || step < 0 && i > to; {
		s.spend(2)
		l.Items = append(l.Items, i)
		next := i + step
		if (next > i) != (step > 0) { // overflow
			break
		}
		i = next
	}
	return l
}

func globalNamespace(s *state, a args) Value {
	if len(a.pos) > 0 {
		s.fail("namespace: an argument without a name: not supported; name it")
	}
	n := &namespace{map[string]Value{}}
	for i, name := range a.names {
		n.vars[name] = a.named[i]
	}
	return n
}

// maxRaised bounds the message of an exception, in characters.
const maxRaised = 1000

func globalRaise(s *state, a args) Value {
	text := s.str(a.bind(s, []string{"message"})[0])
	panic(&RaisedError{text[:min(len(text), maxRaised)].String()})
}

// directives are the letters of strftime, each with the layout of package time.
var directives = map[byte]string{
	'd': "02", 'm': "01", 'y': "06", 'Y': "2006", 'b': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday",
	'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'j': "002",
}

// strftimeNow is strftime_now(format), at a time.
func strftimeNow(now time.Time) *function {
	return &function{"strftime_now", func(s *state, a args) Value {
		format := s.argument(a.of, "format", a.bind(s, []string{"format"})[0], needed{Text(nil)}).(Text).String()
		s.spend(len(format))
		var b strings.Builder
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 == len(format) {
				b.WriteByte(format[i])
				continue
			}
			i++
			layout, ok := directives[format[i]]
			if !ok && format[i] != '%' {
				s.fail("strftime_now: %q: not supported; use one of the letters dmyYbBaAHIMSpj, or %%%%", "%"+format[i:i+1])
			}
			b.WriteString(now.Format(layout))
			if !ok {
				b.WriteByte('%')
			}
		}
		return Text(b.String())
	}}
}

// loop is the variable loop.
type loop struct {
	items []Value
	at    int
}

// attribute returns an attribute of the variable loop, and whether it exists.
func (l *loop) attribute(name string) (Value, bool) {
	n := len(l.items)
	neighbour := func(i int) Value {
		if i < 0 || i >= n {
			return undefined{"loop." + name}
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
	case "previtem":
		return neighbour(l.at - 1), true
	case "nextitem":
		return neighbour(l.at + 1), true
	case "cycle":
		return &function{"cycle", func(s *state, a args) Value {
			if len(a.pos) == 0 {
				s.fail("cycle: no arguments; it needs one or more")
			}
			return a.pos[l.at%len(a.pos)]
		}}, true
	}
	return nil, false
}

// macro is the definition of a macro, or of the body of a call block.
type macro struct {
	name     string
	params   []string
	defaults []expr // of the last parameters
	body     block
}

// function makes a function of a macro. Its body sees the names of the scope in which it is defined.
func (m *macro) function(s *state) *function {
	home := s.scope
	return &function{m.name, func(s *state, a args) Value {
		s.enter()
		defer s.leave()
		caller, called := a.take("caller")
		given := a.bind(s, m.params)
		return s.capture(func() {
			s.within(home, func() {
				if called {
					s.scope.set("caller", caller)
				}
				for i, name := range m.params {
					s.scope.set(name, m.argument(s, i, given[i]))
				}
				m.body.run(s)
			})
		})
	}}
}

// argument returns the value of parameter i.
func (m *macro) argument(s *state, i int, given Value) Value {
	if !isA[absent](given) {
		return given
	}
	if k := i - (len(m.params) - len(m.defaults)); k >= 0 {
		return m.defaults[k](s)
	}
	return undefined{m.params[i]}
}
