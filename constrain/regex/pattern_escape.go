package regex

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// escape reads what a backslash begins, outside a class.
func (p *parser) escape() (*patternNode, error) {
	at := p.at
	p.at++
	if !p.more() {
		return nil, p.fail(at, "nothing follows the last backslash")
	}
	switch c := p.peek(); {
	case c == 'b' || c == 'B':
		p.at++
		p.past = append(p.past, p.word())
		return &patternNode{op: opBound, negated: c == 'B', set: p.word(), at: at}, nil
	case p.backreference():
		return nil, p.fail(at, "backreferences are not supported")
	case p.ecma:
	case c == 'A':
		p.at++
		return &patternNode{op: opStart, at: at}, nil
	case c == 'z' || c == 'Z':
		p.at++
		return &patternNode{op: opEnd, at: at}, nil
	}
	s, r, err := p.character(false)
	if err != nil {
		return nil, err
	}
	if s != nil {
		return character(s, at), nil
	}
	return p.literal(r, at)
}

// backreference reports whether an escape names a group. ECMA-262 reads \1 without groups as octal, others \101 at any time.
func (p *parser) backreference() bool {
	rest := p.source[p.at:]
	switch {
	case rest[0] == 'k':
		return true
	case rest[0] < '1' || rest[0] > '9':
		return false
	case p.ecma:
		return count(rest[:1]) <= p.groups
	}
	return len(rest) < 3 || rest[0] > '3' || strings.Trim(rest[:3], "01234567") != ""
}

// quoted reads \Q...\E behind the \Q: its characters.
func (p *parser) quoted() ([]*patternNode, error) {
	end := strings.Index(p.source[p.at:], `\E`)
	next := p.at + end + 2
	if end < 0 {
		end, next = len(p.source)-p.at, len(p.source)
	}
	var all []*patternNode
	for stop := p.at + end; p.at < stop; {
		at := p.at
		n, err := p.literal(p.rune(), at)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	p.at = next
	return all, nil
}

// word is the set of \w.
func (p *parser) word() patternSet {
	if p.ecma || p.ascii {
		return wordASCII
	}
	return wordUnicode()
}

// class returns the set of an escape that stands for one, in lower case.
func (p *parser) named(c byte) patternSet {
	switch {
	case c == 'w':
		return p.word()
	case c == 'd' && (p.ecma || p.ascii):
		return digitASCII
	case c == 'd':
		return digitUnicode()
	case c == 's' && p.ecma:
		return spaceECMA()
	case c == 's' && p.ascii:
		return spaceASCII
	case c == 's':
		return spaceUnicode()
	case c == 'h' && !p.ecma:
		return horizontal
	}
	return nil
}

// character reads an escape, after its backslash, that stands for a set or for one character; the set is nil for one.
func (p *parser) character(inClass bool) (patternSet, rune, error) {
	at := p.at - 1
	c := p.rune()
	if c < utf8.RuneSelf {
		if s := p.named(byte(c)); s != nil {
			return s, 0, p.charge(len(s), at)
		}
		if s := p.named(byte(c) | 0x20); s != nil {
			return s.not(), 0, p.charge(len(s), at)
		}
	}
	switch c {
	case 'p', 'P':
		s, err := p.property(c == 'P', at)
		return s, 0, err
	case 'b':
		if inClass {
			return nil, '\b', nil
		}
	case 'B', 'A', 'z', 'Z', 'Q', 'E', 'k':
		return nil, 0, p.fail(at, "\\%c is not supported here", c)
	case 'c':
		if p.ecma && p.more() && isLetter(p.peek()) {
			return nil, p.rune() & 0x1f, nil
		}
		return nil, 0, p.fail(at, "a letter must follow \\c")
	case '0', '1', '2', '3', '4', '5', '6', '7':
		return nil, p.octal(byte(c)), nil
	case 'x', 'u', 'U':
		r, err := p.hex(c, at)
		return nil, r, err
	}
	if r, ok := p.control(c); ok {
		return nil, r, nil
	}
	if c < utf8.RuneSelf && (isLetter(byte(c)) || '0' <= c && c <= '9') {
		return nil, 0, p.fail(at, "\\%c is no escape of this notation", c)
	}
	return nil, c, nil
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// control returns the control character that a letter stands for.
func (p *parser) control(c rune) (rune, bool) {
	switch c {
	case 't':
		return '\t', true
	case 'n':
		return '\n', true
	case 'v':
		return '\v', true
	case 'f':
		return '\f', true
	case 'r':
		return '\r', true
	}
	if p.ecma {
		return 0, false
	}
	switch c {
	case 'a':
		return '\a', true
	case 'e':
		return 0x1b, true
	}
	return 0, false
}

// octal reads up to three octal digits, of at most 0o377; the first is read.
func (p *parser) octal(first byte) rune {
	r := rune(first - '0')
	for range 2 {
		if !p.more() || p.peek() < '0' || p.peek() > '7' || r*8+rune(p.peek()-'0') > 0o377 {
			break
		}
		r = r*8 + p.rune() - '0'
	}
	return r
}

// hex reads the digits of \x, \u and \U; a pair of surrogates is one character.
func (p *parser) hex(c rune, at int) (rune, error) {
	if (c != 'x' || !p.ecma) && p.accept("{") {
		return p.braced(c, at)
	}
	n := map[rune]int{'x': 2, 'u': 4, 'U': 8}[c]
	r, ok := p.digits(n)
	if c == 'U' && p.ecma || !ok {
		return 0, p.fail(at, "\\%c needs %d hexadecimal digits", c, n)
	}
	if c == 'u' && utf16.IsSurrogate(r) && p.accept(`\u`) {
		low, ok := p.digits(4)
		if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
			return pair, nil
		}
		p.at -= 2
		if ok {
			p.at -= 4
		}
	}
	return r, nil
}

// braced reads the digits of \u{...} after the brace.
func (p *parser) braced(c rune, at int) (rune, error) {
	end := strings.IndexByte(p.source[p.at:], '}')
	if end < 1 || end > 8 {
		return 0, p.fail(at, "\\%c{ needs 1 to 8 hexadecimal digits and }", c)
	}
	r, ok := p.digits(end)
	if !ok || r > utf8.MaxRune {
		return 0, p.fail(at, "\\%c{ needs a code point up to 10FFFF in hexadecimal", c)
	}
	p.at++
	return r, nil
}

// digits reads n hexadecimal digits; if they are not there nothing is read.
func (p *parser) digits(n int) (rune, bool) {
	if len(p.source)-p.at < n {
		return 0, false
	}
	var v uint32
	for _, c := range []byte(p.source[p.at : p.at+n]) {
		switch {
		case '0' <= c && c <= '9':
			v = v<<4 | uint32(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			v = v<<4 | uint32(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	if v > utf8.MaxRune {
		return 0, false
	}
	p.at += n
	return rune(v), true
}

// property reads the name of \p or \P.
func (p *parser) property(negated bool, at int) (patternSet, error) {
	name := ""
	switch {
	case p.accept("{"):
		end := strings.IndexByte(p.source[p.at:], '}')
		if end < 0 {
			return nil, p.fail(at, "} is missing after the name of a property")
		}
		name = p.source[p.at : p.at+end]
		p.at += end + 1
	case !p.ecma && p.more():
		name = string(p.rune())
	default:
		return nil, p.fail(at, "a name in braces must follow \\p")
	}
	if rest, ok := strings.CutPrefix(name, "^"); ok && !p.ecma {
		name, negated = rest, !negated
	}
	s, ok := property(name, p.ecma)
	if !ok {
		return nil, p.fail(at, "no property of characters has the name %.40q", name)
	}
	if negated {
		s = s.not()
	}
	if p.fold {
		s = s.folded()
		return s, p.charge(len(folding())+len(s), at)
	}
	return s, p.charge(len(s), at)
}
