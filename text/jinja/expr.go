package jinja

import (
	"errors"
	"slices"
	"strconv"

	"grove/text/jinja/value"
)

// expr is an expression.
type expr interface{ eval(s *state) value.Value }

type (
	constExpr struct{ v value.Value }
	nameExpr  struct {
		line int
		name string
	}
	listExpr struct {
		line  int
		items []expr
		tuple bool
	}
	dictExpr struct {
		line         int
		keys, values []expr
	}
	attrExpr struct {
		line int
		of   expr
		name string
	}
	indexExpr struct {
		line   int
		of, at expr
	}
	sliceExpr struct {
		line         int
		of           expr
		lo, hi, step expr // nil where they are left out
	}
	callExpr struct {
		line int
		fn   expr
		argExprs
	}
	filterExpr struct {
		line int
		of   expr // nil: the text of a block
		name string
		argExprs
	}
	testExpr struct {
		line int
		of   expr
		name string
		argExprs
	}
	notExpr   struct{ e expr }
	unaryExpr struct {
		line int
		op   string
		e    expr
	}
	binaryExpr struct {
		line int
		op   string
		a, b expr
	}
	compareExpr struct {
		line  int
		first expr
		ops   []string
		rest  []expr
	}
	logicExpr struct {
		and  bool
		a, b expr
	}
	condExpr struct {
		test, then expr
		otherwise  expr // may be nil
	}
)

// argExprs are the arguments of a call.
type argExprs struct {
	pos   []expr
	names []string
	named []expr
	star  expr // *args, or nil
	stars expr // **kwargs, or nil
}

// reserved are the words that are no names.
var reserved = []string{"true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else"}

// tuple reads an expression, or several with commas between.
func (p *parser) tuple() expr { return p.tupleOf(p.expression) }

func (p *parser) tupleOf(part func() expr) expr {
	line := p.line()
	first := part()
	if !p.op(",") {
		return first
	}
	items := []expr{first}
	for p.skipOp(",") {
		if p.at(tokBlockEnd) || p.at(tokPrintEnd) || p.op(")") || p.op("=") {
			break
		}
		items = append(items, part())
	}
	return &listExpr{line, items, true}
}

// expression reads an expression, conditions included.
func (p *parser) expression() expr {
	defer p.deeper()()
	e := p.or()
	for p.skipWord("if") {
		c := &condExpr{test: p.or(), then: e}
		if p.skipWord("else") {
			c.otherwise = p.expression()
		}
		e = c
	}
	return e
}

func (p *parser) or() expr {
	e := p.and()
	for p.skipWord("or") {
		e = &logicExpr{false, e, p.and()}
	}
	return e
}

func (p *parser) and() expr {
	e := p.not()
	for p.skipWord("and") {
		e = &logicExpr{true, e, p.not()}
	}
	return e
}

func (p *parser) not() expr {
	if p.word("not") {
		defer p.deeper()()
		p.next()
		return &notExpr{p.not()}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	c := &compareExpr{line: p.line(), first: p.binary(0)}
	for {
		t := p.cur()
		switch {
		case t.kind == tokOp && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.text):
			p.next()
		case p.skipWord("in"):
			t.text = "in"
		case p.word("not") && p.tokens[p.pos+1].kind == tokName && p.tokens[p.pos+1].text == "in":
			p.pos += 2
			t.text = "not in"
		case len(c.ops) == 0:
			return c.first
		default:
			return c
		}
		c.ops, c.rest = append(c.ops, t.text), append(c.rest, p.binary(0))
	}
}

// levels are the binary operators, from the loosest.
var levels = [][]string{{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}}

func (p *parser) binary(level int) expr {
	if level == len(levels) {
		return p.unary(true)
	}
	e := p.binary(level + 1)
	for p.at(tokOp) && slices.Contains(levels[level], p.cur().text) {
		t := p.next()
		e = &binaryExpr{t.line, t.text, e, p.binary(level + 1)}
	}
	return e
}

func (p *parser) unary(filters bool) expr {
	defer p.deeper()()
	t := p.cur()
	var e expr
	if p.skipOp("-") || p.skipOp("+") {
		e = &unaryExpr{t.line, t.text, p.unary(false)}
	} else {
		e = p.primary()
	}
	e = p.postfix(e)
	if filters {
		e = p.filtersAndTests(e)
	}
	return e
}

func (p *parser) primary() expr {
	t := p.next()
	switch t.kind {
	case tokString:
		text := value.Text(t.text)
		for p.at(tokString) {
			text = append(text, value.Text(p.next().text)...)
		}
		return constExpr{text}
	case tokInt:
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			fail(t.line, "the number %.40s is out of range", t.text)
		}
		return constExpr{n}
	case tokFloat:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) { // which is infinity
			fail(t.line, "%.40q is no number", t.text)
		}
		return constExpr{f}
	case tokName:
		switch t.text {
		case "true", "True":
			return constExpr{true}
		case "false", "False":
			return constExpr{false}
		case "none", "None":
			return constExpr{nil}
		}
		if !slices.Contains(reserved, t.text) {
			return &nameExpr{t.line, t.text}
		}
	case tokOp:
		switch t.text {
		case "(":
			if p.skipOp(")") {
				return &listExpr{t.line, nil, true}
			}
			e := p.tuple()
			p.expectOp(")")
			return e
		case "[":
			return &listExpr{t.line, p.items("]"), false}
		case "{":
			return p.dict(t.line)
		}
	}
	fail(t.line, "unexpected %s", t)
	return nil
}

func (p *parser) items(end string) (items []expr) {
	for !p.skipOp(end) {
		if len(items) > 0 {
			p.expectOp(",")
			if p.skipOp(end) {
				break
			}
		}
		items = append(items, p.expression())
	}
	return items
}

func (p *parser) dict(line int) expr {
	d := &dictExpr{line: line}
	for !p.skipOp("}") {
		if len(d.keys) > 0 {
			p.expectOp(",")
			if p.skipOp("}") {
				break
			}
		}
		d.keys = append(d.keys, p.expression())
		p.expectOp(":")
		d.values = append(d.values, p.expression())
	}
	return d
}

// postfix reads attributes, subscripts and calls.
func (p *parser) postfix(e expr) expr {
	for {
		line := p.line()
		switch {
		case p.skipOp("."):
			if p.at(tokInt) {
				e = &indexExpr{line, e, p.primary()}
			} else {
				e = &attrExpr{line, e, p.name()}
			}
		case p.skipOp("["):
			e = p.subscript(line, e)
		case p.op("("):
			e = &callExpr{line, e, p.args()}
		default:
			return e
		}
	}
}

func (p *parser) subscript(line int, of expr) expr {
	var parts [3]expr
	n := 0
	for ; n < 3; n++ {
		if !p.op(":") && !p.op("]") {
			parts[n] = p.tuple()
		}
		if !p.skipOp(":") {
			break
		}
	}
	p.expectOp("]")
	if n > 0 {
		return &sliceExpr{line, of, parts[0], parts[1], parts[2]}
	}
	if parts[0] == nil {
		fail(line, "a subscript is empty")
	}
	return &indexExpr{line, of, parts[0]}
}

func (p *parser) args() (a argExprs) {
	p.expectOp("(")
	for first := true; !p.skipOp(")"); first = false {
		if !first {
			p.expectOp(",")
			if p.skipOp(")") {
				break
			}
		}
		switch {
		case p.skipOp("**"):
			a.stars = p.expression()
		case p.skipOp("*"):
			a.star = p.expression()
		case p.at(tokName) && p.tokens[p.pos+1].kind == tokOp && p.tokens[p.pos+1].text == "=":
			a.names = append(a.names, p.name())
			p.next()
			a.named = append(a.named, p.expression())
		case len(a.names) > 0:
			fail(p.line(), "an argument without a name follows one with a name")
		default:
			a.pos = append(a.pos, p.expression())
		}
	}
	return a
}

// filters reads the filters that follow; the first one has no bar before it if bare is set.
func (p *parser) filters(e expr, bare bool) *filterExpr {
	var f *filterExpr
	for bare || p.skipOp("|") {
		bare = false
		f = &filterExpr{line: p.line(), of: e, name: p.dotted()}
		if p.op("(") {
			f.argExprs = p.args()
		}
		e = f
	}
	return f
}

// dotted reads a name that may have dots.
func (p *parser) dotted() string {
	name := p.name()
	for p.skipOp(".") {
		name += "." + p.name()
	}
	return name
}

func (p *parser) filtersAndTests(e expr) expr {
	for {
		line := p.line()
		switch {
		case p.op("|"):
			e = p.filters(e, false)
		case p.skipWord("is"):
			e = p.test(line, e)
		case p.op("("):
			e = &callExpr{line, e, p.args()}
		default:
			return e
		}
	}
}

// test reads a test from its name on. Its argument may stand behind it without brackets.
func (p *parser) test(line int, of expr) expr {
	negated := p.skipWord("not")
	t := &testExpr{line: line, of: of, name: p.dotted()}
	next := p.cur()
	switch {
	case p.op("("):
		t.argExprs = p.args()
	case next.kind == tokString, next.kind == tokInt, next.kind == tokFloat, p.op("["), p.op("{"),
		next.kind == tokName && !slices.Contains([]string{"else", "or", "and", "is", "if", "not", "in", "recursive"}, next.text):
		t.pos = []expr{p.postfix(p.primary())}
	}
	if negated {
		return &notExpr{t}
	}
	return t
}
