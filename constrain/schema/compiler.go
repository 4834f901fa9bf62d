package schema

import (
	"grove/constrain/grammar"
	"grove/constrain/regex"
	"grove/constrain/schema/document"
)

// A compiler holds all that is known of one schema. It lives on in the grammar, which unfolds by it.
type compiler struct {
	o   Options
	doc *document.Document
	r   *regex.Store

	lang *ScalarLanguages

	others   map[int32]*keyset                    // by schemas with additionalProperties: the names it is about
	equals   map[*document.Value]*document.Schema // schemas of const for values of enum
	byLits   map[string]*formula
	formulas []*formula
	nothing  *formula // no value
	falsity  literal  // the schema false
	truth    literal  // the schema true
	objects  []*object
	arrays   []*array
	plain    regex.ID // numbers in their shortest notation
	steps    int
	proving  int // formulas that are being proven
	low      int // the lowest of them that was met again
}

// Compile turns a JSON Schema into the grammar of the JSON texts that it accepts, with lexemes in the store of the options. Errors are of type
// [*Error]: they name the place and the reason. The grammar follows the contract of [grammar.Source].
func Compile(text []byte, o Options) (grammar.Source, error) {
	c, f, err := newCompiler(text, o)
	if err != nil {
		return nil, err
	}
	return newSource(c, f), nil
}

// Texts returns the strings that a JSON Schema accepts, as texts without quotes and escapes, in the store of the options. Errors are as
// those of [Compile].
func Texts(text []byte, o Options) (regex.ID, error) {
	c, f, err := newCompiler(text, o)
	if err != nil {
		return regex.Nothing, err
	}
	all := c.scalarsOf(f).Text
	return all, c.broken()
}

// newCompiler reads a schema and checks it whole. It returns the formula of its values.
func newCompiler(text []byte, o Options) (*compiler, *formula, error) {
	o.Limits = o.Limits.withDefaults()
	root, err := document.Parse(text, o.Limits.Bytes, o.Limits.Depth)
	if err != nil {
		return nil, nil, err
	}
	if o.Draft == Auto {
		o.Draft = Draft2020
	}
	if o.Store == nil {
		o.Store = regex.New(regex.Limits{Nodes: o.Limits.Nodes, Fuel: o.Limits.Fuel})
	}
	if o.Escapes == Needed {
		o.Store.PlainQuotes()
	}
	doc := document.New(root, o.Draft)
	c := &compiler{o: o, doc: doc, r: o.Store, low: noLow,
		lang:   NewScalar(doc, o.Store, o.Annotate),
		others: map[int32]*keyset{}, equals: map[*document.Value]*document.Schema{}, byLits: map[string]*formula{}}
	c.nothing = &formula{never: true, at: root, opened: [2]bool{true, true}, proven: true, langs: &ScalarSet{}}
	c.formulas = append(c.formulas, c.nothing)
	c.falsity = holds(c.doc.Make(root, func(s *document.Schema) { s.Never = true }))
	c.truth = holds(c.doc.Make(root, func(s *document.Schema) {}))
	f := c.conj(holds(c.doc.Of(root)))
	if f.at == nil {
		f.at = root
	}
	c.check(f)
	return c, f, c.broken()
}

// broken returns the first error, of the store too.
func (c *compiler) broken() error {
	if c.doc.Err == nil && c.r.Err() != nil {
		c.doc.Fail(document.ErrBudget, c.doc.Root, "%s", ScalarReason(c.r.Err()))
	}
	return c.doc.Err
}

// step counts work and reports whether there may be more.
func (c *compiler) step(f *formula) bool {
	if c.steps++; c.steps > c.o.Limits.Steps {
		c.doc.Fail(document.ErrBudget, f.at, "more than %d steps", c.o.Limits.Steps)
	}
	return c.doc.Err == nil && c.r.Err() == nil
}

// check expands all formulas that a text can reach, so that whatever is not exact is refused before the first token.
func (c *compiler) check(root *formula) {
	if !c.sat(root) {
		if c.broken() == nil {
			c.doc.Fail(document.ErrEmpty, c.blame(root), "no text satisfies the schema")
		}
		return
	}
	seen := map[*formula]bool{root: true}
	for queue := []*formula{root}; len(queue) > 0 && c.doc.Err == nil && c.r.Err() == nil; {
		f := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		c.scalarsOf(f)
		c.inner(f, func(g *formula) {
			if !seen[g] {
				seen[g] = true
				queue = append(queue, g)
			}
		})
	}
}

// inner calls see with the formulas of the parts of arrays and objects of a formula that are not empty.
func (c *compiler) inner(f *formula, see func(g *formula)) {
	for _, a := range c.arraysOf(f) {
		c.checkArray(f, a)
		for i := range a.places() {
			for _, g := range c.itemChoices(a, i, nil) {
				if c.sat(g.f) {
					see(g.f)
				}
			}
		}
	}
	for _, o := range c.objectsOf(f) {
		for i := range o.names {
			if g := c.memberOf(o, i); c.sat(g) {
				see(g)
			}
		}
		for _, k := range o.classes {
			if c.sat(k.f) {
				see(k.f)
			}
		}
		// Obligations add schemas that a member satisfies besides its own.
		for _, s := range o.some {
			see(c.conj(s.lits...))
		}
	}
}

// blame returns the place where a formula without texts fails: the deepest required part that has no text of its own.
func (c *compiler) blame(f *formula) *document.Value {
	for range 100 {
		var next *formula
		for _, o := range c.objectsOf(f) {
			for i := range o.names {
				if g := c.memberOf(o, i); o.need[i] && !c.sat(g) && g.at != nil && !g.never {
					next = g
				}
			}
		}
		if next == nil || next == f {
			break
		}
		f = next
	}
	if f.at == nil {
		return c.doc.Root
	}
	return f.at
}
