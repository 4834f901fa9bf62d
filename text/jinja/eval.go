package jinja

import (
	"fmt"
	"slices"

	"grove/text/jinja/value"
)

// state is a render on its way.
type state struct {
	*value.Steps
	scope  *scope
	out    value.Text
	output int // characters that the output may have
}

// scope holds names; what it lacks is looked up in its parent.
type scope struct {
	vars   map[string]value.Value // made when first set, but for the outermost ones
	parent *scope
}

// lookup returns the value of a name.
func (s *state) lookup(name string) value.Value {
	far := 0
	for c := s.scope; c != nil; c = c.parent {
		if v, ok := c.vars[name]; ok {
			return v
		}
		if far++; far%16 == 0 {
			s.Spend(1)
		}
	}
	return value.Undefined{What: name}
}

func (c *scope) set(name string, v value.Value) {
	if c.vars == nil {
		c.vars = map[string]value.Value{}
	}
	c.vars[name] = v
}

// flow says how a loop goes on behind a statement.
type flow int

const (
	flowOn flow = iota
	flowBreak
	flowContinue
)

// eval evaluates an expression.
func (s *state) eval(line int, e expr) value.Value {
	s.Line = line
	s.Enter()
	v := e.eval(s)
	s.Leave()
	s.Line = line
	return v
}

// print appends text to the output.
func (s *state) print(t value.Text) {
	s.out = s.Extend(s.out, t)
	if len(s.out) > s.output {
		s.Exceed(fmt.Sprintf("more than %d characters", s.output))
	}
}

// run runs statements up to one that leaves the loop.
func (s *state) run(body []stmt) flow {
	for _, b := range body {
		if f := b.run(s); f != flowOn {
			return f
		}
	}
	return flowOn
}

// inner runs something in a scope within another.
func (s *state) inner(parent *scope, do func()) {
	outer := s.scope
	s.scope = &scope{parent: parent}
	do()
	s.scope = outer
}

// capture returns what something prints.
func (s *state) capture(do func()) value.Text {
	outer := s.out
	s.out = nil
	do()
	text := s.out
	s.out = outer
	return text
}

func (b dataStmt) run(s *state) flow {
	s.print(b.text)
	return flowOn
}

func (b printStmt) run(s *state) flow {
	s.print(s.Str(s.eval(b.line, b.e)))
	return flowOn
}

func (b setStmt) run(s *state) flow {
	s.Spend(1)
	if b.e != nil {
		s.assign(b.to, s.eval(b.line, b.e))
		return flowOn
	}
	var v value.Value = s.capture(func() { s.inner(s.scope, func() { s.run(b.body) }) })
	if b.filter != nil {
		v = b.filter.apply(s, v)
	}
	s.assign(b.to, v)
	return flowOn
}

// assign gives a target its value.
func (s *state) assign(to target, v value.Value) {
	s.Spend(1)
	switch {
	case to.parts != nil:
		items := s.Items(v)
		if len(items) != len(to.parts) {
			s.Fail("%d values for %d names", len(items), len(to.parts))
		}
		for i, t := range to.parts {
			s.assign(t, items[i])
		}
	case to.attr != "":
		n, ok := s.lookup(to.name).(*namespace)
		if !ok {
			s.Fail("cannot set an attribute of %s, which is no namespace", to.name)
		}
		n.vars[to.attr] = v
	default:
		s.scope.set(to.name, v)
	}
}

func (b ifStmt) run(s *state) flow {
	for i, t := range b.tests {
		if value.Truth(s.eval(b.line, t)) {
			return s.run(b.bodies[i])
		}
	}
	if len(b.bodies) > len(b.tests) {
		return s.run(b.bodies[len(b.tests)])
	}
	return flowOn
}

// loop is the variable loop.
type loop struct {
	items   []value.Value
	at      int
	depth   int
	changed *value.Value
	again   func(items value.Value) value.Text // of a recursive loop
}

func (b forStmt) run(s *state) flow {
	b.loopOver(s, s.eval(b.line, b.over), 0)
	return flowOn
}

// loopOver runs the loop over a value, at a depth of recursion.
func (b forStmt) loopOver(s *state, over value.Value, depth int) {
	s.Enter()
	defer s.Leave()
	items := s.Items(over)
	outer := s.scope
	if b.when != nil {
		var kept []value.Value
		for _, v := range items {
			s.inner(outer, func() {
				s.assign(b.to, v)
				if value.Truth(s.eval(b.line, b.when)) {
					kept = append(kept, v)
				}
			})
		}
		items = kept
	}
	l := &loop{items: items, depth: depth}
	if b.recursive {
		l.again = func(v value.Value) value.Text { return s.capture(func() { b.loopOver(s, v, depth+1) }) }
	}
	for i, v := range items {
		l.at = i
		f := flowOn
		s.inner(outer, func() {
			s.scope.set("loop", l)
			s.assign(b.to, v)
			f = s.run(b.body)
		})
		if f == flowBreak {
			break
		}
	}
	if len(items) == 0 {
		s.inner(outer, func() { s.run(b.none) })
	}
}

func (b macroStmt) run(s *state) flow {
	s.scope.set(b.name, s.macro(b.def))
	return flowOn
}

// macro makes a macro that sees the names of the place where it is defined.
func (s *state) macro(d *macroDef) *value.Function {
	home := s.scope
	return &value.Function{Name: d.name, Call: func(_ *value.Steps, a value.Args) value.Value {
		s.Enter()
		defer s.Leave()
		caller, hasCaller := a.Take("caller")
		given := a.Bind(s.Steps, d.name, d.params...)
		return s.capture(func() {
			s.inner(home, func() {
				if hasCaller {
					s.scope.set("caller", caller)
				}
				for i, name := range d.params {
					switch k := i - (len(d.params) - len(d.defaults)); {
					case given[i] != value.Absent:
						s.scope.set(name, given[i])
					case k >= 0:
						s.scope.set(name, s.eval(d.line, d.defaults[k]))
					default:
						s.scope.set(name, value.Undefined{What: name})
					}
				}
				s.run(d.body)
			})
		})
	}}
}

func (b callStmt) run(s *state) flow {
	a := b.call.args(s, b.line)
	a.Names, a.Named = append(slices.Clone(a.Names), "caller"), append(a.Named, s.macro(b.def))
	s.print(s.Str(s.invoke(s.eval(b.line, b.call.fn), a)))
	return flowOn
}

func (b filterStmt) run(s *state) flow {
	text := s.capture(func() { s.inner(s.scope, func() { s.run(b.body) }) })
	s.print(s.Str(b.filter.apply(s, text)))
	return flowOn
}

func (b withStmt) run(s *state) (f flow) {
	values := make([]value.Value, len(b.exprs))
	for i, e := range b.exprs {
		values[i] = s.eval(b.line, e)
	}
	s.inner(s.scope, func() {
		for i, t := range b.names {
			s.assign(t, values[i])
		}
		f = s.run(b.body)
	})
	return f
}

func (b flowStmt) run(*state) flow { return b.what }
