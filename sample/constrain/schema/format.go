package schema

import (
	"grove/sample/constrain/format"
	"grove/sample/constrain/regex"
	"grove/sample/constrain/schema/document"
)

// format returns the texts of a format, and whether the format is known.
func (c *compiler) format(at *document.Value, name string) (id regex.ID, known bool) {
	if !format.Known(name) {
		return regex.Nothing, false
	}
	id, ok := c.formats[name]
	if !ok {
		var err error
		if id, _, err = format.Language(c.r, name); err != nil && c.r.Err() == nil {
			c.doc.Fail(document.ErrUnsupported, at, "format %q: %s", name, reason(err))
		}
		c.formats[name] = id
	}
	return id, true
}

// possible returns texts among which are all that have a format.
func (c *compiler) possible(at *document.Value) regex.ID {
	name := at.Text
	id, ok := c.possibles[name]
	if !ok {
		var err error
		if id, _, err = format.Possible(c.r, name); err != nil && c.r.Err() == nil {
			c.doc.Fail(document.ErrUnsupported, at, "format %q: %s", name, reason(err))
		}
		c.possibles[name] = id
	}
	return id
}
