package answer

import (
	"cmp"
	"encoding/json"
	"strings"
)

// flow follows calls while they are written: it finds the names of their functions and their arguments, as compact JSON, in the text that
// a [machine] has not read to its end. It holds for calls that will be calls: what a constraint writes. No byte is read twice.
type flow struct {
	calls   int    // that have begun
	begun   bool   // the last one's name is known, and told
	fed     int    // bytes of the text of the machine
	args    int    // arguments of the machine that were told
	depth   int    // of brackets
	level   int    // the depth within the object of a call
	quoted  bool   // within a string
	escape  bool   // behind a backslash in it
	value   bool   // behind a colon
	inside  bool   // within the arguments
	word    []byte // the string that goes on, of the call's object
	key     string
	name    string
	written []byte // arguments that are not told
	last    Call   // that has begun last
	told    []byte // of its arguments
}

// object reads bytes of the object of a call, or of a list of them, and reports names and arguments. name is that of the function where
// the object is its arguments; "": the object has it.
func (f *flow) object(text []byte, name string, begin func(name string), tell func(arguments string)) {
	for _, c := range text {
		if f.depth == 0 && !f.quoted {
			f.level = 1
			if c == '[' {
				f.level = 2
			}
			if name != "" && c == '{' {
				f.level, f.inside = 0, true
				begin(name)
			}
		}
		f.next(c, begin)
		if f.inside && f.depth == f.level && !f.quoted { // the arguments end
			f.inside, f.key, f.name = false, "", ""
		}
	}
	if len(f.written) > 0 {
		tell(string(f.written))
		f.written = f.written[:0]
	}
}

// next reads a byte.
func (f *flow) next(c byte, begin func(name string)) {
	blank := !f.quoted && strings.IndexByte(blanks, c) >= 0
	if f.inside && !blank {
		f.written = append(f.written, c)
	}
	switch {
	case f.escape:
		f.escape = false
	case f.quoted && c == '\\':
		f.escape = true
	case f.quoted && c == '"':
		f.quoted = false
		f.string()
	case f.quoted:
	case c == '"':
		f.quoted, f.word = true, f.word[:0]
		return
	case c == ':' && f.depth == f.level:
		f.value = true
	case c == ',' && f.depth == f.level:
		f.value = false
	case c == '{' || c == '[':
		if c == '{' && f.depth == f.level && f.value && f.name != "" && (f.key == "arguments" || f.key == "parameters") {
			f.inside, f.written = true, append(f.written, c)
			begin(f.name)
		}
		if f.depth++; f.depth == f.level {
			f.value = false
		}
	case c == '}' || c == ']':
		f.depth--
	}
	if f.quoted && f.depth == f.level && !f.inside {
		f.word = append(f.word, c)
	}
}

// string ends a string of the object of a call.
func (f *flow) string() {
	if f.depth != f.level || f.inside {
		return
	}
	var text string
	if json.Unmarshal([]byte(`"`+string(f.word)+`"`), &text) != nil {
		return
	}
	switch {
	case !f.value:
		f.key = text
	case f.key == "name" || f.key == "tool_name":
		f.name = text
	}
}

// flow reports what a call that goes on says so far.
func (r *Reader) flowing(text []byte) {
	m := r.machine
	if !r.o.Certain || m.pc >= len(m.prog) {
		return
	}
	f := &r.flow
	name := cmp.Or(m.fields[fieldName], m.fields[fieldID]) // as [named] has it
	switch o := &m.prog[m.pc]; {
	case o.do == doObject && m.nest.depth() > 0 && !m.nest.python:
		f.fed = max(f.fed, m.pos)
		f.object(text[f.fed:m.seen], name, r.begun, r.told)
		f.fed = m.seen
	case name != "" && len(m.args) > f.args:
		if f.args == 0 {
			r.begun(name)
		}
		for ; f.args < len(m.args); f.args++ {
			open := "{"
			if f.args > 0 {
				open = ","
			}
			key, value := r.functions.argument(name, m.args[f.args])
			r.told(open + string(quote(key)) + ":" + string(value))
		}
	}
}

// begun reports that a call of a function has begun.
func (r *Reader) begun(name string) {
	if name = r.functions.known(name); name == "" || r.done || r.calls+r.flow.calls >= MaxCalls {
		return
	}
	r.end()
	r.space = r.space[:0]
	r.flow.last = Call{ID: callID(r.o.ID, r.calls+r.flow.calls), Name: name, Cut: true}
	r.out = append(r.out, Part{Kind: CallBegin, Call: &Call{ID: r.flow.last.ID, Name: name}})
	r.flow.begun, r.flow.told = true, r.flow.told[:0]
	r.flow.calls++
}

// told reports arguments of the call that has begun.
func (r *Reader) told(arguments string) {
	if r.flow.begun && !r.done {
		r.flow.told = append(r.flow.told, arguments...)
		r.out = append(r.out, Part{Kind: CallText, Text: arguments})
	}
}

// cutOff reports the call in which the answer ends, if its arguments have begun.
func (r *Reader) cutOff() bool {
	if !r.flow.begun {
		return false
	}
	c := r.flow.last
	c.Arguments = string(r.flow.told)
	r.calls += r.flow.calls
	r.flow, r.machine, r.message = flow{}, nil, message{}
	r.take(len(r.buf))
	r.out = append(r.out, Part{Kind: CallPart, Call: &c})
	return true
}
