package schema

import (
	"errors"
	"fmt"
	"strings"

	"grove/sample/constrain/numbers"
	"grove/sample/constrain/pattern"
	"grove/sample/constrain/regex"
	"grove/sample/constrain/schema/document"
)

// anyNumber returns the spellings of numbers within which languages of numbers are exact.
func (c *compiler) anyNumber() regex.ID { return numbers.Spellings(c.r) }

// number returns the spellings of the value of a number.
func (c *compiler) number(v *document.Value) regex.ID {
	id, err := numbers.Equal(c.r, v.Text)
	if err != nil && c.r.Err() == nil {
		c.doc.Fail(document.ErrUnsupported, v, "%s: %s", document.Clip(v.Text), reason(err))
	}
	return id
}

// numberLang returns the numbers that satisfy the keywords about numbers.
func (c *compiler) numberLang(s *document.Schema) regex.ID {
	n := s.Number
	if n == nil && !s.Integer {
		return c.allScalars.number
	}
	r := numbers.Range{Integer: s.Integer, NoFraction: s.Integer && s.Draft == Draft4}
	if n != nil {
		r.ExclusiveMin, r.ExclusiveMax = n.OpenMin, n.OpenMax
		r.Min, r.Max, r.MultipleOf = document.Decimal(n.Min), document.Decimal(n.Max), document.Decimal(n.Multiple)
		if r.Min == "" && r.Max == "" && r.MultipleOf == "" && !r.Integer {
			return c.allScalars.number
		}
	}
	id, err := numbers.Language(c.r, r)
	if err != nil && c.r.Err() == nil {
		c.doc.Fail(document.ErrUnsupported, s.At, "%s", reason(err))
	}
	return id
}

// everyNumber returns all numbers in all spellings.
func (c *compiler) everyNumber() regex.ID {
	if c.every == regex.Nothing {
		c.every = numbers.All(c.r)
	}
	return c.every
}

// equalTo returns the spellings of the value of a decimal.
func (c *compiler) equalTo(text string) regex.ID {
	id, err := numbers.Equal(c.r, text)
	if err != nil && c.r.Err() == nil {
		c.doc.Fail(document.ErrUnsupported, c.doc.Root, "%s: %s", document.Clip(text), reason(err))
	}
	return id
}

// pattern returns the texts in which an expression matches.
func (c *compiler) pattern(at *document.Value, source string) regex.ID {
	if id, ok := c.patterns[source]; ok {
		return id
	}
	id, err := pattern.ECMA(c.r, source)
	if err != nil && c.r.Err() == nil {
		c.doc.Fail(document.ErrUnsupported, at, "pattern %q: %s", document.Clip(source), reason(err))
	}
	c.patterns[source] = id
	return id
}

// names returns the names that the patterns of a schema match.
func (c *compiler) names(s *document.Schema) []regex.ID {
	all := make([]regex.ID, len(s.Object.Patterns))
	for i, p := range s.Object.Patterns {
		all[i] = c.pattern(s.Object.PatternOf[i].At, p)
	}
	return all
}

// other returns the names that additionalProperties of a schema is about.
func (c *compiler) other(s *document.Schema) *keyset {
	k := c.others[s.ID]
	if k == nil {
		k = &keyset{neg: true, langs: c.names(s), names: make(map[string]bool, len(s.Object.Names))}
		for _, n := range s.Object.Names {
			k.names[n] = true
		}
		c.others[s.ID] = k
	}
	return k
}

// reason returns an error's text without its package, for one that follows a place.
func reason(err error) string {
	text := err.Error()
	var p *pattern.Error
	if errors.As(err, &p) {
		return fmt.Sprintf("byte %d: %s", p.At, p.Problem)
	}
	for _, p := range []string{"numbers: ", "format: ", "regex: "} {
		text = strings.TrimPrefix(text, p)
	}
	return text
}
