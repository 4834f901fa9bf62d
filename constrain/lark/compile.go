package lark

import (
	"fmt"
	"strings"

	"grove/constrain/grammar"
	"grove/constrain/regex"
)

// A compiler turns definitions into a source: first it expands templates and notes which terminals the rules use, then it
// settles which of them a text is, then it builds.
type compiler struct {
	parser    *parser
	store     *regex.Store
	b         *grammar.Builder
	terminals map[string]regex.ID // by name
	open      map[string]bool     // terminals that are being evaluated
	used      map[terminalKey]*terminal
	order     []*terminal
	rules     map[string]*rule // that the start rule leads to
	queue     []*rule
	symbols   int
	blanks    regex.ID // what BLANK is now; under %indent
}

// A terminalKey tells apart terminals that settle differently.
type terminalKey struct {
	id       regex.ID
	isString bool
	priority int
}

// A rule is a rule without parameters, or a template with its arguments.
type rule struct {
	name string
	body *part
	from *definition
	args map[string]*node
}

// A part is a part of a rule's body: a terminal, a call, a token, or a node of parts.
type part struct {
	n        *node
	terminal *terminal
	rule     string
	parts    []*part
}

// grammar compiles all that the start rule leads to.
func (c *compiler) grammar() (grammar.Source, error) {
	start := c.parser.items[c.parser.o.Start]
	if start == nil || isTerminal(start.name) {
		return nil, c.parser.at(len(c.parser.text), "the start rule %q is not defined", c.parser.o.Start)
	}
	if _, err := c.call(&node{kind: isName, text: start.name, pos: start.pos}); err != nil {
		return nil, err
	}
	for i := 0; i < len(c.queue); i++ {
		if err := c.expand(c.queue[i]); err != nil {
			return nil, err
		}
	}
	if err := c.unused(); err != nil {
		return nil, err
	}
	var ignored []*terminal
	for _, n := range c.parser.ignored {
		t, err := c.terminal(n, 0)
		if err != nil {
			return nil, err
		}
		ignored = append(ignored, t)
	}
	if err := c.settle(c.order); err != nil {
		return nil, err
	}
	for _, r := range c.queue {
		e, err := c.build(r.body)
		if err != nil {
			return nil, err
		}
		c.b.Define(r.name, e)
	}
	o := grammar.Options{Greedy: true, Ignored: regex.Nothing}
	for _, t := range ignored {
		o.Ignored = c.store.Or(o.Ignored, t.own)
	}
	o.Ignored = c.store.And(o.Ignored, c.store.Not(regex.Epsilon))
	if c.parser.indent {
		return c.layout(o.Ignored)
	}
	return c.b.Source(c.queue[0].name, o)
}

// unused checks the terminals and the names in rules that nothing uses.
func (c *compiler) unused() error {
	for _, d := range c.parser.order {
		if isTerminal(d.name) {
			if _, err := c.named(&node{kind: isName, text: d.name, pos: d.pos}, 0); err != nil {
				return err
			}
		} else if len(d.params) == 0 {
			if err := c.names(d.body); err != nil {
				return err
			}
		}
	}
	return nil
}

// names checks that every name in a body is defined.
func (c *compiler) names(n *node) error {
	if n.kind == isName && c.parser.items[n.text] == nil {
		return c.parser.at(n.pos, "%q is not defined", n.text)
	}
	for _, p := range n.parts {
		if err := c.names(p); err != nil {
			return err
		}
	}
	return nil
}

// call returns the name of the rule that a node names, with its arguments, and queues it if it is new.
func (c *compiler) call(n *node) (string, error) {
	d := c.parser.items[n.text]
	switch {
	case d == nil:
		return "", c.parser.at(n.pos, "%q is not defined", n.text)
	case len(d.params) != len(n.parts):
		return "", c.parser.at(n.pos, "%q has %d parameters and not %d", n.text, len(d.params), len(n.parts))
	}
	r := &rule{name: d.name, from: d, args: map[string]*node{}}
	if len(n.parts) > 0 {
		var key strings.Builder
		for i, arg := range n.parts {
			if !write(&key, arg) {
				return "", c.parser.limit(n.pos, "the arguments of %q have more than %d bytes", n.text, maxKey)
			}
			key.WriteByte(',')
			r.args[d.params[i]] = arg
		}
		r.name += "{" + key.String() + "}"
	}
	if c.rules[r.name] == nil {
		c.rules[r.name] = r
		c.queue = append(c.queue, r)
	}
	return r.name, nil
}

// maxKey is the most bytes of the written arguments of a template.
const maxKey = 10_000

// write writes a node so that different nodes differ; false: it is too long.
func write(b *strings.Builder, n *node) bool {
	fmt.Fprintf(b, "%d%q%s", n.kind, n.text, n.flags)
	if n.kind == isRepeat {
		fmt.Fprintf(b, "~%d..%d", n.low, n.high)
	}
	b.WriteByte('(')
	for _, p := range n.parts {
		if !write(b, p) {
			return false
		}
	}
	b.WriteByte(')')
	return b.Len() <= maxKey
}

// expand turns the body of a rule into parts.
func (c *compiler) expand(r *rule) (err error) {
	d := r.from
	if !d.lazy && d.suffix == nil {
		r.body, err = c.part(d.body, r.args)
		return err
	}
	id, err := c.eval(substitute(d.body, r.args), 0)
	if err == nil && d.suffix != nil {
		var suffix regex.ID
		suffix, err = c.eval(d.suffix, 0)
		id = c.store.Concat(id, suffix)
	}
	if err != nil {
		return err
	}
	r.body = &part{n: d.body, terminal: c.note(&terminal{id: c.least(id), priority: d.priority, pos: d.pos})}
	return nil
}

// substitute returns a node with the arguments of a template in the place of its parameters.
func substitute(n *node, args map[string]*node) *node {
	if len(args) == 0 {
		return n
	}
	if arg := args[n.text]; n.kind == isName && arg != nil && len(n.parts) == 0 {
		return arg
	}
	replaced := *n
	replaced.parts = make([]*node, len(n.parts))
	for i, p := range n.parts {
		replaced.parts[i] = substitute(p, args)
	}
	return &replaced
}

// part turns a node of a rule into a part.
func (c *compiler) part(n *node, args map[string]*node) (p *part, err error) {
	if c.symbols++; c.symbols > maxSymbols {
		return nil, c.parser.limit(n.pos, "the grammar has more than %d symbols, templates expanded", maxSymbols)
	}
	if arg := args[n.text]; n.kind == isName && arg != nil && len(n.parts) == 0 {
		return c.part(arg, nil)
	}
	p = &part{n: n}
	switch n.kind {
	case isText, isRange, isRegexp:
		p.terminal, err = c.terminal(n, 0)
	case isName:
		if isTerminal(n.text) {
			p.terminal, err = c.terminal(n, 0)
		} else {
			p.rule, err = c.call(substitute(n, args))
		}
	case isBoth, isNot:
		err = c.parser.at(n.pos, "& and ~ stand in terminals only, whose names are in upper case")
	case isSequence, isChoice, isRepeat:
		for _, inner := range n.parts {
			q, err := c.part(inner, args)
			if err != nil {
				return nil, err
			}
			p.parts = append(p.parts, q)
		}
	}
	return p, err
}

// terminal returns the terminal that a node is.
func (c *compiler) terminal(n *node, priority int) (*terminal, error) {
	id, err := c.eval(n, 0)
	if err != nil {
		return nil, err
	}
	t := &terminal{id: id, isString: n.kind == isText, priority: priority, node: n, pos: n.pos}
	for d := c.parser.items[n.text]; n.kind == isName && d != nil; d = nil {
		t.priority, t.isString = d.priority, d.body.kind == isText
	}
	return c.note(t), nil
}

// note returns the terminal that is used for a set of texts.
func (c *compiler) note(t *terminal) *terminal {
	key := terminalKey{t.id, t.isString, t.priority}
	if c.used[key] == nil {
		c.used[key] = t
		c.order = append(c.order, t)
	}
	return c.used[key]
}

// build returns the expression of a part.
func (c *compiler) build(p *part) (grammar.Expr, error) {
	switch {
	case p.terminal != nil:
		return c.b.Lexeme(p.terminal.own), nil
	case p.rule != "":
		return c.b.Rule(p.rule), nil
	case p.n.kind == isToken:
		id, any, err := c.token(p.n)
		if err == nil && any {
			err = c.parser.at(p.n.pos, "%s must be repeated by * or + and nothing else: the length of one token is no property of a text", p.n.text)
		}
		return c.b.Lexeme(id), err
	case p.n.kind == isRepeat && p.parts[0].n.kind == isToken && p.n.low <= 1 && p.n.high < 0:
		id, _, err := c.token(p.parts[0].n)
		return c.b.Repeat(c.b.Lexeme(id), p.n.low, -1), err
	}
	exprs := make([]grammar.Expr, len(p.parts))
	for i, q := range p.parts {
		var err error
		if exprs[i], err = c.build(q); err != nil {
			return 0, err
		}
	}
	switch p.n.kind {
	case isSequence:
		return c.b.Seq(exprs...), nil
	case isChoice:
		return c.b.Alt(exprs...), nil
	}
	return c.b.Repeat(exprs[0], p.n.low, p.n.high), nil
}
