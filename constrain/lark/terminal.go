package lark

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"grove/constrain/regex"
)

// A terminal is a set of texts that rules name.
type terminal struct {
	id       regex.ID // its texts
	beaten   regex.ID // its texts that are another terminal's
	own      regex.ID // its texts without those
	inside   regex.ID // under %indent: own, and what may follow it, between brackets
	outside  regex.ID // and elsewhere
	isString bool     // it is a string and nothing else
	priority int
	node     *node
	pos      int
}

// eval returns the texts of a part of a terminal. depth is the number of parts and terminals around it.
func (c *compiler) eval(n *node, depth int) (regex.ID, error) {
	if depth > maxDepth {
		return regex.Nothing, c.parser.limit(n.pos, "terminals are nested more than %d deep", maxDepth)
	}
	s := c.store
	switch n.kind {
	case isText:
		if n.flags == "i" {
			return c.folded(n.text), nil
		}
		return s.Literal(n.text), nil
	case isRange:
		low, size := utf8.DecodeRuneInString(n.text)
		high, _ := utf8.DecodeRuneInString(n.text[size:])
		return s.Runes(regex.Range{Lo: low, Hi: high}), nil
	case isRegexp:
		return c.expression(n)
	case isName:
		return c.named(n, depth)
	case isLayout:
		return c.layoutText(n.text), nil
	case isToken:
		return regex.Nothing, c.parser.at(n.pos, "token %s cannot stand in a terminal", n.text)
	}
	parts := make([]regex.ID, len(n.parts))
	for i, part := range n.parts {
		var err error
		if parts[i], err = c.eval(part, depth+1); err != nil {
			return regex.Nothing, err
		}
	}
	switch n.kind {
	case isSequence:
		return s.Concat(parts...), nil
	case isChoice:
		return s.Or(parts...), nil
	case isBoth:
		return s.And(parts...), nil
	case isNot:
		return s.And(s.Repeat(s.AnyRune(), 0, -1), s.Not(parts[0])), nil
	}
	return s.Repeat(parts[0], n.low, n.high), nil
}

// named returns the texts of a terminal by its name.
func (c *compiler) named(n *node, depth int) (regex.ID, error) {
	d := c.parser.items[n.text]
	switch {
	case !isTerminal(n.text):
		return regex.Nothing, c.parser.at(n.pos, "a terminal cannot name the rule %q", n.text)
	case d == nil:
		return regex.Nothing, c.parser.at(n.pos, "terminal %q is not defined", n.text)
	case len(d.params) > 0 || len(n.parts) > 0:
		return regex.Nothing, c.parser.at(n.pos, "terminal %q is a template; only rules can be templates", n.text)
	case d.lazy || d.suffix != nil:
		return regex.Nothing, c.parser.at(d.pos, "attributes are of rules, not of terminals")
	}
	id, ok := c.terminals[n.text]
	if ok && id == regex.Nothing && c.open[n.text] {
		return regex.Nothing, c.parser.at(n.pos, "terminal %q names itself", n.text)
	}
	if ok {
		return id, nil
	}
	c.terminals[n.text], c.open[n.text] = regex.Nothing, true
	id, err := c.eval(d.body, depth+1)
	c.terminals[n.text], c.open[n.text] = id, false
	return id, err
}

// folded returns the texts that are equal to a text but for the case of their letters. Letters of ASCII have no other case
// outside of ASCII.
func (c *compiler) folded(text string) regex.ID {
	var parts []regex.ID
	for _, r := range text {
		ranges := []regex.Range{{Lo: r, Hi: r}}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if (f < utf8.RuneSelf) == (r < utf8.RuneSelf) {
				ranges = append(ranges, regex.Range{Lo: f, Hi: f})
			}
		}
		parts = append(parts, c.store.Runes(ranges...))
	}
	return c.store.Concat(parts...)
}

// expression returns the texts that an expression between slashes matches as a whole.
func (c *compiler) expression(n *node) (regex.ID, error) {
	if at := shortest(n.text); at >= 0 {
		return regex.Nothing, c.parser.at(n.pos, "/%s/ prefers the shortest match (%s), but a terminal is a set of texts: "+
			"leave the end out of the repeated class, or write rule[lazy]: ...", n.text, n.text[at:at+2])
	}
	source := n.text
	if flags := strings.ReplaceAll(n.flags, "u", ""); flags != "" {
		source = "(?" + flags + ")" + source
	}
	id, err := regex.Whole(c.store, source)
	if err != nil {
		return regex.Nothing, c.parser.at(n.pos, "%w", err)
	}
	return id, nil
}

// shortest returns where an expression has a repetition that prefers the shortest match, or -1.
func shortest(source string) int {
	inClass := false
	for i := 0; i < len(source)-1; i++ {
		switch c := source[i]; {
		case c == '\\':
			i++
		case inClass:
			inClass = c != ']'
		case c == '[':
			inClass = true
			if rest := strings.TrimPrefix(source[i+1:], "^"); strings.HasPrefix(rest, "]") {
				i += len(source[i+1:]) - len(rest) + 1
			}
		case strings.IndexByte("*+?}", c) >= 0 && source[i+1] == '?':
			return i
		}
	}
	return -1
}

// least returns the texts of a set of which no proper beginning is in the set.
func (c *compiler) least(id regex.ID) regex.ID {
	s := c.store
	return s.And(id, s.Not(s.Concat(id, s.Repeat(s.AnyRune(), 1, -1))))
}

// settle takes from each terminal the texts that are another one's: strings beat other terminals, and a higher priority beats a
// lower.
func (c *compiler) settle(all []*terminal) error {
	var strs []*terminal
	ranked := false
	for _, t := range all {
		t.own = t.id
		if t.isString {
			strs = append(strs, t)
		}
		ranked = ranked || t.priority != all[0].priority
	}
	if c.parser.o.Dynamic {
		return nil
	}
	if n := len(strs) * (len(all) - len(strs)); n > maxSymbols || ranked && len(all)*len(all) > maxSymbols {
		return c.parser.limit(0, "the grammar has more than %d pairs of terminals", maxSymbols)
	}
	for _, t := range all {
		var beaten []regex.ID
		for _, by := range strs {
			if !t.isString && by.priority >= t.priority && c.store.Contains(t.id, by.id) {
				beaten = append(beaten, by.id)
			}
		}
		if ranked {
			for _, by := range all {
				if by.priority <= t.priority {
					continue
				}
				longer := c.store.And(c.store.Concat(by.id, c.store.Repeat(c.store.AnyRune(), 1, -1)), t.id)
				if !c.store.IsEmpty(longer) {
					return c.parser.at(by.pos, "the priority %d over the terminal in line %d would cut its longer texts short; "+
						"the longest match comes first here", by.priority, c.parser.at(t.pos, "").Line)
				}
				beaten = append(beaten, by.id)
			}
		}
		t.beaten = c.store.Or(beaten...)
		t.own = c.without(t.id, t.beaten)
	}
	return nil
}

// without returns the texts of one set that are not in the other.
func (c *compiler) without(id, beaten regex.ID) regex.ID {
	if beaten == regex.Nothing {
		return id
	}
	return c.store.And(id, c.store.Not(beaten))
}
