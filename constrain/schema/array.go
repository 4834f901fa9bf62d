package schema

import (
	"slices"

	"grove/constrain/regex"
	"grove/constrain/schema/document"
)

// maxTally is the highest number of elements that contains may ask for or allow.
const maxTally = 4096

// maxHead bounds the elements that are described one by one.
const maxHead = 1 << 16

// An array is one alternative for arrays: a conjunction of statements without choices.
type array struct {
	head     [][]literal // what the first elements satisfy
	tail     []tail
	some     []tally
	min, max int
	unique   bool

	// The rest is of finished arrays.
	id    int32
	items []*formula
	ends  map[arrayState]bool
}

// A tail is a statement about all elements from an index on.
type tail struct {
	from int
	lit  literal
}

// A tally says how many elements, from an index on, satisfy a literal.
type tally struct {
	from, min, max int
	lit            literal
}

// An arrayState is how far an array has come: the number of elements, and those that the tallies count.
type arrayState struct {
	n      int32
	counts string // a rune for each tally
}

func (a *array) clone() *array {
	b := *a
	b.head = slices.Clone(a.head)
	for i, l := range b.head {
		b.head[i] = slices.Clip(l)
	}
	b.tail, b.some = slices.Clip(a.tail), slices.Clip(a.some)
	return &b
}

// item adds a statement about the element at an index.
func (a *array) item(i int, l literal) {
	for len(a.head) <= i {
		a.head = append(a.head, nil)
	}
	a.head[i] = append(a.head[i], l)
}

// places returns how many kinds of index there are: the last stands for all that follow.
func (a *array) places() int {
	n := len(a.head)
	for _, t := range a.tail {
		n = max(n, t.from)
	}
	for _, t := range a.some {
		n = max(n, t.from)
	}
	return n + 1
}

// finishArray completes an alternative.
func (c *compiler) finishArray(a *array) *array {
	a = a.clone()
	if len(a.some) > 3 {
		c.doc.Fail(document.ErrUnsupported, c.doc.Schemas[a.some[0].lit>>1].At, "more than 3 counts of elements (contains, or denied items) at once")
	}
	a.items = make([]*formula, a.places())
	a.ends = map[arrayState]bool{}
	a.id = int32(len(c.arrays))
	c.arrays = append(c.arrays, a)
	return a
}

// itemOf returns what the element at an index satisfies.
func (c *compiler) itemOf(a *array, i int) *formula {
	i = min(i, len(a.items)-1)
	if a.items[i] == nil {
		var lits []literal
		if i < len(a.head) {
			lits = slices.Clone(a.head[i])
		}
		for _, t := range a.tail {
			if t.from <= i {
				lits = append(lits, t.lit)
			}
		}
		a.items[i] = c.conj(lits...)
	}
	return a.items[i]
}

// A choiceOf is a way to write an element: what it satisfies, and the counts behind it.
type choiceOf struct {
	f      *formula
	counts string
	more   bool // some count rose
}

// itemChoices returns the ways to write the element at an index. Without counts, all are returned.
func (c *compiler) itemChoices(a *array, i int, counts []rune) []choiceOf {
	base := c.itemOf(a, i)
	if len(a.some) == 0 {
		return []choiceOf{{f: base}}
	}
	all := []choiceOf{{f: base, counts: string(counts)}}
	for k, t := range a.some {
		if t.from > i {
			continue
		}
		var next []choiceOf
		for _, x := range all {
			n, out := 0, []rune(x.counts)
			if counts != nil {
				n = int(out[k])
			}
			counted := x
			counted.f, counted.more = c.with(x.f, t.lit), true
			if counts != nil && (n < t.min || t.max < document.Unlimited) {
				out[k]++
				counted.counts = string(out)
			}
			switch {
			case t.max < document.Unlimited:
				if x.f = c.with(x.f, t.lit^1); n < t.max {
					next = append(next, counted)
				}
				next = append(next, x)
			case n < t.min:
				next = append(next, counted, x)
			default:
				next = append(next, x)
			}
		}
		all = next
	}
	return all
}

func (c *compiler) with(f *formula, l literal) *formula {
	if f.never {
		return f
	}
	return c.conj(append(slices.Clone(f.lits), l)...)
}

// final reports whether an array may end there.
func (a *array) final(s arrayState) bool {
	if int(s.n) < a.min {
		return false
	}
	for k, n := range []rune(s.counts) {
		if int(n) < a.some[k].min {
			return false
		}
	}
	return true
}

// begin returns the state of the array without elements.
func (a *array) begin() arrayState { return arrayState{counts: string(make([]rune, len(a.some)))} }

// add returns the state behind one more element. The number of elements stays where it makes no difference any longer.
func (a *array) add(s arrayState, counts string) arrayState {
	s.counts = counts
	if a.max < document.Unlimited || int(s.n) < max(a.min, len(a.items)-1) {
		s.n++
	}
	return s
}

// ending reports whether an array can be completed from a state on. known holds answers.
func (c *compiler) ending(a *array, s arrayState, known map[arrayState]bool) bool {
	if len(a.some) == 0 {
		return c.endingPlain(a, int(s.n))
	}
	if a.final(s) {
		return true
	}
	if int(s.n) >= a.max || c.doc.Err != nil {
		return false
	}
	if end, ok := known[s]; ok {
		return end
	}
	c.step(c.itemOf(a, int(s.n)))
	known[s] = false
	end, steady := false, int(s.n) >= max(a.min, len(a.items)-1)
	for _, x := range c.itemChoices(a, int(s.n), []rune(s.counts)) {
		if (x.more || !steady) && c.sat(x.f) && c.ending(a, a.add(s, x.counts), known) {
			end = true
			break
		}
	}
	known[s] = end
	return end
}

// endingPlain is ending without tallies.
func (c *compiler) endingPlain(a *array, n int) bool {
	if a.min > a.max {
		return false
	}
	for i := n; i < a.min && i < len(a.items); i++ {
		if !c.sat(c.itemOf(a, i)) {
			return false
		}
	}
	return a.min <= n || c.sat(c.itemOf(a, a.min-1))
}

// arraySat reports whether some array satisfies the statements.
func (c *compiler) arraySat(a *array) bool {
	return c.ending(a, a.begin(), map[arrayState]bool{}) && (!a.unique || c.spread(a, 0, nil))
}

// checkArray refuses what is not exact.
func (c *compiler) checkArray(f *formula, a *array) {
	if len(a.head) > maxHead || len(a.items) > maxHead {
		c.doc.Fail(document.ErrBudget, f.at, "more than %d elements are described one by one", maxHead)
		return
	}
	if !a.unique || a.max <= 1 {
		return
	}
	for i := range a.items {
		g := c.itemOf(a, i)
		if !c.sat(g) {
			if i <= 1 {
				return // one element at most: it equals no other
			}
			break
		}
		if c.sideSat(g, 0) || c.sideSat(g, 1) {
			c.doc.Fail(document.ErrUnsupported, f.at, "uniqueItems with elements that may be arrays or objects")
			return
		}
		if _, finite := c.distinct(g); finite && len(a.some) > 0 {
			c.doc.Fail(document.ErrUnsupported, f.at, "uniqueItems and contains with few different elements")
			return
		}
	}
}

// maxDistinct is how many different values are told apart before they count as endless. A list of unique elements that must
// have more elements than that out of finitely many is refused.
const maxDistinct = 1000

// distinct returns the different scalar values of a formula, by their keys, where there are few. They are not to be changed.
func (c *compiler) distinct(f *formula) (keys []string, finite bool) {
	if f.keys == nil {
		keys, finite := c.countDistinct(f)
		if c.r.Err() != nil {
			return nil, false
		}
		f.keys = &distinctKeys{keys, finite}
	}
	return f.keys.all, f.keys.finite
}

// distinctKeys is what distinct has found.
type distinctKeys struct {
	all    []string
	finite bool
}

// countDistinct finds what distinct returns.
func (c *compiler) countDistinct(f *formula) (keys []string, finite bool) {
	s := c.scalarsOf(f)
	for _, w := range []struct {
		there bool
		key   string
	}{{s.Null, "n"}, {s.True, "t"}, {s.False, "f"}} {
		if w.there {
			keys = append(keys, w.key)
		}
	}
	texts, finite := c.r.Strings(s.Text, maxDistinct)
	if !finite {
		return nil, false
	}
	numbers, finite := c.r.Strings(c.lang.And(s.Number, c.plainNumbers()), maxDistinct)
	if !finite {
		return nil, false
	}
	for _, t := range texts {
		keys = append(keys, `"`+t)
	}
	for _, t := range numbers {
		keys = append(keys, "0"+document.Canonical(t))
	}
	return keys, true
}

// spread reports whether elements from an index up to the minimum can be different from each other and from those seen.
func (c *compiler) spread(a *array, from int, seen map[string]bool) bool {
	if from >= len(a.items)-1 && from < a.min {
		return c.spreadAlike(c.itemOf(a, from), a.min-from, seen)
	}
	owner := map[string]int{} // which index has a value: a matching, grown by augmenting paths
	lists := map[int][]string{}
	var place func(i int, tried map[string]bool) bool
	place = func(i int, tried map[string]bool) bool {
		for _, k := range lists[i] { // first one that is free, which ends the path
			if _, taken := owner[k]; !taken && !seen[k] {
				owner[k] = i
				return true
			}
		}
		for _, k := range lists[i] {
			if tried[k] || seen[k] {
				continue
			}
			tried[k] = true
			if j, taken := owner[k]; !taken || place(j, tried) {
				owner[k] = i
				return true
			}
		}
		return false
	}
	for i := from; i < a.min; i++ {
		g := c.itemOf(a, i)
		keys, finite := c.distinct(g)
		if !finite {
			if i >= len(a.items)-1 {
				return true // and so are all that follow
			}
			continue
		}
		if c.sideSat(g, 0) || c.sideSat(g, 1) {
			continue
		}
		if lists[i] = keys; !c.step(g) || !place(i, map[string]bool{}) {
			return false
		}
	}
	return true
}

// spreadAlike is spread for n elements of one formula: they need as many values that were not seen.
func (c *compiler) spreadAlike(f *formula, n int, seen map[string]bool) bool {
	keys, finite := c.distinct(f)
	if !finite || c.sideSat(f, 0) || c.sideSat(f, 1) {
		return true
	}
	if !c.step(f) {
		return false
	}
	for _, k := range keys {
		if !seen[k] {
			n--
		}
	}
	return n <= 0
}

// plainNumbers returns the numbers in their shortest decimal notation.
func (c *compiler) plainNumbers() regex.ID {
	if c.plain == regex.Nothing {
		r := c.r
		digits := func(lo, hi rune) regex.ID { return r.Runes(regex.Range{Lo: lo, Hi: hi}) }
		whole := r.Or(r.Literal("0"), r.Concat(digits('1', '9'), r.Repeat(digits('0', '9'), 0, -1)))
		part := r.Concat(r.Literal("."), r.Repeat(digits('0', '9'), 0, -1), digits('1', '9'))
		all := r.Concat(r.Repeat(r.Literal("-"), 0, 1), whole, r.Repeat(part, 0, 1))
		c.plain = r.And(all, r.Not(r.Literal("-0")))
	}
	return c.plain
}
