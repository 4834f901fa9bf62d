package schema

import (
	"slices"
	"unsafe"

	"grove/sample/constrain/format"
	"grove/sample/constrain/regex"
	"grove/sample/constrain/schema/document"
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

	langs   *scalars
	vague   bool    // strings may be missing: see scalars.inside
	opened  [2]bool // arrays, objects are made
	opening [2]bool // or are being made
	arrays  []*array
	objects []*object

	proven bool // some text, or none: known
	some   bool
	depth  int // where it is being proven, from 1; else 0
}

// scalars are the values of a formula that are neither array nor object.
type scalars struct {
	null, yes, no bool
	number, text  regex.ID // spellings; decoded texts

	// inside is a format whose language lacks some of its texts. Then text is too small at worst, and most, the texts that are
	// possible, is too large: a complement takes them all out. Without such a format, most is not set: text is exact.
	inside *document.Value
	most   regex.ID
}

func (s *scalars) empty() bool {
	return !s.null && !s.yes && !s.no && s.number == regex.Nothing && s.text == regex.Nothing
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
func (c *compiler) scalarsOf(f *formula) *scalars {
	if f.langs == nil {
		r := c.allScalars
		if f.never {
			r = scalars{}
		}
		for _, l := range f.lits {
			if r.empty() || c.doc.Err != nil {
				break
			}
			c.meet(&r, c.signed(l))
		}
		f.vague = r.text == regex.Nothing && r.inside != nil
		if r.text != regex.Nothing && c.r.IsEmpty(r.text) {
			r.text = regex.Nothing
			f.vague = r.inside != nil
		}
		if r.number != regex.Nothing && c.r.IsEmpty(r.number) {
			r.number = regex.Nothing
		}
		f.langs = &r
	}
	return f.langs
}

// signed returns the scalars of a literal.
func (c *compiler) signed(l literal) scalars {
	r := c.schemaScalars(c.of(l))
	if l.denied() {
		return c.minus(c.allScalars, r)
	}
	return r
}

func (c *compiler) meet(r *scalars, o scalars) {
	if r.inside != nil || o.inside != nil {
		r.most = c.and(r.possible(), o.possible())
	}
	r.null, r.yes, r.no = r.null && o.null, r.yes && o.yes, r.no && o.no
	r.number, r.text = c.and(r.number, o.number), c.and(r.text, o.text)
	r.note(o)
}

func (c *compiler) join(r *scalars, o scalars) {
	if r.inside != nil || o.inside != nil {
		r.most = c.or(r.possible(), o.possible())
	}
	r.null, r.yes, r.no = r.null || o.null, r.yes || o.yes, r.no || o.no
	r.number, r.text = c.or(r.number, o.number), c.or(r.text, o.text)
	r.note(o)
}

func (c *compiler) minus(r, o scalars) scalars {
	r.null, r.yes, r.no = r.null && !o.null, r.yes && !o.yes, r.no && !o.no
	r.number = c.without(r.number, o.number)
	if r.inside != nil || o.inside != nil {
		r.most = c.without(r.possible(), o.text)
	}
	r.text = c.without(r.text, o.possible())
	r.note(o)
	return r
}

// possible returns texts among which are all that satisfy a schema.
func (s *scalars) possible() regex.ID {
	if s.inside == nil {
		return s.text
	}
	return s.most
}

// note keeps which format makes a language uncertain.
func (s *scalars) note(o scalars) {
	if s.inside == nil {
		s.inside = o.inside
	}
}

// and, or and without are the operations of the store; all numbers and all texts are recognised, so that most cases cost nothing.
func (c *compiler) and(x, y regex.ID) regex.ID {
	switch {
	case x == y, y == c.allScalars.text, y == c.allScalars.number:
		return x
	case x == c.allScalars.text, x == c.allScalars.number:
		return y
	case x == regex.Nothing || y == regex.Nothing:
		return regex.Nothing
	}
	return c.r.And(x, y)
}

func (c *compiler) or(x, y regex.ID) regex.ID {
	switch {
	case x == y, y == regex.Nothing, x == c.allScalars.text, x == c.allScalars.number:
		return x
	case x == regex.Nothing, y == c.allScalars.text, y == c.allScalars.number:
		return y
	}
	return c.r.Or(x, y)
}

func (c *compiler) without(x, y regex.ID) regex.ID {
	switch {
	case x == regex.Nothing || y == regex.Nothing:
		return x
	case x == y, y == c.allScalars.text, y == c.allScalars.number:
		return regex.Nothing
	}
	return c.r.And(x, c.r.Not(y))
}

// schemaScalars returns the scalars that satisfy a schema.
func (c *compiler) schemaScalars(s *document.Schema) scalars {
	c.doc.Load(s)
	if r := c.scalars[s.ID]; r != nil {
		return *r
	}
	if !c.grounded(s) {
		return scalars{}
	}
	r := c.ownScalars(s)
	for _, list := range [][]*document.Schema{s.Ref, s.All} {
		for _, x := range list {
			if !r.empty() {
				c.meet(&r, c.schemaScalars(x))
			}
		}
	}
	if len(s.Any) > 0 && !r.empty() {
		var u scalars
		for _, x := range s.Any {
			c.join(&u, c.schemaScalars(x))
		}
		c.meet(&r, u)
	}
	if len(s.One) > 0 && !r.empty() {
		c.meet(&r, c.exactlyOne(s.One))
	}
	if s.Not != nil && !r.empty() {
		r = c.minus(r, c.schemaScalars(s.Not))
	}
	if s.Test != nil && !r.empty() {
		then, otherwise, test := r, r, c.schemaScalars(s.Test)
		c.meet(&then, test)
		otherwise = c.minus(otherwise, test)
		if s.Then != nil {
			c.meet(&then, c.schemaScalars(s.Then))
		}
		if s.Else != nil {
			c.meet(&otherwise, c.schemaScalars(s.Else))
		}
		c.join(&then, otherwise)
		r = then
	}
	c.scalars[s.ID] = &r
	return r
}

// exactlyOne returns the scalars that satisfy exactly one of several schemas.
func (c *compiler) exactlyOne(all []*document.Schema) scalars {
	var some, twice scalars // so far: at least one, at least two
	for _, x := range all {
		r := c.schemaScalars(x)
		both := some
		c.meet(&both, r)
		c.join(&twice, both)
		c.join(&some, r)
	}
	return c.minus(some, twice)
}

// ownScalars returns the scalars that satisfy the keywords of a schema that are no schemas themselves.
func (c *compiler) ownScalars(s *document.Schema) scalars {
	if s.Never {
		return scalars{}
	}
	r := scalars{null: s.Types&document.IsNull != 0, yes: s.Types&document.IsBool != 0, no: s.Types&document.IsBool != 0}
	if s.Types&document.IsNumber != 0 {
		r.number = c.numberLang(s)
	}
	if s.Types&document.IsString != 0 {
		r.text = c.textLang(s)
		if s.Text != nil && s.Text.Format != nil && !c.o.Annotate && r.text != regex.Nothing && !format.Exact(s.Text.Format.Text) && format.Known(s.Text.Format.Text) {
			r.inside, r.most = s.Text.Format, c.possible(s.Text.Format)
		}
	}
	if s.Listed {
		c.meet(&r, c.listedScalars(s))
	}
	return r
}

// listedScalars returns the scalars of enum and const.
func (c *compiler) listedScalars(s *document.Schema) (r scalars) {
	var texts, numbers []regex.ID
	for _, v := range s.Values {
		switch v.Kind {
		case 'n':
			r.null = true
		case 't':
			r.yes = true
		case 'f':
			r.no = true
		case '"':
			texts = append(texts, c.r.Literal(v.Text))
		case '0':
			numbers = append(numbers, c.number(v))
		}
	}
	if len(texts) > 0 {
		r.text = c.r.Or(texts...)
	}
	if len(numbers) > 0 {
		r.number = c.r.Or(numbers...)
	}
	return r
}

// textLang returns the texts that satisfy the keywords about strings.
func (c *compiler) textLang(s *document.Schema) regex.ID {
	id := c.allScalars.text
	t := s.Text
	if t == nil {
		return id
	}
	if t.Min > t.Max {
		return regex.Nothing
	}
	if t.Min > 0 || t.Max < document.Unlimited {
		most := t.Max
		if most == document.Unlimited {
			most = -1
		}
		id = c.r.Repeat(c.r.AnyRune(), t.Min, most)
	}
	if t.Pattern != nil {
		id = c.and(id, c.pattern(t.Pattern, t.Pattern.Text))
	}
	if t.Format != nil && !c.o.Annotate {
		if l, known := c.format(t.Format, t.Format.Text); known {
			id = c.and(id, l)
		}
	}
	return id
}

// grounded refuses schemas that apply themselves to the same value.
func (c *compiler) grounded(s *document.Schema) bool {
	const open, closed = 1, 2
	switch c.visited[s.ID] {
	case open:
		c.doc.Fail(document.ErrReference, s.At, "a reference leads to itself, with no keyword between that reads a part of the value")
		return false
	case closed:
		return true
	}
	c.visited[s.ID] = open
	c.doc.Load(s)
	for _, list := range [][]*document.Schema{s.Ref, s.All, s.Any, s.One, {s.Not, s.Test, s.Then, s.Else}} {
		for _, x := range list {
			if x != nil && !c.grounded(x) {
				return false
			}
		}
	}
	for i := 0; s.Object != nil && i < len(s.Object.Needs); i++ {
		if then := s.Object.Needs[i].Then; then != nil && !c.grounded(then) {
			return false
		}
	}
	c.visited[s.ID] = closed
	return true
}
