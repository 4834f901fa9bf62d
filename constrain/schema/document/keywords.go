package document

import "math/big"

// loadText reads the keywords about strings.
func (d *Document) loadText(s *Schema, name string, v *Value) bool {
	switch name {
	case "minLength", "maxLength", "pattern", "format":
	default:
		return false
	}
	if s.Text == nil {
		s.Text = &Text{Max: Unlimited}
	}
	switch name {
	case "minLength":
		s.Text.Min = d.count(v)
	case "maxLength":
		s.Text.Max = d.count(v)
	case "pattern":
		if d.is(v, '"', "a string") {
			s.Text.Pattern = v
		}
	case "format":
		if d.is(v, '"', "a string") {
			s.Text.Format = v
		}
	}
	return true
}

// loadNumber reads the keywords about numbers.
func (d *Document) loadNumber(s *Schema, name string, v *Value) bool {
	switch name {
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
	default:
		return false
	}
	if s.Number == nil {
		s.Number = &Number{}
	}
	n := s.Number
	if v.Kind == 't' || v.Kind == 'f' {
		switch {
		case name == "exclusiveMinimum" && s.Draft == Draft4:
			n.open4Min = v.Kind == 't'
		case name == "exclusiveMaximum" && s.Draft == Draft4:
			n.open4Max = v.Kind == 't'
		default:
			d.Fail(ErrInvalid, v, "must be a number")
		}
		return true
	}
	if !d.is(v, '0', "a number") {
		return true
	}
	r := d.rational(v)
	if r == nil {
		return true
	}
	higher := func(old *big.Rat) bool { return old == nil || r.Cmp(old) > 0 }
	lower := func(old *big.Rat) bool { return old == nil || r.Cmp(old) < 0 }
	switch name {
	case "minimum":
		if higher(n.Min) {
			n.Min, n.OpenMin = r, false
		}
	case "exclusiveMinimum":
		if higher(n.Min) || r.Cmp(n.Min) == 0 {
			n.Min, n.OpenMin = r, true
		}
	case "maximum":
		if lower(n.Max) {
			n.Max, n.OpenMax = r, false
		}
	case "exclusiveMaximum":
		if lower(n.Max) || r.Cmp(n.Max) == 0 {
			n.Max, n.OpenMax = r, true
		}
	case "multipleOf":
		if n.Multiple = r; r.Sign() <= 0 {
			d.Fail(ErrInvalid, v, "is %s; it must be more than 0", Clip(v.Text))
		}
	}
	return true
}

// loadObject reads the keywords about objects.
func (d *Document) loadObject(s *Schema, name string, v *Value) bool {
	o := s.Object
	if o == nil {
		o = &Object{Max: Unlimited}
	}
	known := true
	switch name {
	case "properties":
		for i, x := range d.members(v) {
			o.Names, o.Props = append(o.Names, v.Names[i]), append(o.Props, d.Of(x))
		}
	case "patternProperties":
		for i, x := range d.members(v) {
			o.Patterns, o.PatternOf = append(o.Patterns, v.Names[i]), append(o.PatternOf, d.Of(x))
		}
	case "additionalProperties":
		o.Additional = d.Of(v)
	case "required":
		o.Required = d.texts(v)
	case "minProperties":
		o.Min = d.count(v)
	case "maxProperties":
		o.Max = d.count(v)
	default:
		known = d.loadNewer(s.Draft, o, name, v)
	}
	if known {
		s.Object = o
	}
	return known
}

// loadNewer reads the keywords about objects that not all drafts have.
func (d *Document) loadNewer(draft Draft, o *Object, name string, v *Value) bool {
	switch {
	case name == "propertyNames" && draft >= Draft6:
		o.Keys = d.Of(v)
	case name == "dependentRequired" && draft >= Draft2019:
		for i, x := range d.members(v) {
			o.Needs = append(o.Needs, Need{Name: v.Names[i], Others: d.texts(x)})
		}
	case name == "dependentSchemas" && draft >= Draft2019:
		for i, x := range d.members(v) {
			o.Needs = append(o.Needs, Need{Name: v.Names[i], Then: d.Of(x)})
		}
	case name == "dependencies": // newer drafts have it for older schemas
		for i, x := range d.members(v) {
			n := Need{Name: v.Names[i]}
			if x.Kind == '[' {
				n.Others = d.texts(x)
			} else {
				n.Then = d.Of(x)
			}
			o.Needs = append(o.Needs, n)
		}
	case name == "unevaluatedProperties" && draft >= Draft2019:
		o.Unevaluated = d.Of(v)
	default:
		return false
	}
	return true
}

// loadArray reads the keywords about arrays.
func (d *Document) loadArray(s *Schema, name string, v *Value) bool {
	a := s.Array
	if a == nil {
		a = &Array{Max: Unlimited, Least: 1, Most: Unlimited}
	}
	draft := s.Draft
	switch {
	case name == "items" && v.Kind == '[':
		for _, x := range v.Items {
			a.Prefix = append(a.Prefix, d.Of(x))
		}
	case name == "items":
		a.Rest = d.Of(v)
	case name == "prefixItems" && draft >= Draft2020:
		a.Prefix = d.list(v)
	case name == "additionalItems" && draft < Draft2020:
		if items := s.At.Get("items"); items != nil && items.Kind == '[' {
			a.Rest = d.Of(v)
		}
	case name == "minItems":
		a.Min = d.count(v)
	case name == "maxItems":
		a.Max = d.count(v)
	case name == "uniqueItems":
		if v.Kind != 't' && v.Kind != 'f' {
			d.Fail(ErrInvalid, v, "must be true or false")
		}
		a.Unique = v.Kind == 't'
	case name == "contains" && draft >= Draft6:
		a.Contains = d.Of(v)
	case name == "minContains" && draft >= Draft2019:
		a.Least = d.count(v)
	case name == "maxContains" && draft >= Draft2019:
		a.Most = d.count(v)
	case name == "unevaluatedItems" && draft >= Draft2019:
		a.Unevaluated = d.Of(v)
	default:
		return false
	}
	s.Array = a
	return true
}

// members returns the members of a keyword's value.
func (d *Document) members(v *Value) []*Value {
	if !d.is(v, '{', "an object") {
		return nil
	}
	return v.Items
}
