package lark

import (
	"bytes"
	"unicode/utf8"
)

// counts reads *, +, ?, ~n, ~n..m, {n}, {n,}, {,m} or {n,m}.
func (p *parser) counts() (low, high int, ok bool, err error) {
	start := p.pos
	switch c := p.here(); {
	case c != '*' && c != '+' && c != '?' && c != '~' && c != '{' || p.atItem():
		return 0, 0, false, nil
	case p.skip("*"):
		return 0, -1, true, nil
	case p.skip("+"):
		return 1, -1, true, nil
	case p.skip("?"):
		return 0, 1, true, nil
	case p.skip("~"):
		if c := p.here(); c < '0' || c > '9' {
			p.pos = start // the next symbol is a complement
			return 0, 0, false, nil
		}
		if low, err = p.number(); err == nil && p.skip("..") {
			high, err = p.number()
		} else {
			high = low
		}
	case p.skip("{"):
		if p.here() != ',' {
			low, err = p.number()
		}
		if high = low; err == nil && p.skip(",") {
			if high = -1; p.here() != '}' {
				high, err = p.number()
			}
		}
		if err == nil && !p.skip("}") {
			err = p.expected("} after the counts of a repetition")
		}
	}
	if err == nil && high >= 0 && high < low {
		err = p.at(start, "a repetition of %d to %d times", low, high)
	}
	return low, high, err == nil, err
}

// atom reads a group, a string, an expression, a name, a token, or ~ before one of them.
func (p *parser) atom() (*node, error) {
	start := p.pos
	switch c := p.here(); {
	case c == '(' || c == '[':
		return p.group(map[byte]string{'(': ")", '[': "]"}[c])
	case c == '"':
		return p.textOrRange()
	case c == '/':
		return p.regexp()
	case c == '<':
		return p.token()
	case c == '~':
		p.pos++
		p.space()
		if p.depth++; p.depth > maxDepth {
			return nil, p.limit(start, "complements are nested more than %d deep", maxDepth)
		}
		n, err := p.atom()
		p.depth--
		return &node{kind: isNot, parts: []*node{n}, pos: start}, err
	case c == '%':
		return nil, p.at(start, "%s is not supported in a definition", p.word())
	case c == '@':
		return nil, p.at(start, "other grammars, @name, are not supported")
	}
	n := &node{kind: isName, text: p.name(), pos: start}
	if n.text == "" {
		return nil, p.expected("a string, an expression, a name, a token or a group")
	}
	if p.here() == '{' && p.template() {
		return n, p.arguments(n)
	}
	return n, nil
}

// template says whether the brace here begins arguments and not counts.
func (p *parser) template() bool {
	rest := bytes.TrimLeft(p.text[p.pos+1:], " \t\r\n")
	return len(rest) > 0 && rest[0] != ',' && (rest[0] < '0' || rest[0] > '9')
}

// arguments reads {VALUE, ...} after the name of a template.
func (p *parser) arguments(n *node) error {
	if p.depth++; p.depth > maxDepth {
		return p.limit(p.pos, "templates are nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	p.skip("{")
	for more := true; more; more = p.skip(",") {
		arg, err := p.choice()
		if err != nil {
			return err
		}
		n.parts = append(n.parts, arg)
	}
	if !p.skip("}") {
		return p.expected("} after the arguments of a template")
	}
	return nil
}

// group reads ( CHOICE ) or [ CHOICE ].
func (p *parser) group(end string) (*node, error) {
	start := p.pos
	p.pos++
	p.space()
	n, err := p.choice()
	if err != nil {
		return nil, err
	}
	if !p.skip(end) {
		return nil, p.expected(end + " for the " + string(p.text[start]))
	}
	if end == "]" {
		n = &node{kind: isRepeat, low: 0, high: 1, parts: []*node{n}, pos: start}
	}
	return n, nil
}

// textOrRange reads "text" or "a".."z".
func (p *parser) textOrRange() (*node, error) {
	first, err := p.quoted()
	if err != nil || !bytes.HasPrefix(p.text[p.pos:], []byte("..")) {
		return first, err
	}
	p.skip("..")
	if p.here() != '"' {
		return nil, p.expected("a string after ..")
	}
	second, err := p.quoted()
	if err != nil {
		return nil, err
	}
	for _, n := range []*node{first, second} {
		if utf8.RuneCountInString(n.text) != 1 || n.flags != "" {
			return nil, p.at(n.pos, "the end %q of a range is not one character", n.text)
		}
	}
	low, _ := utf8.DecodeRuneInString(first.text)
	high, _ := utf8.DecodeRuneInString(second.text)
	if high < low {
		return nil, p.at(first.pos, "the range %q to %q is empty", low, high)
	}
	return &node{kind: isRange, text: first.text + second.text, pos: first.pos}, nil
}

// token reads <NAME> or <[NUMBERS]>.
func (p *parser) token() (*node, error) {
	start := p.pos
	end := bytes.IndexAny(p.text[p.pos:], ">\n")
	if end < 0 || p.text[p.pos+end] != '>' {
		return nil, p.at(start, "a token has no > in its line")
	}
	p.pos += end + 1
	n := &node{kind: isToken, text: string(p.text[start:p.pos]), pos: start}
	p.space()
	return n, nil
}
