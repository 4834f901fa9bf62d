package regex

import (
	"strings"
)

// group reads what parentheses hold, or flags.
func (p *parser) group() (*patternNode, error) {
	at := p.at
	if p.depth++; p.depth > PatternMaxDepth {
		return nil, p.fail(at, "more than %d groups within each other", PatternMaxDepth)
	}
	defer func() { p.depth-- }()
	p.at++
	before := p.flags
	if !p.accept("?") {
		return p.inner(at, before)
	}
	switch {
	case p.accept(":"):
		return p.inner(at, before)
	case p.accept("="), p.accept("!"):
		return p.look(opLook, at, before)
	case p.accept("<="), p.accept("<!"):
		return p.look(opBehind, at, before)
	case p.accept("<"), !p.ecma && p.accept("P<"):
		if err := p.name(); err != nil {
			return nil, err
		}
		return p.inner(at, before)
	case !p.ecma && p.accept("#"):
		end := strings.IndexByte(p.source[p.at:], ')')
		if end < 0 {
			return nil, p.fail(at, "this group is not closed")
		}
		p.at += end + 1
		return nil, nil
	case p.accept(">"):
		return nil, p.fail(at, "atomic groups are not supported")
	case p.accept("P="):
		return nil, p.fail(at, "backreferences are not supported")
	}
	return p.switches(at, before)
}

// inner reads the inside of a group and its end.
func (p *parser) inner(at int, before flags) (*patternNode, error) {
	n, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if !p.accept(")") {
		return nil, p.fail(at, "this group is not closed")
	}
	p.flags = before
	return n, nil
}

// look reads a lookahead or lookbehind.
func (p *parser) look(o op, at int, before flags) (*patternNode, error) {
	negated := p.source[p.at-1] == '!'
	n, err := p.inner(at, before)
	if err != nil {
		return nil, err
	}
	look := &patternNode{op: o, negated: negated, subs: []*patternNode{n}, at: at}
	if o == opBehind {
		return look, p.remember(n, at)
	}
	return look, nil
}

// remember notes which sets a lookbehind asks about; it may look at one character.
func (p *parser) remember(n *patternNode, at int) error {
	switch n.op {
	case opSet:
		p.past = append(p.past, n.set)
		return nil
	case opStart:
		return nil
	case opLine:
		return nil // noted where it was read
	case opAlt:
		for _, sub := range n.subs {
			if err := p.remember(sub, at); err != nil {
				return err
			}
		}
		return nil
	}
	return p.fail(at, "a lookbehind of other than one character is not supported")
}

// name skips the name of a group.
func (p *parser) name() error {
	end := strings.IndexByte(p.source[p.at:], '>')
	if end <= 0 || strings.ContainsAny(p.source[p.at:p.at+end], "()[]{}|\\ ") {
		return p.fail(p.at, "a name and > must follow (?<")
	}
	p.at += end + 1
	return nil
}

// switches reads flags: (?i) for the rest of the group, (?i:...) for a group of its own.
func (p *parser) switches(at int, before flags) (*patternNode, error) {
	on := true
	for ; p.more(); p.at++ {
		switch c := p.peek(); c {
		case '-':
			on = false
		case 'i':
			p.fold = on
		case 'm':
			p.lines = on
		case 's':
			p.dot = on
		case ')':
			p.at++
			return nil, nil
		case ':':
			p.at++
			return p.inner(at, before)
		default:
			if p.ecma || !p.other(c, on) {
				return nil, p.fail(p.at, "(?%c) is not supported", c)
			}
		}
	}
	return nil, p.fail(at, "this group is not closed")
}

// other sets a flag that ECMA-262 does not have.
func (p *parser) other(c byte, on bool) bool {
	switch c {
	case 'x':
		p.space = on
	case 'a':
		p.ascii = on
	case 'u':
		p.ascii = false
		return on
	case 'U': // greed is not a matter of languages
	default:
		return false
	}
	return true
}
