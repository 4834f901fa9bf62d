package schema

import (
	"grove/constrain/regex"
	"grove/constrain/schema/document"
)

// Of returns the scalars that satisfy a schema.
func (c *ScalarLanguages) Of(s *document.Schema) ScalarSet {
	c.Doc.Load(s)
	if r := c.scalars[s.ID]; r != nil {
		return *r
	}
	if !c.Grounded(s) {
		return ScalarSet{}
	}
	r := c.ownScalars(s)
	for _, list := range [][]*document.Schema{s.Ref, s.All} {
		for _, x := range list {
			if !r.Empty() {
				c.Meet(&r, c.Of(x))
			}
		}
	}
	if len(s.Any) > 0 && !r.Empty() {
		var u ScalarSet
		for _, x := range s.Any {
			c.Join(&u, c.Of(x))
		}
		c.Meet(&r, u)
	}
	if len(s.One) > 0 && !r.Empty() {
		c.Meet(&r, c.exactlyOne(s.One))
	}
	if s.Not != nil && !r.Empty() {
		r = c.Minus(r, c.Of(s.Not))
	}
	if s.Test != nil && !r.Empty() {
		then, otherwise, test := r, r, c.Of(s.Test)
		c.Meet(&then, test)
		otherwise = c.Minus(otherwise, test)
		if s.Then != nil {
			c.Meet(&then, c.Of(s.Then))
		}
		if s.Else != nil {
			c.Meet(&otherwise, c.Of(s.Else))
		}
		c.Join(&then, otherwise)
		r = then
	}
	c.scalars[s.ID] = &r
	return r
}

// exactlyOne returns the scalars that satisfy exactly one of several schemas.
func (c *ScalarLanguages) exactlyOne(all []*document.Schema) ScalarSet {
	var some, twice ScalarSet // so far: at least one, at least two
	for _, x := range all {
		r := c.Of(x)
		both := some
		c.Meet(&both, r)
		c.Join(&twice, both)
		c.Join(&some, r)
	}
	return c.Minus(some, twice)
}

// ownScalars returns the scalars that satisfy the keywords of a schema that are no schemas themselves.
func (c *ScalarLanguages) ownScalars(s *document.Schema) ScalarSet {
	if s.Never {
		return ScalarSet{}
	}
	r := ScalarSet{Null: s.Types&document.IsNull != 0, True: s.Types&document.IsBool != 0, False: s.Types&document.IsBool != 0}
	if s.Types&document.IsNumber != 0 {
		r.Number = c.numberLang(s)
	}
	if s.Types&document.IsString != 0 {
		r.Text = c.textLang(s)
		if s.Text != nil && s.Text.Format != nil && !c.annotate && r.Text != regex.Nothing && !FormatExact(s.Text.Format.Text) && FormatKnown(s.Text.Format.Text) {
			r.Inside, r.Most = s.Text.Format, c.possible(s.Text.Format)
		}
	}
	if s.Listed {
		c.Meet(&r, c.listedScalars(s))
	}
	return r
}

// listedScalars returns the scalars of enum and const.
func (c *ScalarLanguages) listedScalars(s *document.Schema) (r ScalarSet) {
	var texts, numbers []regex.ID
	for _, v := range s.Values {
		switch v.Kind {
		case 'n':
			r.Null = true
		case 't':
			r.True = true
		case 'f':
			r.False = true
		case '"':
			texts = append(texts, c.Store.Literal(v.Text))
		case '0':
			numbers = append(numbers, c.number(v))
		}
	}
	if len(texts) > 0 {
		r.Text = c.Store.Or(texts...)
	}
	if len(numbers) > 0 {
		r.Number = c.Store.Or(numbers...)
	}
	return r
}

// textLang returns the texts that satisfy the keywords about strings.
func (c *ScalarLanguages) textLang(s *document.Schema) regex.ID {
	id := c.All.Text
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
		id = c.Store.Repeat(c.Store.AnyRune(), t.Min, most)
	}
	if t.Pattern != nil {
		id = c.And(id, c.Pattern(t.Pattern, t.Pattern.Text))
	}
	if t.Format != nil && !c.annotate {
		if l, known := c.format(t.Format, t.Format.Text); known {
			id = c.And(id, l)
		}
	}
	return id
}

// Grounded refuses schemas that apply themselves to the same value.
func (c *ScalarLanguages) Grounded(s *document.Schema) bool {
	const open, closed = 1, 2
	switch c.visited[s.ID] {
	case open:
		c.Doc.Fail(document.ErrReference, s.At, "a reference leads to itself, with no keyword between that reads a part of the value")
		return false
	case closed:
		return true
	}
	c.visited[s.ID] = open
	c.Doc.Load(s)
	for _, list := range [][]*document.Schema{s.Ref, s.All, s.Any, s.One, {s.Not, s.Test, s.Then, s.Else}} {
		for _, x := range list {
			if x != nil && !c.Grounded(x) {
				return false
			}
		}
	}
	for i := 0; s.Object != nil && i < len(s.Object.Needs); i++ {
		if then := s.Object.Needs[i].Then; then != nil && !c.Grounded(then) {
			return false
		}
	}
	c.visited[s.ID] = closed
	return true
}
