package grammar

import (
	"fmt"

	"grove/constrain/regex"
)

// Options are the properties of a grammar that its rules do not say.
type Options struct {
	// Greedy says how lexemes end: see [Source].
	Greedy bool
	// Ignored is what may stand between lexemes; regex.Nothing: nothing.
	Ignored regex.ID
}

// Source returns the grammar whose texts follow a rule. Rules that lead to no text are left out. In a grammar that is not
// greedy and ignores nothing, what is regular becomes one lexeme. The builder must not change any more.
//
// Errors: those of the builder, and [ErrUnknown], [ErrTwice], [ErrNoText], [ErrSize] with the name of the rule.
func (b *Builder) Source(start string, o Options) (Source, error) {
	if _, ok := b.names[start]; !ok {
		return nil, fmt.Errorf("%w: %q", ErrUnknown, start)
	}
	for _, r := range b.rules {
		if !r.defined && b.err == nil {
			b.err = fmt.Errorf("%w: %q", ErrUnknown, r.name)
		}
	}
	if b.err != nil {
		return nil, b.err
	}
	if !o.Greedy && o.Ignored == regex.Nothing {
		b.inline()
	}
	if o.Ignored != regex.Nothing && b.store.Nullable(o.Ignored) {
		o.Ignored = b.store.And(o.Ignored, someBytes(b.store))
	}
	if err := b.store.Err(); err != nil {
		return nil, err
	}
	s := &source{Builder: b, options: o, productive: b.productive(), known: map[cell]Node{}}
	first := b.rules[b.names[start]].body
	if !s.productive[first] {
		return nil, fmt.Errorf("%w: %q", ErrNoText, start)
	}
	s.cells = append(s.cells, cell{}) // the end of a rule
	s.info = append(s.info, info{done: true})
	s.start = s.cons(first, 0, 0)
	return s, s.err
}

// productive returns for each expression whether some text follows it.
func (b *Builder) productive() []bool {
	all := make([]bool, len(b.exprs))
	users := make([][]Expr, len(b.exprs))
	missing := make([]int, len(b.exprs)) // parts that are not known to be productive
	var queue []Expr
	for i := range b.exprs {
		e := &b.exprs[i]
		parts := e.parts
		switch e.kind {
		case kindRule:
			parts = []Expr{b.rules[e.rule].body}
			missing[i] = 1
		case kindSeq:
			missing[i] = len(parts)
		case kindAlt:
			missing[i] = 1
		case kindRepeat:
			missing[i] = min(e.lo, 1)
		case kindLexeme:
			if e.id == regex.Nothing || b.store.IsEmpty(e.id) {
				missing[i] = 1
			}
		}
		for _, p := range parts {
			users[p] = append(users[p], Expr(i))
		}
		if missing[i] == 0 {
			queue, all[i] = append(queue, Expr(i)), true
		}
	}
	for len(queue) > 0 {
		p := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, u := range users[p] {
			if missing[u]--; missing[u] <= 0 && !all[u] {
				queue, all[u] = append(queue, u), true
			}
		}
	}
	return all
}

// A cell is a node: an expression, of which a part is behind, and the node that follows it. A rule ends at node 0.
type cell struct {
	head Expr
	from int32 // parts of a sequence, or repetitions, that are behind
	tail Node
}

type info struct {
	done  bool
	edges []Edge
}

// A source unfolds the expressions of a builder.
type source struct {
	*Builder
	options    Options
	productive []bool
	start      Node
	cells      []cell
	known      map[cell]Node
	info       []info
	edges      int // of all nodes
	err        error
}

func (s *source) Start() Node         { return s.start }
func (s *source) Ignored() regex.ID   { return s.options.Ignored }
func (s *source) Greedy() bool        { return s.options.Greedy }
func (s *source) Store() *regex.Store { return s.store }

// Worn reports whether half of the nodes are spent: whoever keeps a source for long makes it anew then.
func (s *source) Worn() bool { return len(s.cells) > MaxNodes/2 }

// Edges implements [Source]. The error is [ErrSize].
func (s *source) Edges(dst []Edge, n Node) ([]Edge, error) {
	s.unfold(n)
	return append(dst, s.info[n].edges...), s.err
}

// Final implements [Source]. It does not unfold the node.
func (s *source) Final(n Node) bool {
	for ; n != 0; n = s.cells[n].tail {
		c := s.cells[n]
		e := &s.exprs[c.head]
		nullable := e.nullable && s.productive[c.head]
		if e.kind == kindSeq && s.productive[c.head] {
			nullable = true
			for _, p := range e.parts[c.from:] {
				nullable = nullable && s.exprs[p].nullable
			}
		}
		if e.kind == kindRepeat {
			nullable = int(c.from) >= e.lo
		}
		if !nullable {
			return false
		}
	}
	return true
}

// cons returns the node of an expression that another node follows.
func (s *source) cons(head Expr, from int32, tail Node) Node {
	c := cell{head, from, tail}
	n, ok := s.known[c]
	if !ok {
		if len(s.cells) >= MaxNodes {
			s.err = fmt.Errorf("%w: more than %d nodes", ErrSize, MaxNodes)
			return tail
		}
		n = Node(len(s.cells))
		s.cells = append(s.cells, c)
		s.info = append(s.info, info{})
		s.known[c] = n
	}
	return n
}

// unfold finds the edges of a node.
func (s *source) unfold(n Node) {
	if s.info[n].done {
		return
	}
	var edges []Edge
	seen := map[Node]bool{n: true}
	queue := []Node{n}
	visit := func(n Node) {
		if !seen[n] {
			seen[n] = true
			queue = append(queue, n)
		}
	}
	for len(queue) > 0 {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		c := s.cells[at]
		if at == 0 {
			continue
		}
		e := &s.exprs[c.head]
		if !s.productive[c.head] {
			continue
		}
		switch e.kind {
		case kindEmpty:
			visit(c.tail)
		case kindLexeme:
			edges = append(edges, Edge{Lexeme: e.id, To: c.tail})
		case kindRule:
			edges = append(edges, Edge{Call: s.cons(s.rules[e.rule].body, 0, 0), To: c.tail})
		case kindSeq:
			rest := c.tail
			if int(c.from)+1 < len(e.parts) {
				rest = s.cons(c.head, c.from+1, c.tail)
			}
			visit(s.cons(e.parts[c.from], 0, rest))
		case kindAlt:
			for _, p := range e.parts {
				visit(s.cons(p, 0, c.tail))
			}
		case kindRepeat:
			s.unfoldRepeat(c, e, visit)
		}
	}
	s.info[n] = info{done: true, edges: edges}
	s.edges += cap(edges)
}

func (s *source) unfoldRepeat(c cell, e *expr, visit func(Node)) {
	n := int(c.from)
	if n >= e.lo {
		visit(c.tail)
	}
	if e.hi >= 0 && n >= e.hi || !s.productive[e.parts[0]] {
		return
	}
	next := n + 1
	if e.hi < 0 {
		next = min(next, e.lo)
	}
	visit(s.cons(e.parts[0], 0, s.cons(c.head, int32(next), c.tail)))
}
