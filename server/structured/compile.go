package structured

import (
	"errors"
	"strings"

	"grove"
	"grove/server/wire"
)

// Apply holds the answer to a request to the form. The error blames the field.
func (f *Form) Apply(m *grove.Model, r *grove.Request) error {
	c := &grove.Constraint{Triggers: f.Triggers}
	switch f.Kind {
	case Choice:
		c.Choices = f.Choices
	default:
		return wire.Unsupported(f.Field, wire.NoGrammar)
	}
	if err := m.CheckConstraint(*c); err != nil {
		return f.refuse(err)
	}
	r.Constraint = c
	return nil
}

// refuse returns the answer to a form that cannot be compiled.
func (f *Form) refuse(err error) error {
	if option := new(grove.OptionError); !errors.As(err, &option) {
		return err
	}
	text := strings.TrimPrefix(wire.Plain(err), "Request.Constraint: ")
	e := wire.Refuse(f.Field, "%s: %s", f.Field, text)
	e.Code = "invalid_constraint"
	return e
}
