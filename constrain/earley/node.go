package earley

import (
	"grove/constrain/grammar"
	"grove/constrain/regex"
)

// A node is what is known of a node of the grammar.
type node struct {
	edges    []grammar.Edge
	final    bool
	nullable tri // of a rule: it holds the empty text
}

// node returns what is known of a node.
func (e *Engine) node(n grammar.Node) *node {
	if k, ok := e.nodes[n]; ok {
		return k
	}
	edges, err := e.src.Edges(nil, n)
	if err != nil {
		e.fail(err)
		return &node{}
	}
	k := &node{edges: edges, final: e.src.Final(n)}
	e.nodes[n] = k
	e.took(nodeBytes + edgeBytes*cap(edges))
	for i := range edges {
		if edges[i].Read != nil {
			e.took(readBytes)
		}
	}
	return k
}

// nullable reports whether a rule holds the empty text.
//
// A pass looks at each rule once and counts rules that are being looked at, or that were looked at in this pass, by what is
// known of them. What a pass finds to hold the empty text does; so passes are made until one finds nothing new.
func (e *Engine) nullable(rule grammar.Node) bool {
	k := e.node(rule)
	for k.nullable == unknown && !e.failed() {
		pass := nullPass{Engine: e, seen: map[grammar.Node]bool{}}
		pass.rule(rule)
		if pass.found || k.nullable != unknown {
			continue
		}
		for n := range pass.seen { // the last pass: what is not known by now is not so
			if s := e.node(n); s.nullable == unknown {
				s.nullable = no
			}
		}
	}
	return k.nullable == yes
}

type nullPass struct {
	*Engine
	seen  map[grammar.Node]bool
	found bool
}

// rule reports whether a rule is known to hold the empty text.
func (p *nullPass) rule(rule grammar.Node) bool {
	k := p.node(rule)
	if k.nullable != unknown || p.seen[rule] {
		return k.nullable == yes
	}
	p.seen[rule] = true
	places := map[grammar.Node]bool{rule: true}
	queue := []grammar.Node{rule}
	for len(queue) > 0 && !p.failed() {
		at := p.node(queue[len(queue)-1])
		queue = queue[:len(queue)-1]
		if at.final {
			k.nullable, p.found = yes, true
			return true
		}
		for _, edge := range at.edges {
			if edge.Lexeme == regex.Nothing && !places[edge.To] && p.rule(edge.Call) {
				places[edge.To] = true
				queue = append(queue, edge.To)
			}
		}
	}
	return false
}
