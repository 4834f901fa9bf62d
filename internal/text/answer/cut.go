package answer

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// Cut is [Reader.End] for an answer that its bound of tokens cut. What begins a call is no content then: the call is one that is cut
// where its arguments have begun, and left out before.
func (r *Reader) Cut() []Part {
	if r.done {
		return nil
	}
	r.run(false)
	r.o.cut = true
	if r.machine == nil && r.thought == nil && !r.o.Format.channels && r.partial(r.buf) {
		r.leave()
	}
	return r.End()
}

// leave drops the text that is not read, and the white space before it, as that before a call.
func (r *Reader) leave() {
	r.take(len(r.buf))
	r.flow, r.machine, r.space = flow{}, nil, r.space[:0]
}

// partial reports whether a text is the beginning of a marker: where a call is not certain, one that is no beginning of a word or of a
// comparison.
func (r *Reader) partial(text []byte) bool {
	for _, m := range r.markers {
		if m.wrap != "" || m.start && !r.fresh || m.form != nil && (m.form.bare || m.form.loose) || len(text) == 0 || !strings.HasPrefix(m.text, string(text)) {
			continue
		}
		if r.o.Certain || len(text) > 1 && bytes.ContainsAny(text, "<[") {
			return true
		}
	}
	return false
}

// leaveCall ends a call that is cut. It reports false for a text that may be an object or a list that is no call.
func (r *Reader) leaveCall(text []byte) bool {
	certain := r.o.Certain
	if !certain { // else what is known of the call has been told
		r.o.Certain = true
		r.flowing(text)
	}
	if r.cutOff() {
		return true
	}
	word := !strings.ContainsAny(r.form.begin, "<[>") && len(text) == len(r.form.begin)
	if !certain && (word || (r.form.bare || r.form.loose) && !r.functions.named(text)) {
		return false
	}
	r.leave()
	return true
}

// firstName finds the name of a call that is an object, as far as it goes.
var firstName = regexp.MustCompile(`^\s*\{\s*"name"\s*:\s*"([^"]*)("?)`)

// named reports whether a text goes as far as the name of a function, which it may have begun.
func (f *functions) named(text []byte) bool {
	found := firstName.FindSubmatch(text)
	list, isList := bytes.CutPrefix(text, []byte("["))
	name := strings.TrimLeft(string(list), blanks)
	for known := range f.all {
		switch {
		case found != nil && (string(found[1]) == known || len(found[2]) == 0 && strings.HasPrefix(known, string(found[1]))):
			return true
		case isList && name != "" && (strings.HasPrefix(known, name) || strings.HasPrefix(name, known+"(")):
			return true
		}
	}
	return false
}

// leaveMessage ends a message of gpt-oss that is cut, if it is a call or the header of one.
func (r *Reader) leaveMessage() bool {
	m := &r.message
	body := bytes.TrimSpace(r.buf[r.at:])
	if !m.open {
		if !r.o.Certain && !bytes.HasPrefix(body, []byte("to=")) {
			return false
		}
		r.leave()
		return true
	}
	if m.call == "" {
		if at, _ := r.bodyEnd(false); r.o.Certain || len(r.buf)-at > 1 { // a mark that has begun
			r.buf = r.buf[:at]
		}
		return false
	}
	if json.Valid(body) {
		return false
	}
	if f := &r.flow; !r.o.Certain {
		r.o.Certain = true
		f.object(r.buf[r.at:], m.call, r.begun, r.told)
	}
	if !r.cutOff() {
		r.leave()
	}
	m.call = ""
	return true
}
