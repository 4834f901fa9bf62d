package jinja

import (
	"slices"
	"strings"
)

// reversed is the filter reverse: of a text, or of the items of a value.
func reversed(s *state, v Value, _ []Value) Value {
	if t, ok := v.(Text); ok {
		s.copied(len(t))
		out := slices.Clone(t)
		slices.Reverse(out)
		return out
	}
	out := slices.Clone(s.items(v))
	slices.Reverse(out)
	return &List{Items: out, once: true}
}

// filterSum adds the items of a value, or an attribute of each, to a number.
func filterSum(s *state, v Value, a []Value) Value {
	items := s.items(v)
	if a[0] != nil {
		items = s.project(items, a[0])
	}
	sum := a[1]
	for _, x := range items {
		s.spend(1)
		sum = s.binary("+", sum, x)
	}
	return sum
}

// extreme makes the filters min and max.
func extreme(sign int) operation {
	return op(func(s *state, v Value, a []Value) Value {
		var best Value = undefined{"an element of an empty list"}
		var key Value
		for i, x := range s.items(v) {
			k := x
			if a[1] != nil {
				k = s.path(x, a[1])
			}
			if !a[0].(bool) {
				k = s.folded(k)
			}
			if i == 0 || sign*s.compare(k, key) > 0 {
				best, key = x, k
			}
		}
		return best
	}, "case_sensitive", false, "attribute", nil)
}

// filterBatch returns lists of so many items; the last one is filled up.
func filterBatch(s *state, v Value, a []Value) Value {
	n := a[0].(int64)
	if n <= 0 {
		s.fail("batch: %d items; it needs 1 or more", n)
	}
	out := &List{once: true}
	for part := range slices.Chunk(s.items(v), int(min(n, 1<<30))) {
		s.copied(12 * len(part))
		out.Items = append(out.Items, s.filled(slices.Clone(part), n, a[1]))
	}
	return out
}

// filled returns a list with an item added up to a length, unless the item is None.
func (s *state) filled(items []Value, n int64, with Value) *List {
	if missing := n - int64(len(items)); with != nil && missing > 0 {
		s.spend(int(min(missing, int64(s.left)+1)))
		items = append(items, slices.Repeat([]Value{with}, int(missing))...)
	}
	return &List{Items: items}
}

// filterSlice returns so many lists with the items of a value, as equal in length as can be.
func filterSlice(s *state, v Value, a []Value) Value {
	items, n := s.items(v), a[0].(int64)
	if n <= 0 {
		s.fail("slice: %d lists; it needs 1 or more", n)
	}
	s.spend(int(min(n, int64(s.left)+1)))
	s.copied(12 * len(items))
	each, longer := int64(len(items))/n, int64(len(items))%n
	out := &List{once: true}
	for i, at := int64(0), int64(0); i < n; i++ {
		to := at + each
		if i < longer {
			to++
		}
		part := &List{Items: slices.Clone(items[at:to])}
		if a[1] != nil && i >= longer {
			part.Items = append(part.Items, a[1])
		}
		out.Items, at = append(out.Items, part), to
	}
	return out
}

// filterCenter puts spaces on both sides of a text.
func filterCenter(s *state, v Value, a []Value) Value {
	t := s.str(v)
	missing, width := a[0].(int64)-int64(len(t)), a[0].(int64)
	if missing <= 0 {
		return t
	}
	left := missing/2 + missing&width&1 // as Python does
	return slices.Concat(s.repeat(Text(" "), left), t, s.repeat(Text(" "), missing-left))
}

// filterAttr returns an attribute, and no entry of a dict.
func filterAttr(s *state, v Value, a []Value) Value {
	if m, ok := v.(*Map); ok && dictMethods[a[0].(Text).String()] == nil {
		return undefined{"an attribute of " + typeName(m)}
	}
	return s.attribute(v, a[0].(Text).String())
}

// textRsplit splits a text at separators, at most so many times, from its end on.
func textRsplit(s *state, v Value, a []Value) Value {
	parts := textSplit(s, v, []Value{a[0], int64(-1)}).(*List).Items
	n := a[1].(int64)
	if n < 0 || int64(len(parts)) <= n+1 {
		return &List{Items: parts}
	}
	if a[0] == nil {
		s.fail("rsplit: maxsplit without a separator: not supported; give a separator")
	}
	k := len(parts) - int(n)
	return &List{Items: append([]Value{s.join(a[0].(Text), parts[:k])}, parts[k:]...)}
}

// textSplitlines splits a text at the ends of lines.
func textSplitlines(s *state, v Value, a []Value) Value {
	t, out := v.(Text), &List{}
	s.copied(4 * len(t))
	for from, i := 0, 0; i < len(t) || from < len(t); i++ {
		if i < len(t) && !strings.ContainsRune("\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029", t[i]&point) {
			continue
		}
		to, next := i, i+1
		if i+1 < len(t) && t[i]&point == '\r' && t[i+1]&point == '\n' {
			next++
		}
		next = min(next, len(t))
		if a[0].(bool) {
			to = next
		}
		s.copied(12)
		out.Items = append(out.Items, t[from:to:to])
		from, i = next, next-1
	}
	return out
}

// finder makes find and rfind: the index of a text, -1 where there is none.
func finder(index func(s, sub string) int) operation {
	return op(func(s *state, v Value, a []Value) Value {
		t := Text(sliceOf(s, v.(Text), a[1], a[2], false))
		s.copied(2 * (len(t) + len(a[0].(Text))))
		plain := t.String()
		at := index(plain, a[0].(Text).String())
		if at < 0 {
			return int64(-1)
		}
		from, _ := integer(a[1])
		if n := int64(len(v.(Text))); from < 0 {
			from = max(0, from+n)
		}
		return from + int64(len([]rune(plain[:at])))
	}, "sub", needed{Text(nil)}, "start", nil, "end", nil)
}

// affixCut makes removeprefix and removesuffix.
func affixCut(end bool) operation {
	return op(func(s *state, v Value, a []Value) Value {
		t, x := v.(Text), a[0].(Text)
		s.copied(len(t) + len(x))
		switch {
		case !end && t.hasAt(0, x):
			return t[len(x):]
		case end && t.hasAt(len(t)-len(x), x):
			return t[: len(t)-len(x) : len(t)-len(x)]
		}
		return t
	}, "affix", needed{Text(nil)})
}

// textJoin is sep.join(items), of texts alone.
func textJoin(s *state, v Value, a []Value) Value {
	items := s.items(a[0])
	for _, x := range items {
		if !isA[Text](x) {
			s.fail("join: an item is of type %s; it needs str", typeName(x))
		}
	}
	return s.join(v.(Text), items)
}

// textCount counts the places of a text.
func textCount(s *state, v Value, a []Value) Value {
	t, x := v.(Text), a[0].(Text)
	s.copied(2 * (len(t) + len(x)))
	return int64(strings.Count(t.String(), x.String()))
}
