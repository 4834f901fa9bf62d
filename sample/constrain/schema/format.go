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

// undecided returns the texts that may have a format and are not in its language.
func (c *compiler) undecided(at *document.Value) regex.ID {
	name := at.Text
	id, ok := c.opens[name]
	if !ok {
		var err error
		if id, err = format.Undecided(c.r, name); err != nil && c.r.Err() == nil {
			c.doc.Fail(document.ErrUnsupported, at, "format %q: %s", name, reason(err))
		}
		c.opens[name] = id
	}
	return id
}
