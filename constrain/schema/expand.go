package schema

import (
	"maps"
	"slices"

	"grove/constrain/regex"
	"grove/constrain/schema/document"
)

// arraysOf returns the alternatives of a formula that are arrays; objectsOf those that are objects.
func (c *compiler) arraysOf(f *formula) []*array {
	c.expand(f, 0)
	return f.arrays
}

func (c *compiler) objectsOf(f *formula) []*object {
	c.expand(f, 1)
	return f.objects
}

// sides are the two types of values with parts: arrays and objects.
var sides = [2]document.Kind{document.IsArray, document.IsObject}

// action is what a task says of an array or object.
type action uint8

const (
	aLiteral action = iota // the literal holds
	aMember                // a member of that name satisfies the literal
	aHas                   // there is a member of that name
	aForAll                // members with names in keys satisfy the literal
	aExists                // one of them does
	aItem                  // the element at an index, if there, satisfies the literal
	aItems                 // those from an index on do
	aTally                 // from an index on, that many elements do
	aUnique                // no two elements are equal
	aMin                   // how many elements or members there are at least
	aMax                   // and at most
)

// A task is one statement about an array or object.
type task struct {
	act   action
	scope int32 // of aLiteral: the schema with unevaluated* that it is a part of; of aTally: the first index
	lit   literal
	name  string
	keys  *keyset
	n, m  int
}

// A keyset is a set of names: the names given and those in the languages, or all others.
type keyset struct {
	names map[string]bool
	langs []regex.ID
	neg   bool
}

func (c *compiler) inKeys(k *keyset, name string) bool {
	in := k.names[name]
	for _, l := range k.langs {
		in = in || c.r.Matches(l, name)
	}
	return in != k.neg
}

// A partial is an alternative on the way: statements taken in, statements to take in, and choices left.
type partial struct {
	side    int
	todo    []task
	ors     [][][]task
	done    map[task]bool
	changed []int // members with new statements
	scopes  []scope
	*object
	*array
}

// A scope notes what the schemas below one with unevaluatedProperties or unevaluatedItems evaluate.
type scope struct {
	owner  *document.Schema
	parent int32
	all    bool
	keys   keyset
	upTo   int
	marked []*document.Schema // contains
}

func (p *partial) clone() *partial {
	q := &partial{side: p.side, ors: slices.Clone(p.ors), done: maps.Clone(p.done), scopes: slices.Clone(p.scopes)}
	for i := range q.scopes {
		s := &q.scopes[i]
		s.keys.names, s.keys.langs, s.marked = maps.Clone(s.keys.names), slices.Clone(s.keys.langs), slices.Clone(s.marked)
	}
	if p.object != nil {
		q.object = p.object.clone()
	} else {
		q.array = p.array.clone()
	}
	return q
}

// expand makes the alternatives of a formula.
func (c *compiler) expand(f *formula, side int) {
	if f.opened[side] {
		return
	}
	f.opening[side] = true
	p := &partial{side: side, done: map[task]bool{}, scopes: make([]scope, 1)}
	if side == 0 {
		p.array = &array{max: document.Unlimited}
	} else {
		p.object = &object{max: document.Unlimited, at: map[string]int{}}
	}
	for _, l := range f.lits {
		p.todo = append(p.todo, task{lit: l})
	}
	n := 0
	for stack := []*partial{p}; len(stack) > 0 && c.step(f); {
		p, stack = stack[len(stack)-1], stack[:len(stack)-1]
		if !c.take(f, p) {
			continue
		}
		if len(p.ors) > 0 {
			stack = c.branch(p, stack)
			continue
		}
		if n++; n > c.o.Limits.Alternatives {
			c.doc.Fail(document.ErrBudget, f.at, "more than %d alternatives for one value", c.o.Limits.Alternatives)
		}
		if side == 0 {
			f.arrays = append(f.arrays, c.finishArray(p.array))
		} else {
			f.objects = append(f.objects, c.finishObject(p.object))
		}
	}
	f.opened[side], f.opening[side] = true, false
}

// branch replaces a partial by one for each alternative of its shortest choice.
func (c *compiler) branch(p *partial, stack []*partial) []*partial {
	best := 0
	for i := range p.ors {
		if len(p.ors[i]) < len(p.ors[best]) {
			best = i
		}
	}
	or := p.ors[best]
	p.ors = slices.Delete(slices.Clone(p.ors), best, best+1)
	for i := len(or) - 1; i >= 0; i-- {
		q := p.clone()
		q.todo = slices.Clone(or[i])
		stack = append(stack, q)
	}
	return stack
}

// take takes in all tasks and the choices that are none. It reports false for a contradiction.
func (c *compiler) take(f *formula, p *partial) bool {
	for {
		for len(p.todo) > 0 {
			t := p.todo[0]
			p.todo = p.todo[1:]
			if !c.step(f) || !c.do(p, t) {
				return false
			}
		}
		if p.object != nil && !c.coherent(p) {
			return false
		}
		if !c.simplify(p) {
			return false
		}
		if len(p.todo) == 0 && len(p.ors) == 0 && !c.unscope(p) {
			return true
		}
		if len(p.todo) == 0 && len(p.ors) > 0 {
			return true
		}
	}
}

// coherent reports whether the members that must be there, and were spoken of, have values left.
func (c *compiler) coherent(p *partial) bool {
	for _, i := range p.changed {
		if p.need[i] && c.impossible(c.conj(p.forms[i]...)) {
			return false
		}
	}
	p.changed = p.changed[:0]
	return p.object.min <= p.object.max
}

// simplify drops alternatives that contradict and choices that hold already, and takes those with one alternative left.
func (c *compiler) simplify(p *partial) bool {
	kept := p.ors[:0:0]
	for _, or := range p.ors {
		var left [][]task
		holds := false
		for _, alternative := range or {
			switch c.judge(p, alternative) {
			case yes:
				holds = true
			case maybe:
				left = append(left, alternative)
			}
		}
		switch {
		case holds:
		case len(left) == 0:
			return false
		case len(left) == 1:
			p.todo = append(p.todo, left[0]...)
		default:
			kept = append(kept, left)
		}
	}
	p.ors = kept
	return true
}

// A verdict says whether statements hold.
type verdict int

const (
	no verdict = iota
	maybe
	yes
)

// judge tells whether an alternative holds already or contradicts, as far as it is easily seen.
func (c *compiler) judge(p *partial, tasks []task) verdict {
	all := yes
	for _, t := range tasks {
		v := maybe
		switch t.act {
		case aLiteral:
			v = c.judgeLiteral(p, t)
		case aHas, aMember:
			v = c.judgeMember(p, t)
		case aMin:
			v = c.judgeCount(p, t.n, document.Unlimited)
		case aMax:
			v = c.judgeCount(p, 0, t.n)
		}
		all = min(all, v)
	}
	return all
}

func (c *compiler) judgeCount(p *partial, least, most int) verdict {
	lo, hi := 0, 0
	if p.object != nil {
		lo, hi = p.object.min, p.object.max
	} else {
		lo, hi = p.array.min, p.array.max
	}
	switch {
	case lo >= least && hi <= most:
		return yes
	case hi < least || lo > most:
		return no
	}
	return maybe
}

func (c *compiler) judgeLiteral(p *partial, t task) verdict {
	s := c.of(t.lit)
	out := s.Never || s.Types&sides[p.side] == 0
	if s.Listed && !out {
		out = !slices.ContainsFunc(s.Values, func(v *document.Value) bool { return v.Kind == sideKind[p.side] })
	}
	switch {
	case out && t.lit.denied():
		return yes
	case out:
		return no
	case t.scope == 0 && (p.done[t] || c.trivial(s) && !t.lit.denied()):
		return yes
	case p.done[task{lit: t.lit ^ 1}]:
		return no
	}
	return maybe
}

func (c *compiler) judgeMember(p *partial, t task) verdict {
	i, there := p.at[t.name]
	if !there {
		return maybe
	}
	if t.act == aHas {
		switch {
		case p.need[i]:
			return yes
		case c.impossible(c.conj(p.forms[i]...)):
			return no
		}
		return maybe
	}
	switch {
	case c.impossible(c.conj(append(slices.Clone(p.forms[i]), t.lit^1)...)):
		return yes
	case p.need[i] && c.impossible(c.conj(append(slices.Clone(p.forms[i]), t.lit)...)):
		return no
	}
	return maybe
}

// unscope turns the unevaluated keywords into rules, when all choices are made. It reports whether there is more to do.
func (c *compiler) unscope(p *partial) bool {
	for i := len(p.scopes) - 1; i > 0; i-- {
		s := p.scopes[i]
		p.scopes = p.scopes[:i]
		if s.all {
			continue
		}
		if p.object != nil {
			k := s.keys
			k.neg = true
			p.todo = append(p.todo, task{act: aForAll, keys: &k, lit: holds(s.owner.Object.Unevaluated)})
			return true
		}
		to := s.owner.Array.Unevaluated
		if len(s.marked) > 0 {
			rest := to
			to = c.doc.Make(s.owner.At, func(m *document.Schema) { m.Any = append(slices.Clone(s.marked), rest) })
		}
		p.todo = append(p.todo, task{act: aItems, n: s.upTo, lit: holds(to)})
		return true
	}
	return false
}
