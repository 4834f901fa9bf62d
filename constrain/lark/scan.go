package lark

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"grove/constrain/grammar"
)

// at returns an error at a place.
func (p *parser) at(pos int, format string, args ...any) *Error {
	line, column := grammar.Place(p.text, pos)
	err := fmt.Errorf(format, args...)
	return &Error{Line: line, Column: column, Problem: err.Error(), err: errors.Unwrap(err)}
}

// limit returns the error of a bound.
func (p *parser) limit(pos int, format string, args ...any) error {
	err := p.at(pos, format, args...)
	err.Limit = true
	return err
}

// expected returns the error that something else stands here.
func (p *parser) expected(what string) error {
	return p.at(p.pos, "expected %s, found %s", what, grammar.Found(p.text, p.pos))
}

// here is the byte at the place, or 0 at the end.
func (p *parser) here() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

// skip skips a text of the notation, and the space after it, if it stands here.
func (p *parser) skip(text string) bool {
	if !bytes.HasPrefix(p.text[p.pos:], []byte(text)) {
		return false
	}
	p.pos += len(text)
	p.space()
	return true
}

// space skips blanks, newlines, comments and backslashes that end a line.
func (p *parser) space() {
	for ; p.pos < len(p.text); p.pos++ {
		switch c := p.text[p.pos]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f':
		case c == '\\' && len(bytes.TrimLeft(p.text[p.pos+1:], " \r")) > 0 && bytes.TrimLeft(p.text[p.pos+1:], " \r")[0] == '\n':
		case c == '#' || c == '/' && p.pos+1 < len(p.text) && p.text[p.pos+1] == '/':
			for p.pos+1 < len(p.text) && p.text[p.pos+1] != '\n' {
				p.pos++
			}
		default:
			return
		}
	}
}

// nameByte says whether a byte may stand in a name; a digit or a dash only after the first one.
func nameByte(c byte, first bool) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || !first && ('0' <= c && c <= '9' || c == '-')
}

// name reads a name and the space after it. It is empty where there is none.
func (p *parser) name() string {
	start := p.pos
	for p.pos < len(p.text) && nameByte(p.text[p.pos], p.pos == start) {
		if bytes.HasPrefix(p.text[p.pos:], []byte("->")) {
			break
		}
		p.pos++
	}
	name := string(p.text[start:p.pos])
	p.space()
	return name
}

// isTerminal says whether a name is one of a terminal: its first letter is in upper case.
func isTerminal(name string) bool {
	name = strings.TrimLeft(name, "_")
	return name != "" && 'A' <= name[0] && name[0] <= 'Z'
}

// number reads a count and the space after it.
func (p *parser) number() (int, error) {
	start := p.pos
	for '0' <= p.here() && p.here() <= '9' {
		p.pos++
	}
	text := string(p.text[start:p.pos])
	if text == "" {
		return 0, p.expected("a number")
	}
	p.space()
	n, err := strconv.Atoi(text)
	if err != nil || n > maxSymbols {
		return 0, p.limit(start, "the number %s is beyond the limit of %d", text, maxSymbols)
	}
	return n, nil
}

// quoted reads a string in double quotes and its flag; the space after it is skipped.
func (p *parser) quoted() (*node, error) {
	n := &node{kind: isText, pos: p.pos}
	var text []byte
	for p.pos++; ; {
		if c := p.here(); p.pos >= len(p.text) || c == '\n' {
			return nil, p.at(n.pos, "the string has no end in its line")
		} else if c == '"' {
			break
		} else if c != '\\' {
			text, p.pos = append(text, c), p.pos+1
			continue
		}
		r, err := p.escape()
		if err != nil {
			return nil, err
		}
		text = utf8.AppendRune(text, r)
	}
	p.pos++
	if n.text = string(text); p.here() == 'i' && (p.pos+1 >= len(p.text) || !nameByte(p.text[p.pos+1], false)) {
		n.flags, p.pos = "i", p.pos+1
	}
	p.space()
	return n, nil
}

// escape reads an escape of a string.
func (p *parser) escape() (rune, error) {
	start := p.pos
	if p.pos += 2; p.pos > len(p.text) {
		return 0, p.at(start, "the string has no end in its line")
	}
	c := p.text[start+1]
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if digits == 0 {
		i := strings.IndexByte(`\"'/nrtfvb0`, c)
		if i < 0 {
			r, _ := utf8.DecodeRune(p.text[start+1:])
			return 0, p.at(start, `unknown escape \%c; known are \, ", ', /, n, r, t, f, v, b, 0, x, u and U`, r)
		}
		return rune("\\\"'/\n\r\t\f\v\b\x00"[i]), nil
	}
	text := string(p.text[p.pos:min(p.pos+digits, len(p.text))])
	n, err := strconv.ParseUint(text, 16, 32)
	if err != nil || len(text) < digits {
		return 0, p.at(start, "expected %d hexadecimal digits, found %q", digits, text)
	}
	if n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return 0, p.at(start, "U+%04X is not a code point of a text", n)
	}
	p.pos += digits
	return rune(n), nil
}

// regexp reads an expression between slashes and its flags; the space after it is skipped.
func (p *parser) regexp() (*node, error) {
	n := &node{kind: isRegexp, pos: p.pos}
	var text []byte
	lines := false // the expression may go on over lines
	for p.pos++; p.here() != '/'; p.pos++ {
		c := p.here()
		lines = lines || c == '\n' && strings.Contains(p.flagsAfter(), "x")
		switch {
		case p.pos >= len(p.text) || c == '\n' && !lines:
			return nil, p.at(n.pos, "the expression has no / in its line")
		case c == '\\' && p.pos+1 < len(p.text):
			if p.pos++; p.here() != '/' {
				text = append(text, '\\')
			}
			text = append(text, p.here())
		default:
			text = append(text, c)
		}
	}
	p.pos++
	start := p.pos
	for 'a' <= p.here() && p.here() <= 'z' {
		p.pos++
	}
	n.text, n.flags = string(text), string(p.text[start:p.pos])
	if i := strings.IndexFunc(n.flags, func(r rune) bool { return !strings.ContainsRune("imsxu", r) }); i >= 0 {
		return nil, p.at(start+i, "unknown flag %q of an expression; known are i, m, s, x and u", n.flags[i])
	}
	p.space()
	return n, nil
}

// flagsAfter returns the flags of an expression that goes on over several lines: those after its last slash.
func (p *parser) flagsAfter() string {
	rest := p.text[p.pos:]
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '/':
			end := i + 1
			for end < len(rest) && 'a' <= rest[end] && rest[end] <= 'z' {
				end++
			}
			return string(rest[i+1 : end])
		}
	}
	return ""
}
