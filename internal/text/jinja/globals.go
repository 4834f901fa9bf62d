package jinja

import (
	"regexp"
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
	bounds := [3]int64{0, 0, 1}
	for i, v := range a.pos {
		bounds[i] = s.argument(a.of, "a bound", v, int64(0)).(int64)
	}
	from, to, step := bounds[0], bounds[1], bounds[2]
	if n == 1 {
		from, to = 0, from
	}
	if step == 0 {
		s.fail("range: the step is 0; it needs another int")
	}
	l := &List{}
	for i := from; step > 0 && i < to || step < 0 && i > to; i = s.integers("+", i, step) {
		s.spend(2)
		l.Items = append(l.Items, i)
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

// directive matches a directive of strftime. directives has the layout of package time for each letter.
var (
	directive  = regexp.MustCompile(`(?s)%.`)
	directives = map[string]string{
		"d": "02", "m": "01", "y": "06", "Y": "2006", "b": "Jan", "B": "January", "a": "Mon", "A": "Monday",
		"H": "15", "I": "03", "M": "04", "S": "05", "p": "PM", "j": "002", "%": "%",
	}
)

// strftimeNow is strftime_now(format), at a time.
func strftimeNow(now time.Time) *function {
	return &function{"strftime_now", func(s *state, a args) Value {
		format := s.argument(a.of, "format", a.bind(s, []string{"format"})[0], needed{Text(nil)}).(Text).String()
		s.spend(len(format))
		return Text(directive.ReplaceAllStringFunc(format, func(d string) string {
			layout, ok := directives[d[1:]]
			if !ok {
				s.fail("strftime_now: %q: not supported; use one of the letters dmyYbBaAHIMSpj, or %%%%", d)
			}
			return now.Format(layout)
		}))
	}}
}

// loop is the variable loop.
type loop struct {
	items []Value
	at    int
}

// loopAttributes are the attributes of the variable loop.
var loopAttributes = map[string]func(l *loop) Value{
	"index":     func(l *loop) Value { return int64(l.at + 1) },
	"index0":    func(l *loop) Value { return int64(l.at) },
	"revindex":  func(l *loop) Value { return int64(len(l.items) - l.at) },
	"revindex0": func(l *loop) Value { return int64(len(l.items) - l.at - 1) },
	"first":     func(l *loop) Value { return l.at == 0 },
	"last":      func(l *loop) Value { return l.at == len(l.items)-1 },
	"length":    func(l *loop) Value { return int64(len(l.items)) },
	"previtem":  func(l *loop) Value { return end(l.items[:l.at], false) },
	"nextitem":  func(l *loop) Value { return end(l.items[l.at+1:], true) },
	"cycle": func(l *loop) Value {
		return &function{"cycle", func(s *state, a args) Value {
			if len(a.pos) == 0 {
				s.fail("cycle: no arguments; it needs one or more")
			}
			return a.pos[l.at%len(a.pos)]
		}}
	},
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
