package regex

import (
	"slices"
)

// pureRepeat is a repetition that looks at nothing itself, before a rest that asks about the character before it: the
// repetition is split by its last character.
func (c *compiler) pureRepeat(n *patternNode, f follow) follow {
	id := c.alone(n)
	var ways []ID
	if f.same(1) {
		some := id
		if c.s.Nullable(id) {
			some = c.s.And(id, c.s.Not(Epsilon))
		}
		ways = append(ways, c.s.Concat(some, f[1]))
	} else {
		for i, cell := range c.cells {
			last := c.s.And(id, c.s.Concat(c.text, c.runes(cell)))
			ways = append(ways, c.s.Concat(last, f[1+i]))
		}
	}
	some := c.s.Or(ways...)
	return f.each(func(_ int, rest ID) ID {
		if c.s.Nullable(id) {
			return c.s.Or(some, rest)
		}
		return some
	})
}

// repeat is a repetition whose body looks around.
func (c *compiler) repeat(n *patternNode, f follow) follow {
	body := n.subs[0]
	if body.empty() { // once is as good as often
		once := c.language(body, f)
		if n.min == 0 {
			return c.or(f, once)
		}
		return once
	}
	if c.copies += max(n.min, n.max); c.copies > maxCopies {
		return c.refuse(n.at, "an assertion in a repetition of more than %d times is not supported", maxCopies)
	}
	switch {
	case n.max < 0:
		f = c.star(n, f)
	default:
		rest := f
		for range n.max - n.min {
			f = c.or(rest, c.language(body, f))
		}
	}
	for range n.min {
		f = c.language(body, f)
	}
	return f
}

// star repeats a body that looks around without a bound. The language is the least one with x = f | body x: alternatives
// of the body that look at nothing are taken out by x = pure* (f | rest x), and the equation is applied until nothing
// changes, which it does where the assertions hold at most once in the text. Otherwise it is refused.
func (c *compiler) star(n *patternNode, f follow) follow {
	if f.same(0) && f[0] == c.text { // no repetition at all is as good
		return f
	}
	body := n.subs[0]
	if out, ok := c.tempered(body, f); ok {
		return out
	}
	plain, rest := body.split()
	loop := nothing(n.at)
	if plain != nil {
		loop = patternRepeat(plain, 0, -1, n.at)
	}
	x := c.language(loop, f)
	for range 4 {
		if c.copies++; c.copies > maxCopies {
			break
		}
		next := c.language(loop, c.or(f, c.language(rest, x)))
		if next.equal(x) || c.err != nil {
			return x
		}
		x = next
	}
	return c.refuse(n.at, "this assertion in a repetition without a bound is not supported")
}

// split divides the ways to match a node into those that look at nothing and the others; nil is none.
func (n *patternNode) split() (plain, rest *patternNode) {
	switch {
	case n.pure:
		return n, nil
	case n.op == opAlt:
		var pure, other []*patternNode
		for _, sub := range n.subs {
			p, r := sub.split()
			if p != nil {
				pure = append(pure, p)
			}
			if r != nil {
				other = append(other, r)
			}
		}
		if len(pure) > 0 {
			plain = group(opAlt, pure, n.at)
		}
		return plain, group(opAlt, other, n.at)
	case n.op == opCat:
		at := slices.IndexFunc(n.subs, func(sub *patternNode) bool { return !sub.pure })
		for _, sub := range n.subs[at+1:] {
			if !sub.pure {
				return nil, n
			}
		}
		with := func(sub *patternNode) *patternNode {
			if sub == nil {
				return nil
			}
			subs := slices.Clone(n.subs)
			subs[at] = sub
			return group(opCat, subs, n.at)
		}
		p, r := n.subs[at].split()
		return with(p), with(r)
	}
	return nil, n
}

// tempered is the repetition (?:(?!look)character)* at the end of the text: its texts are the characters' without a
// place where look holds. ok is false for other repetitions.
func (c *compiler) tempered(body *patternNode, f follow) (out follow, ok bool) {
	if body.op != opCat || len(body.subs) != 2 || body.subs[0].op != opLook || body.subs[1].op != opSet || !f.same(0) || f[0] != Epsilon {
		return nil, false
	}
	look := c.language(body.subs[0].subs[0], c.all(c.text))
	if !look.same(0) {
		return nil, false
	}
	bad := look[0]
	if !body.subs[0].negated {
		bad = c.s.Not(bad)
	}
	some := c.s.Repeat(c.s.AnyRune(), 1, -1)
	bad = c.s.Concat(c.text, c.s.And(bad, some))
	return c.all(c.s.And(c.s.Repeat(c.runes(body.subs[1].set), 0, -1), c.s.Not(bad))), true
}
