package grammar

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"

	"grove/constrain/regex"
	"grove/internal/text/token"
)

// quoted reads a literal in double quotes.
func (p *parser) quoted() (item, error) {
	start := p.pos
	var text []byte
	for p.pos++; !p.literal(`"`); {
		r, err := p.char("a literal", start)
		if err != nil {
			return item{}, err
		}
		text = utf8.AppendRune(text, r)
	}
	if len(text) == 0 {
		return item{expr: p.b.Empty(), symbols: 1, pos: start}, nil
	}
	return p.lexeme(p.store.Literal(string(text)), start), nil
}

// class reads a class of code points in brackets; ^ negates it.
func (p *parser) class() (item, error) {
	start := p.pos
	p.pos++
	negated := p.literal("^")
	var ranges []regex.Range
	for !p.literal("]") {
		first := p.pos
		low, err := p.char("a class", start)
		if err != nil {
			return item{}, err
		}
		high := low
		if p.pos+1 < len(p.text) && p.text[p.pos] == '-' && p.text[p.pos+1] != ']' {
			p.pos++
			if high, err = p.char("a class", start); err != nil {
				return item{}, err
			}
		}
		if high < low {
			return item{}, p.at(first, "the range %q to %q is empty", low, high)
		}
		ranges = append(ranges, regex.Range{Lo: low, Hi: high})
	}
	if len(ranges) == 0 {
		return item{}, p.at(start, "the class has no characters")
	}
	if negated {
		if ranges = complement(ranges); len(ranges) == 0 {
			return item{}, p.at(start, "the class has no characters")
		}
	}
	return p.lexeme(p.store.Runes(ranges...), start), nil
}

// complement returns the code points outside of ranges.
func complement(ranges []regex.Range) (outside []regex.Range) {
	slices.SortFunc(ranges, func(a, b regex.Range) int { return int(a.Lo - b.Lo) })
	next := rune(0)
	for _, r := range ranges {
		if r.Lo > next {
			outside = append(outside, regex.Range{Lo: next, Hi: r.Lo - 1})
		}
		next = max(next, r.Hi+1)
	}
	if next <= utf8.MaxRune {
		outside = append(outside, regex.Range{Lo: next, Hi: utf8.MaxRune})
	}
	return outside
}

// char reads a character of a literal or a class that began at start.
func (p *parser) char(where string, start int) (rune, error) {
	if p.pos >= len(p.text) {
		return 0, p.at(start, "%s has no end", where)
	}
	if p.text[p.pos] != '\\' {
		r, n := utf8.DecodeRune(p.text[p.pos:])
		p.pos += n
		return r, nil
	}
	if p.pos+1 >= len(p.text) {
		return 0, p.at(start, "%s has no end", where)
	}
	p.pos += 2
	switch c := p.text[p.pos-1]; c {
	case 'x':
		return p.hex(2)
	case 'u':
		return p.hex(4)
	case 'U':
		return p.hex(8)
	case 't':
		return '\t', nil
	case 'r':
		return '\r', nil
	case 'n':
		return '\n', nil
	case '\\', '"', '[', ']', '-', '^':
		return rune(c), nil
	}
	r, _ := utf8.DecodeRune(p.text[p.pos-1:])
	return 0, p.at(p.pos-2, "unknown escape \\%c; known are x, u, U, t, r, n, \\, \", [, ], - and ^", r)
}

// hex reads the digits of an escape: a code point.
func (p *parser) hex(digits int) (rune, error) {
	start := p.pos - 2
	if p.pos+digits > len(p.text) {
		return 0, p.at(start, "expected %d hexadecimal digits, found the end of the grammar", digits)
	}
	text := string(p.text[p.pos : p.pos+digits])
	n, err := strconv.ParseUint(text, 16, 32)
	if err != nil {
		return 0, p.at(start, "expected %d hexadecimal digits, found %q", digits, text)
	}
	p.pos += digits
	if n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return 0, p.at(start, "U+%04X is not a code point of a text", n)
	}
	return rune(n), nil
}

// token reads <[ID]>, <NAME>, and ! before one of them.
func (p *parser) token() (item, error) {
	start := p.pos
	negated := p.literal("!")
	begin := p.pos
	if !p.literal("<") {
		return item{}, p.expected("< after !")
	}
	end := bytes.IndexAny(p.text[p.pos:], ">\n")
	if end < 0 || p.text[p.pos+end] != '>' {
		return item{}, p.at(begin, "a token has no > in its line")
	}
	p.pos += end + 1
	id, err := p.tokenID(string(p.text[begin:p.pos]), begin)
	if err != nil {
		return item{}, err
	}
	if !negated {
		return p.lexeme(p.store.Literal("\xff["+strconv.Itoa(int(id))+"]"), start), nil
	}
	digits := p.store.Runes(regex.Range{Lo: '0', Hi: '9'})
	number := p.store.And(p.store.Repeat(digits, 1, 10), p.store.Not(p.store.Literal(strconv.Itoa(int(id)))))
	other := p.store.Concat(p.store.Literal("\xff["), number, p.store.Literal("]"))
	return item{symbols: 1, negated: p.store.Or(p.store.AnyRune(), other), pos: start}, nil
}

// tokenID returns the token that a text in angle brackets names.
func (p *parser) tokenID(text string, pos int) (token.ID, error) {
	var id token.ID
	if inner := text[1 : len(text)-1]; len(inner) > 1 && inner[0] == '[' && inner[len(inner)-1] == ']' {
		n, err := strconv.ParseUint(inner[1:len(inner)-1], 10, 31)
		if err != nil {
			return 0, p.at(pos, "the number of token %s is not in 0..%d", text, 1<<31-1)
		}
		id = token.ID(n)
	} else if p.o.Token == nil {
		return 0, p.at(pos, "token %s: no vocabulary is known here, so that only tokens by number can be named", text)
	} else {
		var ok bool
		if id, ok = p.o.Token(text); !ok {
			return 0, p.at(pos, "the vocabulary has no token %s", text)
		}
	}
	if p.o.Special != nil && !p.o.Special(id) {
		return 0, p.at(pos, "token %s is text; write its text as a literal", text)
	}
	return id, nil
}
