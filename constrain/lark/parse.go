package lark

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// A kind is a kind of node.
type kind byte

const (
	isText     kind = iota // a string
	isRange                // a range of characters, in text
	isRegexp               // an expression between slashes
	isName                 // a rule or terminal, with arguments if it is a template
	isToken                // a special token
	isSequence             // parts, one after another
	isChoice               // one of the parts
	isBoth                 // all of the parts at once
	isNot                  // any text but the part's
	isRepeat               // the part, low to high times
	isLayout               // a terminal that %indent defines
)

// A node is a part of a definition.
type node struct {
	kind      kind
	text      string // of a string, an expression, a name or a token
	flags     string // of a string or an expression
	low, high int    // of a repetition; high is negative where there is no bound
	parts     []*node
	pos       int
}

// A definition is a rule or a terminal.
type definition struct {
	name     string
	params   []string // of a template
	priority int
	body     *node
	lazy     bool  // the shortest match
	suffix   *node // ends the shortest match
	common   bool  // comes from module common
	pos      int
}

// A parser reads a grammar from left to right. Each method begins at the first byte of what it reads, and skips the space after.
type parser struct {
	text    []byte
	pos     int
	depth   int
	o       Options
	items   map[string]*definition
	order   []*definition // items as they stand in the text
	ignored []*node
	indent  bool // %indent stands in the grammar
}

// grammar reads all definitions and directives.
func (p *parser) grammar() error {
	if len(p.text) > maxBytes {
		return p.limit(0, "the grammar has %d bytes, the limit is %d", len(p.text), maxBytes)
	}
	for i := 0; i < len(p.text); {
		r, n := utf8.DecodeRune(p.text[i:])
		if r == utf8.RuneError && n == 1 {
			return p.at(i, "byte 0x%02x is not UTF-8", p.text[i])
		}
		i += n
	}
	for p.space(); p.pos < len(p.text); {
		read := p.definition
		if p.here() == '%' {
			read = p.directive
		}
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// header reads what stands before the body of a definition, the colon included. It returns nil where no definition begins.
func (p *parser) header() (*definition, error) {
	d := &definition{pos: p.pos}
	for p.here() == '!' || p.here() == '?' {
		p.pos++
	}
	if d.name = p.name(); d.name == "" {
		return nil, nil
	}
	if p.skip("{") {
		for ok := true; ok; ok = p.skip(",") {
			d.params = append(d.params, p.name())
		}
		if !p.skip("}") {
			return nil, nil
		}
	}
	if p.here() == '[' {
		if ok, err := p.attributes(d); !ok {
			return nil, err
		}
	}
	if p.skip(".") {
		negative := p.skip("-")
		n, err := p.number()
		if err != nil {
			return nil, nil
		}
		if d.priority = n; negative {
			d.priority = -n
		}
	}
	if !p.skip(":") {
		return nil, nil
	}
	return d, nil
}

// attributes reads [lazy, suffix="..."] after the name of a rule; ok is false where no definition begins, or with an error.
func (p *parser) attributes(d *definition) (ok bool, err error) {
	end := bytes.IndexByte(p.text[p.pos:min(p.pos+1000, len(p.text))], ']')
	if rest := bytes.TrimLeft(p.text[p.pos+max(end, 0):], "] \t"); end < 0 || len(rest) == 0 || rest[0] != ':' && rest[0] != '.' {
		return false, nil
	}
	for more := p.skip("["); more; more = p.skip(",") {
		start := p.pos
		name := p.name()
		valued := p.skip("=")
		switch {
		case name == "lazy" && !valued:
			d.lazy = true
		case name == "suffix" && valued:
			if d.suffix, err = p.atom(); err != nil {
				return false, err
			}
		case name == "capture":
			if valued && p.here() == '"' {
				_, err = p.quoted()
			}
			if err != nil {
				return false, err
			}
		default:
			return false, p.at(start, "attribute %q is not supported; lazy, suffix and capture are", name)
		}
	}
	if !p.skip("]") {
		return false, p.expected("] after the attributes of a rule")
	}
	return true, nil
}

// atItem says whether a definition or a directive begins here, which is so at the beginning of a line only.
func (p *parser) atItem() bool {
	i := p.pos
	for i > 0 && strings.IndexByte(" \t\r\f", p.text[i-1]) >= 0 {
		i--
	}
	if i > 0 && p.text[i-1] != '\n' || p.here() == '|' {
		return false
	}
	if p.here() == '%' {
		word := p.word()
		return word != "%json" && word != "%regex" && word != "%lark"
	}
	start := p.pos
	d, err := p.header()
	p.pos = start
	return d != nil || err != nil
}

// word returns the directive that stands here.
func (p *parser) word() string {
	end := p.pos + 1
	for end < len(p.text) && 'a' <= p.text[end] && p.text[end] <= 'z' {
		end++
	}
	return string(p.text[p.pos:end])
}

// definition reads a rule, a template or a terminal.
func (p *parser) definition() error {
	start := p.pos
	d, err := p.header()
	if err != nil {
		return err
	}
	if d == nil {
		p.pos = start
		return p.expected("a definition, NAME: ..., or a directive such as %ignore")
	}
	if d.body, err = p.choice(); err != nil {
		return err
	}
	if p.pos < len(p.text) && !p.atItem() {
		return p.expected("a symbol, | or the next definition")
	}
	return p.define(d)
}

// define adds a definition.
func (p *parser) define(d *definition) error {
	if before := p.items[d.name]; before != nil {
		if before.common {
			return p.at(d.pos, "%s is already imported", d.name)
		}
		return p.at(d.pos, "%s is already defined in line %d", d.name, p.at(before.pos, "").Line)
	}
	p.items[d.name] = d
	p.order = append(p.order, d)
	return nil
}

// directive reads what begins with %.
func (p *parser) directive() error {
	start, word := p.pos, p.word()
	p.pos += len(word)
	p.space()
	switch word {
	case "%ignore":
		n, err := p.choice()
		if err == nil {
			p.ignored = append(p.ignored, n)
		}
		return err
	case "%import":
		return p.imports()
	case "%llguidance":
		return p.llguidance()
	case "%indent":
		p.indent = true
		for _, name := range []string{newline, indent, lines, blank} {
			if err := p.define(&definition{name: name, body: &node{kind: isLayout, text: name, pos: start}, pos: start}); err != nil {
				return err
			}
		}
		return nil
	}
	return p.at(start, "%s is not supported; %%ignore, %%import, %%indent and %%llguidance are", word)
}

// llguidance reads the settings of a grammar that is written for llguidance.
func (p *parser) llguidance() error {
	start := p.pos
	var settings map[string]any
	d := json.NewDecoder(bytes.NewReader(p.text[p.pos:]))
	if err := d.Decode(&settings); err != nil {
		return p.at(start, "expected a JSON object after %%llguidance: %v", err)
	}
	for name := range settings {
		if name != "no_forcing" {
			return p.at(start, "setting %q of %%llguidance is not supported; no_forcing is", name)
		}
	}
	p.o.Dynamic = true
	p.pos += int(d.InputOffset())
	p.space()
	return nil
}

// choice reads alternatives. An alias, -> name, changes no language.
func (p *parser) choice() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.limit(p.pos, "groups are nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	n := &node{kind: isChoice, pos: p.pos}
	for more := true; more; more = p.skip("|") {
		part, err := p.both()
		if err != nil {
			return nil, err
		}
		if p.skip("->") && p.name() == "" {
			return nil, p.expected("a name after ->")
		}
		n.parts = append(n.parts, part)
	}
	return n.single(), nil
}

// single returns the only part of a node that has one part.
func (n *node) single() *node {
	if len(n.parts) == 1 {
		return n.parts[0]
	}
	return n
}

// both reads sequences with & between them.
func (p *parser) both() (*node, error) {
	n := &node{kind: isBoth, pos: p.pos}
	for more := true; more; more = p.skip("&") {
		part, err := p.sequence()
		if err != nil {
			return nil, err
		}
		n.parts = append(n.parts, part)
	}
	return n.single(), nil
}

// sequence reads symbols, one after another.
func (p *parser) sequence() (*node, error) {
	n := &node{kind: isSequence, pos: p.pos}
	for p.pos < len(p.text) && strings.IndexByte("|&)],}", p.here()) < 0 && !bytes.HasPrefix(p.text[p.pos:], []byte("->")) && !p.atItem() {
		part, err := p.repeated()
		if err != nil {
			return nil, err
		}
		n.parts = append(n.parts, part)
	}
	return n.single(), nil
}

// repeated reads a symbol and the repetitions after it.
func (p *parser) repeated() (*node, error) {
	n, err := p.atom()
	for times := 0; err == nil; times++ {
		start := p.pos
		low, high, ok, err := p.counts()
		if !ok {
			return n, err
		}
		if times+p.depth > maxDepth {
			return nil, p.limit(start, "repetitions are nested more than %d deep", maxDepth)
		}
		n = &node{kind: isRepeat, low: low, high: high, parts: []*node{n}, pos: n.pos}
	}
	return nil, err
}
