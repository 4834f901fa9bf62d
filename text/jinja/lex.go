package jinja

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"grove/text/jinja/value"
)

// kind is a token's kind.
type kind int

const (
	tokEOF kind = iota
	tokData
	tokBlockBegin
	tokBlockEnd
	tokPrintBegin
	tokPrintEnd
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
)

// tok is one token. text is what it says: of a string, its value; of an operator, the operator.
type tok struct {
	kind kind
	text string
	line int
}

// String returns the token for messages.
func (t tok) String() string {
	switch t.kind {
	case tokEOF:
		return "end of the template"
	case tokData:
		return "text"
	case tokBlockBegin:
		return "'{%'"
	case tokBlockEnd:
		return "'%}'"
	case tokPrintBegin:
		return "'{{'"
	case tokPrintEnd:
		return "'}}'"
	}
	return fmt.Sprintf("%.40q", t.text)
}

// lexer cuts a source into tokens.
type lexer struct {
	src    string
	pos    int
	line   int
	fresh  bool // at pos a line begins
	tokens []tok
}

// lex returns the tokens of a source, the last of which is tokEOF.
func lex(source string) []tok {
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source)
	l := &lexer{src: strings.TrimSuffix(source, "\n"), line: 1, fresh: true}
	for l.pos < len(l.src) {
		l.data()
	}
	l.emit(tokEOF, "")
	return l.tokens
}

func (l *lexer) emit(k kind, text string) { l.tokens = append(l.tokens, tok{k, text, l.line}) }

// advance moves on by n bytes.
func (l *lexer) advance(n int) {
	if n > 0 {
		l.line += strings.Count(l.src[l.pos:l.pos+n], "\n")
		l.fresh = l.src[l.pos+n-1] == '\n'
		l.pos += n
	}
}

// data reads text up to a tag, and the tag.
func (l *lexer) data() {
	rest := l.src[l.pos:]
	n := 0
	for ; ; n++ {
		at := strings.IndexByte(rest[n:], '{')
		if at < 0 || n+at+1 == len(rest) {
			l.text(rest)
			l.advance(len(rest))
			return
		}
		n += at
		if strings.IndexByte("%{#", rest[n+1]) >= 0 {
			break
		}
	}
	text, tag := rest[:n], rest[n+1]
	sign := byte(0)
	if n+2 < len(rest) && strings.IndexByte("-+", rest[n+2]) >= 0 && (tag != '{' || rest[n+2] == '-') {
		sign = rest[n+2]
	}
	if sign == '-' {
		text = strings.TrimRightFunc(text, value.IsSpace)
	} else if sign == 0 && tag != '{' { // lstrip_blocks
		begin := strings.LastIndexByte(text, '\n') + 1
		if (begin > 0 || l.fresh) && strings.TrimFunc(text[begin:], value.IsSpace) == "" {
			text = text[:begin]
		}
	}
	l.text(text)
	l.advance(n + 2)
	if sign != 0 {
		l.advance(1)
	}
	switch tag {
	case '#':
		l.comment()
	case '{':
		l.emit(tokPrintBegin, "")
		l.expression("}}", tokPrintEnd)
	default:
		if l.raw() {
			return
		}
		l.emit(tokBlockBegin, "")
		l.expression("%}", tokBlockEnd)
	}
}

func (l *lexer) text(text string) {
	if text != "" {
		l.emit(tokData, text)
	}
}

func (l *lexer) comment() {
	end := strings.Index(l.src[l.pos:], "#}")
	if end < 0 {
		fail(l.line, "a comment has no end")
	}
	sign := byte(0)
	if end > 0 {
		sign = l.src[l.pos+end-1]
	}
	l.advance(end + 2)
	l.trim(sign)
}

// trim takes off what the end of a tag takes with it: all white space behind a minus sign, and otherwise
// the end of the line (trim_blocks).
func (l *lexer) trim(sign byte) {
	rest := l.src[l.pos:]
	switch {
	case sign == '-':
		l.advance(len(rest) - len(strings.TrimLeftFunc(rest, value.IsSpace)))
	case sign != '+' && strings.HasPrefix(rest, "\n"):
		l.advance(1)
	}
}

// raw reads a raw block, if the tag opens one.
func (l *lexer) raw() bool {
	name, n := l.simpleTag(l.pos)
	if name != "raw" {
		return false
	}
	sign := l.src[l.pos+n-3]
	l.advance(n)
	if sign == '-' {
		l.trim('-')
	}
	for at := l.pos; ; at += 2 {
		k := strings.Index(l.src[at:], "{%")
		if k < 0 {
			fail(l.line, "a raw block has no end")
		}
		at += k
		inner := at + 2
		open := byte(0)
		if inner < len(l.src) && strings.IndexByte("-+", l.src[inner]) >= 0 {
			open = l.src[inner]
			inner++
		}
		name, n := l.simpleTag(inner)
		if name != "endraw" {
			continue
		}
		text := l.src[l.pos:at]
		if open == '-' {
			text = strings.TrimRightFunc(text, value.IsSpace)
		} else if begin := strings.LastIndexByte(text, '\n') + 1; open == 0 && begin > 0 && strings.TrimFunc(text[begin:], value.IsSpace) == "" {
			text = text[:begin]
		}
		l.text(text)
		l.advance(inner + n - l.pos)
		l.trim(l.src[inner+n-3])
		return true
	}
}

// simpleTag returns the name in a tag that holds nothing else, and the bytes from at to the tag's end.
func (l *lexer) simpleTag(at int) (string, int) {
	end := strings.Index(l.src[at:], "%}")
	if end < 0 {
		return "", 0
	}
	inner := strings.TrimSuffix(strings.TrimSuffix(l.src[at:at+end], "-"), "+")
	return strings.TrimFunc(inner, value.IsSpace), end + 2
}

// operators, the longest first.
var operators = []string{
	"**", "//", "==", "!=", "<=", ">=",
	"+", "-", "*", "/", "%", "~", "<", ">", "=", "(", ")", "[", "]", "{", "}", "|", ",", ":", ".", ";",
}

// expression reads tokens up to the end of a tag.
func (l *lexer) expression(closer string, end kind) {
	begin := l.line
	var open []byte // brackets
	for {
		l.advance(len(l.src[l.pos:]) - len(strings.TrimLeftFunc(l.src[l.pos:], value.IsSpace)))
		rest := l.src[l.pos:]
		if rest == "" {
			fail(begin, "a tag has no end")
		}
		sign := byte(0)
		if rest[0] == '-' || rest[0] == '+' && end == tokBlockEnd {
			sign = rest[0]
		}
		if signed := string(sign) + closer; len(open) == 0 && (strings.HasPrefix(rest, closer) || sign != 0 && strings.HasPrefix(rest, signed)) {
			l.emit(end, "")
			if sign == 0 {
				signed = closer
			}
			l.advance(len(signed))
			if sign == '-' || end == tokBlockEnd {
				l.trim(sign)
			}
			return
		}
		switch c := rest[0]; {
		case c == '"' || c == '\'':
			l.str(c)
		case '0' <= c && c <= '9':
			l.number()
		case c == '_' || c >= utf8.RuneSelf || unicode.IsLetter(rune(c)):
			n := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
			if n < 0 {
				n = len(rest)
			}
			if n == 0 {
				fail(l.line, "unexpected character %.4q", rest)
			}
			l.emit(tokName, rest[:n])
			l.advance(n)
		default:
			open = l.operator(open)
		}
	}
}

// operator reads an operator and keeps the account of brackets.
func (l *lexer) operator(open []byte) []byte {
	rest := l.src[l.pos:]
	i := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(rest, op) })
	if i < 0 {
		fail(l.line, "unexpected character %q", rest[:1])
	}
	op := operators[i]
	switch op {
	case "(", "[", "{":
		open = append(open, map[string]byte{"(": ')', "[": ']', "{": '}'}[op])
	case ")", "]", "}":
		if len(open) == 0 || open[len(open)-1] != op[0] {
			fail(l.line, "unexpected %q", op)
		}
		open = open[:len(open)-1]
	}
	l.emit(tokOp, op)
	l.advance(len(op))
	return open
}

func (l *lexer) number() {
	rest := l.src[l.pos:]
	digits := func(from int) int {
		for from < len(rest) && ('0' <= rest[from] && rest[from] <= '9' || rest[from] == '_') {
			from++
		}
		return from
	}
	n, k := digits(0), tokInt
	if n+1 < len(rest) && rest[n] == '.' && '0' <= rest[n+1] && rest[n+1] <= '9' {
		n, k = digits(n+1), tokFloat
	}
	if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
		m := n + 1
		if m < len(rest) && (rest[m] == '+' || rest[m] == '-') {
			m++
		}
		if d := digits(m); d > m {
			n, k = d, tokFloat
		}
	}
	l.emit(k, strings.ReplaceAll(rest[:n], "_", ""))
	l.advance(n)
}

// str reads a string with the escapes of Python.
func (l *lexer) str(q byte) {
	rest := l.src[l.pos:]
	n := 1
	for n < len(rest) && rest[n] != q {
		if rest[n] == '\\' {
			n++
		}
		n++
	}
	if n >= len(rest) {
		fail(l.line, "a string has no end")
	}
	l.emit(tokString, l.unescape(rest[1:n]))
	l.advance(n + 1)
}

// shortEscapes are the escapes of one character.
var shortEscapes = map[byte]string{
	'\n': "", '\\': `\`, '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v",
}

func (l *lexer) unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if short, ok := shortEscapes[s[i]]; ok {
			b.WriteString(short)
			continue
		}
		width, base := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i]], 16
		from := i + 1
		if '0' <= s[i] && s[i] <= '7' {
			from, base = i, 8
			for width < 3 && from+width < len(s) && '0' <= s[from+width] && s[from+width] <= '7' {
				width++
			}
		}
		if width == 0 {
			b.WriteString(s[i-1 : i+1]) // Python keeps what it does not know
			continue
		}
		if from+width > len(s) {
			fail(l.line, "a string has an escape cut short")
		}
		code, err := strconv.ParseUint(s[from:from+width], base, 32)
		if err != nil || code > unicode.MaxRune {
			fail(l.line, "a string has the escape %q", s[i-1:from+width])
		}
		b.WriteRune(rune(code))
		i = from + width - 1
	}
	return b.String()
}
