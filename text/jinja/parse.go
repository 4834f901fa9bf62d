package jinja

import (
	"slices"

	"grove/text/jinja/value"
)

// stmt is a statement, run by a state. Its result says whether a loop goes on.
type stmt interface{ run(s *state) flow }

type (
	dataStmt  struct{ text value.Text }
	printStmt struct {
		line int
		e    expr
	}
	setStmt struct {
		line   int
		to     target
		e      expr   // nil: the text of the body, through the filters
		body   []stmt // runs in a scope of its own
		filter *filterExpr
	}
	ifStmt struct {
		line   int
		tests  []expr
		bodies [][]stmt // one more than tests where there is an else
	}
	forStmt struct {
		line       int
		to         target
		over, when expr // when may be nil
		body, none []stmt
		recursive  bool
	}
	macroStmt struct {
		name string
		def  *macroDef
	}
	callStmt struct {
		line int
		call *callExpr
		def  *macroDef
	}
	filterStmt struct {
		line   int
		filter *filterExpr
		body   []stmt
	}
	withStmt struct {
		line  int
		names []target
		exprs []expr
		body  []stmt
	}
	flowStmt struct{ what flow }
)

// macroDef is a macro's definition.
type macroDef struct {
	line     int
	name     string
	params   []string
	defaults []expr // of the last parameters
	body     []stmt
}

// target is what an assignment goes to: a name, an attribute of a namespace, or a tuple of targets.
type target struct {
	name, attr string
	parts      []target
}

// parser reads tokens.
type parser struct {
	tokens []tok
	pos    int
	depth  int
	loops  int // around the place, within the macro
}

func (p *parser) cur() tok       { return p.tokens[p.pos] }
func (p *parser) at(k kind) bool { return p.cur().kind == k }
func (p *parser) line() int      { return p.cur().line }

func (p *parser) next() tok {
	t := p.tokens[p.pos]
	if t.kind != tokEOF {
		p.pos++
	}
	return t
}

func (p *parser) op(op string) bool     { return p.at(tokOp) && p.cur().text == op }
func (p *parser) word(name string) bool { return p.at(tokName) && p.cur().text == name }

// skipOp and skipWord read what is named, if it is there.
func (p *parser) skipOp(op string) bool {
	ok := p.op(op)
	if ok {
		p.pos++
	}
	return ok
}

func (p *parser) skipWord(name string) bool {
	ok := p.word(name)
	if ok {
		p.pos++
	}
	return ok
}

func (p *parser) expect(k kind, what string) tok {
	if !p.at(k) {
		fail(p.line(), "unexpected %s, want %s", p.cur(), what)
	}
	return p.next()
}

func (p *parser) expectOp(op string) {
	if !p.skipOp(op) {
		fail(p.line(), "unexpected %s, want %q", p.cur(), op)
	}
}

func (p *parser) name() string { return p.expect(tokName, "a name").text }

// deeper counts nesting; the function that it returns leaves it again.
func (p *parser) deeper() func() {
	if p.depth++; p.depth > maxDepth {
		exceed(p.line(), "nested too deeply")
	}
	return func() { p.depth-- }
}

// body reads statements up to a tag of one of the names, which it leaves at its name, or to the end.
func (p *parser) body(ends ...string) []stmt {
	defer p.deeper()()
	var out []stmt
	for {
		switch t := p.cur(); t.kind {
		case tokData:
			p.next()
			out = append(out, dataStmt{value.Text(t.text)})
		case tokPrintBegin:
			p.next()
			out = append(out, printStmt{t.line, p.tuple()})
			p.expect(tokPrintEnd, "'}}'")
		case tokBlockBegin:
			p.next()
			if p.at(tokName) && slices.Contains(ends, p.cur().text) {
				return out
			}
			out = append(out, p.statement()...)
		default:
			if len(ends) > 0 {
				fail(t.line, "unexpected %s, want %s", t, ends[len(ends)-1])
			}
			return out
		}
	}
}

// block reads a body and its end tag.
func (p *parser) block(end string) []stmt {
	p.endTag()
	body := p.body(end)
	p.next()
	return body
}

func (p *parser) endTag() { p.expect(tokBlockEnd, "'%}'") }

// statement reads a statement from its name on. Marks of what the model generates are passed through.
func (p *parser) statement() []stmt {
	t := p.expect(tokName, "a statement")
	var s stmt
	switch t.text {
	case "set":
		s = p.set(t.line)
	case "if":
		s = p.ifs(t.line)
	case "for":
		s = p.loop(t.line)
	case "macro":
		s = p.macro(t.line)
	case "call":
		s = p.call(t.line)
	case "filter":
		f := p.filters(nil, true)
		s = filterStmt{t.line, f, p.enclosed("endfilter")}
	case "with":
		s = p.with(t.line)
	case "break", "continue":
		if p.loops == 0 {
			fail(t.line, "%s outside of a loop", t.text)
		}
		s = flowStmt{map[string]flow{"break": flowBreak, "continue": flowContinue}[t.text]}
	case "generation":
		body := p.block("endgeneration")
		p.endTag()
		return body
	default:
		fail(t.line, "statement %.40q is not supported", t.text)
	}
	p.endTag()
	return []stmt{s}
}

func (p *parser) set(line int) stmt {
	s := setStmt{line: line, to: p.target(true)}
	if p.skipOp("=") {
		s.e = p.tuple()
		return s
	}
	if p.op("|") {
		s.filter = p.filters(nil, false)
	}
	s.body = p.enclosed("endset")
	return s
}

// target reads what is assigned to. Attributes are for set alone.
func (p *parser) target(attributes bool) target {
	defer p.deeper()()
	var parts []target
	for {
		parts = append(parts, p.targetPart(attributes))
		if !p.skipOp(",") {
			break
		}
		if p.word("in") || p.op("=") || p.op(")") {
			return target{parts: parts}
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return target{parts: parts}
}

func (p *parser) targetPart(attributes bool) target {
	if p.skipOp("(") {
		t := p.target(attributes)
		p.expectOp(")")
		return t
	}
	line := p.line()
	t := target{name: p.name()}
	if slices.Contains(reserved, t.name) {
		fail(line, "%q cannot be assigned to", t.name)
	}
	if attributes && p.skipOp(".") {
		t.attr = p.name()
	}
	return t
}

func (p *parser) ifs(line int) stmt {
	s := ifStmt{line: line, tests: []expr{p.tuple()}}
	for {
		p.endTag()
		s.bodies = append(s.bodies, p.body("elif", "else", "endif"))
		switch p.next().text {
		case "elif":
			s.tests = append(s.tests, p.tuple())
		case "else":
			p.endTag()
			s.bodies = append(s.bodies, p.body("endif"))
			p.next()
			return s
		default:
			return s
		}
	}
}

func (p *parser) loop(line int) stmt {
	s := forStmt{line: line, to: p.target(false)}
	if !p.skipWord("in") {
		fail(p.line(), "unexpected %s, want in", p.cur())
	}
	s.over = p.tupleOf(p.or) // a condition would take the loop's own if
	if p.skipWord("if") {
		s.when = p.expression()
	}
	s.recursive = p.skipWord("recursive")
	p.endTag()
	p.loops++
	s.body = p.body("else", "endfor")
	p.loops--
	if p.next().text == "else" {
		s.none = p.block("endfor")
	}
	return s
}

func (p *parser) macro(line int) stmt {
	name := p.name()
	d := p.signature(line, name)
	d.body = p.enclosed("endmacro")
	return macroStmt{name, d}
}

func (p *parser) call(line int) stmt {
	d := &macroDef{line: line, name: "caller"}
	if p.op("(") {
		d = p.signature(line, "caller")
	}
	call, ok := p.expression().(*callExpr)
	if !ok {
		fail(line, "call needs a call")
	}
	d.body = p.enclosed("endcall")
	return callStmt{line, call, d}
}

// enclosed reads a body that cannot leave the loops around it.
func (p *parser) enclosed(end string) []stmt {
	outer := p.loops
	p.loops = 0
	defer func() { p.loops = outer }()
	return p.block(end)
}

func (p *parser) signature(line int, name string) *macroDef {
	d := &macroDef{line: line, name: name}
	p.expectOp("(")
	for !p.skipOp(")") {
		if len(d.params) > 0 {
			p.expectOp(",")
			if p.skipOp(")") {
				break
			}
		}
		d.params = append(d.params, p.name())
		if p.skipOp("=") {
			d.defaults = append(d.defaults, p.expression())
		} else if len(d.defaults) > 0 {
			fail(p.line(), "a parameter without a default follows one that has one")
		}
	}
	return d
}

func (p *parser) with(line int) stmt {
	s := withStmt{line: line}
	for !p.at(tokBlockEnd) {
		if len(s.names) > 0 {
			p.expectOp(",")
		}
		s.names = append(s.names, p.targetPart(false))
		p.expectOp("=")
		s.exprs = append(s.exprs, p.expression())
	}
	s.body = p.block("endwith")
	return s
}
