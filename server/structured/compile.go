package structured

import (
	"errors"
	"strings"

	"grove"
	"grove/server/wire"
)

// whitespaces are the names of the ways of white space.
var whitespaces = [...]string{Bounded: "", Compact: "compact", Spaced: "spaced", AnySpace: "any"}

// Apply holds the answer to a request to the form. The error blames the field, with the place in the schema or grammar.
func (f *Form) Apply(m *grove.Model, r *grove.Request) error {
	c := &grove.Constraint{Triggers: f.Triggers, Thoughts: f.Thoughts}
	switch f.Kind {
	case Schema:
		c.Schema, c.Whitespace = f.Schema, whitespaces[f.Whitespace]
	case Tree:
		c.Tree, c.Whitespace = &f.Tree, whitespaces[f.Whitespace]
	case Regex:
		c.Regex = f.Text
	case Choice:
		c.Choices = f.Choices
	case Lark, GBNF:
		c.Grammar = f.Text
	}
	for _, id := range f.Tokens {
		text, err := m.Piece(id)
		if err != nil || len(text) == 0 {
			return wire.Refuse("grammar_triggers", "grammar_triggers: token %d has no text", id)
		}
		c.Triggers = append(c.Triggers, string(text))
	}
	if err := m.CheckConstraint(*c); err != nil {
		return f.refuse(err)
	}
	r.Constraint = c
	return nil
}

// refuse returns the answer to a form that cannot be compiled.
func (f *Form) refuse(err error) error {
	if spec := new(grove.SpecError); !errors.As(err, &spec) {
		return err
	}
	text := strings.TrimPrefix(wire.Plain(err), "Request.Constraint: ")
	e := wire.Refuse(f.Field, "%s: %s", f.Field, wire.Plain(errors.New(text)))
	e.Code = "invalid_constraint"
	return e
}
