package jinja

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parseFloat reads a number as Python does, within the range of floats.
func parseFloat(text string) (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// roundDecimal rounds to places behind the point; a half goes to the even neighbour, as the decimal number that the float is.
func roundDecimal(x float64, places int) float64 {
	if places < 0 {
		f := math.Pow(10, float64(-places))
		return math.RoundToEven(x/f) * f
	}
	f, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', places, 64), 64) // a number that was written
	return f
}

// layout is how a value is written: Python's format specifications, those behind % and those behind a colon.
type layout struct {
	fill         string // "": a space
	align        string // < > ^ =; "": that of the type
	plus, zeros  bool
	comma        bool
	width, least int // least: digits behind the point, or characters of a text; -1: not given
	verb         string
}

// maxWidth bounds the width and the digits of a layout.
const maxWidth = 1000

// write writes a value. Texts keep their marks.
func (s *state) write(l layout, v Value) Text {
	var body Text
	isNumber := false
	switch f, numeric := number(v); {
	case l.verb == "s" || l.verb == "r" || l.verb == "" && !(numeric && !isA[bool](v) && (l.comma || l.least >= 0 || l.plus)):
		body = s.str(v)
		if l.verb == "r" {
			body = s.repr(v)
		}
		if l.least >= 0 {
			body = body[:min(l.least, len(body))]
		}
		isNumber = numeric && !isA[bool](v) && l.verb == ""
	case !numeric:
		s.fail("format: %s for %q; it needs a number", typeName(v), "%"+l.verb)
	default:
		body, isNumber = Text(s.digits(l, v, f)), true
	}
	missing := l.width - len(body)
	if missing <= 0 {
		return slices.Clone(body)
	}
	s.copied(l.width)
	fill, align := Text(l.fill), l.align
	switch {
	case l.zeros && isNumber && align == "":
		fill, align = Text("0"), "="
	case len(fill) == 0:
		fill = Text(" ")
	}
	left := missing
	switch {
	case align == "<" || align == "" && !isNumber:
		left = 0
	case align == "^":
		left = missing / 2
	case align == "=" && len(body) > 0 && strings.ContainsRune("+-", body[0]&point):
		return slices.Concat(body[:1], slices.Repeat(fill, missing), body[1:])
	}
	return slices.Concat(slices.Repeat(fill, left), body, slices.Repeat(fill, missing-left))
}

// digits writes a number.
func (s *state) digits(l layout, v Value, f float64) string {
	i, isInt := integer(v)
	var text string
	switch verb := l.verb; {
	case verb == "d" || verb == "i" || verb == "" && isInt:
		if !isInt {
			i = int64(f)
		}
		text = strconv.FormatInt(i, 10)
	case verb == "x":
		if !isInt {
			s.fail("format: %s for \"%%x\"; it needs int", typeName(v))
		}
		text = strconv.FormatInt(i, 16)
	case verb == "e":
		text = strconv.FormatFloat(f, 'e', max(l.least, 0)+6*btoi(l.least < 0), 64)
	case verb == "g" || verb == "":
		s.fail("format: %q of a float: not supported; use f or e", verb)
	default:
		if verb == "%" {
			f *= 100
		}
		text = strconv.FormatFloat(f, 'f', max(l.least, 0)+6*btoi(l.least < 0), 64)
		if verb == "%" {
			text += "%"
		}
	}
	if l.comma {
		text = grouped(text)
	}
	if l.plus && !strings.HasPrefix(text, "-") {
		text = "+" + text
	}
	return text
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// grouped puts commas between thousands.
func grouped(text string) string {
	whole, rest, point := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if point {
		rest = "." + rest
	}
	return sign + whole + rest
}

// percent matches a place of a text that % formats; brace matches one of str.format, spec what it has behind the colon.
var (
	percent = regexp.MustCompile(`^%(\(([^)]*)\))?([-+ 0#]*)([0-9]*)(?:\.([0-9]+))?(.)`)
	brace   = regexp.MustCompile(`^\{([A-Za-z0-9_]*)((?:\.[A-Za-z_0-9]+|\[[^\]]*\])*)(?:!([rs]))?(?::([^{}]*))?\}`)
	inner   = regexp.MustCompile(`\.[A-Za-z_0-9]+|\[[^\]]*\]`)
	spec    = regexp.MustCompile(`^(?:(.)?([<>=^]))?([-+ ])?(0)?([0-9]*)(,)?(?:\.([0-9]+))?([sdfxeg%]?)$`)
)

// count reads a number of a layout.
func (s *state) count(digits string) int {
	n, err := strconv.Atoi("0" + digits)
	if err != nil || n > maxWidth {
		s.fail("format: a width of %.20s; it must be at most %d", digits, maxWidth)
	}
	return n
}

// formatted is t % values of Python: one value, or those of a tuple.
func (s *state) formatted(t Text, values Value) Text {
	rest, names := []Value{values}, (*Map)(nil)
	if l, ok := values.(*List); ok && l.Tuple {
		rest = l.Items
	} else if m, ok := values.(*Map); ok {
		names = m
	}
	used := 0
	out := s.places(t, "%", func(at string) (int, Value, layout) {
		m := percent.FindStringSubmatch(at)
		if m == nil {
			s.fail("format: %.2q: not supported, or without an argument; use %%s, %%d or %%%%", at)
		}
		l := layout{verb: m[6], width: s.count(m[4]), least: -1, align: ">"}
		if m[5] != "" {
			l.least = s.count(m[5])
		}
		if l.plus = strings.Contains(m[3], "+"); strings.Contains(m[3], "-") {
			l.align = "<"
		} else if strings.Contains(m[3], "0") {
			l.zeros, l.align = true, ""
		}
		switch {
		case l.verb == "%":
			return len(m[0]), Text("%"), layout{least: -1, verb: "s"}
		case !strings.Contains("sdifrxe", l.verb) || m[1] == "" && used >= len(rest) || m[1] != "" && names == nil:
			s.fail("format: %.20q: not supported, or without an argument; use %%s, %%d or %%%%", m[0])
		case m[1] != "":
			v, ok := s.get(names, Text(m[2]))
			if !ok {
				s.fail("format: no value %.40q", m[2])
			}
			return len(m[0]), v, l
		}
		used++
		return len(m[0]), rest[used-1], l
	})
	if names == nil && used < len(rest) {
		s.fail("format: %d arguments are not used; give one for each %%s and %%d, without a name", len(rest)-used)
	}
	return out
}

// places replaces each place of a text that begins with a byte: read returns its length in bytes, its value and how it is written.
func (s *state) places(t Text, begin string, read func(at string) (int, Value, layout)) (out Text) {
	plain := t.String()
	s.copied(4 * len(t))
	for {
		at := strings.IndexAny(plain, begin)
		if at < 0 {
			return s.extend(out, t)
		}
		n := utf8.RuneCountInString(plain[:at])
		out = s.extend(out, t[:n])
		size, v, l := read(plain[at:])
		if v == nil && l.verb == "" && size < 0 { // the byte, twice
			out, size = append(out, t[n]), -size
		} else {
			out = s.extend(out, s.write(l, v))
		}
		k := n + utf8.RuneCountInString(plain[at:at+size])
		plain, t = plain[at+size:], t[k:]
	}
}

// textFormat is str.format.
func textFormat(s *state, v Value, a args) Value {
	next := 0
	return s.places(v.(Text), "{}", func(at string) (int, Value, layout) {
		if strings.HasPrefix(at, "{{") || strings.HasPrefix(at, "}}") {
			return -2, nil, layout{}
		}
		m := brace.FindStringSubmatch(at)
		if m == nil {
			s.fail("format: %.20q: not supported; write {}, {0}, {name} or {:SPEC}", at)
		}
		x := s.formatArgument(a, m[1], &next)
		for _, part := range inner.FindAllString(m[2], -1) {
			name := strings.Trim(part, ".[]")
			if i, err := strconv.ParseInt(name, 10, 64); err == nil && part[0] == '[' {
				x = s.index(x, i)
			} else {
				x = s.index(x, Text(name))
			}
		}
		s.defined(x)
		p := spec.FindStringSubmatch(m[4])
		if p == nil {
			s.fail("format: the specification %.20q: not supported", m[4])
		}
		l := layout{fill: p[1], align: p[2], plus: p[3] == "+", zeros: p[4] != "", width: s.count(p[5]), comma: p[6] != "", least: -1, verb: p[8]}
		if p[7] != "" {
			l.least = s.count(p[7])
		}
		if m[3] == "r" {
			x = s.repr(x)
		} else if m[3] == "s" {
			x = s.str(x)
		}
		return len(m[0]), x, l
	})
}

// formatArgument returns the argument of a place of str.format.
func (s *state) formatArgument(a args, name string, next *int) Value {
	if name == "" {
		name = strconv.Itoa(*next)
		*next++
	}
	if i, err := strconv.Atoi(name); err == nil {
		if i >= len(a.pos) {
			s.fail("format: no argument %d", i)
		}
		return a.pos[i]
	}
	v, ok := a.take(name)
	if !ok {
		s.fail("format: no argument %.40q", name)
	}
	return v
}
