package jinja

import "slices"

// flow tells how a loop goes on behind a statement.
type flow int

const (
	flowOn flow = iota
	flowBreak
	flowContinue
)

// stmt is a statement, block a sequence of them.
type (
	stmt  func(s *state) flow
	block []stmt
)

// run runs statements, up to one that leaves the loop.
func (b block) run(s *state) flow {
	for _, do := range b {
		if f := do(s); f != flowOn {
			return f
		}
	}
	return flowOn
}

// parser reads tokens into statements.
type parser struct {
	tokens []tok
	pos    int
	depth  int
	marks  bool // the operand of a comparison that is read has the filter safe
	loops  int  // loops around the statement that break and continue may leave
	last   sum  // the one whose end was read last
}

func (p *parser) cur() tok             { return p.tokens[p.pos] }
func (p *parser) at(k kind) bool       { return p.cur().kind == k }
func (p *parser) line() int            { return p.cur().line }
func (p *parser) op(op string) bool    { return p.at(tokOp) && p.cur().text == op }
func (p *parser) word(w string) bool   { return p.at(tokName) && p.cur().text == w }
func (p *parser) name() string         { return p.expect(tokName, "a name").text }
func (p *parser) endTag()              { p.expect(tokBlockEnd, "'%}'") }
func (p *parser) skipOp(s string) bool { return p.skip(p.op(s)) }

func (p *parser) skipWord(s string) bool { return p.skip(p.word(s)) }

// skip reads a token if it is the one that is looked for.
func (p *parser) skip(found bool) bool {
	if found {
		p.pos++
	}
	return found
}

func (p *parser) next() tok {
	t := p.cur()
	if t.kind != tokEOF {
		p.pos++
	}
	return t
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

// deeper enters a level of nesting. The function that it returns leaves it.
func (p *parser) deeper() func() {
	if p.depth++; p.depth > maxParseDepth {
		exceed(p.line(), "nested too deeply")
	}
	return func() { p.depth-- }
}

// body reads statements up to a tag of one of the names, which it leaves at its name, or to the end.
func (p *parser) body(ends ...string) block {
	defer p.deeper()()
	var out block
	for {
		switch t := p.cur(); t.kind {
		case tokData:
			p.next()
			text := Text(t.text)
			out = append(out, func(s *state) flow {
				s.print(text)
				return flowOn
			})
		case tokPrintBegin:
			p.next()
			out = append(out, p.printed(t.line))
			p.expect(tokPrintEnd, "'}}'")
		case tokBlockBegin:
			p.next()
			if p.at(tokName) && slices.Contains(ends, p.cur().text) {
				return out
			}
			out = append(out, p.statement())
		default:
			if len(ends) > 0 {
				fail(t.line, "unexpected %s, want %s", t, ends[len(ends)-1])
			}
			return out
		}
	}
}

// output makes a statement that prints a value.
func output(line int, e expr) stmt {
	return func(s *state) flow {
		s.line = line
		v := e(s)
		s.print(s.str(v))
		return flowOn
	}
}

// block reads the end of a tag, a body and the tag that ends it. A body that is enclosed cannot leave the loops around it.
func (p *parser) block(end string, enclosed bool) block {
	if outer := p.loops; enclosed {
		p.loops = 0
		defer func() { p.loops = outer }()
	}
	p.endTag()
	body := p.body(end)
	p.next()
	return body
}

// statements are the names of statements, for errors.
const statements = "break, call, continue, filter, for, generation, if, macro, raw, set, with"

// statement reads a statement from its name on.
func (p *parser) statement() stmt {
	t := p.expect(tokName, "a statement")
	var do stmt
	switch t.text {
	case "set":
		do = p.set(t.line)
	case "if":
		do = p.ifs()
	case "for":
		do = p.loop(t.line)
	case "macro":
		m := p.signature(p.name())
		m.body = p.block("endmacro", true)
		do = func(s *state) flow {
			s.scope.set(m.name, m.function(s))
			return flowOn
		}
	case "call":
		do = p.call(t.line)
	case "filter":
		do = p.filterBlock(t.line)
	case "with":
		do = p.with()
	case "break", "continue":
		if p.loops == 0 {
			fail(t.line, "%s outside of a loop; put it into a for block", t.text)
		}
		f := map[string]flow{"break": flowBreak, "continue": flowContinue}[t.text]
		do = func(*state) flow { return f }
	case "generation": // marks what the model writes; the marks are dropped
		do = p.block("endgeneration", false).run
	default:
		fail(t.line, "statement %.40q: not supported; use one of %s", t.text, statements)
	}
	p.endTag()
	return do
}

// with reads names and their values, and a body in which they hold.
func (p *parser) with() stmt {
	var names []target
	var values []expr
	for !p.at(tokBlockEnd) {
		if len(names) > 0 {
			p.expectOp(",")
		}
		names = append(names, p.targetPart(false))
		p.expectOp("=")
		values = append(values, p.expression())
	}
	body := p.block("endwith", false)
	return func(s *state) (f flow) {
		given := s.all(values)
		s.within(s.scope, func() {
			for i, to := range names {
				to(s, given[i])
			}
			f = body.run(s)
		})
		return f
	}
}

// set reads an assignment of a value, or of the text of a block.
func (p *parser) set(line int) stmt {
	to := p.target(true)
	if p.op("|") {
		fail(line, "set with a filter: not supported; filter the name that is set")
	}
	var e expr
	if p.skipOp("=") {
		e = p.tuple(p.expression)
	} else {
		body := p.block("endset", true)
		e = func(s *state) Value { return s.text(body) }
	}
	return func(s *state) flow {
		s.line = line
		s.spend(1)
		to(s, e(s))
		return flowOn
	}
}

// text returns the text that a block prints, in a scope of its own.
func (s *state) text(b block) Text {
	return s.capture(func() { s.within(s.scope, func() { b.run(s) }) })
}

// target gives a name, an attribute of a namespace, or several of them a value.
type target func(s *state, v Value)

// target reads a target. Attributes are for set alone.
func (p *parser) target(attributes bool) target {
	defer p.deeper()()
	parts := []target{p.targetPart(attributes)}
	tuple := false
	for p.skipOp(",") {
		tuple = true
		if p.word("in") || p.op("=") || p.op(")") {
			break
		}
		parts = append(parts, p.targetPart(attributes))
	}
	if !tuple {
		return parts[0]
	}
	return func(s *state, v Value) {
		items := s.items(v)
		if len(items) != len(parts) {
			s.fail("%d values for %d names", len(items), len(parts))
		}
		for i, to := range parts {
			to(s, items[i])
		}
	}
}

func (p *parser) targetPart(attributes bool) target {
	if p.skipOp("(") {
		to := p.target(attributes)
		p.expectOp(")")
		return to
	}
	line, name := p.line(), p.name()
	if slices.Contains(reserved, name) {
		fail(line, "%q cannot be assigned to; it is a reserved word", name)
	}
	if attributes && p.skipOp(".") {
		attribute := p.name()
		return func(s *state, v Value) {
			s.spend(1)
			n, ok := s.lookup(name).(*namespace)
			if !ok {
				s.fail("%s.%s cannot be set; %s is not a namespace", name, attribute, name)
			}
			n.vars[attribute] = v
		}
	}
	return func(s *state, v Value) {
		s.spend(1)
		s.scope.set(name, v)
	}
}

// ifs reads an if statement: tests, each with a body, and perhaps a body for when none holds.
func (p *parser) ifs() stmt {
	var tests []expr
	var bodies []block
	for end := "elif"; end == "elif"; end = p.next().text {
		tests = append(tests, p.tuple(p.expression))
		p.endTag()
		bodies = append(bodies, p.body("elif", "else", "endif"))
	}
	if p.tokens[p.pos-1].text == "else" {
		bodies = append(bodies, p.block("endif", false))
	}
	return func(s *state) flow {
		for i, test := range tests {
			if truth(test(s)) {
				return bodies[i].run(s)
			}
		}
		if len(bodies) > len(tests) {
			return bodies[len(tests)].run(s)
		}
		return flowOn
	}
}

// loop reads a for statement.
func (p *parser) loop(line int) stmt {
	to := p.target(false)
	if !p.skipWord("in") {
		fail(p.line(), "unexpected %s, want in", p.cur())
	}
	over := p.tuple(p.or) // an expression would take the loop's own if
	var when expr
	if p.skipWord("if") {
		when = p.expression()
	}
	if p.word("recursive") {
		fail(line, "a recursive loop: not supported; use a macro")
	}
	p.endTag()
	p.loops++
	body := p.body("else", "endfor")
	p.loops--
	var none block
	if p.next().text == "else" {
		none = p.block("endfor", false)
	}
	return func(s *state) flow {
		s.line = line
		s.enter()
		defer s.leave()
		outer := s.scope
		l := &loop{items: s.items(over(s))}
		if when != nil {
			l.items = s.chosen(l.items, to, when)
		}
		for i, v := range l.items {
			l.at = i
			f := flowOn
			s.within(outer, func() {
				s.scope.set("loop", l)
				to(s, v)
				f = body.run(s)
			})
			if f == flowBreak {
				break
			}
		}
		if len(l.items) == 0 {
			s.within(outer, func() { none.run(s) })
		}
		return flowOn
	}
}

// chosen returns the items for which a condition holds.
func (s *state) chosen(items []Value, to target, when expr) (kept []Value) {
	for _, v := range items {
		s.within(s.scope, func() {
			to(s, v)
			if truth(when(s)) {
				kept = append(kept, v)
			}
		})
	}
	return kept
}

// signature reads the parameters of a macro.
func (p *parser) signature(name string) *macro {
	m := &macro{name: name}
	p.expectOp("(")
	p.sequence(")", func() {
		m.params = append(m.params, p.name())
		if p.skipOp("=") {
			m.defaults = append(m.defaults, p.expression())
		} else if len(m.defaults) > 0 {
			fail(p.line(), "a parameter without a default follows one with a default; put it first")
		}
	})
	return m
}

// call reads a call of a macro, with a body that the macro calls as caller.
func (p *parser) call(line int) stmt {
	m := &macro{name: "caller"}
	if p.op("(") {
		m = p.signature("caller")
	}
	name := p.name()
	a := p.args()
	m.body = p.block("endcall", true)
	return output(line, node(line, func(s *state) Value {
		given := a(s)
		given.names, given.named = append(slices.Clone(given.names), "caller"), append(given.named, m.function(s))
		return s.call(s.lookup(name), given)
	}))
}

// filterBlock reads filters, and a body whose text they filter.
func (p *parser) filterBlock(line int) stmt {
	var body block
	e := p.filter(line, func(s *state) Value { return s.text(body) })
	for p.skipOp("|") {
		e = p.filter(line, e)
	}
	body = p.block("endfilter", true)
	return output(line, e)
}
