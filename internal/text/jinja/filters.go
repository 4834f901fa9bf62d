package jinja

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The operations of templates by name. init fills them, because some filters apply others.
var filters, tests, textMethods, dictMethods map[string]operation

func init() {
	list := op(func(s *state, v Value, _ []Value) Value { return &List{Items: s.items(v)} })
	textMethods = map[string]operation{
		"strip": stripper(true, true), "lstrip": stripper(true, false), "rstrip": stripper(false, true),
		"startswith": affixed(false), "endswith": affixed(true),
		"upper":      mapper(func(r, _ rune) rune { return unicode.ToUpper(r) }),
		"lower":      mapper(func(r, _ rune) rune { return unicode.ToLower(r) }),
		"capitalize": mapper(titled("")),
		"split":      op(textSplit, "sep", nil, "maxsplit", int64(-1)),
		"rsplit":     op(textRsplit, "sep", nil, "maxsplit", int64(-1)),
		"splitlines": op(textSplitlines, "keepends", false),
		"find":       finder(strings.Index), "rfind": finder(strings.LastIndex),
		"format": textFormat,
		"join":   op(textJoin, "iterable", needed{}),
		"count":  op(textCount, "sub", needed{Text(nil)}),
		"title": mapper(func(r, before rune) rune {
			if unicode.IsLetter(before) {
				return unicode.ToLower(r)
			}
			return unicode.ToTitle(r)
		}),
		"removeprefix": affixCut(false), "removesuffix": affixCut(true),
		"isdigit": op(func(_ *state, v Value, _ []Value) Value {
			return len(v.(Text)) > 0 && !slices.ContainsFunc(v.(Text), func(r rune) bool { return !unicode.IsDigit(r & point) })
		}),
		"replace": op(textReplace, "old", needed{Text(nil)}, "new", needed{Text(nil)}, "count", int64(-1)),
	}
	dictMethods = map[string]operation{
		"get":   op(dictGet, "key", needed{}, "default", nil),
		"items": op(dictItems), "keys": list,
		"values": op(func(s *state, v Value, _ []Value) Value {
			s.copied(12 * v.(*Map).Len())
			return &List{Items: v.(*Map).values}
		}),
	}
	filters = map[string]operation{
		"capitalize": ofText(textMethods["capitalize"]), "lower": ofText(textMethods["lower"]), "replace": ofText(textMethods["replace"]), "title": ofText(mapper(titled("-({[<"))),
		"trim": ofText(textMethods["strip"]), "upper": ofText(textMethods["upper"]),
		"default":  op(filterDefault, "default_value", needed{}, "boolean", false),
		"dictsort": op(filterDictsort),
		"first":    op(func(s *state, v Value, _ []Value) Value { return end(s.items(v), true) }),
		"length":   op(length),
		"last":     op(func(s *state, v Value, _ []Value) Value { length(s, v, nil); return end(s.items(v), false) }),
		"format":   filterFormat,
		"indent":   op(filterIndent, "width", int64(4), "first", false),
		"int":      op(filterInt, "default", int64(0)),
		"items":    op(filterItems),
		"join":     op(filterJoin, "d", Text(nil), "attribute", nil),
		"list":     list,
		"map":      filterMap,
		"reject":   chooser(false, false), "rejectattr": chooser(false, true),
		"select": chooser(true, false), "selectattr": chooser(true, true),
		"safe": op(toText), "string": op(toText),
		"sort":   op(filterSort, "reverse", false, "case_sensitive", false, "attribute", nil),
		"tojson": op(toJSON, "indent", nil, "ensure_ascii", false, "separators", nil),
		"unique": op(filterUnique),
		"abs":    op(filterAbs), "float": op(filterFloat, "default", 0.0), "round": op(filterRound, "precision", int64(0), "method", Text("common")),
		"attr": op(filterAttr, "name", needed{Text(nil)}), "center": op(filterCenter, "width", int64(80)),
		"batch": op(filterBatch, "linecount", needed{int64(0)}, "fill_with", nil), "slice": op(filterSlice, "slices", needed{int64(0)}, "fill_with", nil),
		"min": extreme(-1), "max": extreme(1), "sum": op(filterSum, "attribute", nil, "start", int64(0)), "reverse": op(reversed),
	}
	filters["d"], filters["count"] = filters["default"], filters["length"]
	tests = map[string]operation{
		"defined":   is(func(v Value) bool { return !isA[undefined](v) }),
		"undefined": is(isA[undefined]),
		"none":      is(func(v Value) bool { return v == nil }),
		"true":      is(func(v Value) bool { b, ok := v.(bool); return ok && b }),
		"false":     is(func(v Value) bool { b, ok := v.(bool); return ok && !b }),
		"boolean":   is(isA[bool]),
		"integer":   is(isA[int64]),
		"float":     is(isA[float64]),
		"number":    is(func(v Value) bool { _, ok := number(v); return ok }),
		"string":    is(isA[Text]),
		"mapping":   is(isA[*Map]),
		"sequence":  is(func(v Value) bool { l, ok := v.(*List); return isIterable(v) && !(ok && l.once) }),
		"iterable":  is(isIterable),
		"eq":        comparison("=="), "equalto": comparison("=="), "==": comparison("=="),
		"ne": comparison("!="), "!=": comparison("!="),
		"in": comparison("in"),
		"lt": comparison("<"), "lessthan": comparison("<"), "le": comparison("<="), "gt": comparison(">"), "greaterthan": comparison(">"), "ge": comparison(">="),
		"odd":         whole(func(i int64) bool { return i%2 != 0 }),
		"even":        whole(func(i int64) bool { return i%2 == 0 }),
		"divisibleby": op(func(s *state, v Value, a []Value) Value { return s.binary("%", v, a[0]) == Value(int64(0)) }, "num", needed{int64(0)}),
		"lower":       is(func(v Value) bool { return cased(v, unicode.IsUpper, unicode.IsLower) }),
		"upper":       is(func(v Value) bool { return cased(v, unicode.IsLower, unicode.IsUpper) }),
	}
}

// apply applies an operation of a table by its name.
func (s *state) apply(table map[string]operation, kind, name string, v Value, a args) Value {
	do, ok := table[name]
	if !ok {
		s.fail("%s %.40q: not supported; use one of %s", kind, name, strings.Join(slices.Sorted(maps.Keys(table)), ", "))
	}
	s.spend(1)
	a.of = name
	return do(s, v, a)
}

func (s *state) filter(name string, v Value, a args) Value {
	return s.apply(filters, "filter", name, v, a)
}

func (s *state) test(name string, v Value, a args) bool {
	return s.apply(tests, "test", name, v, a).(bool)
}

// ofText makes a filter of an operation on strings. The filter takes any value as its text.
//
//go:noinline
func ofText(do operation) operation {
	return func(s *state, v Value, a args) Value { return do(s, s.str(v), a) }
}

// is makes a test without arguments.
//
//go:noinline
func is(holds func(Value) bool) operation {
	return op(func(_ *state, v Value, _ []Value) Value { return holds(v) })
}

// comparison makes a test that compares with its argument.
//
//go:noinline
func comparison(operator string) operation {
	return op(func(s *state, v Value, a []Value) Value { return s.holds(operator, v, a[0]) }, "other", needed{})
}

func isIterable(v Value) bool {
	return isA[Text](v) || isA[*List](v) || isA[*Map](v) || isA[undefined](v)
}

func dictGet(s *state, v Value, a []Value) Value {
	if x, ok := s.get(v.(*Map), a[0]); ok {
		return x
	}
	return a[1]
}

// dictItems returns the entries of a dict as tuples.
func dictItems(s *state, v Value, _ []Value) Value {
	m, ok := v.(*Map)
	if !ok {
		s.fail("items of %s: it needs a dict", typeName(v))
	}
	s.copied(24 * m.Len())
	out := make([]Value, m.Len())
	for i, k := range m.keys {
		out[i] = &List{Items: []Value{k, m.values[i]}, Tuple: true}
	}
	return &List{Items: out}
}

func filterItems(s *state, v Value, _ []Value) Value {
	if isA[undefined](v) {
		return &List{}
	}
	return dictItems(s, v, nil)
}

func filterDefault(_ *state, v Value, a []Value) Value {
	if isA[undefined](v) || a[1].(bool) && !truth(v) {
		return a[0]
	}
	return v
}

func filterDictsort(s *state, v Value, _ []Value) Value {
	pairs := dictItems(s, v, nil).(*List)
	s.sort(pairs.Items, false, false, func(v Value) Value { return v.(*List).Items[0] })
	return pairs
}

// end returns the first or the last item.
func end(items []Value, first bool) Value {
	switch {
	case len(items) == 0:
		return undefined{"an element of an empty list"}
	case first:
		return items[0]
	}
	return items[len(items)-1]
}

// filterFormat replaces each place of a text that begins with % by an argument.
func filterFormat(s *state, v Value, a args) Value {
	if len(a.names) > 0 && len(a.pos) > 0 {
		s.fail("format: arguments with and without a name; give one kind")
	}
	if len(a.names) > 0 {
		m := &Map{}
		for i, name := range a.names {
			s.put(m, Text(name), a.named[i])
		}
		return s.formatted(s.str(v), m)
	}
	return s.formatted(s.str(v), &List{Items: a.pos, Tuple: true})
}

// whole makes a test of an int.
//
//go:noinline
func whole(holds func(i int64) bool) operation {
	return op(func(s *state, v Value, _ []Value) Value {
		i, ok := integer(v)
		if !ok {
			s.fail("odd and even: %s; they need int", typeName(v))
		}
		return holds(i)
	})
}

// cased reports whether a text has a letter of the wanted case, and none of the other.
func cased(v Value, other, wanted func(rune) bool) bool {
	t, ok := v.(Text)
	return ok && slices.ContainsFunc(t, func(r rune) bool { return wanted(r & point) }) && !slices.ContainsFunc(t, func(r rune) bool { return other(r & point) })
}

// filterIndent puts spaces before each line that is not empty, and before the first one only if asked to.
func filterIndent(s *state, v Value, a []Value) Value {
	by := s.repeat(Text(" "), a[0].(int64))
	lines := s.cut(s.str(v), Text("\n"), -1)
	for i, l := range lines {
		if l := l.(Text); i == 0 && a[1].(bool) || i > 0 && len(l) > 0 {
			lines[i] = s.extend(s.extend(nil, by), l)
		}
	}
	return s.join(Text("\n"), lines)
}

func filterInt(s *state, v Value, a []Value) Value {
	if i, ok := integer(v); ok {
		return i
	}
	if t, ok := v.(Text); ok {
		s.copied(len(t))
		text := strings.TrimSpace(t.String())
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			v = f
		}
	}
	if f, ok := v.(float64); ok && -1<<62 < f && f < 1<<62 {
		return int64(f)
	}
	return a[0]
}

func filterJoin(s *state, v Value, a []Value) Value {
	items := s.items(v)
	if a[1] != nil {
		items = s.project(items, a[1])
	}
	return s.join(a[0].(Text), items)
}

func length(s *state, v Value, _ []Value) Value {
	switch v := v.(type) {
	case undefined:
		return int64(0)
	case Text:
		return int64(len(v))
	case *List:
		if !v.once {
			return int64(len(v.Items))
		}
	case *Map:
		return int64(v.Len())
	}
	s.fail("length of %s: it needs a str, list, tuple or dict", typeName(v))
	return nil
}

func toText(s *state, v Value, _ []Value) Value { return s.str(v) }

// path returns an attribute of a value, or a path of attributes with dots between.
func (s *state) path(v, attribute Value) Value {
	name := s.argument("attribute", "name", attribute, needed{Text(nil)}).(Text)
	s.copied(len(name))
	for part := range strings.SplitSeq(name.String(), ".") {
		v = s.index(v, Text(part))
	}
	return v
}

// project returns an attribute of each item.
func (s *state) project(items []Value, attribute Value) []Value {
	out := make([]Value, len(items))
	for i, v := range items {
		out[i] = s.path(v, attribute)
	}
	return out
}

// shift removes the first argument, which must be a string, and returns it.
func (s *state) shift(a *args, what string) Text {
	var first Value = absent{}
	if len(a.pos) > 0 {
		first, a.pos = a.pos[0], a.pos[1:]
	}
	return s.argument(a.of, what, first, needed{Text(nil)}).(Text)
}

// itemsIf returns the items of a value, and none of a value that is false.
func (s *state) itemsIf(v Value) []Value {
	if !truth(v) {
		return nil
	}
	return s.items(v)
}

// filterMap applies a filter to each item, or returns an attribute of each.
func filterMap(s *state, v Value, a args) Value {
	items := s.itemsIf(v)
	if attribute, ok := a.take("attribute"); ok {
		a.bind(s, nil)
		return &List{Items: s.project(items, attribute), once: true}
	}
	name := s.shift(&a, "filter").String()
	out := make([]Value, len(items))
	for i, x := range items {
		out[i] = s.filter(name, x, a)
	}
	return &List{Items: out, once: true}
}

// chooser makes select and reject, which test items, or selectattr and rejectattr, which test an attribute of each.
func chooser(keep, byAttribute bool) operation {
	return func(s *state, v Value, a args) Value {
		of := func(x Value) Value { return x }
		if byAttribute {
			attribute := s.shift(&a, "attribute")
			of = func(x Value) Value { return s.path(x, attribute) }
		}
		holds := truth
		if len(a.pos) > 0 {
			name := s.shift(&a, "test").String()
			holds = func(x Value) bool { return s.test(name, x, a) }
		}
		var out []Value
		for _, x := range s.itemsIf(v) {
			s.spend(1)
			if holds(of(x)) == keep {
				out = append(out, x)
			}
		}
		return &List{Items: out, once: true}
	}
}

func filterSort(s *state, v Value, a []Value) Value {
	items := slices.Clone(s.items(v))
	by := func(v Value) Value { return v }
	if a[2] != nil {
		by = func(v Value) Value { return s.path(v, a[2]) }
	}
	s.sort(items, a[1].(bool), a[0].(bool), by)
	return &List{Items: items}
}

// sort sorts values by a key, in which case counts if sensitive is set. Equal values keep their order.
func (s *state) sort(items []Value, sensitive, reverse bool, by func(Value) Value) {
	slices.SortStableFunc(items, func(a, b Value) int {
		a, b = by(a), by(b)
		if !sensitive {
			a, b = s.folded(a), s.folded(b)
		}
		if reverse {
			a, b = b, a
		}
		return s.compare(a, b)
	})
}

// folded returns a string in lower case, and other values as they are.
func (s *state) folded(v Value) Value {
	if t, ok := v.(Text); ok {
		s.copied(len(t))
		return t.mapped(unicode.ToLower)
	}
	return v
}

// filterUnique returns the first of all items that are equal; case does not count.
func filterUnique(s *state, v Value, _ []Value) Value {
	seen, out := &Map{}, &List{}
	for _, x := range s.items(v) {
		n := seen.Len()
		if s.put(seen, s.folded(x), nil); seen.Len() > n {
			out.Items = append(out.Items, x)
		}
	}
	return out
}
