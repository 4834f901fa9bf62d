package jinja

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"grove/text/jinja/value"
)

// filters by name; init fills it because some filters apply others.
var filters map[string]value.Method

func init() {
	filters = map[string]value.Method{
		"abs": filterAbs, "attr": filterAttr, "capitalize": value.TextMethod("capitalize"), "count": filterLength,
		"d": filterDefault, "default": filterDefault, "dictsort": filterDictsort, "e": filterEscape, "escape": filterEscape,
		"first": filterFirst, "float": filterFloat, "format": filterFormat, "indent": filterIndent, "int": filterInt,
		"items": filterItems, "join": filterJoin, "last": filterLast, "length": filterLength, "list": filterList,
		"lower": value.TextMethod("lower"), "map": filterMap, "max": filterMax, "min": filterMin,
		"reject": chooser(false, false), "rejectattr": chooser(false, true), "replace": value.TextMethod("replace"),
		"reverse": filterReverse, "round": filterRound, "safe": filterString, "select": chooser(true, false),
		"selectattr": chooser(true, true), "sort": filterSort, "string": filterString, "sum": filterSum,
		"title": value.TextMethod("title"), "tojson": func(s *value.Steps, v value.Value, a value.Args) value.Value { return s.JSON(v, a) }, "trim": value.TextMethod("strip"),
		"unique": filterUnique, "upper": value.TextMethod("upper"),
	}
}

// applyFilter filters a value by a filter's name.
func applyFilter(s *value.Steps, name string, v value.Value, a value.Args) value.Value {
	f, ok := filters[name]
	if !ok {
		s.Fail("filter %.40q is not supported", name)
	}
	s.Spend(1)
	return f(s, v, a)
}

func filterAbs(s *value.Steps, v value.Value, a value.Args) value.Value {
	a.Bind(s, "abs")
	if i, ok := value.Integer(v); ok {
		return max(i, -i)
	}
	f, ok := value.Number(v)
	if !ok {
		s.Fail("abs of %s", value.TypeName(v))
	}
	return math.Abs(f)
}

func filterAttr(s *value.Steps, v value.Value, a value.Args) value.Value {
	name := s.TextArg("attr", a.Bind(s, "attr", "name")[0], "")
	return s.Attribute(v, s.Plain(name))
}

func filterDefault(s *value.Steps, v value.Value, a value.Args) value.Value {
	b := a.Bind(s, "default", "default_value", "boolean")
	_, missing := v.(value.Undefined)
	if missing || b[1] != value.Absent && value.Truth(b[1]) && !value.Truth(v) {
		return value.Given(b[0], value.Text(nil))
	}
	return v
}

func filterDictsort(s *value.Steps, v value.Value, a value.Args) value.Value {
	b := a.Bind(s, "dictsort", "case_sensitive", "by", "reverse")
	pairs := slices.Clone(s.Items(value.Items(s, v, value.Args{})))
	at := 0
	if s.Plain(s.TextArg("dictsort", b[1], "key")) == "value" {
		at = 1
	}
	s.Sort(pairs, value.Truth(value.Given(b[0], false)), value.Truth(value.Given(b[2], false)), func(v value.Value) value.Value { return v.(*value.List).Items[at] })
	return &value.List{Items: pairs}
}

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

func filterEscape(s *value.Steps, v value.Value, a value.Args) value.Value {
	a.Bind(s, "escape")
	var out value.Text
	for _, r := range s.Str(v) {
		s.Spend(1)
		out = append(out, value.Text(escapes.Replace(string(r)))...)
	}
	return out
}

func filterFirst(s *value.Steps, v value.Value, a value.Args) value.Value {
	a.Bind(s, "first")
	if items := s.Items(v); len(items) > 0 {
		return items[0]
	}
	return value.Undefined{What: "the first of nothing"}
}

func filterLast(s *value.Steps, v value.Value, a value.Args) value.Value {
	a.Bind(s, "last")
	if items := s.Items(v); len(items) > 0 {
		return items[len(items)-1]
	}
	return value.Undefined{What: "the last of nothing"}
}

func filterFloat(s *value.Steps, v value.Value, a value.Args) value.Value {
	b := a.Bind(s, "float", "default")
	if f, ok := value.Number(v); ok {
		return f
	}
	if t, ok := v.(value.Text); ok {
		if f, err := strconv.ParseFloat(strings.TrimSpace(s.Plain(t)), 64); err == nil {
			return f
		}
	}
	return value.Given(b[0], 0.0)
}

func filterInt(s *value.Steps, v value.Value, a value.Args) value.Value {
	b := a.Bind(s, "int", "default", "base")
	base := s.IntArg("int", b[1], 10)
	if i, ok := value.Integer(v); ok {
		return i
	}
	if t, ok := v.(value.Text); ok && 2 <= base && base <= 36 {
		text := strings.TrimSpace(s.Plain(t))
		if i, err := strconv.ParseInt(text, int(base), 64); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			v = f
		}
	}
	if f, ok := v.(float64); ok && math.Abs(f) < 1<<62 {
		return int64(f)
	}
	return value.Given(b[0], int64(0))
}

func filterFormat(s *value.Steps, v value.Value, a value.Args) value.Value {
	if len(a.Names) > 0 {
		s.Fail("format takes no named arguments")
	}
	return s.Format(s.Str(v), &value.List{Items: a.Pos, Tuple: true})
}

func filterIndent(s *value.Steps, v value.Value, a value.Args) value.Value {
	b := a.Bind(s, "indent", "width", "first", "blank")
	by := value.Text(nil)
	if t, ok := b[0].(value.Text); ok {
		by = t
	} else {
		n := s.IntArg("indent", b[0], 4)
		by = s.RepeatText(value.Text(" "), n)
	}
	first, blank := value.Truth(value.Given(b[1], false)), value.Truth(value.Given(b[2], false))
	var out value.Text
	lines := value.SplitLines(s.Str(v))
	for i, l := range lines {
		if i > 0 {
			out = append(out, '\n')
		}
		if (i > 0 || first) && (blank || len(l) > 0) {
			out = s.Extend(out, by)
		}
		out = s.Extend(out, l)
	}
	return out
}

func filterItems(s *value.Steps, v value.Value, a value.Args) value.Value {
	if _, ok := v.(value.Undefined); ok {
		return &value.List{}
	}
	return value.Items(s, v, a)
}

func filterJoin(s *value.Steps, v value.Value, a value.Args) value.Value {
	b := a.Bind(s, "join", "d", "attribute")
	items := s.Items(v)
	if b[1] != value.Absent {
		items = project(s, items, b[1], value.Absent)
	}
	return s.Join(s.Str(value.Given(b[0], value.Text(nil))), items)
}

// project returns an attribute of each item, as path does.
func project(s *value.Steps, items []value.Value, attribute, otherwise value.Value) []value.Value {
	out := make([]value.Value, len(items))
	for i, v := range items {
		out[i] = path(s, v, attribute, otherwise)
	}
	return out
}

// path returns an attribute of a value, or a path of them with dots between. What is not there is otherwise,
// unless that is absent.
func path(s *value.Steps, v, attribute, otherwise value.Value) value.Value {
	name, ok := attribute.(value.Text)
	if !ok {
		return s.Index(v, attribute)
	}
	for part := range strings.SplitSeq(s.Plain(name), ".") {
		var at value.Value = value.Text(part)
		if n, err := strconv.ParseInt(part, 10, 64); err == nil {
			at = n
		}
		v = s.Index(v, at)
		if isA[value.Undefined](v) {
			v = value.Given(otherwise, v)
		}
	}
	return v
}

func filterLength(s *value.Steps, v value.Value, a value.Args) value.Value {
	a.Bind(s, "length")
	switch v := v.(type) {
	case value.Undefined:
		return int64(0)
	case value.Text:
		return int64(len(v))
	case *value.List:
		return int64(len(v.Items))
	case *value.Map:
		return int64(v.Len())
	}
	s.Fail("%s has no length", value.TypeName(v))
	return nil
}

func filterList(s *value.Steps, v value.Value, a value.Args) value.Value {
	a.Bind(s, "list")
	return &value.List{Items: s.Items(v)}
}

// itemsIf returns the items of a value, and none of one that counts as false.
func itemsIf(s *value.Steps, v value.Value) []value.Value {
	if !value.Truth(v) {
		return nil
	}
	return s.Items(v)
}

func filterMap(s *value.Steps, v value.Value, a value.Args) value.Value {
	items := itemsIf(s, v)
	if attribute, ok := a.Take("attribute"); ok {
		b := a.Bind(s, "map", "default")
		return &value.List{Items: project(s, items, attribute, b[0])}
	}
	if len(a.Pos) == 0 {
		s.Fail("map needs a filter or an attribute")
	}
	name := s.Plain(s.TextArg("map", a.Pos[0], ""))
	a.Pos = a.Pos[1:]
	out := make([]value.Value, len(items))
	for i, x := range items {
		out[i] = applyFilter(s, name, x, a)
	}
	return &value.List{Items: out}
}

// chooser makes select and reject, of items or of attributes of them.
func chooser(keep, byAttribute bool) value.Method {
	return func(s *value.Steps, v value.Value, a value.Args) value.Value {
		of := func(x value.Value) value.Value { return x }
		if byAttribute {
			if len(a.Pos) == 0 {
				s.Fail("selectattr and rejectattr need an attribute")
			}
			attribute := a.Pos[0]
			a.Pos = a.Pos[1:]
			of = func(x value.Value) value.Value { return path(s, x, attribute, value.Absent) }
		}
		holds := value.Truth
		if len(a.Pos) > 0 {
			name, more := s.Plain(s.TextArg("select", a.Pos[0], "")), value.Args{Pos: a.Pos[1:]}
			holds = func(x value.Value) bool { return applyTest(s, name, x, more) }
		}
		var out []value.Value
		for _, x := range itemsIf(s, v) {
			s.Spend(1)
			if holds(of(x)) == keep {
				out = append(out, x)
			}
		}
		return &value.List{Items: out}
	}
}

func filterMax(s *value.Steps, v value.Value, a value.Args) value.Value {
	return extreme(s, "max", 1, v, a)
}
func filterMin(s *value.Steps, v value.Value, a value.Args) value.Value {
	return extreme(s, "min", -1, v, a)
}

func extreme(s *value.Steps, what string, sign int, v value.Value, a value.Args) value.Value {
	b := a.Bind(s, what, "case_sensitive", "attribute")
	items := slices.Clone(s.Items(v))
	if len(items) == 0 {
		return value.Undefined{What: "the " + what + " of nothing"}
	}
	key := func(v value.Value) value.Value { return v }
	if b[1] != value.Absent {
		key = func(v value.Value) value.Value { return path(s, v, b[1], value.Absent) }
	}
	s.Sort(items, value.Truth(value.Given(b[0], false)), sign > 0, key)
	return items[0]
}

func filterReverse(s *value.Steps, v value.Value, a value.Args) value.Value {
	a.Bind(s, "reverse")
	if t, ok := v.(value.Text); ok {
		s.Copied(len(t))
		t = slices.Clone(t)
		slices.Reverse(t)
		return t
	}
	items := slices.Clone(s.Items(v))
	slices.Reverse(items)
	return &value.List{Items: items}
}

func filterRound(s *value.Steps, v value.Value, a value.Args) value.Value {
	b := a.Bind(s, "round", "precision", "value.Method")
	f, ok := value.Number(v)
	if !ok {
		s.Fail("round of %s", value.TypeName(v))
	}
	scale := math.Pow(10, float64(s.IntArg("round", b[0], 0)))
	round := map[string]func(float64) float64{
		"common": math.RoundToEven, "ceil": math.Ceil, "floor": math.Floor,
	}[s.Plain(s.TextArg("round", b[1], "common"))]
	if round == nil {
		s.Fail("round takes common, ceil or floor")
	}
	return round(f*scale) / scale
}

func filterSort(s *value.Steps, v value.Value, a value.Args) value.Value {
	b := a.Bind(s, "sort", "reverse", "case_sensitive", "attribute")
	items := slices.Clone(s.Items(v))
	key := func(v value.Value) value.Value { return v }
	if b[2] != value.Absent && b[2] != nil {
		key = func(v value.Value) value.Value { return path(s, v, b[2], value.Absent) }
	}
	s.Sort(items, value.Truth(value.Given(b[1], false)), value.Truth(value.Given(b[0], false)), key)
	return &value.List{Items: items}
}

func filterString(s *value.Steps, v value.Value, a value.Args) value.Value {
	a.Bind(s, "string")
	return s.Str(v)
}

func filterSum(s *value.Steps, v value.Value, a value.Args) value.Value {
	b := a.Bind(s, "sum", "attribute", "start")
	items := s.Items(v)
	if b[0] != value.Absent && b[0] != nil {
		items = project(s, items, b[0], value.Absent)
	}
	total := value.Given(b[1], int64(0))
	for _, x := range items {
		total = s.Binary("+", total, x)
	}
	return total
}

func filterUnique(s *value.Steps, v value.Value, a value.Args) value.Value {
	b := a.Bind(s, "unique", "case_sensitive", "attribute")
	seen := &value.Map{}
	var out []value.Value
	for _, x := range s.Items(v) {
		key := x
		if b[1] != value.Absent {
			key = path(s, x, b[1], value.Absent)
		}
		if !value.Truth(value.Given(b[0], false)) {
			key = s.Fold(key)
		}
		n := seen.Len()
		if s.Put(seen, key, nil); seen.Len() > n {
			out = append(out, x)
		}
	}
	return &value.List{Items: out}
}
