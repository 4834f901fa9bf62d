// nest.go puts grammars into grammars: JSON by schemas between marks, names and free text, as calls of tools have it. The tree
// that says how is a [calls.Grammar].

package constrain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"grove/constrain/grammar"
	"grove/constrain/regex"
	"grove/internal/text/calls"
	"grove/internal/text/token"
)

// The bounds of a tree.
const (
	maxNodes = 200_000 // of its network, without those of schemas
	maxDepth = 100
)

// ErrNestLimit is in the errors of trees beyond a bound.
var ErrNestLimit = errors.New("beyond a limit")

var errDepth = fmt.Errorf("nest: %w: nested deeper than %d", ErrNestLimit, maxDepth)

// NestOptions say how leaves are read.
type NestOptions struct {
	// Store has the lexemes of the whole grammar.
	Store *regex.Store
	// Value returns the grammar of the JSON values of a schema, whose lexemes are in the store.
	Value func(schema json.RawMessage) (grammar.Source, error)
	// Texts returns the strings of a schema, as they are without quotes and escapes.
	Texts func(schema json.RawMessage) (regex.ID, error)
	// Held returns the grammar of the texts that keep to a text in a syntax, lark or regex, whose lexemes are in the store.
	Held func(syntax, text string) (grammar.Source, error)
	// Spell returns the bytes of a mark, in which special tokens are "\xff[ID]". Nil: marks are texts.
	Spell func(mark string) (string, error)
	// Ends reports whether a special token ends texts: behind it nothing follows. Nil: none does.
	Ends func(id token.ID) bool
}

// nestSource is the grammar of a tree: nodes of its own network, and those of schemas, numbered as they are met.
type nestSource struct {
	o      NestOptions
	nodes  []nestNode
	start  grammar.Node
	inner  []inner
	seen   map[inner]grammar.Node
	values map[valueKey]*value
	shared []grammar.Edge
}

// nestNode is a place of the tree's own network.
type nestNode struct {
	edges []grammar.Edge
	final bool
}

// inner is a node of a schema's grammar.
type inner struct {
	of *value
	n  grammar.Node
}

// value is the grammar of a schema.
type value struct {
	grammar.Source
	without regex.ID // what no lexeme has in it; [regex.Nothing]: nothing
	ignored regex.ID // what may stand before a lexeme; [regex.Nothing]: nothing
	kind    calls.Kind
	lexemes map[regex.ID]regex.ID
}

type valueKey struct {
	kind            calls.Kind
	schema, without string
}

// CompileNest returns the grammar of a tree. Errors name the function of the leaf at fault, and are those of its schema.
func CompileNest(g calls.Grammar, o NestOptions) (grammar.Source, error) {
	s := &nestSource{o: o, seen: map[inner]grammar.Node{}, values: map[valueKey]*value{}}
	end := s.node(true)
	start, err := s.before(g, end, 0)
	if err != nil {
		return nil, err
	}
	if err := o.Store.Err(); err != nil {
		return nil, err
	}
	s.start = start
	return s, nil
}

// node adds a node without edges.
func (s *nestSource) node(final bool) grammar.Node {
	s.nodes = append(s.nodes, nestNode{final: final})
	return grammar.Node(len(s.nodes) - 1)
}

// before returns a node from which the texts of a tree lead to another node.
func (s *nestSource) before(g calls.Grammar, to grammar.Node, depth int) (grammar.Node, error) {
	parts, err := s.parts(nil, g, depth)
	if err != nil {
		return 0, err
	}
	// From the last part to the first, as each edge names where it leads.
	for i := len(parts) - 1; i >= 0; i-- {
		if len(s.nodes) > maxNodes {
			return 0, fmt.Errorf("nest: %w: more than %d nodes", ErrNestLimit, maxNodes)
		}
		p := parts[i]
		from := s.node(false)
		e := grammar.Edge{Lexeme: p.lexeme, To: to}
		switch {
		case p.tree == nil && s.o.Store.Nullable(p.lexeme): // a rule, as no lexeme holds the empty text
			behind := s.node(true)
			rule := s.node(true)
			full := s.o.Store.And(p.lexeme, s.o.Store.Not(regex.Epsilon))
			s.nodes[rule].edges = []grammar.Edge{{Lexeme: full, To: behind}}
			e = grammar.Edge{Call: rule, To: to}
		case p.tree != nil:
			if e.Call, err = s.rule(*p.tree, depth+1); err != nil {
				return 0, err
			}
			e.Lexeme = regex.Nothing
		}
		s.nodes[from].edges = []grammar.Edge{e}
		to = from
	}
	return to, nil
}

// part is a lexeme, or a tree that has schemas in it.
type part struct {
	lexeme regex.ID
	tree   *calls.Grammar
}

// parts appends the parts of a tree, one after the other. What is regular is one lexeme.
func (s *nestSource) parts(all []part, g calls.Grammar, depth int) ([]part, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	if isRegular(&g) {
		id, err := s.lexeme(&g)
		switch {
		case err != nil:
			return nil, err
		case s.o.Store.IsEmpty(id):
			return nil, errors.New("nest: no text follows: there is nothing to choose from")
		}
		if n := len(all) - 1; n >= 0 && all[n].tree == nil {
			all[n].lexeme = s.o.Store.Concat(all[n].lexeme, id)
			return all, nil
		}
		return append(all, part{lexeme: id}), nil
	}
	if g.Kind != calls.Seq {
		return append(all, part{tree: &g}), nil
	}
	for _, p := range g.Of {
		var err error
		if all, err = s.parts(all, p, depth+1); err != nil {
			return nil, named(g.Name, err)
		}
	}
	return all, nil
}

// named puts the name of a function before an error.
func named(name string, err error) error {
	if name == "" {
		return err
	}
	return fmt.Errorf("function %q: %w", name, err)
}

// rule returns the first node of a rule for a tree that has schemas in it.
func (s *nestSource) rule(g calls.Grammar, depth int) (grammar.Node, error) {
	switch {
	case depth > maxDepth:
		return 0, errDepth
	case g.Kind == calls.JSON, g.Kind == calls.Held:
		n, err := s.value(&g)
		return n, named(g.Name, err)
	case g.Kind == calls.HeldString:
		n, err := s.value(&g)
		if err != nil {
			return 0, err
		}
		return s.between(n, s.o.Store.Literal(`"`)), nil
	case g.Kind == calls.Alt:
		first, end := s.node(false), s.node(true)
		for _, p := range g.Of {
			n, err := s.before(p, end, depth+1)
			if err != nil {
				return 0, named(p.Name, err)
			}
			if n == end {
				s.nodes[first].final = true
				continue
			}
			s.nodes[first].edges = append(s.nodes[first].edges, s.nodes[n].edges...)
		}
		if len(s.nodes[first].edges) == 0 && !s.nodes[first].final {
			return 0, errors.New("nest: no text follows: there is nothing to choose from")
		}
		return first, nil
	case g.Kind == calls.Repeat:
		return s.repeat(g, depth)
	}
	return s.before(g, s.node(true), depth)
}

// repeat returns the first node of the rule of a repetition.
func (s *nestSource) repeat(g calls.Grammar, depth int) (grammar.Node, error) {
	one, err := s.rule(g.Of[0], depth+1)
	if err != nil {
		return 0, named(g.Of[0].Name, err)
	}
	to := s.node(true) // behind the last
	if g.Max < 0 {
		s.nodes[to].edges = []grammar.Edge{{Call: one, To: to}}
	}
	for n := max(g.Max, g.Min); n > 0; n-- {
		if len(s.nodes) > maxNodes {
			return 0, fmt.Errorf("nest: %w: more than %d nodes", ErrNestLimit, maxNodes)
		}
		from := s.node(n > g.Min)
		s.nodes[from].edges = []grammar.Edge{{Call: one, To: to}}
		to = from
	}
	return to, nil
}

// between returns the first node of a rule with a lexeme before and behind another rule.
func (s *nestSource) between(n grammar.Node, lexeme regex.ID) grammar.Node {
	end, behind, before, first := s.node(true), s.node(false), s.node(false), s.node(false)
	s.nodes[behind].edges = []grammar.Edge{{Lexeme: lexeme, To: end}}
	s.nodes[before].edges = []grammar.Edge{{Call: n, To: behind}}
	s.nodes[first].edges = []grammar.Edge{{Lexeme: lexeme, To: before}}
	return first
}

// value returns the first node of a leaf's grammar: of a schema, or of what a text is held to.
func (s *nestSource) value(g *calls.Grammar) (grammar.Node, error) {
	key := valueKey{g.Kind, g.Syntax + string(g.Schema) + g.Text, strings.Join(g.Without, "\xff")}
	v, ok := s.values[key]
	if !ok {
		source, err := s.leaf(g)
		if err != nil {
			return 0, err
		}
		v = &value{Source: source, ignored: source.Ignored(), kind: g.Kind, lexemes: map[regex.ID]regex.ID{}}
		if v.without = regex.Nothing; len(g.Without) > 0 {
			v.without = s.without(g.Without, g.Kind == calls.Held)
		}
		s.values[key] = v
	}
	return s.number(inner{v, v.Start()}), nil
}

// leaf returns the grammar of a leaf by itself.
func (s *nestSource) leaf(g *calls.Grammar) (grammar.Source, error) {
	if g.Kind == calls.JSON {
		return s.o.Value(g.Schema)
	}
	if s.o.Held == nil {
		return nil, errors.New("nest: texts are not held to grammars here")
	}
	return s.o.Held(g.Syntax, g.Text)
}

// number returns the node of a schema's node. The tree's own nodes are numbered from 0, those of schemas from -1 down.
func (s *nestSource) number(n inner) grammar.Node {
	id, ok := s.seen[n]
	if !ok {
		id = grammar.Node(-1 - len(s.inner))
		s.inner = append(s.inner, n)
		s.seen[n] = id
	}
	return id
}

// Held returns the memory of the grammars in bytes, about, without that of their store.
func (s *nestSource) Held() int {
	bytes := 64*len(s.nodes) + 56*len(s.inner)
	for key, v := range s.values {
		bytes += 256 + len(key.schema) + 16*len(v.lexemes)
		if inner, ok := v.Source.(interface{ Held() int }); ok {
			bytes += inner.Held()
		}
	}
	return bytes
}

// Start implements [grammar.Source].
func (s *nestSource) Start() grammar.Node { return s.start }

// Ignored implements [grammar.Source]: white space of schemas is in lexemes.
func (s *nestSource) Ignored() regex.ID { return regex.Nothing }

// Greedy implements [grammar.Source].
func (s *nestSource) Greedy() bool { return false }

// Store implements [grammar.Source].
func (s *nestSource) Store() *regex.Store { return s.o.Store }

// Final implements [grammar.Source].
func (s *nestSource) Final(n grammar.Node) bool {
	if n >= 0 {
		return s.nodes[n].final
	}
	in := s.inner[-1-n]
	return in.of.Final(in.n)
}

// Edges implements [grammar.Source].
func (s *nestSource) Edges(dst []grammar.Edge, n grammar.Node) ([]grammar.Edge, error) {
	if n >= 0 {
		return append(dst, s.nodes[n].edges...), nil
	}
	in := s.inner[-1-n]
	edges, err := in.of.Edges(s.shared[:0], in.n)
	if err != nil {
		return dst, err
	}
	s.shared = edges[:0]
	for _, e := range edges {
		if e.Lexeme == regex.Nothing {
			e.Call = s.number(inner{in.of, e.Call})
		} else if e.Lexeme = in.of.lexeme(s.o.Store, e.Lexeme); e.Lexeme == regex.Nothing {
			continue // a constant that has a text that must not be
		}
		if e.Read != nil {
			e.Read = s.reads(in.of, e.Read)
		} else {
			e.To = s.number(inner{in.of, e.To})
		}
		dst = append(dst, e)
	}
	return dst, nil
}

// reads returns Read of an edge for the nodes of the whole.
func (s *nestSource) reads(v *value, read func([]byte) (grammar.Node, error)) func([]byte) (grammar.Node, error) {
	return func(text []byte) (grammar.Node, error) {
		if v.kind == calls.HeldString {
			var plain string
			if err := json.Unmarshal([]byte(`"`+string(text)+`"`), &plain); err != nil {
				return 0, grammar.ErrRefused
			}
			text = []byte(plain)
		}
		if v.ignored != regex.Nothing {
			text = bytes.TrimLeft(text, " \t\r\n")
		}
		n, err := read(text)
		if err != nil {
			return 0, err
		}
		return s.number(inner{v, n}), nil
	}
}

// lexeme returns a lexeme of a schema's grammar with what may stand before it, and without what must not be in it.
func (v *value) lexeme(r *regex.Store, id regex.ID) regex.ID {
	if v.ignored == regex.Nothing && v.without == regex.Nothing && v.kind != calls.HeldString {
		return id
	}
	known, ok := v.lexemes[id]
	if !ok {
		known = id
		if v.without != regex.Nothing {
			known = r.And(known, v.without)
		}
		switch {
		case v.ignored == regex.Nothing || known == regex.Nothing:
		case v.kind == calls.JSON:
			known = r.Concat(r.Repeat(v.ignored, 0, 1), known)
		default:
			known = r.Concat(r.Repeat(v.ignored, 0, -1), known)
		}
		if v.kind == calls.HeldString {
			known = regex.Escaped(r, known)
		}
		if known != regex.Nothing && r.IsEmpty(known) {
			known = regex.Nothing
		}
		v.lexemes[id] = known
	}
	return known
}
