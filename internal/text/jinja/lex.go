package jinja

import (
	"cmp"
	"fmt"
	"regexp"
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
	tokFloat
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
	return cmp.Or(names[t.kind], fmt.Sprintf("%.40q", t.text))
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

// opener finds the beginning of a tag and its sign, closers match its end.
var (
	opener  = regexp.MustCompile(`\{([%{#])([-+]?)`)
	closers = map[kind]*regexp.Regexp{tokPrintEnd: regexp.MustCompile(`^-?}}`), tokBlockEnd: regexp.MustCompile(`^[-+]?%}`)}
)

// data reads text up to a tag, and the tag.
func (l *lexer) data() {
	found := opener.FindStringSubmatchIndex(l.rest)
	if found == nil {
		l.emit(tokData, l.rest)
		l.advance(len(l.rest))
		return
	}
	text, opener, sign := l.rest[:found[0]], l.rest[found[2]], l.rest[found[4]:found[5]]
	l.text(text, sign, opener != '{')
	l.advance(found[1])
	switch opener {
	case '#':
		comment, _, found := strings.Cut(l.rest, "#}")
		if !found {
			fail(l.line, "a comment has no end; write '#}'")
		}
		l.advance(len(comment) + 2)
		l.trim(comment[max(0, len(comment)-1):])
	case '{':
		l.emit(tokPrintBegin, "")
		l.expression(tokPrintEnd)
	case '%':
		if begin := rawBegin.FindStringSubmatch(l.rest); begin != nil {
			l.raw(begin)
			return
		}
		l.emit(tokBlockBegin, "")
		l.expression(tokBlockEnd)
	}
}

// text emits the text before a tag, without the white space that the tag's sign takes off.
func (l *lexer) text(text, sign string, isBlock bool) {
	if sign == "-" {
		text = strings.TrimRightFunc(text, isSpace)
	} else if sign == "" && isBlock { // lstrip_blocks
		begin := strings.LastIndexByte(text, '\n') + 1
		if (begin > 0 || l.fresh) && strings.TrimFunc(text[begin:], isSpace) == "" {
			text = text[:begin]
		}
	}
	if text != "" {
		l.emit(tokData, text)
	}
}

// rawBegin matches the rest of a tag that begins a block of text as it is, and rawEnd the tag that ends it.
var (
	rawBegin = regexp.MustCompile(`^\s*raw\s*(-?)%\}`)
	rawEnd   = regexp.MustCompile(`\{%([-+]?)\s*endraw\s*([-+]?)%\}`)
)

// raw reads a block of text as it is.
func (l *lexer) raw(begin []string) {
	line := l.line
	if l.advance(len(begin[0])); begin[1] == "-" {
		l.skipSpace()
	}
	end := rawEnd.FindStringSubmatchIndex(l.rest)
	if end == nil {
		fail(line, "a raw block has no end; write {%% endraw %%}")
	}
	l.text(l.rest[:end[0]], l.rest[end[2]:end[3]], true)
	sign := l.rest[end[4]:end[5]]
	l.advance(end[1])
	l.trim(sign)
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

// lexeme matches a token of an expression. Its groups are a name, a float, an int, a string and an operator.
var lexeme = regexp.MustCompile(`^(?:([A-Za-z_][A-Za-z_0-9]*)|([0-9]+(?:_[0-9]+)*(?:(?:\.[0-9]+(?:_[0-9]+)*)?[eE][-+]?[0-9]+|\.[0-9]+(?:_[0-9]+)*))|([0-9]+(?:_[0-9]+)*)|((?s)"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(\*\*|//|[=!<>]=|[-+*/%~<>=()[\]{}|,:.]))`)

// expression reads tokens up to the end of a tag.
func (l *lexer) expression(end kind) {
	begin := l.line
	var open []string // the brackets that close the open ones
	for {
		l.skipSpace()
		if l.rest == "" {
			fail(begin, "a tag has no end; write %s", tok{kind: end})
		}
		if len(open) == 0 && l.closed(end) {
			return
		}
		m := lexeme.FindStringSubmatch(l.rest)
		switch c := l.rest[0]; {
		case m == nil && (c == '"' || c == '\''):
			fail(l.line, "a string has no end; write %c", c)
		case m == nil:
			fail(l.line, "unexpected character %.4q", l.rest)
		case m[1] != "":
			l.emit(tokName, m[1])
		case m[2] != "" && l.behindDot(): // x.0.1 is x[0][1]
			m[0], _, _ = strings.Cut(m[2], ".")
			l.emit(tokInt, m[0])
		case m[2] != "":
			l.emit(tokFloat, m[2])
		case m[3] != "":
			l.emit(tokInt, m[3])
		case m[4] != "":
			l.emit(tokString, unescape(l.line, m[4][1:len(m[4])-1]))
		default:
			open = l.operator(m[5], open)
		}
		l.advance(len(m[0]))
	}
}

// behindDot reports whether a dot comes right before what is read.
func (l *lexer) behindDot() bool {
	n := len(l.tokens)
	return n > 0 && l.tokens[n-1].kind == tokOp && l.tokens[n-1].text == "."
}

// closed reads the end of a tag, if it is next.
func (l *lexer) closed(end kind) bool {
	m := closers[end].FindString(l.rest)
	if m == "" {
		return false
	}
	l.emit(end, "")
	l.advance(len(m))
	if sign := m[:len(m)-2]; sign == "-" || end == tokBlockEnd {
		l.trim(sign)
	}
	return true
}

// operator emits an operator and returns the brackets that are open behind it.
func (l *lexer) operator(op string, open []string) []string {
	if closing, ok := map[string]string{"(": ")", "[": "]", "{": "}"}[op]; ok {
		open = append(open, closing)
	} else if op == ")" || op == "]" || op == "}" {
		if len(open) == 0 || open[len(open)-1] != op {
			fail(l.line, "unexpected %q", op)
		}
		open = open[:len(open)-1]
	}
	l.emit(tokOp, op)
	return open
}

// escapes matches the escapes of Python's strings. Those that Python does not know stay as they are.
var escapes = regexp.MustCompile(`(?s)\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)`)

var shortEscapes = map[byte]string{'\\': `\`, '\'': "'", '"': `"`, 'n': "\n", 'r': "\r", 't': "\t"}

// unescape replaces the escapes \\ \' \" \n \r \t \xXX \uXXXX \UXXXXXXXX of Python.
func unescape(line int, s string) string {
	return escapes.ReplaceAllStringFunc(s, func(e string) string {
		if short, ok := shortEscapes[e[1]]; ok {
			return short
		}
		if strings.Contains("\nabfvN01234567", e[1:]) {
			fail(line, `escape %s: not supported; use one of \\ \' \" \n \r \t \x \u \U`, e)
		}
		if strings.Contains("xuU", e[1:2]) {
			code, err := strconv.ParseUint(e[2:], 16, 32)
			if err != nil || code > unicode.MaxRune {
				fail(line, `escape %s: it needs the hexadecimal digits of a character: 2 behind \x, 4 behind \u, 8 behind \U`, e)
			}
			return string(rune(code))
		}
		return e
	})
}
