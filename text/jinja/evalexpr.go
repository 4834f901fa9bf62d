package jinja

import (
	"slices"

	"grove/text/jinja/value"
)

func (e constExpr) eval(*state) value.Value { return e.v }

func (e *nameExpr) eval(s *state) value.Value { return s.lookup(e.name) }

func (e *listExpr) eval(s *state) value.Value {
	return &value.List{Items: s.all(e.line, e.items), Tuple: e.tuple}
}

func (s *state) all(line int, exprs []expr) []value.Value {
	out := make([]value.Value, len(exprs))
	for i, x := range exprs {
		out[i] = s.eval(line, x)
	}
	return out
}

func (e *dictExpr) eval(s *state) value.Value {
	m := &value.Map{}
	for i, k := range e.keys {
		s.Put(m, s.eval(e.line, k), s.eval(e.line, e.values[i]))
	}
	return m
}

func (e *attrExpr) eval(s *state) value.Value { return s.Attribute(s.eval(e.line, e.of), e.name) }

func (e *indexExpr) eval(s *state) value.Value {
	return s.Index(s.eval(e.line, e.of), s.eval(e.line, e.at))
}

func (e *sliceExpr) eval(s *state) value.Value {
	of := s.eval(e.line, e.of)
	bound := func(x expr) value.Value {
		if x == nil {
			return nil
		}
		return s.eval(e.line, x)
	}
	return s.Slice(of, bound(e.lo), bound(e.hi), bound(e.step))
}

// args evaluates arguments.
func (x *argExprs) args(s *state, line int) value.Args {
	a := value.Args{Pos: s.all(line, x.pos), Names: x.names, Named: s.all(line, x.named)}
	if x.star != nil {
		a.Pos = append(a.Pos, s.Items(s.eval(line, x.star))...)
	}
	if x.stars != nil {
		m, ok := s.eval(line, x.stars).(*value.Map)
		if !ok {
			s.Fail("** needs a dict")
		}
		a.Names = slices.Clone(a.Names)
		keys, values := m.Entries()
		for i, k := range keys {
			name, ok := k.(value.Text)
			if !ok {
				s.Fail("an argument is named by %s", value.TypeName(k))
			}
			s.Copied(len(name) + 12)
			a.Names, a.Named = append(a.Names, name.String()), append(a.Named, values[i])
		}
	}
	return a
}

func (e *callExpr) eval(s *state) value.Value {
	return s.invoke(s.eval(e.line, e.fn), e.args(s, e.line))
}

// invoke calls a value.
func (s *state) invoke(fn value.Value, a value.Args) value.Value {
	s.Defined(fn)
	switch fn := fn.(type) {
	case *value.Function:
		return fn.Call(s.Steps, a)
	case *loop:
		if fn.again != nil {
			return fn.again(a.Bind(s.Steps, "loop", "iterable")[0])
		}
	}
	s.Fail("%s cannot be called", value.TypeName(fn))
	return nil
}

func (e *filterExpr) eval(s *state) value.Value { return e.apply(s, nil) }

// apply filters the value of the expression, or where the chain begins without one, v.
func (e *filterExpr) apply(s *state, v value.Value) value.Value {
	switch of := e.of.(type) {
	case nil:
	case *filterExpr:
		s.Enter()
		v = of.apply(s, v)
		s.Leave()
	default:
		v = s.eval(e.line, e.of)
	}
	return applyFilter(s.Steps, e.name, v, e.args(s, e.line))
}

func (e *testExpr) eval(s *state) value.Value {
	return applyTest(s.Steps, e.name, s.eval(e.line, e.of), e.args(s, e.line))
}

func (e *notExpr) eval(s *state) value.Value { return !value.Truth(s.eval(s.Line, e.e)) }

func (e *logicExpr) eval(s *state) value.Value {
	v := s.eval(s.Line, e.a)
	if value.Truth(v) != e.and {
		return v
	}
	return s.eval(s.Line, e.b)
}

func (e *condExpr) eval(s *state) value.Value {
	switch {
	case value.Truth(s.eval(s.Line, e.test)):
		return s.eval(s.Line, e.then)
	case e.otherwise != nil:
		return s.eval(s.Line, e.otherwise)
	}
	return value.Undefined{What: "the value of a condition without else"}
}

func (e *compareExpr) eval(s *state) value.Value {
	a := s.eval(e.line, e.first)
	for i, op := range e.ops {
		b := s.eval(e.line, e.rest[i])
		if !s.Holds(op, a, b) {
			return false
		}
		a = b
	}
	return true
}

func (e *unaryExpr) eval(s *state) value.Value { return s.Unary(e.op, s.eval(e.line, e.e)) }

func (e *binaryExpr) eval(s *state) value.Value {
	a := s.eval(e.line, e.a)
	return s.Binary(e.op, a, s.eval(e.line, e.b))
}
