package answer

import (
	"bytes"
	"slices"
	"strings"
)

// A program reads the calls of a form: its operations read the text behind the form's marker, one after the other, as far as it has
// arrived. No byte is read twice: the work is linear in the text, however it arrives.
type program []op

type op struct {
	do    verb
	text  string
	field field
	jump  int // relative: where the text is not there
	build func(c *functions, m *machine) ([]Call, bool)
}

type verb uint8

const (
	doWant   verb = iota // the text follows
	doOpt                // the text may follow
	doWhen               // go on where the text follows; jump where not
	doPeek               // go on where one of the text's bytes follows, which is not read; jump where not
	doJump               // jump
	doFind               // read up to the text, into a field
	doWord               // read a word into a field
	doCoder              // read a value of Qwen3-Coder up to its end
	doObject             // read a value in brackets, which begins with one of the text's bytes
	doBegins             // fail unless the text begins like a call
	doCall               // the fields are calls
)

// field is what an operation reads.
type field uint8

const (
	fieldName   field = iota // of the function
	fieldID                  // of the call, or DeepSeek's type of it
	fieldKey                 // name of an argument
	fieldValue               // its value: adds the argument
	fieldText                // Gemma's arguments; of DeepSeek V3.2's argument, whether its value is a text
	fieldObject              // a value in brackets
	nFields
)

// The functions that make programs are not inlined, as they are called once and the program of the machine is smaller so.
//
//go:noinline
func want(text string) program { return program{{do: doWant, text: text}} }

//go:noinline
func opt(text string) program { return program{{do: doOpt, text: text}} }

//go:noinline
func when(text string) program { return program{{do: doWhen, text: text}} }

//go:noinline
func peek(bytes string) program { return program{{do: doPeek, text: bytes}} }

//go:noinline
func find(f field, text string) program { return program{{do: doFind, text: text, field: f}} }

//go:noinline
func word(f field) program { return program{{do: doWord, field: f}} }

//go:noinline
func object(begin string) program { return program{{do: doObject, text: begin, field: fieldObject}} }

var (
	begins     = program{{do: doBegins}}
	plain      = program{{do: doBegins, text: "{"}}
	coderValue = program{{do: doCoder, field: fieldValue}}
)

//go:noinline
func call(build func(*functions, *machine) ([]Call, bool)) program {
	return program{{do: doCall, build: build}}
}

//go:noinline
func seq(all ...program) program { return slices.Concat(all...) }

// either executes yes where the condition holds, no where it does not.
func either(cond, yes, no program) program {
	cond = slices.Clone(cond)
	cond[0].jump = len(yes) + 2
	return seq(cond, yes, program{{do: doJump, jump: len(no) + 1}}, no)
}

// repeat executes the body as often as the condition holds.
func repeat(cond program, body ...program) program {
	cond, all := slices.Clone(cond), seq(body...)
	cond[0].jump = len(all) + 2
	return seq(cond, all, program{{do: doJump, jump: -len(all) - 1}})
}

// loop executes the body behind each of the texts that follow.
//
//go:noinline
func loop(text string, body ...program) program { return repeat(when(text), body...) }

// argument is an argument of a call whose value is a text.
type argument struct {
	key, value string
	kind       string // DeepSeek V3.2: "true" where the value is a string, "false" where it is JSON
}

// machine executes a program. Offsets count from the beginning of the text that it is given, which is the same text each time, and
// longer; behind calls it begins anew.
type machine struct {
	prog   program
	pc     int
	pos    int // what is read
	seen   int // what has been looked at for the end of a field
	nest   brackets
	fields [nFields]string
	args   []argument
	cut    bool // the answer is cut where its text ends: a name is whole only with what follows it
}

// outcome is how far a machine came.
type outcome uint8

const (
	more   outcome = iota // it needs more text
	failed                // the text is no call
	called                // there are calls; the program goes on
	done                  // the program has ended
)

const blanks = " \t\r\n"

// run executes the program on a text. ended says that no more text comes: markers at its end may be cut off.
func (m *machine) run(text []byte, ended bool, f *functions) (outcome, []Call) {
	for m.pc < len(m.prog) {
		o := &m.prog[m.pc]
		next := m.pc + 1
		switch o.do {
		case doJump:
			next = m.pc + o.jump
		case doWant, doOpt, doWhen, doPeek:
			found, sure := m.literal(text, o, ended)
			switch {
			case !sure:
				return more, nil
			case !found && o.do == doWant:
				return failed, nil
			case !found && o.do != doOpt:
				next = m.pc + o.jump
			}
		case doCall:
			calls, ok := o.build(f, m)
			if !ok {
				return failed, nil
			}
			m.pc, m.fields, m.args = next, [nFields]string{}, nil
			return called, calls
		default:
			if got := m.read(text, o, ended, f); got != done {
				return got, nil
			}
		}
		m.pc = next
	}
	return done, nil
}

// skip reads white space.
func (m *machine) skip(text []byte) {
	for m.pos < len(text) && strings.IndexByte(blanks, text[m.pos]) >= 0 {
		m.pos++
	}
}

// literal reads white space and the text of an operation, if that follows. sure is false where more text decides.
func (m *machine) literal(text []byte, o *op, ended bool) (found, sure bool) {
	m.skip(text)
	rest := text[m.pos:]
	switch {
	case o.do == doPeek && len(rest) > 0:
		return strings.IndexByte(o.text, rest[0]) >= 0, true
	case o.do != doPeek && bytes.HasPrefix(rest, []byte(o.text)):
		m.pos += len(o.text)
		return true, true
	case len(rest) < len(o.text) && strings.HasPrefix(o.text, string(rest)) && (o.do != doPeek || len(rest) == 0):
		if !ended {
			return false, false
		}
		if o.do == doWant || o.do == doOpt { // the answer ended within the marker
			m.pos = len(text)
			return o.do == doOpt || !m.cut || len(rest) > 1, true // of one letter, a cut answer may have begun another marker
		}
		if m.cut && o.do == doWhen {
			m.pos = len(text)
		}
	}
	return false, true
}

// read reads a field.
func (m *machine) read(text []byte, o *op, ended bool, f *functions) outcome {
	at, size, sure := 0, 0, true // of the end of the field, and of the text behind it
	switch o.do {
	case doBegins:
		m.skip(text)
		return f.begins(text[m.pos:], ended, o.text != "")
	case doCoder:
		if at, size, sure = m.coderValue(text, ended); !sure && !ended {
			return more
		}
	case doFind:
		size = len(o.text)
		from := max(m.pos, m.seen-size+1)
		at = bytes.Index(text[from:], []byte(o.text))
		if sure = at >= 0; sure {
			at += from
		}
	case doWord:
		m.skip(text)
		at = bytes.IndexAny(text[m.pos:min(len(text), m.pos+maxName+1)], blanks+"<>\"`[({|=")
		if at >= 0 {
			at += m.pos
		} else {
			at, sure = len(text), ended && !m.cut
		}
	case doObject:
		if at, sure = m.object(text, o.text); sure && at == 0 {
			return failed
		}
	}
	short := o.field <= fieldKey
	if !sure && !ended && (!short || len(text)-m.pos <= maxName) {
		m.seen = max(m.seen, len(text))
		return more
	}
	if !sure || short && at-m.pos > maxName {
		m.pos = len(text)
		return failed
	}
	m.fields[o.field] = string(text[m.pos:at])
	if o.do == doCoder && size == 0 { // the line breaks around it are not its own
		m.fields[o.field] = "\n" + strings.TrimSuffix(strings.TrimPrefix(m.fields[o.field], "\n"), "\n") + "\n"
	}
	m.pos, m.seen = at+size, 0
	switch o.field {
	case fieldName:
		if m.fields[fieldName] = f.known(m.fields[fieldName]); m.fields[fieldName] == "" {
			return failed
		}
	case fieldValue:
		m.args = append(m.args, argument{m.fields[fieldKey], m.fields[fieldValue], m.fields[fieldText]})
	}
	return done
}

// The ends of a value of Qwen3-Coder. It forgets the first one now and then; the others begin what follows.
const (
	coderEnd  = "</parameter>"
	coderNext = "<parameter="
	coderLast = "</function>"
)

// coderValue returns the end of a value of Qwen3-Coder and the size of its marker. A value without a marker ends where the next one
// begins, or where its function does: a closing tag of a function with that of a call behind it, as a value may well have the first.
func (m *machine) coderValue(text []byte, ended bool) (at, size int, sure bool) {
	begins := func(rest []byte, marker string) (found, unsure bool) {
		n := min(len(rest), len(marker))
		same := marker[:n] == string(rest[:n])
		return same && n == len(marker), same && n < len(marker) && !ended
	}
	for at = max(m.pos, m.seen); at < len(text); at++ {
		n := bytes.IndexByte(text[at:], '<')
		if n < 0 {
			break
		}
		at += n
		end, unsure := begins(text[at:], coderEnd)
		next, unsure2 := begins(text[at:], coderNext)
		last, unsure3 := begins(text[at:], coderLast)
		if last {
			const most = 64 // blanks
			behind := text[at+len(coderLast):]
			rest := bytes.TrimLeft(behind[:min(len(behind), most)], blanks)
			last = ended && len(rest) == 0 && len(behind) < most
			for _, close := range []string{"</tool_call>", "</seed:tool_call>"} {
				found, unsure := begins(behind[min(len(behind), most)-len(rest):], close)
				last, unsure3 = last || found, unsure3 || unsure && len(behind) < 2*most
			}
		}
		switch {
		case end:
			return at, len(coderEnd), true
		case next || last:
			return at, 0, true
		case unsure || unsure2 || unsure3:
			m.seen = at
			return 0, 0, false
		}
	}
	m.seen = len(text)
	return 0, 0, false
}

// object returns the end of the value in brackets that follows; 0 where none follows or its brackets do not match.
func (m *machine) object(text []byte, begin string) (end int, sure bool) {
	if m.nest.depth() == 0 {
		m.skip(text)
		if m.pos == len(text) {
			return 0, false
		}
		if strings.IndexByte(begin, text[m.pos]) < 0 {
			return 0, true
		}
		m.seen = m.pos
		m.nest = brackets{python: text[m.pos] != '{' && begin != "[{" && begin != "{["}
	}
	for ; m.seen < len(text); m.seen++ {
		if !m.nest.next(text[m.seen]) {
			m.pos = m.seen
			m.nest = brackets{}
			return 0, true
		}
		if m.nest.depth() == 0 {
			return m.seen + 1, true
		}
	}
	return 0, false
}

// brackets finds the end of a value in brackets.
type brackets struct {
	python bool // strings may have single quotes
	open   []byte
	quote  byte // of the string that goes on; 0: none
	escape bool
}

func (b *brackets) depth() int { return len(b.open) }

// next reads a byte and reports whether the brackets match so far and are no deeper than maxDepth.
func (b *brackets) next(c byte) bool {
	switch {
	case b.escape:
		b.escape = false
	case b.quote != 0 && c == '\\':
		b.escape = true
	case b.quote != 0:
		if c == b.quote {
			b.quote = 0
		}
	case c == '"' || c == '\'' && b.python:
		b.quote = c
	case c == '{' || c == '[' || c == '(':
		b.open = append(b.open, c)
		return len(b.open) <= maxDepth
	case c == '}' || c == ']' || c == ')':
		match := b.open[len(b.open)-1] == map[byte]byte{'}': '{', ']': '[', ')': '('}[c]
		b.open = b.open[:len(b.open)-1]
		return match
	}
	return true
}
