package answer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// gemmaQuote is on both sides of a string of Gemma, which has no escapes.
const gemmaQuote = `<|"|>`

// literals turns values as Python and Gemma write them into JSON.
type literals struct {
	text  []byte
	at    int
	depth int
	out   []byte
}

// literal returns a value as JSON.
func literal(text []byte) ([]byte, bool) {
	p := literals{text: text}
	ok := p.value() && !p.more()
	return p.out, ok
}

// more reads white space and reports whether there is more.
func (p *literals) more() bool {
	for p.at < len(p.text) && strings.IndexByte(blanks, p.text[p.at]) >= 0 {
		p.at++
	}
	return p.at < len(p.text)
}

// eat reads a byte behind white space, if it is there.
func (p *literals) eat(c byte) bool {
	if p.more() && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

// value reads a value: a string, a number, a list, a tuple, a dict, true, false or nothing.
func (p *literals) value() bool {
	if !p.more() || p.depth > maxDepth {
		return false
	}
	switch c := p.text[p.at]; {
	case strings.IndexByte("\"'<", c) >= 0:
		return p.string()
	case c == '[' || c == '(':
		p.at++
		return p.list('[', map[byte]byte{'[': ']', '(': ')'}[c], p.value)
	case c == '{':
		p.at++
		return p.list('{', '}', func() bool { return p.pair(':') })
	}
	w := p.word()
	if w = cmp.Or(map[string]string{"True": "true", "False": "false", "None": "null"}[w], w); !json.Valid([]byte(w)) {
		return false
	}
	p.out = append(p.out, w...)
	return true
}

// word reads a name or a number.
func (p *literals) word() string {
	p.more()
	from := p.at
	for p.at < len(p.text) && strings.IndexByte(blanks+",:=()[]{}\"'<", p.text[p.at]) < 0 {
		p.at++
	}
	return string(p.text[from:p.at])
}

// list reads values with commas between, up to the end, and writes them as a list or an object, as the byte open says.
func (p *literals) list(open, end byte, item func() bool) bool {
	p.depth++
	p.out = append(p.out, open)
	for first := true; !p.eat(end); first = false {
		if !first {
			if !p.eat(',') {
				return false
			}
			if p.eat(end) { // a comma may be the last
				break
			}
			p.out = append(p.out, ',')
		}
		if !item() {
			return false
		}
	}
	p.depth--
	p.out = append(p.out, open+2) // ] and } in ASCII
	return true
}

// pair reads a key, a sign and a value.
func (p *literals) pair(sign byte) bool {
	if !p.more() {
		return false
	}
	if key := p.word(); key != "" {
		p.out = append(p.out, quote(key)...)
	} else if !p.string() {
		return false
	}
	if !p.eat(sign) {
		return false
	}
	p.out = append(p.out, ':')
	return p.value()
}

// arguments reads the arguments of a call in brackets and writes them as an object.
func (p *literals) arguments() bool {
	return p.eat('(') && p.list('{', ')', func() bool { return p.pair('=') })
}

// string reads a string.
func (p *literals) string() bool {
	if rest, ok := bytes.CutPrefix(p.text[p.at:], []byte(gemmaQuote)); ok {
		text, _, ok := bytes.Cut(rest, []byte(gemmaQuote))
		p.at += len(text) + 2*len(gemmaQuote)
		p.out = append(p.out, quote(string(text))...)
		return ok
	}
	mark := p.text[p.at]
	if mark != '"' && mark != '\'' {
		return false
	}
	var b []byte
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == mark:
			p.at++
			p.out = append(p.out, quote(string(b))...)
			return true
		case c == '\\' && p.at+1 < len(p.text):
			longest := string(p.text[p.at:min(len(p.text), p.at+len(`\U0010FFFF`))])
			if char, _, rest, err := strconv.UnquoteChar(longest, mark); err == nil {
				b = utf8.AppendRune(b, char)
				p.at += len(longest) - len(rest) - 1
			} else if strings.IndexByte("'\"/", p.text[p.at+1]) < 0 { // an unknown escape stays
				b = append(b, c)
			}
		default:
			b = append(b, c)
		}
	}
	return false
}
