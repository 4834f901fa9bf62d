package lark

import (
	"bytes"
	"slices"
	"strings"

	"grove/constrain/grammar"
	"grove/constrain/regex"
)

// The terminals that %indent defines.
const (
	newline = "NEWLINE" // the end of a line, empty lines, and the blanks of the block's indentation
	indent  = "INDENT"  // the same with more blanks than the block around has; they are the indentation of the block that begins
	lines   = "LINES"   // lines without text, at the beginning of a text
	blank   = "BLANK"   // one or more of what may stand between terminals
)

// maxIndent is the most blanks of an indentation.
const maxIndent = 100

// layoutText returns what a terminal of %indent is to the rules: a text for NEWLINE and INDENT that the layout replaces.
func (c *compiler) layoutText(name string) regex.ID {
	if name == blank {
		return c.blanks
	}
	return c.store.Literal("\xfe" + name)
}

// A layout is a source whose blocks are indented, as in Python. Its nodes are those of a source that knows of no lines, each with the
// indentation of the block around it, and with whether it stands between brackets. A terminal takes what is ignored behind it; between
// brackets that is newlines, too. A block ends where no line with its indentation follows: since NEWLINE takes all blanks that it
// can, the indentation of a line says by itself which blocks end there.
type layout struct {
	grammar.Source
	places    []place
	nodes     map[place]grammar.Node
	terminals map[regex.ID]*terminal // by what they are to the rules
	lines     map[grammar.Node]bool  // the nodes that lead to NEWLINE or INDENT
	open      []regex.ID             // brackets
	shut      []regex.ID
	newline   regex.ID // to the rules
	indent    regex.ID
	empty     regex.ID // "\n" and lines without text
	first     regex.ID // what LINES is to the rules
	leading   regex.ID // lines without text
	buf       []grammar.Edge
}

// A place is a node of the rules with what stands around it.
type place struct {
	node   grammar.Node
	indent int
	outer  bool // the rule was called between brackets
	inner  bool // a bracket is open in the rule
}

// layout returns the source of a grammar with %indent.
func (c *compiler) layout(ignored regex.ID) (grammar.Source, error) {
	s := c.store
	static, err := c.b.Source(c.queue[0].name, grammar.Options{Greedy: true, Ignored: regex.Nothing})
	if err != nil {
		return nil, err
	}
	l := &layout{
		Source: static, nodes: map[place]grammar.Node{}, terminals: map[regex.ID]*terminal{}, lines: map[grammar.Node]bool{},
		newline: c.layoutText(newline), indent: c.layoutText(indent), first: c.layoutText(lines),
	}
	for _, pair := range []string{"()", "[]", "{}"} {
		l.open, l.shut = append(l.open, s.Literal(pair[:1])), append(l.shut, s.Literal(pair[1:]))
	}
	end := s.Literal("\n")
	outside, inside := ignored, s.Or(ignored, end)
	line := s.Concat(s.Repeat(outside, 0, -1), end)
	l.leading, l.empty = s.Repeat(line, 1, -1), s.Concat(end, s.Repeat(line, 0, -1))
	for _, t := range c.order {
		l.terminals[t.own] = t
		if t.outside, err = c.spaced(t, outside); err != nil {
			return nil, err
		}
		if t.inside, err = c.spaced(t, inside); err != nil {
			return nil, err
		}
	}
	if err := l.mark(); err != nil {
		return nil, err
	}
	l.node(place{node: static.Start()})
	return l, nil
}

// spaced returns the texts of a terminal with spaces behind it.
func (c *compiler) spaced(t *terminal, spaces regex.ID) (regex.ID, error) {
	c.blanks = c.store.Repeat(spaces, 1, -1)
	clear(c.terminals)
	id := t.id
	if t.node != nil {
		var err error
		if id, err = c.eval(t.node, 0); err != nil {
			return regex.Nothing, err
		}
	}
	return c.store.Concat(c.without(id, t.beaten), c.store.Repeat(spaces, 0, -1)), nil
}

// mark notes which nodes lead to NEWLINE or INDENT: calls of others need not know the indentation.
func (l *layout) mark() error {
	edges := map[grammar.Node][]grammar.Edge{}
	nodes := []grammar.Node{l.Source.Start()}
	for i := 0; i < len(nodes); i++ {
		if _, ok := edges[nodes[i]]; ok {
			continue
		}
		all, err := l.Source.Edges(nil, nodes[i])
		if err != nil {
			return err
		}
		edges[nodes[i]] = all
		for _, e := range all {
			if nodes = append(nodes, e.To); e.Lexeme == regex.Nothing {
				nodes = append(nodes, e.Call)
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for n, all := range edges {
			for _, e := range all {
				lines := e.Lexeme == l.newline || e.Lexeme == l.indent || l.lines[e.To] || e.Lexeme == regex.Nothing && l.lines[e.Call]
				if lines && !l.lines[n] {
					l.lines[n], changed = true, true
				}
			}
		}
	}
	return nil
}

// node returns the node of a place.
func (l *layout) node(p place) grammar.Node {
	n, ok := l.nodes[p]
	if !ok {
		n = grammar.Node(len(l.places))
		l.places = append(l.places, p)
		l.nodes[p] = n
	}
	return n
}

// Start returns the node where a text begins.
func (l *layout) Start() grammar.Node { return 0 }

// Final says whether the rule of a node may end there.
func (l *layout) Final(n grammar.Node) bool { return l.Source.Final(l.places[n].node) }

// Held returns the memory of the grammar in bytes, about, without that of its store.
func (l *layout) Held() int {
	bytes := 64*len(l.places) + 256*len(l.terminals) + 16*len(l.lines)
	if static, ok := l.Source.(interface{ Held() int }); ok {
		bytes += static.Held()
	}
	return bytes
}

// Ignored is nothing: the terminals take what may stand behind them.
func (l *layout) Ignored() regex.ID { return regex.Nothing }

// Edges returns the edges of a node.
func (l *layout) Edges(dst []grammar.Edge, n grammar.Node) ([]grammar.Edge, error) {
	p, s := l.places[n], l.Source.Store()
	all, err := l.Source.Edges(l.buf[:0], p.node)
	if err != nil {
		return dst, err
	}
	l.buf = all
	for _, e := range all {
		to := p
		to.node = e.To
		switch e.Lexeme {
		case regex.Nothing:
			called := place{node: e.Call, outer: p.outer || p.inner}
			if l.lines[e.Call] {
				called.indent = p.indent
			}
			e.Call = l.node(called)
		case l.newline:
			e.Lexeme = s.Concat(l.empty, s.Literal(strings.Repeat(" ", p.indent)))
		case l.first:
			e.Lexeme = l.leading
		case l.indent:
			if p.indent == maxIndent {
				continue
			}
			e.Lexeme = s.Concat(l.empty, s.Repeat(s.Literal(" "), p.indent+1, maxIndent))
			e.To = n // has no meaning
			e.Read = func(text []byte) (grammar.Node, error) {
				to.indent = len(text) - 1 - bytes.LastIndexByte(text, '\n')
				return l.node(to), nil
			}
		default:
			t := l.terminals[e.Lexeme]
			if slices.Contains(l.open, e.Lexeme) {
				to.inner = true
			} else if slices.Contains(l.shut, e.Lexeme) {
				to.inner = false
			}
			if e.Lexeme = t.outside; to.outer || to.inner {
				e.Lexeme = t.inside
			}
		}
		if e.Read == nil {
			e.To = l.node(to)
		}
		dst = append(dst, e)
	}
	return dst, s.Err()
}
