package regex

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

// States of the decoder of JSON strings.
const (
	quoteOpen   = iota // the opening quote comes next
	quoteText          // characters, escapes, or the closing quote
	quoteEscape        // what follows a backslash
	quoteHex           // digits of \u; code: count<<16 | value
	quoteLow           // the backslash of a low surrogate; code: the high surrogate
	quoteLowU          // its u; code: the high surrogate
	quoteLowHex        // its digits; code: (high&0x3FF)<<20 | count<<16 | value

	quoteBare = 1 << 8 // beside a state: the string ends with its text, without a quote
)

const (
	escapes   = `"\/bfnrt`
	escaped   = "\"\\/\b\f\n\r\t"
	hexDigits = "0123456789abcdef"
)

// mustEscape are the bytes with which a character begins that may be escaped after PlainQuotes.
var mustEscape = func() (t Set) {
	t.Add(0, 0x1F)
	t.Add('"', '"')
	t.Add('/', '/')
	t.Add('\\', '\\')
	t.Add(0x7F, 0x7F)
	t.Add(0xC0, 0xFE) // a byte from 0x80 to 0xBF is within a character
	return t
}()

// PlainQuotes makes the JSON strings of expressions that are made from now on escape no more than encoders do: quotes,
// backslashes, slashes, control characters, and characters beyond ASCII.
func (s *Store) PlainQuotes() { s.plain = true }

// Quoted returns the JSON strings, with both quotes, whose decoded text is in body. Every spelling that JSON has for a
// character is allowed, or those of [Store.PlainQuotes]; lone surrogates are not. What body holds that is not valid UTF-8 has no spelling.
func (s *Store) Quoted(body ID) ID {
	if s.err != nil {
		return Nothing
	}
	if !s.has(body, isText) {
		body = s.and2(body, s.allText)
	}
	return s.quoted(body, quoteOpen, 0)
}

// Escaped returns the parts of JSON strings, without quotes, whose decoded text is in body: one behind the other they are a string's text.
func Escaped(s *Store, body ID) ID {
	if s.err != nil {
		return Nothing
	}
	if !s.has(body, isText) {
		body = s.and2(body, s.allText)
	}
	return s.quoted(body, quoteText|quoteBare, 0)
}

// quoted returns the rest of a JSON string in a state of the decoder, or Nothing if it cannot be completed.
func (s *Store) quoted(body ID, state, code uint32) ID {
	n := node{kind: kindQuoted, a: uint32(body), b: state, c: code, depth: s.nodes[body].depth + 1}
	if s.err != nil {
		return Nothing
	}
	if id, _ := s.find(&n); id != 0 {
		return id
	}
	switch at := state &^ quoteBare; {
	case s.empty(body) || at >= quoteEscape && !s.completes(body, at, code):
		return Nothing
	case state == quoteText|quoteBare && body == Epsilon:
		return Epsilon
	}
	return s.add(n)
}

// measureQuoted sets the flags and lengths of a JSON string. A spelling is at least as long as its text and at most six times.
func (s *Store) measureQuoted(n *node) {
	body := &s.nodes[n.a]
	n.flags = isSure | noFF
	n.flag(isText, n.b == quoteOpen || body.flags&isText != 0)
	quote := uint32(1) // at the end
	if n.b&quoteBare != 0 {
		quote = 0
		n.flag(isNullable, n.b == quoteText|quoteBare && body.flags&isNullable != 0)
	}
	n.max = plus(times(body.max, 6), 2)
	switch n.b &^ quoteBare {
	case quoteOpen:
		n.min = plus(body.min, 2)
	case quoteText:
		n.min = plus(body.min, quote)
	default:
		n.min = 1 + quote
		if body.min > 4 {
			n.min = plus(body.min-4, 1+quote)
		}
		n.max = plus(n.max, 12)
	}
}

// stepQuoted is the derivative of a JSON string.
func (s *Store) stepQuoted(n *node, b byte) ID {
	body, bare := ID(n.a), n.b&quoteBare
	switch n.b - bare {
	case quoteOpen:
		if b == '"' {
			return s.quoted(body, quoteText, 0)
		}
	case quoteText:
		switch {
		case b == '"' && bare == 0 && s.Nullable(body):
			return Epsilon
		case b == '\\':
			return s.quoted(body, quoteEscape|bare, 0)
		case b >= 0x20 && b != '"':
			return s.quoted(s.Derive(body, b), quoteText|bare, 0)
		}
	case quoteEscape:
		if i := strings.IndexByte(escapes, b); i >= 0 {
			return s.quoted(s.Derive(body, escaped[i]), quoteText|bare, 0)
		}
		if b == 'u' {
			return s.quoted(body, quoteHex|bare, 0)
		}
	case quoteLow:
		if b == '\\' {
			return s.quoted(body, quoteLowU|bare, n.c)
		}
	case quoteLowU:
		if b == 'u' {
			return s.quoted(body, quoteLowHex|bare, n.c&0x3FF<<20)
		}
	default:
		if digit := hex(b); digit >= 0 {
			return s.stepHex(body, n.b, n.c, uint32(digit))
		}
	}
	return Nothing
}

// hex returns the value of a hexadecimal digit, or -1.
func hex(b byte) int {
	if b >= 'A' && b <= 'F' {
		b += 'a' - 'A'
	}
	return strings.IndexByte(hexDigits, b)
}

// stepHex reads a digit of an escape.
func (s *Store) stepHex(body ID, state, code, digit uint32) ID {
	count, value := code>>16&3, code<<4&0xFFFF|digit
	if count < 3 {
		return s.quoted(body, state, code>>20<<20|(count+1)<<16|value)
	}
	r := rune(value)
	switch {
	case state&^quoteBare == quoteLowHex:
		r = 0x10000 + rune(code>>20)<<10 + rune(value&0x3FF)
		if value < 0xDC00 || value > 0xDFFF {
			return Nothing
		}
	case value >= 0xD800 && value <= 0xDBFF:
		return s.quoted(body, quoteLow|state&quoteBare, value)
	case value >= 0xDC00 && value <= 0xDFFF:
		return Nothing
	}
	if s.plain && r >= 0x20 && r < 0x7F {
		return Nothing
	}
	var text [utf8.UTFMax]byte
	for _, b := range text[:utf8.EncodeRune(text[:], r)] {
		body = s.Derive(body, b)
	}
	return s.quoted(body, quoteText|state&quoteBare, 0)
}

// completes reports whether body can go on with one of the characters that a partial escape stands for.
func (s *Store) completes(body ID, state, code uint32) bool {
	lo := rune(code) & 0xFFFF << (16 - 4*(code>>16&3))
	hi := lo | (1<<(16-4*(code>>16&3)) - 1)
	switch state {
	case quoteEscape:
		if s.plain {
			return s.escapes(body)
		}
		return s.goesOn(body, 0, utf8.MaxRune)
	case quoteHex:
		if !s.plain && s.goesOn(body, lo, hi) || s.plain && (s.goesOn(body, lo, min(hi, 0x1F)) || s.goesOn(body, max(lo, 0x7F), hi)) {
			return true
		}
		lo, hi = max(lo, 0xD800)-0xD800, min(hi, 0xDBFF)-0xD800
		return s.goesOn(body, 0x10000+lo<<10, 0x10000+hi<<10|0x3FF)
	case quoteLowHex:
		high := 0x10000 + rune(code>>20)<<10
		lo, hi = max(lo, 0xDC00)-0xDC00, min(hi, 0xDFFF)-0xDC00
		return s.goesOn(body, high+lo, high+hi)
	}
	return s.goesOn(body, 0x10000+rune(code-0xD800)<<10, 0x10000+rune(code-0xD800)<<10|0x3FF)
}

// goesOn reports whether a string of body begins with a character from lo to hi.
func (s *Store) goesOn(body ID, lo, hi rune) bool {
	if lo > hi {
		return false
	}
	if lo == 0 && hi == utf8.MaxRune {
		return s.begins(body)
	}
	for _, seq := range encode(nil, lo, hi) {
		if s.follows(body, seq) {
			return true
		}
	}
	return false
}

// begins reports whether a string of body begins with a character. It looks at what is known first.
func (s *Store) begins(body ID) bool {
	p := s.parts[s.partition(body)]
	if n := &s.nodes[body]; n.row != 0 {
		for class, b := range p.first {
			d := s.rows[n.row+uint32(class)]
			if utf8.RuneStart(b) && d != unknown && s.has(d, isSure) {
				return true
			}
		}
	}
	for _, b := range p.first {
		if utf8.RuneStart(b) && s.Derive(body, b) != Nothing {
			return true
		}
	}
	return false
}

// escapes reports whether a string of body begins with a character that may be escaped after PlainQuotes.
func (s *Store) escapes(body ID) bool {
	p := s.parts[s.partition(body)]
	var tried Set
	for i, w := range mustEscape {
		for ; w != 0; w &= w - 1 {
			b := byte(i<<6 + bits.TrailingZeros64(w))
			if class := p.class[b]; !tried.Has(class) {
				tried.Add(class, class)
				if s.Derive(body, b) != Nothing {
					return true
				}
			}
		}
	}
	return false
}

// follows reports whether a string of an expression begins with bytes of the given ranges.
func (s *Store) follows(id ID, seq []byteRange) bool {
	if len(seq) == 0 {
		return true
	}
	p := s.parts[s.partition(id)]
	var tried Set
	for b := int(seq[0].lo); b <= int(seq[0].hi); b++ {
		if class := p.class[b]; !tried.Has(class) {
			tried.Add(class, class)
			if d := s.Derive(id, byte(b)); d != Nothing && s.follows(d, seq[1:]) {
				return true
			}
		}
	}
	return false
}

// partitionQuoted returns the classes of bytes of a JSON string.
func (s *Store) partitionQuoted(n *node) uint32 {
	switch n.b &^ quoteBare {
	case quoteOpen:
		return s.marked(`"`)
	case quoteText:
		var label [256]uint16
		label['"'], label['\\'] = 1, 2
		for b := range 0x20 {
			label[b] = 3
		}
		return s.product(s.intern(&label), s.partition(ID(n.a)))
	case quoteEscape:
		return s.marked(escapes + "u")
	case quoteLow:
		return s.marked(`\`)
	case quoteLowU:
		return s.marked("u")
	}
	var label [256]uint16
	for b := range label {
		label[b] = uint16(hex(byte(b)) + 1)
	}
	return s.intern(&label)
}

// joinQuoted replaces the JSON strings of a union that are in the same state by one.
func (s *Store) joinQuoted(list []ID, union func(...ID) ID) (joined []ID, changed bool) {
	for i := 0; i < len(list); i++ {
		x := s.nodes[list[i]]
		if x.kind != kindQuoted {
			continue
		}
		bodies := []ID{ID(x.a)}
		out := i + 1
		for _, id := range list[i+1:] {
			if y := &s.nodes[id]; y.kind == kindQuoted && y.b == x.b && y.c == x.c {
				bodies = append(bodies, ID(y.a))
				continue
			}
			list[out] = id
			out++
		}
		if list = list[:out]; len(bodies) > 1 {
			list[i] = s.quoted(union(bodies...), x.b, x.c)
			changed = true
		}
	}
	return list, changed
}

// meetQuoted replaces the JSON strings of an intersection that are in the same state, and complements of such, by one.
func (s *Store) meetQuoted(list []ID) []ID {
	for i := 0; i < len(list); i++ {
		x := s.nodes[list[i]]
		if x.kind != kindQuoted {
			continue
		}
		body := ID(x.a)
		for j := len(list) - 1; j >= 0; j-- {
			y, negative := s.nodes[list[j]], false
			if y.kind == kindNot {
				y, negative = s.nodes[y.a], true
			}
			if i == j || y.kind != kindQuoted || y.b != x.b || y.c != x.c {
				continue
			}
			other := ID(y.a)
			if negative {
				other = s.not(other, 0)
			}
			body = s.and2(body, other)
			list = append(list[:j], list[j+1:]...)
			if j < i {
				i--
			}
		}
		if body != ID(x.a) {
			list[i] = s.quoted(body, x.b, x.c)
		}
	}
	return list
}
