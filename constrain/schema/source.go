package schema

import (
	"grove/constrain/grammar"
	"grove/constrain/regex"
	"grove/constrain/schema/document"
)

// placeKind says what a place of the grammar is.
type placeKind uint8

const (
	atValue  placeKind = iota // the rule of a formula: a value
	atEnd                     // a rule is complete
	atThen                    // a value, then next
	atFirst                   // behind the opening bracket of an object
	atMember                  // behind a member
	atOpen                    // behind the opening bracket of an array
	atItem                    // where an element must follow
	atAfter                   // behind an element
	atRoot                    // before the text
	atLast                    // behind the value of the text
)

// A place is a node of the grammar. Equal places are the same node.
type place struct {
	kind   placeKind
	of     int32 // the formula, object or array
	n      int32 // members or elements so far, as far as they are counted; in declared order the next name
	pos    int32 // in declared order the next name
	seen   int32 // the set of names written, or of elements
	counts int32 // of tallies
	unmet  uint32
	next   grammar.Node
}

// A source unfolds the grammar of a schema.
type source struct {
	c      *compiler
	start  grammar.Node
	places []place
	nodes  map[place]grammar.Node
	ids    map[string]int32 // sets and counts
	texts  []string
	sets   []setNode
	setIDs map[setNode]int32
	keys   map[string][2]regex.ID
	values map[*formula]regex.ID

	counted, objects int // of Held

	open, openList, closeEmpty, closeEmptyList, shut, shutList, comma, blanks regex.ID
	colon                                                                     regex.ID
}

// A setNode is a set of texts: another one, and one text more. Set 0 is empty.
type setNode struct {
	rest int32
	text string
}

func newSource(c *compiler, root *formula) *source {
	s := &source{c: c, nodes: map[place]grammar.Node{}, ids: map[string]int32{"": 0}, texts: []string{""}, sets: make([]setNode, 1),
		setIDs: map[setNode]int32{}, keys: map[string][2]regex.ID{}, values: map[*formula]regex.ID{}}
	s.punctuation()
	s.start = s.node(place{kind: atRoot, of: root.id})
	return s
}

// punctuation makes the lexemes that are not values or names. White space belongs to the marks before it or after it, so that
// it is in one lexeme only.
func (s *source) punctuation() {
	r := s.c.r
	within, before, comma, colon := regex.Epsilon, regex.Epsilon, regex.Epsilon, regex.Epsilon // inside a bracket; before a mark; behind one
	blank := r.Literal(" ")
	switch s.c.o.Whitespace {
	case Bounded:
		indent := r.Repeat(r.Or(blank, r.Literal("\t")), 0, 20)
		within = r.Or(regex.Epsilon, blank, r.Concat(r.Repeat(r.Literal("\n"), 1, 2), indent))
		comma, colon = within, r.Or(regex.Epsilon, blank)
	case Spaced:
		comma, colon = blank, blank
	case Any:
		s.blanks = r.Repeat(r.Or(blank, r.Literal("\t"), r.Literal("\n"), r.Literal("\r")), 1, -1)
		within = r.Or(regex.Epsilon, s.blanks)
		before, comma, colon = within, within, within
	}
	s.open, s.openList = r.Concat(r.Literal("{"), within), r.Concat(r.Literal("["), within)
	s.closeEmpty, s.closeEmptyList = r.Literal("}"), r.Literal("]")
	s.shut, s.shutList = r.Concat(within, r.Literal("}")), r.Concat(within, r.Literal("]"))
	s.comma, s.colon = r.Concat(before, r.Literal(","), comma), r.Concat(before, r.Literal(":"), colon)
	for id, name := range map[regex.ID]string{s.open: "'{'", s.openList: "'['", s.shut: "'}'", s.shutList: "']'", s.comma: "','"} {
		r.Name(id, name)
	}
}

// Start returns the rule of the text.
func (s *source) Start() grammar.Node { return s.start }

// Ignored returns nothing: white space is in the lexemes.
func (s *source) Ignored() regex.ID { return regex.Nothing }

// Greedy returns true: no part of a JSON text goes on with what can follow it.
func (s *source) Greedy() bool { return true }

// Worn reports whether half of the places are spent: whoever keeps a source for long makes it anew then.
func (s *source) Worn() bool { return len(s.places) > s.c.o.Limits.Places/2 }

// Store returns the store of the lexemes.
func (s *source) Store() *regex.Store { return s.c.r }

// Final reports whether a rule may end at a node.
func (s *source) Final(n grammar.Node) bool {
	k := s.places[n].kind
	return k == atEnd || k == atLast
}

// node returns the node of a place.
func (s *source) node(p place) grammar.Node {
	n, ok := s.nodes[p]
	if !ok {
		n = grammar.Node(len(s.places))
		s.places = append(s.places, p)
		s.nodes[p] = n
	}
	return n
}

// id returns the number of a text, text the text of a number.
func (s *source) id(text string) int32 {
	n, ok := s.ids[text]
	if !ok {
		n = int32(len(s.texts))
		s.texts = append(s.texts, text)
		s.ids[text] = n
	}
	return n
}

// with returns the set of rest and a text.
func (s *source) with(rest int32, text string) int32 {
	k := setNode{rest, text}
	n, ok := s.setIDs[k]
	if !ok {
		n = int32(len(s.sets))
		s.sets = append(s.sets, k)
		s.setIDs[k] = n
	}
	return n
}

// each calls see with the texts of a set.
func (s *source) each(set int32, see func(text string)) {
	for ; set > 0; set = s.sets[set].rest {
		see(s.sets[set].text)
	}
}

// Edges appends the edges of a node.
func (s *source) Edges(dst []grammar.Edge, n grammar.Node) ([]grammar.Edge, error) {
	if len(s.places) > s.c.o.Limits.Places {
		return dst, document.Refuse(document.ErrBudget, s.c.doc.Root, "more than %d places of the grammar were reached", s.c.o.Limits.Places)
	}
	s.c.r.Refuel()
	s.c.steps = 0
	p := s.places[n]
	switch p.kind {
	case atRoot:
		tail := s.node(place{kind: atLast})
		dst = append(dst, grammar.Edge{Call: s.node(place{kind: atValue, of: p.of}), To: tail})
		if s.blanks != regex.Nothing {
			dst = append(dst, grammar.Edge{Lexeme: s.blanks, To: s.then(s.c.formulas[p.of], tail)})
		}
	case atLast:
		if s.blanks != regex.Nothing {
			dst = append(dst, grammar.Edge{Lexeme: s.blanks, To: s.end()})
		}
	case atValue:
		dst = s.value(dst, s.c.formulas[p.of])
	case atThen:
		dst = s.called(dst, s.c.formulas[p.of], p.next)
	case atFirst, atMember:
		dst = s.members(dst, p)
	case atOpen, atItem, atAfter:
		dst = s.elements(dst, p)
	}
	return dst, s.c.broken()
}

func (s *source) end() grammar.Node { return s.node(place{kind: atEnd}) }

// then returns the place where a value is written and then next follows.
func (s *source) then(f *formula, next grammar.Node) grammar.Node {
	return s.node(place{kind: atThen, of: f.id, next: next})
}

// called appends the edges of a value that next follows.
func (s *source) called(dst []grammar.Edge, f *formula, next grammar.Node) []grammar.Edge {
	if !s.c.sideSat(f, 0) && !s.c.sideSat(f, 1) {
		return append(dst, grammar.Edge{Lexeme: s.scalar(f), To: next})
	}
	return append(dst, grammar.Edge{Call: s.node(place{kind: atValue, of: f.id}), To: next})
}

// value appends the edges of the rule of a formula.
func (s *source) value(dst []grammar.Edge, f *formula) []grammar.Edge {
	if id := s.scalar(f); id != regex.Nothing {
		dst = append(dst, grammar.Edge{Lexeme: id, To: s.end()})
	}
	for _, a := range s.c.arraysOf(f) {
		if s.c.arraySat(a) {
			dst = append(dst, grammar.Edge{Lexeme: s.openList, To: s.node(place{kind: atOpen, of: a.id, counts: s.id(a.begin().counts)})})
		}
	}
	for _, o := range s.c.objectsOf(f) {
		if s.c.objectSat(o) {
			dst = append(dst, grammar.Edge{Lexeme: s.open, To: s.node(place{kind: atFirst, of: o.id, unmet: 1<<len(o.some) - 1})})
		}
	}
	return dst
}

// scalar returns the lexeme of the scalars of a formula.
func (s *source) scalar(f *formula) regex.ID {
	id, ok := s.values[f]
	if !ok {
		id = s.spell(*s.c.scalarsOf(f))
		s.values[f] = id
	}
	return id
}

// spell returns the texts of JSON for scalars, all numbers in all spellings.
func (s *source) spell(v ScalarSet) regex.ID {
	if v.Number == s.c.lang.All.Number {
		v.Number = s.c.lang.EveryNumber()
	}
	return s.spellPlain(v)
}

// integers returns a set of numbers in digits alone, where the options say so and all of them are integers.
func (s *source) integers(all regex.ID) regex.ID {
	c := s.c
	if !c.o.PlainIntegers || all == c.lang.EveryNumber() || all == c.lang.All.Number {
		return all
	}
	whole, err := NumberLanguage(c.r, NumberRange{Integer: true})
	if err != nil || !c.r.Contains(whole, all) {
		return all
	}
	return c.r.And(all, c.plainNumbers()) // a fraction of an integer is of zeros, which the shortest notation leaves out
}

// spellPlain returns the texts of JSON for scalars. A number in a spelling that languages of numbers do not know could not be
// told from its equals.
func (s *source) spellPlain(v ScalarSet) regex.ID {
	r, all := s.c.r, make([]regex.ID, 0, 5)
	for _, w := range []struct {
		there bool
		text  string
	}{{v.Null, "null"}, {v.True, "true"}, {v.False, "false"}} {
		if w.there {
			all = append(all, r.Literal(w.text))
		}
	}
	if v.Number != regex.Nothing {
		all = append(all, s.integers(v.Number))
	}
	if v.Text != regex.Nothing {
		all = append(all, r.Quoted(v.Text))
	}
	if len(all) == 0 {
		return regex.Nothing
	}
	return r.Or(all...)
}
