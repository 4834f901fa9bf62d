package answer

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// Reader reads one answer. It is for one goroutine. Its work is linear in the text. The parts, joined, are the answer without markers and
// white space around thoughts and calls. A text behind a marker that is no call of a known function, or exceeds the bounds, is content.
type Reader struct {
	o         Options
	functions *functions
	markers   []marker  // what may interrupt content, the longest first
	first     [256]bool // their first bytes
	calls     int       // so far
	done      bool      // OneCall: it has been made

	buf      []byte // text that is not read for good: of at on
	at       int
	seen     int      // no marker begins before
	machine  *machine // reads a call; nil: none
	form     *form    // of the call
	borrowed int      // bytes of buf that are of the prompt
	thought  *Markers // of the thoughts that go on; nil: content
	message  message  // gpt-oss

	fresh    bool   // there was only white space since the beginning, thoughts or a call
	cut      bool   // white space here is dropped
	thoughts bool   // there were thoughts
	wrapped  string // the text that ends the wrapper of the content; "": there is none
	space    []byte // white space that may be dropped

	flow flow // of the call that goes on

	out  []Part
	kind Kind
	text strings.Builder // the part that goes on
}

// marker is a text that interrupts content.
type marker struct {
	text  string
	start bool     // only with nothing but white space before
	think *Markers // it begins thoughts
	form  *form    // it begins a call
	wrap  string   // it begins a wrapper that ends with this text
}

// NewReader returns the reader of an answer.
func NewReader(o Options) *Reader {
	r := &Reader{o: o, functions: newFunctions(o.Tools), fresh: true}
	f := &r.o.Format
	if f.channels {
		r.openMessage()
		return r
	}
	for i := range f.thoughts {
		r.markers = append(r.markers, marker{text: f.thoughts[i].Begin, start: true, think: &f.thoughts[i]}, marker{text: f.thoughts[i].End, start: true})
	}
	if len(r.functions.all) > 0 {
		for i := range f.forms {
			if f.forms[i].loose && o.Certain {
				continue
			}
			r.markers = append(r.markers, marker{text: f.forms[i].begin, start: f.forms[i].bare, form: &f.forms[i]})
		}
	}
	for _, text := range f.dropped {
		r.markers = append(r.markers, marker{text: text})
	}
	for _, w := range f.wrappers {
		if !o.Inline {
			r.markers = append(r.markers, marker{text: w[0], start: true, wrap: w[1]}, marker{text: w[1], wrap: w[1]})
		}
	}
	slices.SortStableFunc(r.markers, func(a, b marker) int { return cmp.Compare(len(b.text), len(a.text)) })
	for _, m := range r.markers {
		r.first[m.text[0]] = true
		if m.form != nil && m.text == ">>>" && strings.HasSuffix(o.Tail, m.text) { // the prompt begins the call
			r.buf, r.borrowed = []byte(m.text), len(m.text)
		}
	}
	if m, ok := f.Inside(o.Tail); ok {
		r.thought, r.cut = &m, true
	} else {
		r.cut = slices.ContainsFunc(f.thoughts, func(m Markers) bool { return strings.HasSuffix(strings.TrimRight(o.Tail, blanks), m.End) })
	}
	return r
}

// Add reads further text of the answer and returns the parts that are certain with it. control is the spelling of a control token
// that the text does not show, "" where there is none.
func (r *Reader) Add(text, control string) []Part {
	if r.done {
		return nil
	}
	r.buf = append(r.buf, text...)
	if control != "" && !strings.Contains(text, control) && r.o.Format.isMark(control) {
		r.control(control)
	}
	r.run(false)
	return r.flush()
}

// End returns the rest when the answer ends, but for one that [Reader.Cut] ends.
func (r *Reader) End() []Part {
	if r.done {
		return nil
	}
	r.run(true)
	behind := r.thought != nil || r.message.open && r.message.kind == Reasoning || r.cut || r.fresh && r.calls > 0
	if !behind || r.o.Inline && r.calls == 0 {
		r.emit(Content, r.space)
	}
	r.space, r.done = nil, true
	return r.flush()
}

// Done reports whether the answer is complete before its text ends: with [Options.OneCall], its call is made. Further text is dropped.
func (r *Reader) Done() bool { return r.done }

// control reads a control token. The model cannot have meant it as text, so that it begins thoughts anywhere, and a call in thoughts.
// Of a marker of thoughts it may be the beginning.
func (r *Reader) control(text string) {
	i := slices.IndexFunc(r.markers, func(m marker) bool {
		return m.text == text && m.form != nil || m.think != nil && (m.text == text || r.thought == nil && strings.HasPrefix(m.text, text))
	})
	if i >= 0 {
		r.run(false)
	}
	if i >= 0 && r.machine == nil && (r.thought == nil) == (r.markers[i].think != nil) {
		if rest := r.take(len(r.buf)); r.thought != nil {
			r.reason(rest)
			r.endThought("")
		} else {
			r.content(rest)
		}
		r.fresh = true
	}
	r.buf = append(r.buf, text...)
}

// run reads the text as far as it is certain.
func (r *Reader) run(ended bool) {
	for goOn := true; goOn && !r.done; {
		switch {
		case r.o.Format.channels:
			goOn = r.readMessages(ended)
		case r.machine != nil:
			goOn = r.readCall(ended)
		case r.thought != nil:
			goOn = r.readThought(ended)
		default:
			goOn = r.readContent(ended)
		}
	}
	if r.at > 0 {
		n := copy(r.buf, r.buf[r.at:])
		r.buf, r.seen, r.at = r.buf[:n], max(r.seen-r.at, 0), 0
	}
}

// take returns the text up to an offset, which is read with it. Text of the prompt is left out.
func (r *Reader) take(end int) []byte {
	text := r.buf[r.at:end]
	n := min(r.borrowed, len(text))
	r.borrowed -= n
	r.at, r.seen = end, end
	return text[n:]
}

// readContent reads up to the next marker.
func (r *Reader) readContent(ended bool) bool {
	at, m := r.next(ended)
	if m == nil {
		if r.content(r.take(at)); ended {
			r.content(r.take(len(r.buf)))
		}
		return false
	}
	r.content(r.take(at))
	switch {
	case m.form != nil:
		r.form, r.machine = m.form, &machine{prog: m.form.prog}
		if !m.form.bare {
			r.machine.pos = len(m.text)
		}
	case m.think != nil:
		r.take(at + len(m.text))
		r.thought, r.cut = m.think, true
		if r.space = r.space[:0]; r.o.Inline {
			r.emit(Content, []byte(m.text))
		}
	default:
		r.take(at + len(m.text))
		if m.wrap == m.text {
			r.wrapped = ""
		} else if m.wrap != "" {
			r.wrapped = m.wrap
		}
	}
	return true
}

// next returns the next marker and its offset. Where there is none, the offset is that of the text that could begin one.
func (r *Reader) next(ended bool) (int, *marker) {
	start := r.fresh // nothing but white space comes before
	for i := max(r.seen, r.at); i < len(r.buf); i++ {
		c := r.buf[i]
		if r.first[c] {
			for k := range r.markers {
				m := &r.markers[k]
				if m.text[0] != c || m.start && !start || m.form != nil && r.calls >= MaxCalls || m.wrap != "" && (m.wrap == m.text) != (r.wrapped == m.wrap) {
					continue
				}
				n := min(len(m.text), len(r.buf)-i)
				if m.text[:n] != string(r.buf[i:i+n]) {
					continue
				}
				if n == len(m.text) {
					return i, m
				}
				if !ended {
					return i, nil
				}
			}
		}
		start = start && strings.IndexByte(blanks, c) >= 0
	}
	return len(r.buf), nil
}

// readCall reads a call.
func (r *Reader) readCall(ended bool) bool {
	text := r.buf[r.at:min(len(r.buf), r.at+maxHeld)]
	r.machine.cut = r.o.cut
	got, calls := r.machine.run(text, ended, r.functions)
	switch {
	case got == called && r.calls+len(calls) > MaxCalls:
		got = failed
	case (got == more || got == failed) && (ended || len(text) == maxHeld) && r.cutOff():
		return true
	case (got == more || got == failed) && ended && r.o.cut && r.leaveCall(text):
		return true
	case got == more && (ended || len(text) == maxHeld):
		got, r.machine.pos = failed, len(text)
	case got == more:
		r.flowing(text)
		return false
	}
	r.flow = flow{}
	switch got {
	case called:
		r.take(r.at + r.machine.pos)
		r.machine.pos, r.machine.seen = 0, 0
		for _, c := range calls {
			r.call(c)
		}
	case failed:
		n := r.machine.pos
		if r.machine = nil; n == 0 && r.form.bare { // the bracket is read, or it would begin a call again
			n = 1
		}
		r.content(r.take(r.at + n))
	case done:
		r.take(r.at + r.machine.pos)
		r.machine = nil
	}
	return got != more
}

// call adds a call.
func (r *Reader) call(c Call) {
	if r.done {
		return
	}
	c.ID = callID(r.o.ID, r.calls)
	r.calls++
	r.space, r.fresh, r.cut = r.space[:0], true, false
	r.end()
	r.out = append(r.out, Part{Kind: CallPart, Call: &c})
	r.done = r.o.OneCall
}

// readThought reads up to the end of the thoughts.
func (r *Reader) readThought(ended bool) bool {
	end := r.thought.End
	from := max(r.at, r.seen)
	if at := bytes.Index(r.buf[from:], []byte(end)); at >= 0 {
		r.reason(r.take(from + at))
		r.take(r.at + len(end))
		r.endThought(end)
		return true
	}
	r.reason(r.take(len(r.buf) - partial(r.buf[from:], end, ended)))
	return false
}

// partial returns the length of the longest beginning of the marker that the text ends with.
func partial(text []byte, marker string, ended bool) int {
	for n := min(len(marker)-1, len(text)); n > 0 && !ended; n-- {
		if strings.HasPrefix(marker, string(text[len(text)-n:])) {
			return n
		}
	}
	return 0
}

// endThought ends the thoughts, whose marker is written where thoughts stay in the content.
func (r *Reader) endThought(end string) {
	r.thought, r.space, r.fresh, r.cut = nil, r.space[:0], true, true
	if r.o.Inline {
		r.emit(Content, []byte(end))
		r.cut = false
	}
}

// reason adds to the thoughts, without the white space around them.
func (r *Reader) reason(text []byte) {
	if r.o.Inline {
		r.emit(Content, text)
		return
	}
	body := bytes.TrimRight(text, blanks)
	if len(body) == 0 {
		if !r.cut {
			r.space = append(r.space, text...)
		}
		return
	}
	if r.cut && r.thoughts { // a line apart from the thoughts before
		r.space = append(r.space, "\n\n"...)
	}
	r.emit(Reasoning, r.space)
	r.space = append(r.space[:0], text[len(body):]...)
	if r.cut {
		body = bytes.TrimLeft(body, blanks)
	}
	r.cut, r.thoughts = false, true
	r.emit(Reasoning, body)
}

// content adds to the content. White space waits until it is certain that no thoughts and no call are beside it.
func (r *Reader) content(text []byte) {
	body := bytes.TrimRight(text, blanks)
	if len(body) == 0 {
		r.space = append(r.space, text...)
	} else {
		if r.cut { // line breaks and the spaces before them
			r.space = append(r.space, body...)
			n := len(r.space) - len(bytes.TrimLeft(r.space, blanks))
			if at := bytes.LastIndexByte(r.space[:n], '\n'); at >= 0 {
				n = at + 1
			}
			body = r.space[n:]
		} else {
			r.emit(Content, r.space)
		}
		r.emit(Content, body)
		r.space = append(r.space[:0], text[len(bytes.TrimRight(text, blanks)):]...)
		r.fresh, r.cut = false, false
	}
	if len(r.functions.all) == 0 && !r.o.Format.channels && !r.cut && !(r.fresh && len(r.o.Format.thoughts) > 0) {
		r.emit(Content, r.space)
		r.space = r.space[:0]
	}
}

// emit adds text to the part that goes on, or begins one.
func (r *Reader) emit(kind Kind, text []byte) {
	if len(text) == 0 {
		return
	}
	if kind != r.kind {
		r.end()
		r.kind = kind
	}
	r.text.Write(text)
}

// end ends the part that goes on.
func (r *Reader) end() {
	if r.text.Len() > 0 {
		r.out = append(r.out, Part{Kind: r.kind, Text: r.text.String()})
		r.text.Reset()
	}
}

// flush returns the parts so far.
func (r *Reader) flush() []Part {
	r.end()
	out := r.out
	r.out = nil
	return out
}
