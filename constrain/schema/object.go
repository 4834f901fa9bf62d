package schema

import (
	"maps"
	"math/bits"
	"slices"

	"grove/constrain/regex"
	"grove/constrain/schema/document"
)

// maxObligations is how many members of unknown name an object may owe at once.
const maxObligations = 6

// maxClass is how many names a language may have to be written as names one by one.
const maxClass = 32

// A rule is about the members with names in a set.
type rule struct {
	keys *keyset
	lits []literal
}

// An object is one alternative for objects: a conjunction of statements without choices.
type object struct {
	names    []string // all that the statements name
	at       map[string]int
	forms    [][]literal // what the member of the name satisfies
	need     []bool      // the name must be there
	declared []bool      // the name is one of properties
	all      []rule      // members with names in the set satisfy the literals
	some     []rule      // one of them does
	min, max int

	// The rest is of finished objects.
	id      int32
	members []*formula
	marks   []uint32 // which of some the name can satisfy
	classes []class
}

// A class is a set of names that are not given one by one; their members satisfy the same formula.
type class struct {
	lang  regex.ID // decoded names
	lits  []literal
	f     *formula
	marks uint32
}

func (o *object) clone() *object {
	d := *o
	d.names, d.need, d.declared = slices.Clone(o.names), slices.Clone(o.need), slices.Clone(o.declared)
	d.at, d.all, d.some = maps.Clone(o.at), slices.Clip(o.all), slices.Clip(o.some)
	d.forms = make([][]literal, len(o.forms))
	for i, l := range o.forms {
		d.forms[i] = slices.Clip(l)
	}
	return &d
}

// name returns the place of a name.
func (o *object) name(s string) int {
	i, ok := o.at[s]
	if !ok {
		i = len(o.names)
		o.at[s] = i
		o.names, o.forms = append(o.names, s), append(o.forms, nil)
		o.need, o.declared = append(o.need, false), append(o.declared, false)
	}
	return i
}

// mention gives places to the names of a set.
func (o *object) mention(k *keyset) {
	var missing []string
	for n := range k.names {
		if _, ok := o.at[n]; !ok {
			missing = append(missing, n)
		}
	}
	slices.Sort(missing)
	for _, n := range missing {
		o.name(n)
	}
}

// finishObject orders the names and divides all other names into classes.
func (c *compiler) finishObject(o *object) *object {
	o = o.clone()
	c.divide(o)
	rank := func(i int) int {
		switch {
		case o.declared[i]:
			return 0
		case o.need[i]:
			return 1
		}
		return 2
	}
	order := make([]int, len(o.names))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return rank(i) - rank(j) })
	d := *o
	d.names, d.forms, d.need, d.declared, d.at = nil, nil, nil, nil, nil
	for _, i := range order {
		name, lits, marks := o.names[i], o.forms[i], uint32(0)
		for _, r := range o.all {
			if c.inKeys(r.keys, name) {
				lits = append(lits, r.lits...)
			}
		}
		for k, r := range o.some {
			if c.inKeys(r.keys, name) {
				marks |= 1 << k
			}
		}
		d.names, d.forms, d.need = append(d.names, name), append(d.forms, lits), append(d.need, o.need[i])
		d.marks = append(d.marks, marks)
	}
	d.members = make([]*formula, len(d.names))
	d.id = int32(len(c.objects))
	c.objects = append(c.objects, &d)
	return &d
}

// divide makes the classes. Sets with few names become names of their own.
func (c *compiler) divide(o *object) {
	rest := []class{{lang: c.lang.All.Text}}
	split := func(k *keyset, in func(x *class)) {
		lang := regex.Nothing
		for _, l := range k.langs {
			lang = c.lang.Or(lang, l)
		}
		var next []class
		for _, x := range rest {
			both, other := c.lang.And(x.lang, lang), c.lang.Without(x.lang, lang)
			if k.neg {
				both, other = other, both
			}
			if other != regex.Nothing && !c.r.IsEmpty(other) {
				y := x
				y.lang, y.lits = other, slices.Clip(x.lits)
				next = append(next, y)
			}
			if both != regex.Nothing && !c.r.IsEmpty(both) {
				x.lang = both
				in(&x)
				next = append(next, x)
			}
		}
		if rest = next; len(rest) > c.o.Limits.Alternatives {
			c.doc.Fail(document.ErrBudget, c.doc.Root, "patterns divide the names into more than %d classes", c.o.Limits.Alternatives)
			rest = nil
		}
	}
	for _, r := range o.all {
		split(r.keys, func(x *class) { x.lits = append(slices.Clip(x.lits), r.lits...) })
	}
	for i, r := range o.some {
		split(r.keys, func(x *class) { x.marks |= 1 << i })
	}
	named := regex.Nothing
	if len(o.names) > 0 {
		literals := make([]regex.ID, len(o.names))
		for i, n := range o.names {
			literals[i] = c.r.Literal(n)
		}
		named = c.r.Or(literals...)
	}
	for _, x := range rest {
		if x.f = c.conj(x.lits...); x.f.never {
			continue
		}
		if x.lang != c.lang.All.Text {
			if few, finite := c.r.Strings(x.lang, maxClass); finite {
				for _, n := range few {
					o.name(n)
				}
				continue
			}
		}
		if x.lang = c.lang.Without(x.lang, named); !c.r.IsEmpty(x.lang) {
			o.classes = append(o.classes, x)
		}
	}
}

// memberOf returns what the member of a name satisfies.
func (c *compiler) memberOf(o *object, i int) *formula {
	if o.members[i] == nil {
		o.members[i] = c.conj(o.forms[i]...)
	}
	return o.members[i]
}

// owing returns what a member satisfies that meets some of the obligations too.
func (c *compiler) owing(o *object, f *formula, met uint32) *formula {
	if met == 0 {
		return f
	}
	lits := slices.Clone(f.lits)
	for i, r := range o.some {
		if met>>i&1 != 0 {
			lits = append(lits, r.lits...)
		}
	}
	if f.never {
		return f
	}
	return c.conj(lits...)
}

// A stock counts what an object may still get.
type stock struct {
	required, optional int
	extras             bool // names of classes
}

// left counts the names that are not used.
func (c *compiler) left(o *object, used func(i int) bool) (s stock) {
	for i := range o.names {
		switch {
		case used(i):
		case o.need[i]:
			s.required++
		case c.sat(c.memberOf(o, i)):
			s.optional++
		}
	}
	for _, k := range o.classes {
		s.extras = s.extras || c.sat(k.f)
	}
	return s
}

// enough reports whether an object with n members can be completed.
func (o *object) enough(n int, s stock, cost int) bool {
	return n+s.required+cost <= o.max && (s.extras || n+s.required+s.optional >= o.min)
}

// cost returns how many members that are not required the obligations still need; more than document.Unlimited: they cannot be met.
func (c *compiler) cost(o *object, unmet uint32, used func(i int) bool) int {
	if unmet == 0 {
		return 0
	}
	const never = document.Unlimited + 1
	best := make([]int, 1<<len(o.some)) // by what is met
	for i := range best {
		best[i] = never
	}
	best[0] = 0
	offer := func(f *formula, marks uint32, price int) {
		old := slices.Clone(best)
		for met := marks; met > 0; met = (met - 1) & marks {
			if c.sat(c.owing(o, f, met)) {
				for m, n := range old {
					best[uint32(m)|met] = min(best[uint32(m)|met], n+price)
				}
			}
		}
	}
	for i := range o.names {
		if marks := o.marks[i] & unmet; marks != 0 && !used(i) {
			price := 1
			if o.need[i] {
				price = 0
			}
			offer(c.memberOf(o, i), marks, price)
		}
	}
	for _, k := range o.classes {
		for range bits.OnesCount32(k.marks & unmet) {
			offer(k.f, k.marks&unmet, 1)
		}
	}
	return min(best[unmet], never)
}

// objectSat reports whether some object satisfies the statements.
func (c *compiler) objectSat(o *object) bool {
	needs := 0
	for i := range o.names {
		if o.need[i] {
			if needs++; !c.sat(c.memberOf(o, i)) {
				return false
			}
		}
	}
	if needs > o.max || o.min > o.max {
		return false
	}
	if o.min <= needs && len(o.some) == 0 {
		return true
	}
	unused := func(int) bool { return false }
	return o.enough(0, c.left(o, unused), c.cost(o, 1<<len(o.some)-1, unused))
}
