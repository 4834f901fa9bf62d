// scalar.go holds the values of a JSON Schema that are neither array nor object, as languages: spellings of numbers, decoded
// texts of strings.

package schema

import (
	"grove/constrain/regex"
	"grove/constrain/schema/document"
)

// ScalarLanguages are the languages of the schemas of one document. They are not safe for concurrent use.
type ScalarLanguages struct {
	// Doc is the document; it keeps errors.
	Doc *document.Document
	// Store holds the languages.
	Store *regex.Store
	// All is every value. Its numbers are those spellings within which languages of numbers are exact.
	All ScalarSet

	annotate  bool // format is a comment
	patterns  map[string]regex.ID
	formats   map[string]regex.ID
	possibles map[string]regex.ID  // texts among which are all of a format
	scalars   map[int32]*ScalarSet // by schemas
	visited   map[int32]uint8      // schemas by Grounded
	every     regex.ID             // all numbers
}

// NewScalar returns the languages of a document, in a store. annotate makes format a comment.
func NewScalar(doc *document.Document, store *regex.Store, annotate bool) *ScalarLanguages {
	c := &ScalarLanguages{Doc: doc, Store: store, annotate: annotate, patterns: map[string]regex.ID{}, formats: map[string]regex.ID{},
		possibles: map[string]regex.ID{}, scalars: map[int32]*ScalarSet{}, visited: map[int32]uint8{}}
	c.All = ScalarSet{Null: true, True: true, False: true, Number: c.anyNumber(), Text: store.Repeat(store.AnyRune(), 0, -1)}
	return c
}

// ScalarSet is a set of values that are neither array nor object.
type ScalarSet struct {
	Null, True, False bool
	Number, Text      regex.ID // spellings; decoded texts

	// Inside is a format whose language lacks some of its texts. Then Text is too small at worst, and Most, the texts that are
	// possible, is too large: a complement takes them all out. Without such a format, Most is not set: Text is exact.
	Inside *document.Value
	Most   regex.ID
}

// Empty reports whether there is no value.
func (s *ScalarSet) Empty() bool {
	return !s.Null && !s.True && !s.False && s.Number == regex.Nothing && s.Text == regex.Nothing
}

// Meet makes r the values that are in both.
func (c *ScalarLanguages) Meet(r *ScalarSet, o ScalarSet) {
	if r.Inside != nil || o.Inside != nil {
		r.Most = c.And(r.Possible(), o.Possible())
	}
	r.Null, r.True, r.False = r.Null && o.Null, r.True && o.True, r.False && o.False
	r.Number, r.Text = c.And(r.Number, o.Number), c.And(r.Text, o.Text)
	r.note(o)
}

// Join makes r the values that are in one of both.
func (c *ScalarLanguages) Join(r *ScalarSet, o ScalarSet) {
	if r.Inside != nil || o.Inside != nil {
		r.Most = c.Or(r.Possible(), o.Possible())
	}
	r.Null, r.True, r.False = r.Null || o.Null, r.True || o.True, r.False || o.False
	r.Number, r.Text = c.Or(r.Number, o.Number), c.Or(r.Text, o.Text)
	r.note(o)
}

// Minus returns the values of r that are not in o.
func (c *ScalarLanguages) Minus(r, o ScalarSet) ScalarSet {
	r.Null, r.True, r.False = r.Null && !o.Null, r.True && !o.True, r.False && !o.False
	r.Number = c.Without(r.Number, o.Number)
	if r.Inside != nil || o.Inside != nil {
		r.Most = c.Without(r.Possible(), o.Text)
	}
	r.Text = c.Without(r.Text, o.Possible())
	r.note(o)
	return r
}

// Possible returns texts among which are all that satisfy a schema.
func (s *ScalarSet) Possible() regex.ID {
	if s.Inside == nil {
		return s.Text
	}
	return s.Most
}

// note keeps which format makes a language uncertain.
func (s *ScalarSet) note(o ScalarSet) {
	if s.Inside == nil {
		s.Inside = o.Inside
	}
}

// And is the intersection of two languages. All numbers and all texts are recognised, as in Or and Without, so that most cases
// cost nothing.
func (c *ScalarLanguages) And(x, y regex.ID) regex.ID {
	switch {
	case x == y, y == c.All.Text, y == c.All.Number:
		return x
	case x == c.All.Text, x == c.All.Number:
		return y
	case x == regex.Nothing || y == regex.Nothing:
		return regex.Nothing
	}
	return c.Store.And(x, y)
}

// Or is the union of two languages.
func (c *ScalarLanguages) Or(x, y regex.ID) regex.ID {
	switch {
	case x == y, y == regex.Nothing, x == c.All.Text, x == c.All.Number:
		return x
	case x == regex.Nothing, y == c.All.Text, y == c.All.Number:
		return y
	}
	return c.Store.Or(x, y)
}

// Without is the texts of x that are not in y.
func (c *ScalarLanguages) Without(x, y regex.ID) regex.ID {
	switch {
	case x == regex.Nothing || y == regex.Nothing:
		return x
	case x == y, y == c.All.Text, y == c.All.Number:
		return regex.Nothing
	}
	return c.Store.And(x, c.Store.Not(y))
}
