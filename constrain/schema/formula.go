package schema

import (
	"slices"
	"unsafe"

	"grove/constrain/regex"
	"grove/constrain/schema/document"
)

// A literal is a schema asserted, twice its id, or denied, twice its id plus one.
type literal int32

func holds(s *document.Schema) literal { return literal(s.ID << 1) }
func fails(s *document.Schema) literal { return literal(s.ID<<1 | 1) }

func (l literal) denied() bool { return l&1 != 0 }

func (c *compiler) of(l literal) *document.Schema {
	s := c.doc.Schemas[l>>1]
	c.doc.Load(s)
	return s
}

// A formula is a set of literals that one value satisfies. It is interned: equal sets are the same formula.
type formula struct {
	id    int32
	lits  []literal       // sorted
	at    *document.Value // for errors: where one of them is
	never bool            // no value

	langs   *ScalarSet
	keys    *distinctKeys // of these; nil: not asked for
	vague   bool          // strings may be missing: see scalars.inside
	opened  [2]bool       // arrays, objects are made
	opening [2]bool       // or are being made
	arrays  []*array
	objects []*object

	proven bool // some text, or none: known
	some   bool
	depth  int // where it is being proven, from 1; else 0
}

// conj returns the formula of literals.
func (c *compiler) conj(lits ...literal) *formula {
	var flat []literal
	never, steps := false, 0
	var add func(l literal)
	add = func(l literal) {
		if steps++; steps > 10_000 || c.doc.Err != nil {
			c.doc.Fail(document.ErrReference, c.doc.Schemas[l>>1].At, "too many references without a keyword between them, or one that leads to itself")
			return
		}
		s := c.of(l)
		switch {
		case s.Never != l.denied() && (s.Never || c.trivial(s)):
			never = true
		case c.trivial(s) || s.Never:
		case c.alias(s) && len(s.Ref) == 1:
			add(literal(s.Ref[0].ID<<1) | l&1)
		case c.alias(s) && s.Not != nil:
			add(literal(s.Not.ID<<1) | l&1 ^ 1)
		case c.alias(s) && !l.denied() && len(s.All) > 0:
			for _, x := range s.All {
				add(holds(x))
			}
		default:
			flat = append(flat, l)
		}
	}
	for _, l := range lits {
		add(l)
	}
	slices.Sort(flat)
	flat = slices.Compact(flat)
	for i := 1; i < len(flat); i++ {
		never = never || flat[i]^1 == flat[i-1]
	}
	if never {
		return c.nothing
	}
	return c.intern(flat)
}

func (c *compiler) intern(lits []literal) *formula {
	key := ""
	if len(lits) > 0 {
		key = unsafe.String((*byte)(unsafe.Pointer(&lits[0])), len(lits)*4)
	}
	if f := c.byLits[key]; f != nil {
		return f
	}
	f := &formula{id: int32(len(c.formulas)), lits: lits}
	if len(lits) > 0 {
		f.at = c.doc.Schemas[lits[0]>>1].At
	}
	if len(c.formulas) >= c.o.Limits.Formulas {
		c.doc.Fail(document.ErrBudget, f.at, "more than %d conjunctions of schemas arise", c.o.Limits.Formulas)
	}
	c.formulas = append(c.formulas, f)
	c.byLits[key] = f
	return f
}

// trivial reports whether all values satisfy a schema, by its looks.
func (c *compiler) trivial(s *document.Schema) bool {
	return !s.Never && s.Types == document.IsAll && !s.Integer && !s.Listed && len(s.All)+len(s.Ref)+len(s.Any)+len(s.One) == 0 && s.Not == nil && s.Test == nil && c.untyped(s)
}

func (c *compiler) untyped(s *document.Schema) bool {
	return s.Text == nil && s.Number == nil && s.Object == nil && s.Array == nil
}

// alias reports whether a schema is one of: a reference, a denial, a list of allOf, and nothing besides.
func (c *compiler) alias(s *document.Schema) bool {
	if s.Never || s.Types != document.IsAll || s.Listed || s.Integer || len(s.Any)+len(s.One) > 0 || s.Test != nil || !c.untyped(s) {
		return false
	}
	kinds := 0
	for _, there := range []bool{len(s.Ref) > 0, len(s.All) > 0, s.Not != nil} {
		if there {
			kinds++
		}
	}
	return kinds == 1
}

// scalarsOf returns the values of a formula that are neither array nor object.
func (c *compiler) scalarsOf(f *formula) *ScalarSet {
	if f.langs == nil {
		r := c.lang.All
		if f.never {
			r = ScalarSet{}
		}
		for _, l := range f.lits {
			if r.Empty() || c.doc.Err != nil {
				break
			}
			c.lang.Meet(&r, c.signed(l))
		}
		f.vague = r.Text == regex.Nothing && r.Inside != nil
		if r.Text != regex.Nothing && c.r.IsEmpty(r.Text) {
			r.Text = regex.Nothing
			f.vague = r.Inside != nil
		}
		if r.Number != regex.Nothing && c.r.IsEmpty(r.Number) {
			r.Number = regex.Nothing
		}
		f.langs = &r
	}
	return f.langs
}

// signed returns the scalars of a literal.
func (c *compiler) signed(l literal) ScalarSet {
	r := c.lang.Of(c.of(l))
	if l.denied() {
		return c.lang.Minus(c.lang.All, r)
	}
	return r
}
