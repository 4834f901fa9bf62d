package schema

import (
	"errors"
	"fmt"
	"strings"

	"grove/constrain/regex"
	"grove/constrain/schema/document"
)

// anyNumber returns the spellings of numbers within which languages of numbers are exact.
func (c *ScalarLanguages) anyNumber() regex.ID { return NumberSpellings(c.Store) }

// number returns the spellings of the value of a number.
func (c *ScalarLanguages) number(v *document.Value) regex.ID {
	id, err := NumberEqual(c.Store, v.Text)
	if err != nil && c.Store.Err() == nil {
		c.Doc.Fail(document.ErrUnsupported, v, "%s: %s", document.Clip(v.Text), ScalarReason(err))
	}
	return id
}

// numberLang returns the numbers that satisfy the keywords about numbers.
func (c *ScalarLanguages) numberLang(s *document.Schema) regex.ID {
	n := s.Number
	if n == nil && !s.Integer {
		return c.All.Number
	}
	r := NumberRange{Integer: s.Integer, NoFraction: s.Integer && s.Draft == document.Draft4}
	if n != nil {
		r.ExclusiveMin, r.ExclusiveMax = n.OpenMin, n.OpenMax
		r.Min, r.Max, r.MultipleOf = document.Decimal(n.Min), document.Decimal(n.Max), document.Decimal(n.Multiple)
		if r.Min == "" && r.Max == "" && r.MultipleOf == "" && !r.Integer {
			return c.All.Number
		}
	}
	id, err := NumberLanguage(c.Store, r)
	if err != nil && c.Store.Err() == nil {
		c.Doc.Fail(document.ErrUnsupported, s.At, "%s", ScalarReason(err))
	}
	return id
}

// EveryNumber returns all numbers in all spellings.
func (c *ScalarLanguages) EveryNumber() regex.ID {
	if c.every == regex.Nothing {
		c.every = NumberAll(c.Store)
	}
	return c.every
}

// Equal returns the spellings of the value of a decimal.
func (c *ScalarLanguages) Equal(text string) regex.ID {
	id, err := NumberEqual(c.Store, text)
	if err != nil && c.Store.Err() == nil {
		c.Doc.Fail(document.ErrUnsupported, c.Doc.Root, "%s: %s", document.Clip(text), ScalarReason(err))
	}
	return id
}

// Pattern returns the texts in which an expression matches.
func (c *ScalarLanguages) Pattern(at *document.Value, source string) regex.ID {
	if id, ok := c.patterns[source]; ok {
		return id
	}
	id, err := regex.ECMA(c.Store, source)
	if err != nil && c.Store.Err() == nil {
		c.Doc.Fail(document.ErrUnsupported, at, "pattern %q: %s", document.Clip(source), ScalarReason(err))
	}
	c.patterns[source] = id
	return id
}

// ScalarReason returns an error's text without its package, for one that follows a place.
func ScalarReason(err error) string {
	text := err.Error()
	var p *regex.PatternError
	if errors.As(err, &p) {
		return fmt.Sprintf("byte %d: %s", p.At, p.Problem)
	}
	for _, p := range []string{"numbers: ", "format: ", "regex: "} {
		text = strings.TrimPrefix(text, p)
	}
	return text
}

// format returns the texts of a format, and whether the format is known.
func (c *ScalarLanguages) format(at *document.Value, name string) (id regex.ID, known bool) {
	if !FormatKnown(name) {
		return regex.Nothing, false
	}
	id, ok := c.formats[name]
	if !ok {
		var err error
		if id, _, err = FormatLanguage(c.Store, name); err != nil && c.Store.Err() == nil {
			c.Doc.Fail(document.ErrUnsupported, at, "format %q: %s", name, ScalarReason(err))
		}
		c.formats[name] = id
	}
	return id, true
}

// Possible returns texts among which are all that have a format.
func (c *ScalarLanguages) possible(at *document.Value) regex.ID {
	name := at.Text
	id, ok := c.possibles[name]
	if !ok {
		var err error
		if id, _, err = FormatPossible(c.Store, name); err != nil && c.Store.Err() == nil {
			c.Doc.Fail(document.ErrUnsupported, at, "format %q: %s", name, ScalarReason(err))
		}
		c.possibles[name] = id
	}
	return id
}
