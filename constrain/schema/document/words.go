package document

import "slices"

// Load reads the keywords of a schema.
func (d *Document) Load(s *Schema) {
	if s.loaded {
		return
	}
	s.loaded = true
	v := s.At
	if v.res == nil {
		d.scan(v, d.Root.res)
	}
	s.Draft = v.res.draft
	switch v.Kind {
	case 't':
		return
	case 'f':
		s.Never = true
		return
	case '{':
	default:
		d.Fail(ErrInvalid, v, "a schema is an object, true or false")
		return
	}
	if ref := v.Get("$ref"); ref != nil {
		if to := d.resolve(ref, v); to != nil {
			s.Ref = append(s.Ref, d.Of(to))
		}
		if !s.Draft.siblings() {
			return
		}
	}
	for i, name := range v.Names {
		item := v.Items[i]
		if d.Err != nil {
			return
		}
		if !d.loadCommon(s, name, item) && !d.loadText(s, name, item) && !d.loadNumber(s, name, item) && !d.loadObject(s, name, item) {
			d.loadArray(s, name, item)
		}
	}
	d.settle(s)
}

// settle completes what depends on several keywords.
func (d *Document) settle(s *Schema) {
	if n := s.Number; n != nil {
		n.OpenMin = n.OpenMin || n.open4Min
		n.OpenMax = n.OpenMax || n.open4Max
	}
	if s.Test == nil {
		s.Then, s.Else = nil, nil
	}
}

// loadCommon reads the keywords that are about all types.
func (d *Document) loadCommon(s *Schema, name string, v *Value) bool {
	switch name {
	case "type":
		d.loadTypes(s, v)
	case "enum":
		if d.is(v, '[', "a list") {
			s.restrict(v.Items)
		}
	case "const":
		if s.Draft >= Draft6 {
			s.restrict([]*Value{v})
		}
	case "allOf":
		s.All = append(s.All, d.list(v)...)
	case "anyOf":
		s.Any = d.list(v)
	case "oneOf":
		s.One = d.list(v)
	case "not":
		s.Not = d.Of(v)
	case "if", "then", "else":
		if s.Draft < Draft7 {
			return true
		}
		*map[string]**Schema{"if": &s.Test, "then": &s.Then, "else": &s.Else}[name] = d.Of(v)
	case "$dynamicRef":
		if s.Draft >= Draft2020 {
			d.loadDynamic(s, v)
		}
	case "$recursiveRef":
		if s.Draft == Draft2019 {
			if d.dynamics["$recursiveAnchor"] > 1 {
				d.Fail(ErrUnsupported, v, "$recursiveRef with several $recursiveAnchor depends on the way that led here")
				return true
			}
			s.Ref = append(s.Ref, d.Of(s.At.res.root))
		}
	default:
		return false
	}
	return true
}

// loadDynamic reads $dynamicRef, which is a plain reference unless several schemas have the anchor.
func (d *Document) loadDynamic(s *Schema, v *Value) {
	to := d.resolve(v, s.At)
	if to == nil {
		return
	}
	if a := to.Get("$dynamicAnchor"); a != nil && d.dynamics[a.Text] > 1 {
		d.Fail(ErrUnsupported, v, "$dynamicRef with several $dynamicAnchor %q depends on the way that led here", Clip(a.Text))
		return
	}
	s.Ref = append(s.Ref, d.Of(to))
}

// restrict allows no other values than these.
func (s *Schema) restrict(values []*Value) {
	if s.Listed {
		values = slices.DeleteFunc(slices.Clone(values), func(v *Value) bool {
			return !slices.ContainsFunc(s.Values, func(w *Value) bool { return Equal(v, w) })
		})
	}
	s.Listed, s.Values = true, values
}

func (d *Document) loadTypes(s *Schema, v *Value) {
	items := []*Value{v}
	if v.Kind == '[' {
		items = v.Items
	}
	s.Types = 0
	integers, numbers := false, false
	for _, t := range items {
		switch {
		case t.Kind != '"':
			d.Fail(ErrInvalid, t, "a type is a string")
		case t.Text == "null":
			s.Types |= IsNull
		case t.Text == "boolean":
			s.Types |= IsBool
		case t.Text == "number":
			s.Types |= IsNumber
			numbers = true
		case t.Text == "integer":
			s.Types |= IsNumber
			integers = true
		case t.Text == "string":
			s.Types |= IsString
		case t.Text == "array":
			s.Types |= IsArray
		case t.Text == "object":
			s.Types |= IsObject
		default:
			d.Fail(ErrInvalid, t, "no type is called %q", Clip(t.Text))
		}
	}
	s.Integer = integers && !numbers
}

// is refuses a keyword's value that is not of a kind.
func (d *Document) is(v *Value, k byte, what string) bool {
	if byte(v.Kind) != k {
		d.Fail(ErrInvalid, v, "must be %s", what)
		return false
	}
	return true
}

// list returns the schemas of a list.
func (d *Document) list(v *Value) []*Schema {
	if !d.is(v, '[', "a list of schemas") {
		return nil
	}
	if len(v.Items) == 0 {
		d.Fail(ErrInvalid, v, "must not be empty")
	}
	all := make([]*Schema, len(v.Items))
	for i, x := range v.Items {
		all[i] = d.Of(x)
	}
	return all
}

// count returns a number that is not negative; those beyond what a text can have are Unlimited.
func (d *Document) count(v *Value) int {
	if !d.is(v, '0', "a number") {
		return 0
	}
	r := d.rational(v)
	if r == nil {
		return 0
	}
	if !r.IsInt() || r.Sign() < 0 {
		d.Fail(ErrInvalid, v, "is %s; it must be a whole number, 0 or more", Clip(v.Text))
		return 0
	}
	if !r.Num().IsInt64() || r.Num().Int64() > Unlimited {
		return Unlimited
	}
	return int(r.Num().Int64())
}

// names returns a list of strings, without what stands twice.
func (d *Document) texts(v *Value) (all []string) {
	if !d.is(v, '[', "a list of strings") {
		return nil
	}
	seen := map[string]bool{}
	for _, x := range v.Items {
		if d.is(x, '"', "a string") && !seen[x.Text] {
			seen[x.Text] = true
			all = append(all, x.Text)
		}
	}
	return all
}
