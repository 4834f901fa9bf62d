package value

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Format is the operator % of strings, with the conversions s, d and f.
func (s *Steps) Format(t Text, v Value) Text {
	values := []Value{v}
	if l, ok := v.(*List); ok && l.Tuple {
		values = l.Items
	}
	var out Text
	for i := 0; i < len(t); i++ {
		s.Spend(1)
		if t[i]&^marked != '%' {
			out = append(out, t[i])
			continue
		}
		from := i
		for i++; i < len(t) && strings.ContainsRune("0123456789.", t[i]&^marked) && i-from < 8; i++ {
		}
		if i == len(t) {
			s.Fail("a format ends within a conversion")
		}
		verb := t[i] &^ marked
		if verb == '%' {
			out = append(out, t[i])
			continue
		}
		if len(values) == 0 {
			s.Fail("a format has too few values")
		}
		out = s.Extend(out, s.conversion(t[from:i].String(), verb, values[0]))
		values = values[1:]
	}
	if _, isTuple := v.(*List); isTuple && len(values) > 0 {
		s.Fail("a format has too many values")
	}
	return out
}

func (s *Steps) conversion(flags string, verb rune, v Value) Text {
	f, isNumber := Number(v)
	switch {
	case verb == 's' && flags == "%":
		return s.Str(v)
	case verb == 'd' && isNumber && len(flags) <= 3 && !strings.Contains(flags, "."):
		return Text(fmt.Sprintf(flags+"d", int64(f)))
	case verb == 'f' && isNumber && len(flags) <= 4:
		return Text(fmt.Sprintf(flags+"f", f))
	}
	s.Fail("the format %s%c of %s is not supported", flags, verb, TypeName(v))
	return nil
}

// RepeatText is Repeat of text.
func (s *Steps) RepeatText(t Text, n int64) Text {
	v, _ := s.Repeat(t, n)
	return v.(Text)
}

// SplitLines cuts at line feeds.
func SplitLines(t Text) []Text {
	var out []Text
	for {
		i := slices.IndexFunc(t, func(r rune) bool { return r&^marked == '\n' })
		if i < 0 {
			return append(out, t)
		}
		out = append(out, t[:i:i])
		t = t[i+1:]
	}
}

func dictItems(s *Steps, v Value, a Args) Value {
	a.Bind(s, "items")
	m, ok := v.(*Map)
	if !ok {
		s.Fail("items of %s", TypeName(v))
	}
	s.Copied(24 * m.Len())
	out := make([]Value, m.Len())
	for i, k := range m.keys {
		out[i] = &List{[]Value{k, m.values[i]}, true}
	}
	return &List{Items: out}
}

// Join is sep.join(items) of Python, with any values as their texts.
func (s *Steps) Join(sep Text, items []Value) Text {
	var out Text
	for i, v := range items {
		if i > 0 {
			out = s.Extend(out, sep)
		}
		out = s.Extend(out, s.Str(v))
	}
	return out
}

// Sort sorts values by a key; case counts where sensitive is set.
func (s *Steps) Sort(items []Value, sensitive, reverse bool, key func(Value) Value) {
	fold := func(v Value) Value {
		v = key(v)
		if t, ok := v.(Text); ok && !sensitive {
			return mapText(s, t, unicode.ToLower)
		}
		return v
	}
	slices.SortStableFunc(items, func(a, b Value) int {
		c := s.Compare(fold(a), fold(b))
		if reverse {
			return -c
		}
		return c
	})
}
