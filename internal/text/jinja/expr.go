package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// expr is an expression: it computes a value.
type expr func(s *state) Value

// node makes an expression of f that counts as a step and a level of nesting. Errors within f name the line.
func node(line int, f expr) expr {
	return func(s *state) Value {
		outer := s.line
		s.line = line
		s.enter()
		v := f(s)
		s.leave()
		s.line = outer
		return v
	}
}

func constant(v Value) expr { return func(*state) Value { return v } }

// reserved are the words that cannot be names.
var reserved = []string{"true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else"}

// tuple reads an expression, or several with commas between: a tuple.
func (p *parser) tuple(part func() expr) expr {
	line, first := p.line(), part()
	if !p.op(",") {
		return first
	}
	items := []expr{first}
	for p.skipOp(",") {
		if p.at(tokBlockEnd) || p.at(tokPrintEnd) || p.op(")") {
			break
		}
		items = append(items, part())
	}
	return list(line, items, true)
}

func list(line int, items []expr, tuple bool) expr {
	return node(line, func(s *state) Value { return &List{Items: s.all(items), Tuple: tuple} })
}

// all computes the values of expressions.
func (s *state) all(exprs []expr) []Value {
	out := make([]Value, len(exprs))
	for i, e := range exprs {
		out[i] = e(s)
	}
	return out
}

// expression reads an expression, conditions included.
func (p *parser) expression() expr {
	defer p.deeper()()
	e := p.or()
	for p.word("if") {
		line := p.next().line
		then, test, otherwise := e, p.or(), constant(undefined{"the value of a condition without else"})
		if p.skipWord("else") {
			otherwise = p.expression()
		}
		e = node(line, func(s *state) Value {
			if truth(test(s)) {
				return then(s)
			}
			return otherwise(s)
		})
	}
	return e
}

func (p *parser) or() expr  { return p.logic("or", p.and) }
func (p *parser) and() expr { return p.logic("and", p.not) }

// logic reads operands with "and" or "or" between. Its value is the first operand that decides.
func (p *parser) logic(word string, operand func() expr) expr {
	e := operand()
	for p.word(word) {
		line := p.next().line
		a, b := e, operand()
		e = node(line, func(s *state) Value {
			v := a(s)
			if truth(v) == (word == "or") {
				return v
			}
			return b(s)
		})
	}
	return e
}

func (p *parser) not() expr {
	if !p.word("not") {
		return p.comparison()
	}
	defer p.deeper()()
	return negated(p.next().line, p.not())
}

func negated(line int, e expr) expr {
	return node(line, func(s *state) Value { return !truth(e(s)) })
}

func (p *parser) comparison() expr {
	line, first := p.line(), p.sum()
	var ops []string
	var rest []expr
	for op := p.comparator(); op != ""; op = p.comparator() {
		ops, rest = append(ops, op), append(rest, p.sum())
	}
	if len(ops) == 0 {
		return first
	}
	return node(line, func(s *state) Value {
		a := first(s)
		for i, op := range ops {
			b := rest[i](s)
			if !s.holds(op, a, b) {
				return false
			}
			a = b
		}
		return true
	})
}

// comparator reads an operator of comparisons, or returns "".
func (p *parser) comparator() string {
	switch {
	case p.at(tokOp) && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, p.cur().text):
		return p.next().text
	case p.skipWord("in"):
		return "in"
	case p.word("not") && p.tokens[p.pos+1].kind == tokName && p.tokens[p.pos+1].text == "in":
		p.pos += 2
		return "not in"
	}
	return ""
}

// sum reads an operand of comparisons. What safe marks in it is marked within it alone.
func (p *parser) sum() expr {
	outer := p.marks
	p.marks = false
	e := p.binary(0)
	if sum := e; p.marks {
		e = func(s *state) Value { return unmarked(sum(s)) }
	}
	p.marks = outer
	return e
}

// levels are the binary operators, from the loosest.
var levels = [][]string{{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}}

func (p *parser) binary(level int) expr {
	if level == len(levels) {
		return p.unary(true)
	}
	from := p.pos
	e := p.binary(level + 1)
	of := sum{from: from, terms: []expr{e}, plain: level == 0}
	for p.at(tokOp) && slices.Contains(levels[level], p.cur().text) {
		t := p.next()
		a, b := e, p.binary(level+1)
		of.add(t.text, b)
		e = node(t.line, func(s *state) Value {
			x := a(s)
			return s.binary(t.text, x, b(s))
		})
	}
	if of.to = p.pos; of.plain {
		p.last = of
	}
	return e
}

// unary reads an operand with a sign. Filters and tests bind less tightly than a sign.
func (p *parser) unary(filters bool) expr {
	defer p.deeper()()
	line := p.line()
	var e expr
	if p.skipOp("-") {
		of := p.unary(false)
		e = node(line, func(s *state) Value { return s.negative(of(s)) })
	} else if p.skipOp("+") {
		of := p.unary(false)
		e = node(line, func(s *state) Value { return s.binary("+", int64(0), of(s)) })
	} else {
		e = p.postfix(p.primary())
	}
	safe := false
	for filters {
		switch line := p.line(); {
		case p.skipOp("|"):
			safe = p.cur().text == "safe"
			e = p.filter(line, e)
		case p.skipWord("is"):
			safe = false
			e = p.test(line, e)
		default:
			filters = false
		}
	}
	if of := e; safe {
		p.marks = true
		return func(s *state) Value { return markup(of(s).(Text)) }
	}
	return e
}

// words are the reserved words that are values.
var words = map[string]Value{"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil}

func (p *parser) primary() expr {
	t := p.next()
	switch t.kind {
	case tokString:
		for p.at(tokString) {
			t.text += p.next().text
		}
		return constant(Text(t.text))
	case tokFloat:
		f, ok := parseFloat(strings.ReplaceAll(t.text, "_", ""))
		if !ok {
			fail(t.line, "float %.40s is out of range", t.text)
		}
		return constant(f)
	case tokInt:
		n, err := strconv.ParseInt(strings.ReplaceAll(t.text, "_", ""), 10, 64)
		if err != nil {
			fail(t.line, "int %.40s is out of range; ints have 64 bits", t.text)
		}
		return constant(n)
	case tokName:
		if v, ok := words[t.text]; ok {
			return constant(v)
		}
		if !slices.Contains(reserved, t.text) {
			return node(t.line, func(s *state) Value { return s.lookup(t.text) })
		}
	case tokOp:
		switch t.text {
		case "(":
			if p.skipOp(")") {
				return list(t.line, nil, true)
			}
			e := p.tuple(p.expression)
			p.expectOp(")")
			return e
		case "[":
			var items []expr
			p.sequence("]", func() { items = append(items, p.expression()) })
			return list(t.line, items, false)
		case "{":
			return p.dict(t.line)
		}
	}
	fail(t.line, "unexpected %s", t)
	return nil
}

// sequence reads elements with commas between, and the operator that ends them.
func (p *parser) sequence(end string, element func()) {
	for first := true; !p.skipOp(end); first = false {
		if !first {
			p.expectOp(",")
			if p.skipOp(end) {
				return
			}
		}
		element()
	}
}

func (p *parser) dict(line int) expr {
	var keys, values []expr
	p.sequence("}", func() {
		keys = append(keys, p.expression())
		p.expectOp(":")
		values = append(values, p.expression())
	})
	return node(line, func(s *state) Value {
		m := &Map{}
		for i, k := range keys {
			s.put(m, k(s), values[i](s))
		}
		return m
	})
}

// postfix reads attributes, subscripts and calls.
func (p *parser) postfix(e expr) expr {
	for {
		of, line := e, p.line()
		switch {
		case p.skipOp("."):
			if p.at(tokInt) { // x.0 is x[0]
				at := p.primary()
				e = node(line, func(s *state) Value { return s.index(of(s), at(s)) })
				continue
			}
			name := p.name()
			e = node(line, func(s *state) Value { return s.attribute(of(s), name) })
		case p.skipOp("["):
			e = p.subscript(line, of)
		case p.op("("):
			a := p.args()
			e = node(line, func(s *state) Value {
				f := of(s)
				return s.call(f, a(s))
			})
		default:
			return e
		}
	}
}

// subscript reads an index, a slice [from:to], or the slice [::-1].
func (p *parser) subscript(line int, of expr) expr {
	var parts [3]expr
	n := 0
	for ; n < 3; n++ {
		parts[n] = constant(nil)
		if !p.op(":") && !p.op("]") {
			parts[n] = p.tuple(p.expression)
		} else if n == 0 && p.op("]") {
			fail(line, "a subscript is empty; it needs an index")
		}
		if !p.skipOp(":") {
			break
		}
	}
	p.expectOp("]")
	return node(line, func(s *state) Value {
		v := of(s)
		switch n {
		case 0:
			return s.index(v, parts[0](s))
		case 1:
			return s.slice(v, parts[0](s), parts[1](s), false)
		}
		from, to, step := parts[0](s), parts[1](s), parts[2](s)
		if step != Value(int64(-1)) || from != nil || to != nil {
			s.fail("a slice with a step other than [::-1]: not supported")
		}
		return s.slice(v, nil, nil, true)
	})
}

// args reads the arguments of a call.
func (p *parser) args() func(s *state) args {
	p.expectOp("(")
	var pos, named []expr
	var names []string
	p.sequence(")", func() {
		switch {
		case p.op("*") || p.op("**"):
			fail(p.line(), "argument %s: not supported; write the arguments", p.cur())
		case p.at(tokName) && p.tokens[p.pos+1].kind == tokOp && p.tokens[p.pos+1].text == "=":
			names = append(names, p.name())
			p.next()
			named = append(named, p.expression())
		case len(names) > 0:
			fail(p.line(), "an argument without a name follows one with a name; put it first")
		default:
			pos = append(pos, p.expression())
		}
	})
	return func(s *state) args { return args{"", s.all(pos), names, s.all(named)} }
}

func noArgs(*state) args { return args{} }

// filter reads a filter from its name on.
func (p *parser) filter(line int, of expr) expr {
	name, a := p.name(), noArgs
	if p.op("(") {
		a = p.args()
	}
	return node(line, func(s *state) Value {
		v := of(s)
		return s.filter(name, v, a(s))
	})
}

// test reads a test from its name on. Its argument may follow without parentheses.
func (p *parser) test(line int, of expr) expr {
	not := p.skipWord("not")
	name, a := p.name(), noArgs
	next := p.cur()
	switch {
	case p.op("("):
		a = p.args()
	case next.kind == tokString, next.kind == tokInt, next.kind == tokFloat, p.op("["), p.op("{"),
		next.kind == tokName && !slices.Contains([]string{"else", "or", "and", "is", "if", "not", "in"}, next.text):
		e := p.postfix(p.primary())
		a = func(s *state) args { return args{pos: []Value{e(s)}} }
	}
	e := node(line, func(s *state) Value {
		v := of(s)
		return s.test(name, v, a(s))
	})
	if not {
		return negated(line, e)
	}
	return e
}
