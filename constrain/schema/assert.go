package schema

import (
	"github.com/go-json-experiment/json/jsontext"

	"grove/constrain/schema/document"
)

var sideKind = [2]jsontext.Kind{'[', '{'}

// do takes in one task. It reports false for a contradiction.
func (c *compiler) do(p *partial, t task) bool {
	switch t.act {
	case aLiteral:
		if p.done[t] {
			return true
		}
		p.done[t] = true
		s := c.of(t.lit)
		if !c.lang.Grounded(s) {
			return false
		}
		if t.lit.denied() {
			return c.deny(p, s)
		}
		return c.assert(p, s, t.scope)
	case aMember:
		i := p.name(t.name)
		p.forms[i] = append(p.forms[i], t.lit)
		p.declared[i] = true
		p.changed = append(p.changed, i)
	case aHas:
		i := p.name(t.name)
		p.need[i] = true
		p.changed = append(p.changed, i)
	case aForAll:
		p.all = append(p.all, rule{keys: t.keys, lits: []literal{t.lit}})
		p.mention(t.keys)
	case aExists:
		p.object.some = append(p.object.some, rule{keys: t.keys, lits: c.only(t.lit)})
		p.mention(t.keys)
		if len(p.object.some) > maxObligations {
			c.doc.Fail(document.ErrUnsupported, c.doc.Root, "more than %d denials about names that are not given", maxObligations)
		}
	case aItem:
		p.item(t.n, t.lit)
	case aItems:
		p.tail = append(p.tail, tail{t.n, t.lit})
	case aTally:
		if t.n > maxTally || t.m > maxTally && t.m < document.Unlimited {
			c.doc.Fail(document.ErrBudget, c.doc.Schemas[t.lit>>1].At, "contains counts up to %d elements", maxTally)
		}
		p.array.some = append(p.array.some, tally{from: int(t.scope), lit: t.lit, min: t.n, max: t.m})
		return t.n <= t.m
	case aUnique:
		p.unique = true
	case aMin:
		if p.object != nil {
			p.object.min = max(p.object.min, t.n)
			return p.object.min <= p.object.max
		}
		p.array.min = max(p.array.min, t.n)
		return p.array.min <= p.array.max
	case aMax:
		if p.object != nil {
			p.object.max = min(p.object.max, t.n)
			return p.object.min <= p.object.max
		}
		p.array.max = min(p.array.max, t.n)
		return p.array.min <= p.array.max
	}
	return true
}

// only returns the literal in a list, without true.
func (c *compiler) only(l literal) []literal {
	if l == c.truth {
		return nil
	}
	return []literal{l}
}

// assert takes in a schema that holds, for values of the partial's side.
func (c *compiler) assert(p *partial, s *document.Schema, in int32) bool {
	if s.Never || s.Types&sides[p.side] == 0 {
		return false
	}
	if s.Listed {
		var or [][]task
		for _, v := range s.Values {
			if v.Kind == sideKind[p.side] {
				or = append(or, []task{{lit: holds(c.constant(v))}})
			}
		}
		p.ors = append(p.ors, or)
	}
	if p.object != nil && s.Object != nil && !c.assertObject(p, s, &in) || p.array != nil && s.Array != nil && !c.assertArray(p, s, &in) {
		return false
	}
	for _, list := range [][]*document.Schema{s.Ref, s.All} {
		for _, x := range list {
			p.todo = append(p.todo, task{lit: holds(x), scope: in})
		}
	}
	if len(s.Any) > 0 {
		p.ors = append(p.ors, c.anyOf(p, s, in))
	}
	if len(s.One) > 0 {
		p.ors = append(p.ors, c.oneOf(p, s.One, in))
	}
	if s.Not != nil {
		p.todo = append(p.todo, task{lit: fails(s.Not)})
	}
	if s.Test != nil && (s.Then != nil || s.Else != nil || in > 0) {
		then, otherwise := []task{{lit: holds(s.Test), scope: in}}, []task{{lit: fails(s.Test)}}
		if s.Then != nil {
			then = append(then, task{lit: holds(s.Then), scope: in})
		}
		if s.Else != nil {
			otherwise = append(otherwise, task{lit: holds(s.Else), scope: in})
		}
		p.ors = append(p.ors, [][]task{then, otherwise})
	}
	return true
}

// anyOf returns the choice of anyOf. Where evaluated members matter, several of the schemas may hold together.
func (c *compiler) anyOf(p *partial, s *document.Schema, in int32) (or [][]task) {
	if in == 0 {
		for _, x := range s.Any {
			or = append(or, []task{{lit: holds(x)}})
		}
		return or
	}
	if len(s.Any) > 8 {
		c.doc.Fail(document.ErrUnsupported, s.At, "anyOf of %d schemas beside unevaluated members: at most 8", len(s.Any))
		return nil
	}
	for set := 1; set < 1<<len(s.Any); set++ {
		var all []task
		for i, x := range s.Any {
			if set>>i&1 != 0 {
				all = append(all, task{lit: holds(x), scope: in})
			}
		}
		or = append(or, all)
	}
	return or
}

// oneOf returns the choice of oneOf: one schema holds, and those that could hold beside it do not.
func (c *compiler) oneOf(p *partial, all []*document.Schema, in int32) (or [][]task) {
	for i, x := range all {
		tasks := []task{{lit: holds(x), scope: in}}
		if c.judgeLiteral(p, tasks[0]) == no {
			continue
		}
		for j, y := range all {
			if j != i && !c.disjoint(p.side, x, y) {
				tasks = append(tasks, task{lit: fails(y)})
			}
		}
		or = append(or, tasks)
	}
	return or
}

// disjoint reports whether it is known that no array, or no object, satisfies two schemas.
func (c *compiler) disjoint(side int, x, y *document.Schema) bool {
	c.doc.Load(x)
	c.doc.Load(y)
	f := c.conj(holds(x), holds(y))
	if f.never || f.opening[side] {
		return f.never
	}
	outer := c.low
	c.low = noLow
	some := c.sideSat(f, side)
	certain := c.low == noLow
	c.low = outer
	return !some && certain && c.doc.Err == nil && c.r.Err() == nil
}

// constant returns the schema of the values that equal v.
func (c *compiler) constant(v *document.Value) *document.Schema {
	if s := c.equals[v]; s != nil {
		return s
	}
	s := c.doc.Make(v, func(s *document.Schema) {
		switch v.Kind {
		case '[':
			s.Types = document.IsArray
			s.Array = &document.Array{Min: len(v.Items), Max: len(v.Items)}
			for _, x := range v.Items {
				s.Array.Prefix = append(s.Array.Prefix, c.constant(x))
			}
		case '{':
			s.Types = document.IsObject
			s.Object = &document.Object{Names: v.Names, Required: v.Names, Additional: c.doc.Schemas[c.falsity>>1], Max: len(v.Items)}
			for _, x := range v.Items {
				s.Object.Props = append(s.Object.Props, c.constant(x))
			}
		default:
			s.Listed, s.Values = true, []*document.Value{v}
		}
	})
	c.equals[v] = s
	return s
}

// enter opens a scope for a schema with an unevaluated keyword.
func (p *partial) enter(s *document.Schema, in *int32) {
	p.scopes = append(p.scopes, scope{owner: s, parent: *in, keys: keyset{names: map[string]bool{}}})
	*in = int32(len(p.scopes) - 1)
}

// evaluated calls see with a scope and all around it.
func (p *partial) evaluated(in int32, see func(s *scope)) {
	for ; in > 0; in = p.scopes[in].parent {
		see(&p.scopes[in])
	}
}

func (c *compiler) assertObject(p *partial, s *document.Schema, in *int32) bool {
	o := s.Object
	if o.Unevaluated != nil {
		p.evaluated(*in, func(e *scope) { e.all = true })
		p.enter(s, in)
	}
	p.evaluated(*in, func(e *scope) {
		e.all = e.all || o.Additional != nil
		for _, n := range o.Names {
			e.keys.names[n] = true
		}
		e.keys.langs = append(e.keys.langs, c.names(s)...)
	})
	todo := make([]task, 0, len(o.Names)+len(o.Required)+8)
	for i, name := range o.Names {
		todo = append(todo, task{act: aMember, name: name, lit: holds(o.Props[i])})
	}
	for i := range o.Patterns {
		todo = append(todo, task{act: aForAll, keys: &keyset{langs: c.names(s)[i : i+1]}, lit: holds(o.PatternOf[i])})
	}
	if o.Additional != nil {
		todo = append(todo, task{act: aForAll, keys: c.other(s), lit: holds(o.Additional)})
	}
	if o.Keys != nil {
		todo = append(todo, task{act: aForAll, keys: &keyset{neg: true, langs: c.keyLangs(o.Keys)}, lit: c.falsity})
	}
	for _, name := range o.Required {
		todo = append(todo, task{act: aHas, name: name})
	}
	todo = append(todo, task{act: aMin, n: o.Min}, task{act: aMax, n: o.Max})
	for _, n := range o.Needs {
		with := []task{{act: aHas, name: n.Name}}
		for _, x := range n.Others {
			with = append(with, task{act: aHas, name: x})
		}
		if n.Then != nil {
			with = append(with, task{lit: holds(n.Then), scope: *in})
		}
		p.ors = append(p.ors, [][]task{{{act: aMember, name: n.Name, lit: c.falsity}}, with})
	}
	return c.doAll(p, todo)
}

func (c *compiler) doAll(p *partial, todo []task) bool {
	for _, t := range todo {
		if !c.do(p, t) {
			return false
		}
	}
	return true
}

func (c *compiler) assertArray(p *partial, s *document.Schema, in *int32) bool {
	a := s.Array
	if a.Unevaluated != nil {
		p.evaluated(*in, func(e *scope) { e.all = true })
		p.enter(s, in)
	}
	p.evaluated(*in, func(e *scope) {
		e.all = e.all || a.Rest != nil
		e.upTo = max(e.upTo, len(a.Prefix))
		if a.Contains != nil && s.Draft == Draft2020 {
			e.marked = append(e.marked, a.Contains)
		}
	})
	var todo []task
	for i, x := range a.Prefix {
		todo = append(todo, task{act: aItem, n: i, lit: holds(x)})
	}
	if a.Rest != nil {
		todo = append(todo, task{act: aItems, n: len(a.Prefix), lit: holds(a.Rest)})
	}
	todo = append(todo, task{act: aMin, n: a.Min}, task{act: aMax, n: a.Max})
	if a.Contains != nil && (a.Least > 0 || a.Most < document.Unlimited) {
		todo = append(todo, task{act: aTally, lit: holds(a.Contains), n: a.Least, m: a.Most})
	}
	if a.Unique {
		todo = append(todo, task{act: aUnique})
	}
	return c.doAll(p, todo)
}
