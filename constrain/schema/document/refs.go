package document

import (
	"net/url"
	"strconv"
	"strings"
)

// A resource is a schema with an identifier of its own, and what lies in it.
type resource struct {
	base    *url.URL
	root    *Value
	draft   Draft
	anchors map[string]*Value
	dynamic map[string]*Value
}

// idWord returns the keyword that names a resource.
func (d Draft) idWord() string {
	if d == Draft4 {
		return "id"
	}
	return "$id"
}

// siblings reports whether keywords beside $ref count.
func (d Draft) siblings() bool { return d >= Draft2019 }

// draftOf returns the draft that a value of $schema names.
func draftOf(uri string) (Draft, bool) {
	uri = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(uri, "http://"), "https://"), "#")
	switch strings.TrimSuffix(uri, "/") {
	case "json-schema.org/draft-03/schema", "json-schema.org/draft-04/schema", "json-schema.org/draft-04/hyper-schema":
		return Draft4, true
	case "json-schema.org/draft-06/schema", "json-schema.org/draft-06/hyper-schema":
		return Draft6, true
	case "json-schema.org/draft-07/schema", "json-schema.org/draft-07/hyper-schema":
		return Draft7, true
	case "json-schema.org/draft/2019-09/schema":
		return Draft2019, true
	case "json-schema.org/draft/2020-12/schema", "json-schema.org/schema":
		return Draft2020, true
	}
	return Auto, false
}

// below says where schemas are: as the value of the keyword, in its list, or in its members.
var below = map[string]string{
	"additionalProperties": "1", "additionalItems": "1", "contains": "1", "propertyNames": "1", "not": "1", "if": "1", "then": "1", "else": "1",
	"unevaluatedItems": "1", "unevaluatedProperties": "1", "contentSchema": "1", "items": "1*", "prefixItems": "*", "allOf": "*", "anyOf": "*", "oneOf": "*",
	"properties": ".", "patternProperties": ".", "definitions": ".", "$defs": ".", "dependentSchemas": ".", "dependencies": ".",
}

// scan gives each schema in v its resource and notes the identifiers.
func (d *Document) scan(v *Value, in *resource) {
	if v.res != nil || d.Err != nil {
		return
	}
	v.res = in
	if v.Kind != '{' {
		return
	}
	v.res = d.identify(v, in)
	for i, name := range v.Names {
		item := v.Items[i]
		switch how := below[name]; {
		case item.Kind == '{' && how == ".":
			for _, x := range item.Items {
				d.scan(x, v.res)
			}
		case item.Kind == '[' && strings.HasSuffix(how, "*"):
			for _, x := range item.Items {
				d.scan(x, v.res)
			}
		case strings.HasPrefix(how, "1"):
			d.scan(item, v.res)
		}
	}
}

// identify returns the resource of the schema v, which lies in a resource, and notes its anchors.
func (d *Document) identify(v *Value, in *resource) *resource {
	draft := in.draft
	if s := v.Get("$schema"); s != nil && s.Kind == '"' {
		if known, ok := draftOf(s.Text); ok {
			draft = known
		} else if v.parent == nil {
			d.Fail(ErrUnsupported, s, "$schema names %q: known are drafts 4, 6, 7, 2019-09 and 2020-12", Clip(s.Text))
		}
	}
	res := in
	id := v.Get(draft.idWord())
	if id != nil && id.Kind == '"' && (draft.siblings() || v.Get("$ref") == nil) {
		switch u, err := url.Parse(id.Text); {
		case err != nil:
			d.Fail(ErrReference, id, "%q is no URI reference", Clip(id.Text))
		case strings.HasPrefix(id.Text, "#"):
			in.anchors[u.Fragment] = v
		default:
			u = in.base.ResolveReference(u)
			u.Fragment, u.RawFragment = "", ""
			res = d.newResource(u, v, draft)
		}
	} else if v.parent == nil {
		res.draft = draft
	}
	if a := v.Get("$anchor"); a != nil && a.Kind == '"' && draft >= Draft2019 {
		res.anchors[a.Text] = v
	}
	if a := v.Get("$dynamicAnchor"); a != nil && a.Kind == '"' && draft >= Draft2020 {
		res.anchors[a.Text], res.dynamic[a.Text] = v, v
		d.dynamics[a.Text]++
	}
	if a := v.Get("$recursiveAnchor"); a != nil && a.Kind == 't' && draft == Draft2019 {
		d.dynamics["$recursiveAnchor"]++
	}
	return res
}

func (d *Document) newResource(base *url.URL, root *Value, draft Draft) *resource {
	r := &resource{base: base, root: root, draft: draft, anchors: map[string]*Value{}, dynamic: map[string]*Value{}}
	if key := base.String(); d.resources[key] == nil {
		d.resources[key] = r
	}
	return r
}

// resolve returns the schema that a reference of the schema s leads to, or nil after an error.
func (d *Document) resolve(ref, s *Value) *Value {
	u, err := url.Parse(ref.Text)
	if ref.Kind != '"' || err != nil {
		d.Fail(ErrReference, ref, "%q is no URI reference", Clip(ref.Text))
		return nil
	}
	u = s.res.base.ResolveReference(u)
	fragment := u.Fragment
	u.Fragment, u.RawFragment = "", ""
	res := d.resources[u.String()]
	if strings.HasPrefix(ref.Text, "#") {
		res = s.res
	}
	if res == nil {
		d.Fail(ErrReference, ref, "%q is in another document, and nothing is fetched", Clip(ref.Text))
		return nil
	}
	if fragment != "" && fragment[0] != '/' {
		if v := res.anchors[fragment]; v != nil {
			return v
		}
		d.Fail(ErrReference, ref, "no anchor %q", Clip(fragment))
		return nil
	}
	v := d.pointer(res.root, fragment, res)
	if v == nil && res.root != d.Root && res.draft <= Draft7 {
		// Many schemas of the older drafts have an id that they do not mean as a base.
		v = d.pointer(d.Root, fragment, d.Root.res)
	}
	if v == nil {
		d.Fail(ErrReference, ref, "%q leads nowhere", Clip(ref.Text))
	}
	return v
}

// pointer follows a JSON pointer from root, which belongs to a resource; nil where it leads nowhere.
func (d *Document) pointer(root *Value, pointer string, res *resource) *Value {
	v := root
	if pointer == "" {
		return v
	}
	for _, part := range strings.Split(pointer, "/")[1:] {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch v.Kind {
		case '{':
			v = v.Get(part)
		case '[':
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(v.Items) {
				v = v.Items[i]
			} else {
				v = nil
			}
		default:
			v = nil
		}
		if v == nil {
			return nil
		}
		if v.res != nil {
			res = v.res
		}
	}
	d.scan(v, res)
	return v
}
