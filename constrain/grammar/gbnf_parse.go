package grammar

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"grove/constrain/regex"
)

// A parser reads a grammar from left to right. Each method begins at the first byte of what it reads.
type parser struct {
	text    []byte
	pos     int
	depth   int // of groups
	symbols int // of the rules so far
	o       GBNFOptions
	store   *regex.Store
	b       *Builder
	defined map[string]int // where each rule is defined
	uses    []use
}

// A use is a place that names a rule.
type use struct {
	name string
	pos  int
}

// An item is a part of a rule: its expression, the number of its symbols where repetitions are written out, and the token that
// it must not be where it is a negated token and nothing else.
type item struct {
	expr    Expr
	symbols int
	negated regex.ID // the texts that stand for one step of the repetition; Nothing: not a negated token
	pos     int
}

// at returns an error at a place.
func (p *parser) at(pos int, format string, args ...any) *GBNFError {
	line, column := Place(p.text, pos)
	return &GBNFError{Line: line, Column: column, Problem: fmt.Sprintf(format, args...)}
}

// limit returns the error of a bound.
func (p *parser) limit(pos int, format string, args ...any) error {
	err := p.at(pos, format, args...)
	err.Limit = true
	return err
}

// expected returns the error that something else stands here.
func (p *parser) expected(what string) error {
	return p.at(p.pos, "expected %s, found %s", what, Found(p.text, p.pos))
}

// grammar reads all rules.
func (p *parser) grammar() error {
	if len(p.text) > maxBytes {
		return p.limit(0, "the grammar has %d bytes, the limit is %d", len(p.text), maxBytes)
	}
	if i := invalid(p.text); i >= 0 {
		return p.at(i, "byte 0x%02x is not UTF-8", p.text[i])
	}
	for p.space(); p.pos < len(p.text); p.space() {
		if err := p.rule(); err != nil {
			return err
		}
	}
	if _, ok := p.defined[p.o.Root]; !ok {
		return p.at(p.pos, "the start rule %q is not defined", p.o.Root)
	}
	for _, u := range p.uses {
		if _, ok := p.defined[u.name]; !ok {
			return p.at(u.pos, "rule %q is not defined", u.name)
		}
	}
	return nil
}

// invalid returns where a text stops being UTF-8, or -1.
func invalid(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// rule reads NAME ::= ALTERNATIVES. A rule ends where the next one begins.
func (p *parser) rule() error {
	start := p.pos
	name := p.name()
	if name == "" {
		return p.expected("the name of a rule")
	}
	p.space()
	if !p.literal("::=") {
		return p.expected(fmt.Sprintf("::= after the name %q", name))
	}
	if before, ok := p.defined[name]; ok {
		return p.at(start, "rule %q is already defined in line %d", name, p.at(before, "").Line)
	}
	p.defined[name] = start
	it, err := p.alternatives()
	if err != nil {
		return err
	}
	if p.pos < len(p.text) && !p.atRule() {
		return p.expected("a symbol, | or the next rule")
	}
	if err := p.repeats(it); err != nil {
		return err
	}
	if p.symbols += it.symbols; p.symbols > maxSymbols {
		return p.limit(start, "the grammar has more than %d symbols, repetitions written out", maxSymbols)
	}
	p.b.Define(name, it.expr)
	return nil
}

// atRule says whether a rule begins here: NAME ::=.
func (p *parser) atRule() bool {
	start := p.pos
	defer func() { p.pos = start }()
	if p.name() == "" {
		return false
	}
	p.space()
	return p.literal("::=")
}

// alternatives reads SEQUENCE | SEQUENCE...
func (p *parser) alternatives() (item, error) {
	p.space()
	first, err := p.sequence()
	if err != nil {
		return item{}, err
	}
	all, symbols := []item{first}, first.symbols
	for p.literal("|") {
		p.space()
		next, err := p.sequence()
		if err != nil {
			return item{}, err
		}
		all, symbols = append(all, next), symbols+next.symbols+1
	}
	return p.join(all, symbols, p.b.Alt)
}

// sequence reads symbols up to |, a closing parenthesis, the next rule or the end. An empty sequence is the empty text.
func (p *parser) sequence() (item, error) {
	var all []item
	symbols := 0
	for p.pos < len(p.text) && p.text[p.pos] != '|' && p.text[p.pos] != ')' && !p.atRule() {
		it, err := p.repeated()
		if err != nil {
			return item{}, err
		}
		if symbols += it.symbols; symbols > maxSymbols {
			return item{}, p.limit(it.pos, "the rule has more than %d symbols, repetitions written out", maxSymbols)
		}
		all = append(all, it)
	}
	if len(all) == 0 {
		return item{expr: p.b.Empty(), symbols: 1}, nil
	}
	return p.join(all, symbols, p.b.Seq)
}

// join makes one item of several, which have so many symbols together; a single one stays as it is.
func (p *parser) join(all []item, symbols int, of func(...Expr) Expr) (item, error) {
	if len(all) == 1 {
		return all[0], nil
	}
	exprs := make([]Expr, len(all))
	for i, it := range all {
		if err := p.repeats(it); err != nil {
			return item{}, err
		}
		exprs[i] = it.expr
	}
	return item{expr: of(exprs...), symbols: symbols}, nil
}

// repeated reads a symbol with the repetitions after it.
func (p *parser) repeated() (item, error) {
	it, err := p.symbol()
	if err != nil {
		return item{}, err
	}
	for p.space(); p.pos < len(p.text); p.space() {
		start := p.pos
		low, high, ok, err := p.counts()
		if err != nil {
			return item{}, err
		}
		if !ok {
			return it, nil
		}
		if it, err = p.repeat(it, low, high, start); err != nil {
			return item{}, err
		}
	}
	return it, nil
}

// repeats returns an error if an item is a negated token that nothing repeats.
func (p *parser) repeats(it item) error {
	if it.negated == regex.Nothing {
		return nil
	}
	return p.at(it.pos, "!<...> must be repeated by * or + and nothing else: the length of one token is no property of a text")
}

// repeat returns a symbol repeated; high is negative where there is no upper bound.
func (p *parser) repeat(it item, low, high, pos int) (item, error) {
	if it.negated != regex.Nothing {
		if low > 1 || high >= 0 {
			return item{}, p.repeats(it)
		}
		return item{expr: p.b.Repeat(p.b.Lexeme(it.negated), low, high), symbols: 1, pos: it.pos}, nil
	}
	if n := max(low, high, 1); it.symbols > maxSymbols/n {
		return item{}, p.limit(pos, "the repetition has more than %d symbols written out", maxSymbols)
	} else {
		it.symbols *= n
	}
	it.expr = p.b.Repeat(it.expr, low, high)
	return it, nil
}

// counts reads *, +, ?, {m}, {m,} or {m,n}.
func (p *parser) counts() (low, high int, ok bool, err error) {
	switch {
	case p.literal("*"):
		return 0, -1, true, nil
	case p.literal("+"):
		return 1, -1, true, nil
	case p.literal("?"):
		return 0, 1, true, nil
	case !p.literal("{"):
		return 0, 0, false, nil
	}
	start := p.pos
	p.space()
	if low, err = p.number(); err != nil {
		return 0, 0, false, err
	}
	high = low
	if p.space(); p.literal(",") {
		p.space()
		if high = -1; p.pos < len(p.text) && p.text[p.pos] != '}' {
			if high, err = p.number(); err != nil {
				return 0, 0, false, err
			}
		}
	}
	if p.space(); !p.literal("}") {
		return 0, 0, false, p.expected("} after the counts of a repetition")
	}
	if high >= 0 && high < low {
		return 0, 0, false, p.at(start, "a repetition of %d to %d times", low, high)
	}
	return low, high, true, nil
}

// number reads a count.
func (p *parser) number() (int, error) {
	start := p.pos
	for p.pos < len(p.text) && '0' <= p.text[p.pos] && p.text[p.pos] <= '9' {
		p.pos++
	}
	if p.pos == start {
		return 0, p.expected("a number")
	}
	n, err := strconv.Atoi(string(p.text[start:p.pos]))
	if n > maxSymbols || errors.Is(err, strconv.ErrRange) {
		return 0, p.limit(start, "the number %s is beyond the limit of %d", p.text[start:p.pos], maxSymbols)
	}
	return n, err
}

// symbol reads a literal, a class, a name, a token or a group.
func (p *parser) symbol() (item, error) {
	start := p.pos
	switch c := p.text[p.pos]; {
	case c == '"':
		return p.quoted()
	case c == '[':
		return p.class()
	case c == '.':
		p.pos++
		return p.lexeme(p.store.AnyRune(), start), nil
	case c == '(':
		return p.group()
	case c == '<' || c == '!':
		return p.token()
	}
	name := p.name()
	if name == "" {
		return item{}, p.expected("a literal, a class, a name, a token or a group")
	}
	p.uses = append(p.uses, use{name, start})
	return item{expr: p.b.Rule(name), symbols: 1, pos: start}, nil
}

// lexeme returns the item of a set of texts.
func (p *parser) lexeme(id regex.ID, pos int) item {
	return item{expr: p.b.Lexeme(id), symbols: 1, pos: pos}
}

// group reads ( ALTERNATIVES ).
func (p *parser) group() (item, error) {
	start := p.pos
	p.pos++
	if p.depth++; p.depth > maxDepth {
		return item{}, p.limit(start, "groups are nested more than %d deep", maxDepth)
	}
	it, err := p.alternatives()
	if err != nil {
		return item{}, err
	}
	if !p.literal(")") {
		return item{}, p.expected(fmt.Sprintf(") for the ( in line %d", p.at(start, "").Line))
	}
	p.depth--
	it.pos = start
	return it, nil
}

// space skips blanks, newlines and comments.
func (p *parser) space() {
	for ; p.pos < len(p.text); p.pos++ {
		switch p.text[p.pos] {
		case ' ', '\t', '\r', '\n':
		case '#':
			for p.pos+1 < len(p.text) && p.text[p.pos+1] != '\n' && p.text[p.pos+1] != '\r' {
				p.pos++
			}
		default:
			return
		}
	}
}

// name reads the name of a rule: letters, digits, dashes and underscores. It is empty where there is none.
func (p *parser) name() string {
	start := p.pos
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			break
		}
		p.pos++
	}
	return string(p.text[start:p.pos])
}

// literal skips a text of the notation if it stands here.
func (p *parser) literal(text string) bool {
	if !bytes.HasPrefix(p.text[p.pos:], []byte(text)) {
		return false
	}
	p.pos += len(text)
	return true
}
