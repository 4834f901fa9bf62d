package regex

import (
	"fmt"
	"strconv"
	"strings"
)

// Name gives an expression a name, for Describe. The first name stays.
func (s *Store) Name(id ID, name string) {
	if s.names == nil {
		s.names = map[ID]string{}
	}
	if _, ok := s.names[id]; !ok && s.err == nil {
		s.names[id] = name
	}
}

// maxDescription is the length in bytes at which a description ends.
const maxDescription = 80

// Describe returns the name of an expression or a short notation of it, for messages.
func (s *Store) Describe(id ID) string {
	w := &writer{s: s}
	w.write(id, 0)
	text := w.b.String()
	if len(text) > maxDescription {
		text = strings.ToValidUTF8(text[:maxDescription], "") + "…"
	}
	return text
}

// writer writes descriptions.
type writer struct {
	s *Store
	b strings.Builder
}

// How tightly a notation binds.
const (
	bindOr = iota
	bindAnd
	bindConcat
	bindRepeat
	bindAtom
)

// write writes an expression, in parentheses if it binds less tightly than asked.
func (w *writer) write(id ID, bind int) {
	if w.b.Len() > maxDescription {
		return
	}
	if name, ok := w.s.names[id]; ok {
		w.b.WriteString(name)
		return
	}
	if ranges, ok := w.s.ranges[id]; ok {
		w.ranges(ranges)
		return
	}
	switch id {
	case w.s.anyRune:
		w.b.WriteString("character")
		return
	case w.s.allText:
		w.b.WriteString("text")
		return
	}
	n := w.s.nodes[id]
	own := bindAtom
	switch n.kind {
	case kindRepeat, kindNot, kindQuoted:
		own = bindRepeat
	case kindOr:
		own = bindOr
	case kindAnd:
		own = bindAnd
	case kindConcat:
		own = bindConcat
	}
	if own < bind {
		w.b.WriteByte('(')
		defer w.b.WriteByte(')')
	}
	switch n.kind {
	case kindNothing:
		w.b.WriteString("nothing")
	case kindEpsilon:
		w.b.WriteString(`""`)
	case kindSet:
		w.set(&w.s.sets[n.a])
	case kindLiteral:
		w.quote(string(w.s.text[n.a:min(n.b, n.a+maxDescription)]))
	case kindWords:
		w.words(&n, bind)
	case kindConcat:
		w.write(ID(n.a), bindConcat+1)
		w.b.WriteByte(' ')
		w.write(ID(n.b), bindConcat)
	case kindRepeat:
		w.write(ID(n.a), bindAtom)
		w.b.WriteString(counts(n.b, n.c))
	case kindOr:
		w.list(w.s.kids[n.a:n.a+n.b], " or ", bindOr+1)
	case kindAnd:
		w.list(w.s.kids[n.a:n.a+n.b], " and ", bindAnd+1)
	case kindNot:
		w.b.WriteString("not ")
		w.write(ID(n.a), bindRepeat)
	case kindQuoted:
		if n.b != quoteOpen {
			w.b.WriteString("rest of a ")
		}
		w.b.WriteString("string")
		if ID(n.a) != w.s.allText {
			w.b.WriteString(" of ")
			w.write(ID(n.a), bindRepeat)
		}
	case kindMachine:
		fmt.Fprintf(&w.b, "%T", w.s.auto[n.a].m)
	}
}

// list writes expressions with a word between them.
func (w *writer) list(ids []ID, between string, bind int) {
	for i, id := range ids {
		if i > 0 {
			w.b.WriteString(between)
		}
		if w.b.Len() > maxDescription {
			return
		}
		w.write(id, bind)
	}
}

// words writes the texts of a dictionary.
func (w *writer) words(n *node, bind int) {
	if bind > bindOr {
		w.b.WriteByte('(')
		defer w.b.WriteByte(')')
	}
	for i, word := range w.s.words[n.a:n.b] {
		if i > 0 {
			w.b.WriteString(" or ")
		}
		if w.b.Len() > maxDescription {
			return
		}
		start := word.start + n.c&depthBits
		w.quote(string(w.s.text[start:min(word.end, start+maxDescription)]))
	}
}

// quote writes a text in quotes.
func (w *writer) quote(text string) {
	if len(text) == 1 && text != "'" && text[0] > ' ' && text[0] < 0x7F {
		w.b.WriteString("'" + text + "'")
		return
	}
	w.b.WriteString(strconv.Quote(text))
}

// digits are the bytes of decimal digits.
var digits = Set{0x3FF << '0'}

// set writes a set of bytes: one byte in quotes, more as a class.
func (w *writer) set(set *Set) {
	switch {
	case *set == digits:
		w.b.WriteString("digit")
		return
	case set.Len() == 1:
		w.quote(string([]byte{set.min()}))
		return
	}
	open, negative := "[", set.Len() > 128
	if negative {
		open = "[^"
	}
	w.b.WriteString(open)
	for b := 0; b < 256; b++ {
		if set.Has(byte(b)) == negative {
			continue
		}
		end := b
		for end < 255 && set.Has(byte(end+1)) != negative {
			end++
		}
		w.span(rune(b), rune(end), func(r rune) string {
			if r < 0x80 {
				return char(r)
			}
			return fmt.Sprintf(`\x%02x`, r)
		})
		b = end
	}
	w.b.WriteByte(']')
}

// ranges writes a set of code points as a class.
func (w *writer) ranges(ranges []Range) {
	w.b.WriteByte('[')
	for _, r := range ranges {
		if w.b.Len() > maxDescription {
			return
		}
		w.span(r.Lo, r.Hi, char)
	}
	w.b.WriteByte(']')
}

// span writes a range of a class.
func (w *writer) span(lo, hi rune, char func(rune) string) {
	w.b.WriteString(char(lo))
	if hi > lo+1 {
		w.b.WriteByte('-')
	}
	if hi > lo {
		w.b.WriteString(char(hi))
	}
}

// char returns the notation of a character of a class.
func char(r rune) string {
	if r < 0x80 && strings.ContainsRune(`]\^-`, r) {
		return `\` + string(r)
	}
	q := strconv.QuoteRuneToGraphic(r)
	if r == '\'' {
		return "'"
	}
	return q[1 : len(q)-1]
}

// counts writes the counts of a repetition.
func counts(least, most uint32) string {
	switch {
	case least == 0 && most == inf:
		return "*"
	case least == 1 && most == inf:
		return "+"
	case least == 0 && most == 1:
		return "?"
	case least == most:
		return fmt.Sprintf("{%d}", least)
	case most == inf:
		return fmt.Sprintf("{%d,}", least)
	}
	return fmt.Sprintf("{%d,%d}", least, most)
}
