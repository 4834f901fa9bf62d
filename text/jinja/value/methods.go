package value

import (
	"slices"
	"unicode"
)

// Method is a method of an object or a filter of templates: of a value, with arguments.
type Method = func(s *Steps, v Value, a Args) Value

// dictMethods, listMethods and textMethods are what Python's objects have, as far as they change nothing.
var dictMethods = map[string]Method{
	"items": dictItems, "keys": dictKeys, "values": dictValues, "get": dictGet,
}

var listMethods = map[string]Method{"index": listIndex, "count": listCount}

var textMethods = map[string]Method{
	"strip": stripper(true, true), "lstrip": stripper(true, false), "rstrip": stripper(false, true),
	"split": splitter(false), "rsplit": splitter(true), "splitlines": textSplitlines,
	"startswith": affixed(false), "endswith": affixed(true),
	"removeprefix": remover(false), "removesuffix": remover(true),
	"upper": mapper(unicode.ToUpper), "lower": mapper(unicode.ToLower), "title": textTitle, "capitalize": textCapitalize,
	"replace": textReplace, "find": finder(false), "rfind": finder(true), "index": textIndex, "count": textCount, "join": textJoin,
	"isdigit": every(unicode.IsDigit), "isalpha": every(unicode.IsLetter), "isspace": every(IsSpace),
	"isalnum": every(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }),
	"isupper": cased(unicode.IsUpper, unicode.IsLower), "islower": cased(unicode.IsLower, unicode.IsUpper),
}

func dictKeys(s *Steps, v Value, a Args) Value {
	a.Bind(s, "keys")
	return &List{Items: s.Items(v)}
}

func dictValues(s *Steps, v Value, a Args) Value {
	a.Bind(s, "values")
	m := v.(*Map)
	s.Copied(m.Len())
	return &List{Items: m.values}
}

func dictGet(s *Steps, v Value, a Args) Value {
	b := a.Bind(s, "get", "key", "default")
	if b[0] == Absent {
		s.Fail("get needs a key")
	}
	if x, ok := s.Get(v.(*Map), b[0]); ok {
		return x
	}
	return Given(b[1], nil)
}

func listIndex(s *Steps, v Value, a Args) Value {
	x := a.Bind(s, "index", "value")[0]
	i := slices.IndexFunc(v.(*List).Items, func(y Value) bool { return s.Equal(x, y) })
	if i < 0 {
		s.Fail("index of a value that is not in the list")
	}
	return int64(i)
}

func listCount(s *Steps, v Value, a Args) Value {
	x := a.Bind(s, "count", "value")[0]
	n := int64(0)
	for _, y := range v.(*List).Items {
		if s.Equal(x, y) {
			n++
		}
	}
	return n
}

// stripper makes strip, lstrip and rstrip: white space, or any of the characters given.
func stripper(left, right bool) Method {
	return func(s *Steps, v Value, a Args) Value {
		t := v.(Text)
		chosen := a.Bind(s, "strip", "chars")[0]
		off := IsSpace
		if chosen != Absent && chosen != nil {
			set := map[rune]bool{}
			for _, r := range s.Plain(s.TextArg("strip", chosen, "")) {
				set[r] = true
			}
			off = func(r rune) bool { return set[r] }
		}
		from, to := 0, len(t)
		for left && from < to && off(t[from]&^marked) {
			from++
		}
		for right && from < to && off(t[to-1]&^marked) {
			to--
		}
		s.Copied(len(t) - (to - from))
		return t[from:to:to]
	}
}

// splitter makes split and rsplit: at a separator, or at stretches of white space.
func splitter(fromRight bool) Method {
	return func(s *Steps, v Value, a Args) Value {
		b := a.Bind(s, "split", "sep", "maxsplit")
		t, most := v.(Text), s.IntArg("split", b[1], -1)
		if most < 0 {
			most = int64(len(t)) + 1
		}
		if fromRight {
			t = reversed(t)
		}
		s.Copied(4 * len(t))
		var parts []Text
		if b[0] == Absent || b[0] == nil {
			parts = fields(t, most)
		} else {
			sep := s.TextArg("split", b[0], "")
			if len(sep) == 0 {
				s.Fail("split by nothing")
			}
			if fromRight {
				sep = reversed(sep)
			}
			parts = s.split(t, sep, most)
		}
		out := make([]Value, len(parts))
		for i, p := range parts {
			if fromRight {
				out[len(parts)-1-i] = reversed(p)
			} else {
				out[i] = p
			}
		}
		s.Copied(24 * len(out))
		return &List{Items: out}
	}
}

func reversed(t Text) Text {
	t = slices.Clone(t)
	slices.Reverse(t)
	return t
}

func (s *Steps) split(t, sep Text, most int64) (parts []Text) {
	for ; most > 0; most-- {
		i := s.find(t, sep, 0)
		if i < 0 {
			break
		}
		parts = append(parts, t[:i:i])
		t = t[i+len(sep):]
	}
	return append(parts, t)
}

func fields(t Text, most int64) (parts []Text) {
	space := func(r rune) bool { return IsSpace(r &^ marked) }
	for {
		from := slices.IndexFunc(t, func(r rune) bool { return !space(r) })
		if from < 0 {
			return parts
		}
		t = t[from:]
		to := slices.IndexFunc(t, space)
		if to < 0 || int64(len(parts)) == most {
			return append(parts, t)
		}
		parts = append(parts, t[:to:to])
		t = t[to:]
	}
}

func textSplitlines(s *Steps, v Value, a Args) Value {
	a.Bind(s, "splitlines")
	t := v.(Text)
	s.Copied(4 * len(t))
	if len(t) == 0 {
		return &List{}
	}
	lines := SplitLines(t)
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	out := make([]Value, len(lines))
	for i, l := range lines {
		out[i] = l
	}
	return &List{Items: out}
}

// affixed makes startswith and endswith, of a string or of any of a tuple.
func affixed(end bool) Method {
	return func(s *Steps, v Value, a Args) Value {
		t, affix := v.(Text), a.Bind(s, "startswith", "prefix")[0]
		affixes := []Value{affix}
		if l, ok := affix.(*List); ok && l.Tuple {
			affixes = l.Items
		}
		for _, x := range affixes {
			x, ok := x.(Text)
			if !ok {
				s.Fail("startswith and endswith need a str")
			}
			s.Copied(len(x))
			if !end && t.hasAt(0, x) || end && t.hasAt(len(t)-len(x), x) {
				return true
			}
		}
		return false
	}
}

func remover(end bool) Method {
	return func(s *Steps, v Value, a Args) Value {
		t, affix := v.(Text), s.TextArg("removeprefix", a.Bind(s, "removeprefix", "affix")[0], "")
		s.Copied(len(affix))
		switch {
		case end && t.hasAt(len(t)-len(affix), affix):
			return t[:len(t)-len(affix)]
		case !end && t.hasAt(0, affix):
			return t[len(affix):]
		}
		return t
	}
}

// TextMethod returns a method of strings as a filter, which takes any value as its text.
func TextMethod(name string) Method {
	m := textMethods[name]
	return func(s *Steps, v Value, a Args) Value { return m(s, s.Str(v), a) }
}

// Items returns the entries of a dictionary, as tuples.
func Items(s *Steps, v Value, a Args) Value { return dictItems(s, v, a) }

// Fold returns text in lower case, and other values as they are.
func (s *Steps) Fold(v Value) Value {
	if t, ok := v.(Text); ok {
		return mapText(s, t, unicode.ToLower)
	}
	return v
}

// mapText changes every character and keeps the marks.
func mapText(s *Steps, t Text, f func(rune) rune) Text {
	s.Copied(len(t))
	out := make(Text, len(t))
	for i, r := range t {
		out[i] = f(r&^marked) | r&marked
	}
	return out
}

func mapper(f func(rune) rune) Method {
	return func(s *Steps, v Value, a Args) Value {
		a.Bind(s, "upper")
		return mapText(s, v.(Text), f)
	}
}

func textTitle(s *Steps, v Value, a Args) Value {
	a.Bind(s, "title")
	within := false
	return mapText(s, v.(Text), func(r rune) rune {
		up := !within
		within = unicode.IsLetter(r)
		if up {
			return unicode.ToTitle(r)
		}
		return unicode.ToLower(r)
	})
}

func textCapitalize(s *Steps, v Value, a Args) Value {
	a.Bind(s, "capitalize")
	first := true
	return mapText(s, v.(Text), func(r rune) rune {
		if first {
			first = false
			return unicode.ToTitle(r)
		}
		return unicode.ToLower(r)
	})
}

func textReplace(s *Steps, v Value, a Args) Value {
	b := a.Bind(s, "replace", "old", "new", "count")
	t, old := v.(Text), s.TextArg("replace", b[0], "")
	by, most := s.TextArg("replace", b[1], ""), s.IntArg("replace", b[2], -1)
	if most < 0 {
		most = int64(len(t)) + 1
	}
	if len(old) > 0 {
		parts := s.split(t, old, most)
		items := make([]Value, len(parts))
		for i, p := range parts {
			items[i] = p
		}
		return s.Join(by, items)
	}
	var out Text // by goes before each character and behind the last
	for i, r := range t {
		if int64(i) < most {
			out = s.Extend(out, by)
		}
		out = append(out, r)
	}
	if int64(len(t)) < most {
		out = s.Extend(out, by)
	}
	return out
}

func finder(last bool) Method {
	return func(s *Steps, v Value, a Args) Value {
		t, sub := v.(Text), s.TextArg("find", a.Bind(s, "find", "sub")[0], "")
		if !last {
			return int64(s.find(t, sub, 0))
		}
		i := s.find(reversed(t), reversed(sub), 0)
		s.Copied(len(t) + len(sub))
		if i < 0 {
			return int64(-1)
		}
		return int64(len(t) - i - len(sub))
	}
}

func textIndex(s *Steps, v Value, a Args) Value {
	i := finder(false)(s, v, a).(int64)
	if i < 0 {
		s.Fail("index of a substring that is not there")
	}
	return i
}

func textCount(s *Steps, v Value, a Args) Value {
	t, sub := v.(Text), s.TextArg("count", a.Bind(s, "count", "sub")[0], "")
	if len(sub) == 0 {
		return int64(len(t) + 1)
	}
	return int64(len(s.split(t, sub, int64(len(t))+1)) - 1)
}

func textJoin(s *Steps, v Value, a Args) Value {
	b := a.Bind(s, "join", "iterable")[0]
	if b == Absent {
		s.Fail("join needs strings")
	}
	items := s.Items(b)
	for _, x := range items {
		if _, ok := x.(Text); !ok {
			s.Fail("join of %s", TypeName(x))
		}
	}
	return s.Join(v.(Text), items)
}

func every(is func(rune) bool) Method {
	return func(s *Steps, v Value, a Args) Value {
		a.Bind(s, "isdigit")
		t := v.(Text)
		s.Copied(len(t))
		return len(t) > 0 && !slices.ContainsFunc(t, func(r rune) bool { return !is(r &^ marked) })
	}
}

// cased tells whether letters of a case are there and none of the other.
func cased(is, other func(rune) bool) Method {
	return func(s *Steps, v Value, a Args) Value {
		a.Bind(s, "isupper")
		t := v.(Text)
		s.Copied(len(t))
		return slices.ContainsFunc(t, func(r rune) bool { return is(r &^ marked) }) &&
			!slices.ContainsFunc(t, func(r rune) bool { return other(r &^ marked) })
	}
}

// IsSpace tells what Python strips.
func IsSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }
