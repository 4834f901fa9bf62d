package jinja

import (
	"slices"
	"strings"
	"unicode"
)

// Text is a string, as code points. Characters from outside the template carry a mark. Text(s) is text of the template,
// [Input] of s is text from outside.
type Text []rune

// marked is set in a code point that came from outside the template.
const marked = 1 << 30

// Input returns s as text from outside the template. Bytes that are not UTF-8 become U+FFFD.
func Input(s string) Text {
	t := Text(s)
	for i := range t {
		t[i] |= marked
	}
	return t
}

// String returns the text without its marks.
func (t Text) String() string {
	var b strings.Builder
	b.Grow(len(t))
	for _, r := range t {
		b.WriteRune(r &^ marked)
	}
	return b.String()
}

// Span is a range of bytes of a string: From to To-1.
type Span struct{ From, To int }

// Inputs returns the spans of t.String() that came from outside the template, in order.
func (t Text) Inputs() []Span {
	var spans []Span
	at := 0
	for i, r := range t {
		next := at + len(string(r&^marked))
		if r&marked != 0 {
			if i > 0 && t[i-1]&marked != 0 {
				spans[len(spans)-1].To = next
			} else {
				spans = append(spans, Span{at, next})
			}
		}
		at = next
	}
	return spans
}

// hasAt reports whether sub stands at index i.
func (t Text) hasAt(i int, sub Text) bool {
	if i < 0 || i+len(sub) > len(t) {
		return false
	}
	for k, r := range sub {
		if (t[i+k]^r)&^marked != 0 {
			return false
		}
	}
	return true
}

// mapped changes every character and keeps the marks.
func (t Text) mapped(f func(rune) rune) Text {
	out := make(Text, len(t))
	for i, r := range t {
		out[i] = f(r&^marked) | r&marked
	}
	return out
}

// escaped returns t between two quotes. Each character that escape does not return "" for is replaced by its escape, which
// keeps the mark.
func (t Text) escaped(q rune, escape func(rune) string) Text {
	out := append(make(Text, 0, len(t)+2), q)
	for _, r := range t {
		e := escape(r &^ marked)
		if e == "" {
			out = append(out, r)
		}
		for _, c := range e {
			out = append(out, c|r&marked)
		}
	}
	return append(out, q)
}

// find returns the first index at which sub stands in t, or -1.
func (s *state) find(t, sub Text) int {
	compared := 0
	defer func() { s.copied(compared) }()
	for i := 0; i+len(sub) <= len(t); i++ {
		k := 0
		for k < len(sub) && (t[i+k]^sub[k])&^marked == 0 {
			k++
		}
		if compared += k + 1; compared > 1000 {
			s.copied(compared)
			compared = 0
		}
		if k == len(sub) {
			return i
		}
	}
	return -1
}

// cut splits t at sep, at most n times.
func (s *state) cut(t, sep Text, n int64) (parts []Value) {
	for ; n != 0; n-- {
		i := s.find(t, sep)
		if i < 0 {
			break
		}
		parts = append(parts, t[:i:i])
		t = t[i+len(sep):]
	}
	s.copied(24 * (len(parts) + 1))
	return append(parts, t)
}

// fields splits t at stretches of white space.
func (s *state) fields(t Text) (parts []Value) {
	s.copied(4 * len(t))
	from := 0
	for i := 0; i <= len(t); i++ {
		if i < len(t) && !isSpace(t[i]&^marked) {
			continue
		}
		if i > from {
			parts = append(parts, t[from:i:i])
		}
		from = i + 1
	}
	s.copied(24 * len(parts))
	return parts
}

// join is sep.join(items) of Python, with any values as their texts.
func (s *state) join(sep Text, items []Value) Text {
	var out Text
	for i, v := range items {
		if i > 0 {
			out = s.extend(out, sep)
		}
		out = s.extend(out, s.str(v))
	}
	return out
}

// isSpace reports whether Python's strip takes r off.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

// stripper makes strip, lstrip and rstrip: white space, or any of the characters given.
func stripper(left, right bool) operation {
	return op(func(s *state, v Value, a []Value) Value {
		t, off := v.(Text), isSpace
		if a[0] != nil {
			set := s.argument("strip", "chars", a[0], needed{Text(nil)}).(Text).String()
			s.copied(len(set))
			off = func(r rune) bool {
				s.spend(len(set) / 12)
				return strings.ContainsRune(set, r)
			}
		}
		from, to := 0, len(t)
		for left && from < to && off(t[from]&^marked) {
			from++
		}
		for right && from < to && off(t[to-1]&^marked) {
			to--
		}
		s.copied(len(t) - (to - from))
		return t[from:to:to]
	}, "chars", nil)
}

func textSplit(s *state, v Value, a []Value) Value {
	n := a[1].(int64)
	if a[0] == nil {
		if n >= 0 {
			s.fail("split: maxsplit without a separator: not supported; give a separator")
		}
		return &List{Items: s.fields(v.(Text))}
	}
	sep := s.argument("split", "sep", a[0], needed{Text(nil)}).(Text)
	if len(sep) == 0 {
		s.fail("split: the separator is empty; it needs a character")
	}
	return &List{Items: s.cut(v.(Text), sep, n)}
}

func textReplace(s *state, v Value, a []Value) Value {
	t, old, by, n := v.(Text), a[0].(Text), a[1].(Text), a[2].(int64)
	if len(old) == 0 {
		s.fail("replace: the old text is empty; it needs a character")
	}
	return s.join(by, s.cut(t, old, n))
}

// affixed makes startswith and endswith, of a string or of any of a tuple.
func affixed(end bool) operation {
	return op(func(s *state, v Value, a []Value) Value {
		t, affixes := v.(Text), []Value{a[0]}
		if l, ok := a[0].(*List); ok && l.Tuple {
			affixes = l.Items
		}
		return slices.ContainsFunc(affixes, func(x Value) bool {
			affix := s.argument("startswith", "prefix", x, needed{Text(nil)}).(Text)
			s.copied(len(affix))
			return !end && t.hasAt(0, affix) || end && t.hasAt(len(t)-len(affix), affix)
		})
	}, "prefix", needed{})
}

// mapper makes an operation that changes the case of each character. first tells whether the character begins a word, as
// begins defines words from the character before.
func mapper(change func(r rune, first bool) rune, begins func(before rune) bool) operation {
	return op(func(s *state, v Value, _ []Value) Value {
		t := v.(Text)
		s.copied(len(t))
		before := rune(0)
		return t.mapped(func(r rune) rune {
			first := begins(before)
			before = r
			return change(r, first)
		})
	})
}

// titled puts the first character of a word in title case and the others in lower case.
func titled(r rune, first bool) rune {
	if first {
		return unicode.ToTitle(r)
	}
	return unicode.ToLower(r)
}
