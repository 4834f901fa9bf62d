package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is a string, as code points. Characters from outside the template carry a mark. Text(s) is text of the template,
// [Input] of s is text from outside.
type Text []rune

// point are the bits of a code point. The bits above it are its mark: 0 is the template, 1 an [Input], 2 and more are numbered sources.
const point = 1<<21 - 1

// numbers is how many sources have marks of their own.
const numbers = 1<<10 - 2

// Input returns s as text from outside the template, of no numbered source. Bytes that are not UTF-8 become U+FFFD.
func Input(s string) Text { return From(-1, s) }

// From is [Input] of a numbered source, from 0, of which [Text.Sources] tells whether a text shows it.
func From(source int, s string) Text {
	t := Text(s)
	for i := range t {
		t[i] |= rune(2+source%numbers) * (point + 1)
	}
	return t
}

// String returns the text without its marks.
func (t Text) String() string {
	var b strings.Builder
	b.Grow(len(t))
	for _, r := range t {
		b.WriteRune(r & point)
	}
	return b.String()
}

// hasAt reports whether sub stands at index i.
func (t Text) hasAt(i int, sub Text) bool {
	return 0 <= i && i+len(sub) <= len(t) && slices.EqualFunc(t[i:i+len(sub)], sub, func(a, b rune) bool { return (a^b)&point == 0 })
}

// mapped changes every character and keeps the marks.
func (t Text) mapped(f func(rune) rune) Text {
	out := make(Text, len(t))
	for i, r := range t {
		out[i] = f(r&point) | r&^point
	}
	return out
}

// escaped returns t between two quotes. Each character that escape does not return "" for is replaced by its escape, which
// keeps the mark.
func (t Text) escaped(q rune, escape func(rune) string) Text {
	return t.appendEscaped(nil, q, escape)
}

// appendEscaped appends what escaped returns.
func (t Text) appendEscaped(out Text, q rune, escape func(rune) string) Text {
	out = append(slices.Grow(out, len(t)+2), q)
	for _, r := range t {
		e := escape(r & point)
		if e == "" {
			out = append(out, r)
		}
		for _, c := range e {
			out = append(out, c|r&^point)
		}
	}
	return append(out, q)
}

// cut splits t at sep, at most n times; below 0: wherever it stands.
func (s *state) cut(t, sep Text, n int64) (parts []Value) {
	plain, by := t.String(), sep.String()
	s.copied(2 * (len(t) + len(sep)))
	for ; n != 0; n-- {
		before, after, found := strings.Cut(plain, by)
		if !found {
			break
		}
		k := utf8.RuneCountInString(before)
		parts = append(parts, t[:k:k])
		plain, t = after, t[k+len(sep):]
	}
	s.copied(24 * (len(parts) + 1))
	return append(parts, t)
}

// fields splits t at stretches of white space.
func (s *state) fields(t Text) (parts []Value) {
	s.copied(4 * len(t))
	from := 0
	for i := 0; i <= len(t); i++ {
		if i < len(t) && !isSpace(t[i]&point) {
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
		for left && from < to && off(t[from]&point) {
			from++
		}
		for right && from < to && off(t[to-1]&point) {
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

// mapper makes an operation that changes each character, of which it knows the one before; 0: there is none.
func mapper(change func(r, before rune) rune) operation {
	return op(func(s *state, v Value, _ []Value) Value {
		t, before := v.(Text), rune(0)
		s.copied(len(t))
		return t.mapped(func(r rune) rune {
			changed := change(r, before)
			before = r
			return changed
		})
	})
}

// titled puts the first character of a text, and of each word if there are characters that words begin behind, in title case and
// the others in lower case.
func titled(behind string) func(r, before rune) rune {
	return func(r, before rune) rune {
		if before == 0 || behind != "" && (isSpace(before) || strings.ContainsRune(behind, before)) {
			return unicode.ToTitle(r)
		}
		return unicode.ToLower(r)
	}
}
