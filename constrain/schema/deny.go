package schema

import (
	"grove/constrain/regex"
	"grove/constrain/schema/document"
)

// deny takes in that a schema does not hold, for values of the partial's side.
func (c *compiler) deny(p *partial, s *document.Schema) bool {
	if s.Never || s.Types&sides[p.side] == 0 {
		return true
	}
	var or [][]task
	if s.Listed {
		var all []task
		for _, v := range s.Values {
			if v.Kind == sideKind[p.side] {
				all = append(all, task{lit: fails(c.constant(v))})
			}
		}
		if len(all) == 0 {
			return true
		}
		or = append(or, all)
	}
	for _, list := range [][]*document.Schema{s.Ref, s.All} {
		for _, x := range list {
			or = append(or, []task{{lit: fails(x)}})
		}
	}
	if len(s.Any) > 0 {
		var all []task
		for _, x := range s.Any {
			all = append(all, task{lit: fails(x)})
		}
		or = append(or, all)
	}
	if len(s.One) > 0 {
		or = append(or, c.notOne(p, s.One)...)
	}
	if s.Not != nil {
		or = append(or, []task{{lit: holds(s.Not)}})
	}
	if s.Then != nil {
		or = append(or, []task{{lit: holds(s.Test)}, {lit: fails(s.Then)}})
	}
	if s.Else != nil {
		or = append(or, []task{{lit: fails(s.Test)}, {lit: fails(s.Else)}})
	}
	if p.object != nil && s.Object != nil {
		or = append(or, c.denyObject(s)...)
	}
	if p.array != nil && s.Array != nil {
		or = append(or, c.denyArray(s)...)
	}
	p.ors = append(p.ors, or)
	return len(or) > 0
}

// notOne returns the ways in which none, or two, of several schemas hold.
func (c *compiler) notOne(p *partial, all []*document.Schema) (or [][]task) {
	var none []task
	for i, x := range all {
		none = append(none, task{lit: fails(x)})
		for _, y := range all[:i] {
			if !c.disjoint(p.side, x, y) {
				or = append(or, []task{{lit: holds(x)}, {lit: holds(y)}})
			}
		}
	}
	return append(or, none)
}

// denyObject returns the ways in which an object misses the keywords of a schema.
func (c *compiler) denyObject(s *document.Schema) (or [][]task) {
	o := s.Object
	if o.Unevaluated != nil {
		c.doc.Fail(document.ErrUnsupported, o.Unevaluated.At, "unevaluatedProperties below not, oneOf or if would need all ways to evaluate")
		return nil
	}
	for _, name := range o.Required {
		or = append(or, []task{{act: aMember, name: name, lit: c.falsity}})
	}
	for i, name := range o.Names {
		if c.doc.Load(o.Props[i]); !c.trivial(o.Props[i]) {
			or = append(or, []task{{act: aHas, name: name}, {act: aMember, name: name, lit: fails(o.Props[i])}})
		}
	}
	for i, x := range o.PatternOf {
		if c.doc.Load(x); !c.trivial(x) {
			or = append(or, []task{{act: aExists, keys: &keyset{langs: c.names(s)[i : i+1]}, lit: fails(x)}})
		}
	}
	if x := o.Additional; x != nil {
		if c.doc.Load(x); !c.trivial(x) {
			or = append(or, []task{{act: aExists, keys: c.other(s), lit: fails(x)}})
		}
	}
	if o.Keys != nil {
		if in := c.lang.Of(o.Keys).Inside; in != nil {
			c.doc.Fail(document.ErrUnsupported, in, "format %q cannot be denied: not all texts of the format are known", in.Text)
		}
		or = append(or, []task{{act: aExists, keys: &keyset{neg: true, langs: c.keyLangs(o.Keys)}, lit: c.truth}})
	}
	if o.Min > 0 {
		or = append(or, []task{{act: aMax, n: o.Min - 1}})
	}
	if o.Max < document.Unlimited {
		or = append(or, []task{{act: aMin, n: o.Max + 1}})
	}
	for _, n := range o.Needs {
		for _, x := range n.Others {
			or = append(or, []task{{act: aHas, name: n.Name}, {act: aMember, name: x, lit: c.falsity}})
		}
		if n.Then != nil {
			or = append(or, []task{{act: aHas, name: n.Name}, {lit: fails(n.Then)}})
		}
	}
	return or
}

// keyLangs returns the names that satisfy a schema.
func (c *compiler) keyLangs(s *document.Schema) []regex.ID {
	return []regex.ID{c.lang.Of(s).Text}
}

// denyArray returns the ways in which an array misses the keywords of a schema.
func (c *compiler) denyArray(s *document.Schema) (or [][]task) {
	a := s.Array
	if a.Unevaluated != nil {
		c.doc.Fail(document.ErrUnsupported, a.Unevaluated.At, "unevaluatedItems below not, oneOf or if would need all ways to evaluate")
		return nil
	}
	if a.Unique {
		if a.Max > 1 {
			c.doc.Fail(document.ErrUnsupported, s.At, "uniqueItems below not, oneOf or if: two equal elements cannot be asked for")
		}
	}
	for i, x := range a.Prefix {
		if c.doc.Load(x); !c.trivial(x) {
			or = append(or, []task{{act: aMin, n: i + 1}, {act: aItem, n: i, lit: fails(x)}})
		}
	}
	if x := a.Rest; x != nil {
		if c.doc.Load(x); !c.trivial(x) {
			or = append(or, []task{{act: aTally, scope: int32(len(a.Prefix)), lit: fails(x), n: 1, m: document.Unlimited}})
		}
	}
	if a.Contains != nil && a.Least > 0 {
		or = append(or, []task{{act: aTally, lit: holds(a.Contains), n: 0, m: a.Least - 1}})
	}
	if a.Contains != nil && a.Most < document.Unlimited {
		or = append(or, []task{{act: aTally, lit: holds(a.Contains), n: a.Most + 1, m: document.Unlimited}})
	}
	if a.Min > 0 {
		or = append(or, []task{{act: aMax, n: a.Min - 1}})
	}
	if a.Max < document.Unlimited {
		or = append(or, []task{{act: aMin, n: a.Max + 1}})
	}
	return or
}
