package calls

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"grove/internal/text/answer"
)

// maxProperties bounds the arguments of a function whose family names each of them.
const maxProperties = 256

// errObject refuses a schema of arguments that are no object.
var errObject = errors.New("#/type: arguments are an object")

// member is a member of an object, in the order of the text.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of an object in their order.
func members(object json.RawMessage) (all []member, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(object))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		text := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		all = append(all, member{text, json.RawMessage(slices.Clone(value))})
	}
	return all, nil
}

// arguments returns the grammar of a function's arguments as JSON: an object that keeps to the schema.
func (f *function) arguments() (Grammar, error) {
	if f.given != nil {
		return Text(spaced(f.given)), nil
	}
	if f.Input != nil {
		return All(Text(`{"input": `), f.Input.grammar(HeldString), Text("}")), nil
	}
	schema := bytes.TrimSpace(f.Parameters)
	switch string(schema) {
	case "", "null":
		return Value(json.RawMessage(`{"type":"object","additionalProperties":false}`)), nil
	case "true":
		return Value(json.RawMessage(`{"type":"object"}`)), nil
	case "false":
		return Grammar{}, errObject
	}
	if schema[0] != '{' {
		return Grammar{}, errors.New("#: a schema is an object, true or false")
	}
	all, err := members(schema)
	if err != nil {
		return Grammar{}, fmt.Errorf("#: %w", err)
	}
	at := slices.IndexFunc(all, func(m member) bool { return m.name == "type" })
	if at >= 0 {
		var types []string
		if json.Unmarshal(all[at].value, &types) != nil {
			types = []string{strings.Trim(string(all[at].value), `"`)}
		}
		if !slices.Contains(types, "object") {
			return Grammar{}, errObject
		}
		all = slices.Delete(all, at, at+1)
	}
	return Value(objectOf(append([]member{{"type", json.RawMessage(`"object"`)}}, all...))), nil
}

// grammar returns the grammar of the text, as it is or as a JSON string.
func (i *Input) grammar(k Kind) Grammar {
	return Grammar{Kind: k, Syntax: i.Syntax, Text: i.Definition}
}

// objectOf returns the text of an object.
func objectOf(all []member) json.RawMessage {
	b := []byte{'{'}
	for i, m := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, quote(m.name)...), ':'), m.value...)
	}
	return append(b, '}')
}

// property is an argument of a function whose family names each of them.
type property struct {
	name     string
	schema   json.RawMessage // with the definitions of the function's schema
	required bool
	members  []member        // of the schema, without those; nil: it is true
	given    json.RawMessage // the value, where it is known
	loose    bool            // as [Function.Loose]
	input    *Input          // what its text is held to; nil: nothing
}

// notes are the keywords of an object's schema that change nothing in its texts.
const notes = " $schema $id title description $comment examples default deprecated readOnly writeOnly contentEncoding contentMediaType type properties required additionalProperties $defs definitions "

// properties returns the arguments of a function in their order. Errors: a schema with other keywords than type, properties, required
// and additionalProperties, in which each argument cannot be told apart.
func (f *function) properties() (list []property, err error) {
	if f.given != nil {
		return f.written()
	}
	if _, err := f.arguments(); err != nil || len(f.Parameters) == 0 {
		return nil, err
	}
	var outer []member
	if s := bytes.TrimSpace(f.Parameters); s[0] == '{' {
		outer, _ = members(s) // read before
	}
	var definitions, named []member
	var required []string
	for _, m := range outer {
		if !strings.Contains(notes, " "+m.name+" ") && !f.Loose {
			return nil, fmt.Errorf("#/%s: calls in the form of %s cannot be held to it", clip(m.name), f.style.Family)
		}
		switch m.name {
		case "$defs", "definitions", "$schema":
			definitions = append(definitions, m)
		case "required":
			if json.Unmarshal(m.value, &required) != nil {
				return nil, errors.New("#/required: it is no list of names")
			}
		case "properties":
			if bytes.TrimSpace(m.value)[0] != '{' {
				return nil, errors.New("#/properties: it is no object")
			}
			if named, err = members(m.value); err != nil {
				return nil, fmt.Errorf("#/properties: %w", err)
			}
		}
	}
	if f.Loose {
		named = addNamed(named, outer, outer, 0)
	}
	for _, name := range required { // those of any value
		if !slices.ContainsFunc(named, func(m member) bool { return m.name == name }) {
			named = append(named, member{name, json.RawMessage("true")})
		}
	}
	if len(named) > maxProperties {
		return nil, fmt.Errorf("#/properties: %d arguments; calls in the form of %s are held to as many as %d", len(named), f.style.Family, maxProperties)
	}
	for _, m := range named {
		if len(m.name) > maxName {
			return nil, fmt.Errorf("#/properties: a name of %d bytes; it must have as many as %d", len(m.name), maxName)
		}
		p := property{name: m.name, schema: m.value, required: slices.Contains(required, m.name), loose: f.Loose, input: f.Input}
		if bytes.TrimSpace(m.value)[0] == '{' {
			p.members, _ = members(m.value) // read before
			p.schema = objectOf(append(slices.Clone(p.members), definitions...))
		}
		if string(bytes.TrimSpace(m.value)) == "false" {
			if p.required {
				return nil, fmt.Errorf("#/properties/%s: no value is allowed, and the argument is required", clip(m.name))
			}
			continue
		}
		list = append(list, p)
	}
	return list, nil
}

// keyword returns the value of a keyword of the schema; nil: it has none.
func (p *property) keyword(name string) json.RawMessage {
	for _, m := range p.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// isType reports whether the schema is of one type and says nothing else of the value.
func (p *property) isType(name string) bool {
	for _, m := range p.members {
		if m.name != "type" && !strings.Contains(notes, " "+m.name+" ") {
			return false
		}
	}
	return string(p.keyword("type")) == quote(name)
}

// text returns the grammar of a value: of one that can be a string alone, the text without quotes, and of others JSON. The texts that end
// the value, the usual one first, do not occur in it. Package answer reads values by the same rule.
func (p *property) text(ends ...string) (g Grammar, isText bool, err error) {
	if p.given != nil {
		return p.raw(ends)
	}
	if p.input != nil {
		g = p.input.grammar(Held)
		g.Without = ends
		return g, true, nil
	}
	var enum []string
	fixed := json.Unmarshal(p.keyword("enum"), &enum) == nil && len(enum) > 0
	isText = string(p.keyword("type")) == `"string"` || p.keyword("type") == nil && fixed && p.keyword("anyOf") == nil && p.keyword("oneOf") == nil
	if only := p.onlyStrings(); !isText && only && p.loose {
		return Any(ends...), true, nil
	} else if !isText {
		g = Value(p.schema)
		if g.Without = ends; only {
			return g, false, fmt.Errorf("#/properties/%s: say type string: the form of this family's calls has strings without quotes", clip(p.name))
		}
		return g, false, nil
	}
	if raw := p.keyword("const"); raw != nil {
		var one string
		if json.Unmarshal(raw, &one) != nil || fixed && !slices.Contains(enum, one) {
			return g, true, fmt.Errorf("#/properties/%s/const: no value is allowed", clip(p.name))
		}
		enum = []string{one}
	}
	for _, m := range p.members {
		if m.name != "enum" && m.name != "const" && !strings.Contains(notes, " "+m.name+" ") {
			return Grammar{Kind: Raw, Schema: p.schema, Without: ends}, true, nil
		}
	}
	if p.keyword("enum") == nil && p.keyword("const") == nil {
		return Any(ends...), true, nil
	}
	g = One()
	ended := func(v string) bool {
		return slices.ContainsFunc(ends, func(end string) bool { return strings.Index(v+end, end) < len(v) })
	}
	for _, v := range enum {
		if ended(v) || strings.HasPrefix(v, "\n") && strings.HasSuffix(v, "\n") && len(v) > 1 {
			if p.loose && len(enum) > 1 {
				continue
			}
			return g, true, fmt.Errorf("#/properties/%s/enum: the text %q cannot be written in the form of this family's calls", clip(p.name), clip(v))
		}
		g.Of = append(g.Of, Text(v))
	}
	if len(g.Of) == 0 {
		return Any(ends...), true, nil
	}
	return g, true, nil
}

// addNamed adds the properties that other keywords of a schema name: of schemas it refers to, and of parts of it. The root has the
// definitions.
func addNamed(all, schema, root []member, depth int) []member {
	const most = 8
	add := func(value json.RawMessage) {
		of, err := members(value)
		if len(bytes.TrimSpace(value)) == 0 || bytes.TrimSpace(value)[0] != '{' || err != nil || depth == most {
			return
		}
		for _, m := range of {
			if m.name != "properties" || len(bytes.TrimSpace(m.value)) == 0 || bytes.TrimSpace(m.value)[0] != '{' {
				continue
			}
			named, _ := members(m.value) // read before
			for _, n := range named {
				if !slices.ContainsFunc(all, func(m member) bool { return m.name == n.name }) {
					all = append(all, n)
				}
			}
		}
		all = addNamed(all, of, root, depth+1)
	}
	for _, m := range schema {
		switch m.name {
		case "allOf", "anyOf", "oneOf":
			var parts []json.RawMessage
			_ = json.Unmarshal(m.value, &parts) // what is no list has no parts
			for _, p := range parts {
				add(p)
			}
		case "if", "then", "else":
			add(m.value)
		case "$ref":
			add(definition(m.value, root))
		}
	}
	return all
}

// definition returns the schema that a reference to a definition names; nil: there is none.
func definition(ref json.RawMessage, root []member) json.RawMessage {
	var text string
	_ = json.Unmarshal(ref, &text) // what is no text names nothing
	for _, holder := range []string{"$defs", "definitions"} {
		name, ok := strings.CutPrefix(text, "#/"+holder+"/")
		at := slices.IndexFunc(root, func(m member) bool { return m.name == holder })
		if !ok || at < 0 {
			continue
		}
		all, _ := members(root[at].value) // read before
		for _, m := range all {
			if m.name == name {
				return m.value
			}
		}
	}
	return nil
}

// onlyStrings reports whether answers take each value for a string, whatever it looks like.
func (p *property) onlyStrings() bool {
	types := answer.Types(objectOf(p.members))
	return len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return t != "string" })
}
