package regex

import (
	"strings"
)

// class reads a class in brackets.
func (p *parser) class() (patternSet, error) {
	at := p.at
	p.at++
	negated := p.accept("^")
	var out patternSet
	first := true
	for {
		if !p.more() {
			return nil, p.fail(at, "this class is not closed")
		}
		if p.peek() == ']' && (p.ecma || !first) {
			p.at++
			return p.finished(out, negated, at)
		}
		first = false
		if !p.ecma && strings.HasPrefix(p.source[p.at:], "&&") {
			return nil, p.fail(p.at, "&& in a class is not supported: notations differ")
		}
		s, err := p.members()
		if err != nil {
			return nil, err
		}
		out = append(out, s...)
	}
}

// finished applies case and negation to what a class holds.
func (p *parser) finished(out patternSet, negated bool, at int) (patternSet, error) {
	out = normal(out)
	if p.fold && len(out) > 0 {
		if err := p.charge(len(folding()), at); err != nil {
			return nil, err
		}
		out = out.folded()
	}
	if negated {
		out = out.not()
	}
	return out, p.charge(len(out)+1, at)
}

// members reads one member of a class: a character, an escape, a range.
func (p *parser) members() (patternSet, error) {
	at := p.at
	if !p.ecma && p.accept("[:") {
		return p.posix(at)
	}
	s, lo, err := p.member()
	if err != nil || !strings.HasPrefix(p.source[p.at:], "-") || strings.HasPrefix(p.source[p.at:], "-]") {
		if s == nil {
			s = one(lo)
		}
		return s, err
	}
	dash := p.at
	p.at++
	if !p.more() {
		return nil, p.fail(at, "this class is not closed")
	}
	t, hi, err := p.member()
	if err != nil {
		return nil, err
	}
	if s != nil || t != nil { // a set bounds no range: the dash is a character
		if !p.ecma && s == nil {
			return nil, p.fail(dash, "a range of characters ends in a set")
		}
		if s == nil {
			s = one(lo)
		}
		if t == nil {
			t = one(hi)
		}
		return union(s, one('-'), t), nil
	}
	if lo > hi {
		return nil, p.fail(at, "the bounds of %s are out of order", p.source[at:p.at])
	}
	return patternSet{Range{Lo: lo, Hi: hi}}, p.charge(1, at)
}

// member reads a character, or an escape that may be a set.
func (p *parser) member() (patternSet, rune, error) {
	if !p.accept(`\`) {
		return nil, p.rune(), nil
	}
	if !p.more() {
		return nil, 0, p.fail(p.at-1, "nothing follows the last backslash")
	}
	if c := p.peek(); p.ecma && c == '-' {
		p.at++
		return nil, '-', nil
	}
	return p.character(true)
}

// posix reads [:name:] or [:^name:] after its first two bytes.
func (p *parser) posix(at int) (patternSet, error) {
	negated := p.accept("^")
	end := strings.Index(p.source[p.at:], ":]")
	if end < 0 {
		return nil, p.fail(at, ":] is missing after [:")
	}
	s, ok := posix[p.source[p.at:p.at+end]]
	if !ok {
		return nil, p.fail(at, "no class has the name %.40q", p.source[p.at:p.at+end])
	}
	p.at += end + 2
	if negated {
		s = s.not()
	}
	return s, p.charge(len(s), at)
}
