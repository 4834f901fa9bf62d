package jinja

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// kind is the kind of a token.
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
	tokOp
)

// tok is a token. text is its text; of a string, its value.
type tok struct {
	kind kind
	text string
	line int
}

// String returns the token for errors.
func (t tok) String() string {
	names := map[kind]string{
		tokEOF: "end of the template", tokData: "text", tokBlockBegin: "'{%'", tokBlockEnd: "'%}'", tokPrintBegin: "'{{'", tokPrintEnd: "'}}'",
	}
	if name, ok := names[t.kind]; ok {
		return name
	}
	return fmt.Sprintf("%.40q", t.text)
}

// lexer cuts a source into tokens.
type lexer struct {
	rest   string // source that is not read yet
	line   int
	fresh  bool // rest begins a line
	tokens []tok
}

// lex returns the tokens of a source. The last one is tokEOF.
func lex(source string) []tok {
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source)
	l := &lexer{rest: strings.TrimSuffix(source, "\n"), line: 1, fresh: true}
	for l.rest != "" {
		l.data()
	}
	l.emit(tokEOF, "")
	return l.tokens
}

func (l *lexer) emit(k kind, text string) { l.tokens = append(l.tokens, tok{k, text, l.line}) }

// advance reads n bytes.
func (l *lexer) advance(n int) {
	if n > 0 {
		l.line += strings.Count(l.rest[:n], "\n")
		l.fresh = l.rest[n-1] == '\n'
		l.rest = l.rest[n:]
	}
}

func (l *lexer) skipSpace() { l.advance(len(l.rest) - len(strings.TrimLeftFunc(l.rest, isSpace))) }

// sign returns the sign with which s begins, or "".
func sign(s string) string {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[:1]
	}
	return ""
}

// tag returns the index of the next tag, or the length of s.
func tag(s string) int {
	for n := 0; ; n++ {
		i := strings.IndexByte(s[n:], '{')
		if i < 0 || n+i+1 == len(s) {
			return len(s)
		}
		if n += i; strings.IndexByte("%{#", s[n+1]) >= 0 {
			return n
		}
	}
}

// data reads text up to a tag, and the tag.
func (l *lexer) data() {
	n := tag(l.rest)
	text := l.rest[:n]
	if n == len(l.rest) {
		l.emit(tokData, text)
		l.advance(n)
		return
	}
	opener, sign := l.rest[n+1], sign(l.rest[n+2:])
	if sign == "-" {
		text = strings.TrimRightFunc(text, isSpace)
	} else if sign == "" && opener != '{' { // lstrip_blocks
		begin := strings.LastIndexByte(text, '\n') + 1
		if (begin > 0 || l.fresh) && strings.TrimFunc(text[begin:], isSpace) == "" {
			text = text[:begin]
		}
	}
	if text != "" {
		l.emit(tokData, text)
	}
	l.advance(n + 2 + len(sign))
	switch opener {
	case '#':
		end := strings.Index(l.rest, "#}")
		if end < 0 {
			fail(l.line, "a comment has no end; write '#}'")
		}
		sign := ""
		if end > 0 {
			sign = l.rest[end-1 : end]
		}
		l.advance(end + 2)
		l.trim(sign)
	case '{':
		l.emit(tokPrintBegin, "")
		l.expression("}}", tokPrintEnd)
	default:
		l.emit(tokBlockBegin, "")
		l.expression("%}", tokBlockEnd)
	}
}

// trim removes the white space that the end of a tag takes with it: all of it behind a minus sign, else one line end
// (trim_blocks).
func (l *lexer) trim(sign string) {
	switch {
	case sign == "-":
		l.skipSpace()
	case sign != "+" && strings.HasPrefix(l.rest, "\n"):
		l.advance(1)
	}
}

// operators, the longest first.
var operators = []string{
	"**", "//", "==", "!=", "<=", ">=",
	"+", "-", "*", "/", "%", "~", "<", ">", "=", "(", ")", "[", "]", "{", "}", "|", ",", ":", ".",
}

const (
	digits  = "0123456789"
	letters = "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// span returns the length of the longest prefix of s made of the characters of set.
func span(s, set string) int { return len(s) - len(strings.TrimLeft(s, set)) }

// expression reads tokens up to the end of a tag.
func (l *lexer) expression(closer string, end kind) {
	begin := l.line
	var open []string // the brackets that close the open ones
	for {
		l.skipSpace()
		if l.rest == "" {
			fail(begin, "a tag has no end; write '%s'", closer)
		}
		if len(open) == 0 && l.closed(closer, end) {
			return
		}
		switch c := l.rest[0]; {
		case c == '"' || c == '\'':
			l.str(c)
		case strings.IndexByte(digits, c) >= 0:
			n := span(l.rest, digits)
			if n+1 < len(l.rest) && l.rest[n] == '.' && strings.IndexByte(digits, l.rest[n+1]) >= 0 {
				fail(l.line, "float %.10s...: not supported; use ints", l.rest)
			}
			l.emit(tokInt, l.rest[:n])
			l.advance(n)
		case strings.IndexByte(letters, c) >= 0:
			n := span(l.rest, letters+digits)
			l.emit(tokName, l.rest[:n])
			l.advance(n)
		default:
			open = l.operator(open)
		}
	}
}

// closed reads the end of a tag, if it is next.
func (l *lexer) closed(closer string, end kind) bool {
	sign := sign(l.rest)
	if sign == "+" && end == tokPrintEnd || !strings.HasPrefix(l.rest[len(sign):], closer) {
		return false
	}
	l.emit(end, "")
	l.advance(len(sign) + len(closer))
	if sign == "-" || end == tokBlockEnd {
		l.trim(sign)
	}
	return true
}

// operator reads an operator and keeps the account of brackets.
func (l *lexer) operator(open []string) []string {
	i := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(l.rest, op) })
	if i < 0 {
		fail(l.line, "unexpected character %.4q", l.rest)
	}
	op := operators[i]
	if closing, ok := map[string]string{"(": ")", "[": "]", "{": "}"}[op]; ok {
		open = append(open, closing)
	} else if op == ")" || op == "]" || op == "}" {
		if len(open) == 0 || open[len(open)-1] != op {
			fail(l.line, "unexpected %q", op)
		}
		open = open[:len(open)-1]
	}
	l.emit(tokOp, op)
	l.advance(len(op))
	return open
}

// str reads a string.
func (l *lexer) str(quote byte) {
	n := 1
	for n < len(l.rest) && l.rest[n] != quote {
		if l.rest[n] == '\\' {
			n++
		}
		n++
	}
	if n >= len(l.rest) {
		fail(l.line, "a string has no end; write %c", quote)
	}
	l.emit(tokString, unescape(l.line, l.rest[1:n]))
	l.advance(n + 1)
}

var shortEscapes = map[byte]string{'\\': `\`, '\'': "'", '"': `"`, 'n': "\n", 'r': "\r", 't': "\t"}

// unescape replaces the escapes \\ \' \" \n \r \t \xXX \uXXXX \UXXXXXXXX of Python.
func unescape(line int, s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			return b.String() + s
		}
		b.WriteString(s[:i])
		c := s[i+1]
		s = s[i+2:]
		if short, ok := shortEscapes[c]; ok {
			b.WriteString(short)
			continue
		}
		width := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		if width == 0 {
			if strings.IndexByte("\nabfvN01234567", c) >= 0 {
				fail(line, `escape \%c: not supported; use one of \\ \' \" \n \r \t \x \u \U`, c)
			}
			b.WriteByte('\\')
			b.WriteByte(c) // as Python does with escapes that it does not know
			continue
		}
		code, err := strconv.ParseUint(s[:min(width, len(s))], 16, 32)
		if err != nil || len(s) < width || code > unicode.MaxRune {
			fail(line, `escape \%c%.8q: it needs %d hexadecimal digits of a character`, c, s, width)
		}
		b.WriteRune(rune(code))
		s = s[width:]
	}
}
