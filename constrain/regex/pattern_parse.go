package regex

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// flags are the modes that (?flags) switches.
type flags struct {
	fold  bool // i: letters match in both cases
	lines bool // m: ^ and $ match at line feeds
	dot   bool // s: a dot is any character
	space bool // x: blanks and comments are left out
	ascii bool // a: \d, \s, \w are ASCII
}

// parser reads an expression.
type parser struct {
	source string
	ecma   bool
	at     int
	depth  int
	groups int          // capturing groups in the whole source, for backreferences
	past   []patternSet // what assertions ask of the character before them
	work   int          // ranges made
	flags
}

// fail is an error at a byte.
func (p *parser) fail(at int, format string, a ...any) error {
	return &PatternError{Source: p.source, At: at, Problem: fmt.Sprintf(format, a...)}
}

func (p *parser) parse() (*patternNode, error) {
	switch {
	case len(p.source) > PatternMaxLength:
		return nil, p.fail(PatternMaxLength, "the expression has %d bytes; at most %d are read", len(p.source), PatternMaxLength)
	case !utf8.ValidString(p.source):
		return nil, p.fail(0, "the expression is not UTF-8")
	}
	p.groups = countGroups(p.source)
	n, err := p.alternatives()
	if err == nil && p.at < len(p.source) {
		err = p.fail(p.at, "this ) closes no group")
	}
	return n, err
}

// countGroups counts the groups that capture.
func countGroups(source string) (n int) {
	class := false
	for i := 0; i < len(source); i++ {
		switch source[i] {
		case '\\':
			i++
		case '[':
			class = true
		case ']':
			class = false
		case '(':
			rest := source[i+1:]
			named := strings.HasPrefix(rest, "?P<") || strings.HasPrefix(rest, "?<") &&
				!strings.HasPrefix(rest, "?<=") && !strings.HasPrefix(rest, "?<!")
			if !class && (named || !strings.HasPrefix(rest, "?")) {
				n++
			}
		}
	}
	return n
}

// more reports whether a byte follows, and peek returns it.
func (p *parser) more() bool { return p.at < len(p.source) }
func (p *parser) peek() byte { return p.source[p.at] }

// accept skips a text if it follows.
func (p *parser) accept(text string) bool {
	if strings.HasPrefix(p.source[p.at:], text) {
		p.at += len(text)
		return true
	}
	return false
}

// rune reads a character.
func (p *parser) rune() rune {
	r, n := utf8.DecodeRuneInString(p.source[p.at:])
	p.at += n
	return r
}

// charge counts ranges of characters; the sum is bounded.
func (p *parser) charge(ranges, at int) error {
	if p.work += ranges; p.work > maxWork {
		return p.fail(at, "the classes are too large: more than %d ranges", maxWork)
	}
	return nil
}

// alternatives reads what stands between | up to ) or the end.
func (p *parser) alternatives() (*patternNode, error) {
	at := p.at
	var all []*patternNode
	for {
		n, err := p.sequence()
		if err != nil {
			return nil, err
		}
		all = append(all, n)
		if !p.accept("|") {
			return group(opAlt, all, at), nil
		}
	}
}

// sequence reads terms up to |, ) or the end.
func (p *parser) sequence() (*patternNode, error) {
	at := p.at
	var all []*patternNode
	for {
		if p.skip(); !p.more() || p.peek() == '|' || p.peek() == ')' {
			return group(opCat, all, at), nil
		}
		terms, err := p.terms()
		if err != nil {
			return nil, err
		}
		if len(terms) == 0 {
			continue
		}
		last := len(terms) - 1
		all = append(all, terms[:last]...)
		n := terms[last]
		if n, err = p.quantified(n); err != nil {
			return nil, err
		}
		all = append(all, n)
	}
}

// skip leaves out blanks and comments where the flag x says so.
func (p *parser) skip() {
	for p.space && p.more() {
		r, n := utf8.DecodeRuneInString(p.source[p.at:])
		switch {
		case unicode.IsSpace(r):
			p.at += n
		case r == '#':
			end := strings.IndexByte(p.source[p.at:], '\n')
			if end < 0 {
				end = len(p.source) - p.at
			}
			p.at += end
		default:
			return
		}
	}
}

// terms reads one term, or the characters of \Q...\E, of which only the last may be repeated.
func (p *parser) terms() ([]*patternNode, error) {
	if !p.ecma && p.accept(`\Q`) {
		return p.quoted()
	}
	n, err := p.term()
	if n == nil || err != nil {
		return nil, err
	}
	return []*patternNode{n}, nil
}

// term reads one term without what repeats it; nil is a term without meaning, such as flags.
func (p *parser) term() (*patternNode, error) {
	at := p.at
	switch p.peek() {
	case '(':
		return p.group()
	case '[':
		s, err := p.class()
		return character(s, at), err
	case '\\':
		return p.escape()
	case '*', '+', '?':
		return nil, p.fail(at, "nothing to repeat before %c", p.peek())
	case '{':
		if _, _, ok, _ := p.braces(); ok {
			return nil, p.fail(at, "nothing to repeat before {")
		}
	case '^':
		p.at++
		if p.lines {
			p.past = append(p.past, newline)
			return &patternNode{op: opLine, at: at}, nil
		}
		return &patternNode{op: opStart, at: at}, nil
	case '$':
		p.at++
		if p.lines {
			return &patternNode{op: opStop, at: at}, nil
		}
		return &patternNode{op: opEnd, at: at}, nil
	case '.':
		p.at++
		return character(p.dotSet(), at), nil
	}
	return p.literal(p.rune(), at)
}

var (
	notNewline = newline.not()
	notBreaks  = ecmaBreaks.not()
)

func (p *parser) dotSet() patternSet {
	switch {
	case p.dot:
		return everything
	case p.ecma:
		return notBreaks
	}
	return notNewline
}

// literal is the node of one character, in both cases where the flag says so.
func (p *parser) literal(r rune, at int) (*patternNode, error) {
	s := one(r)
	if p.fold {
		s = p.foldOne(r)
	}
	return character(s, at), p.charge(1, at)
}

func (p *parser) foldOne(r rune) patternSet {
	s := one(r)
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		s = append(s, one(o)...)
	}
	return normal(s)
}

// quantified reads what repeats a term.
func (p *parser) quantified(n *patternNode) (*patternNode, error) {
	if p.skip(); !p.more() {
		return n, nil
	}
	at := p.at
	lo, hi := 0, -1
	switch p.peek() {
	case '*':
		p.at++
	case '+':
		p.at++
		lo = 1
	case '?':
		p.at++
		hi = 1
	case '{':
		var ok bool
		var err error
		if lo, hi, ok, err = p.braces(); !ok || err != nil {
			return n, err
		}
	default:
		return n, nil
	}
	if !p.accept("?") && p.more() { // a lazy repetition is the same language
		switch c := p.peek(); {
		case c == '+' && !p.ecma:
			return nil, p.fail(p.at, "possessive repetition is not supported")
		case c == '*' || c == '+':
			return nil, p.fail(p.at, "nothing to repeat before %c", c)
		}
	}
	return patternRepeat(n, lo, hi, at), nil
}

// braces reads {n}, {n,} or {n,m}; outside ECMA {,m} too. ok: these braces repeat; otherwise they are characters.
func (p *parser) braces() (lo, hi int, ok bool, err error) {
	at := p.at
	end := strings.IndexByte(p.source[at:], '}')
	if end < 0 {
		return 0, 0, false, nil
	}
	first, second, pair := strings.Cut(p.source[at+1:at+end], ",")
	if !patternDigits(first) || !patternDigits(second) || first == "" && (p.ecma || second == "") {
		return 0, 0, false, nil
	}
	lo, hi = count(first), count(second)
	switch {
	case !pair:
		hi = lo
	case second == "":
		hi = -1
	}
	switch {
	case max(lo, hi) > PatternMaxCount:
		return 0, 0, true, p.fail(at, "a repetition counts to at most %d", PatternMaxCount)
	case hi >= 0 && lo > hi:
		return 0, 0, true, p.fail(at, "the bounds of {%s,%s} are out of order", first, second)
	}
	p.at += end + 1
	return lo, hi, true, nil
}

func patternDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// count is the number that digits spell, or more than MaxCount.
func count(s string) (n int) {
	for _, c := range s {
		n = min(n*10+int(c-'0'), PatternMaxCount+1)
	}
	return n
}
