package answer

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A gpt-oss answer is a list of messages. Each has a header, which names its channel and the function that it calls, and a body:
//
//	<|start|>assistant to=functions.name<|channel|>commentary <|constrain|>json<|message|>{...}<|call|>
//
// The channel analysis has thoughts, commentary has calls and remarks for the user, final has the answer. The prompt writes the
// beginning of the first header.

// bodyEnds end the body of a message. The last two begin a header.
var bodyEnds = []string{"<|end|>", "<|return|>", "<|call|>", "<|start|>", channelMark}

// maxHeader bounds a header with its mark, in bytes.
const maxHeader = 1024

// message is the message that goes on.
type message struct {
	open   bool // its header has ended
	kind   Kind
	call   string // the function that it calls; "": none
	header string // to be content if the call is none
}

// openMessage reads the beginning of a message that the prompt has.
func (r *Reader) openMessage() {
	at := strings.LastIndex(r.o.Tail, "<|start|>")
	if at < 0 {
		return
	}
	if header, body, open := strings.Cut(r.o.Tail[at:], messageMark); open {
		r.begin(header, strings.TrimSpace(body) == "")
	}
}

// readMessages reads a header or a part of a body.
func (r *Reader) readMessages(ended bool) bool {
	if ended && r.o.cut && r.leaveMessage() {
		return false
	}
	if !r.message.open {
		return r.readHeader(ended)
	}
	at, mark := r.bodyEnd(ended)
	m := &r.message
	if size := at - r.at; m.call != "" && size > maxHeld {
		m.call = ""
		r.content([]byte(m.header))
	} else if m.call != "" && mark == "" && !ended {
		if r.o.Certain {
			f := &r.flow
			f.object(r.buf[r.at+f.fed:at], m.call, r.begun, r.told)
			f.fed = at - r.at
		}
		return false
	}
	if ended && mark == "" && r.flow.begun && !json.Valid(r.buf[r.at:at]) {
		return r.cutOff()
	}
	r.flow = flow{}
	body := r.take(at)
	switch {
	case m.call != "":
		if c, ok := r.functions.call(m.call, body); ok && r.calls < MaxCalls {
			r.call(c)
		} else {
			r.content(append([]byte(m.header), body...))
		}
	case m.kind == Reasoning:
		r.reason(body)
	case m.kind == Commentary:
		r.emit(Commentary, body)
	default:
		r.content(body)
	}
	if mark == "" {
		return false
	}
	if m.kind == Reasoning {
		r.endThought(mark)
	}
	if m.open = false; !strings.HasPrefix(mark, "<|start") && mark != channelMark {
		r.take(r.at + len(mark))
	}
	return true
}

// bodyEnd returns the offset of the marker that ends the body, and the marker. Where there is none, the offset is that of the text
// that could begin one.
func (r *Reader) bodyEnd(ended bool) (int, string) {
	for i := max(r.seen, r.at); i < len(r.buf); i++ {
		if r.buf[i] != '<' {
			continue
		}
		for _, mark := range bodyEnds {
			n := min(len(mark), len(r.buf)-i)
			if mark[:n] != string(r.buf[i:i+n]) {
				continue
			}
			if n == len(mark) {
				return i, mark
			}
			if !ended {
				r.seen = i
				return i, ""
			}
		}
	}
	r.seen = len(r.buf)
	return len(r.buf), ""
}

// readHeader reads a header up to its end.
func (r *Reader) readHeader(ended bool) bool {
	from, most := max(r.at, r.seen-len(messageMark)+1), r.at+maxHeader
	at := bytes.Index(r.buf[from:min(len(r.buf), most)], []byte(messageMark))
	switch {
	case at >= 0:
		header := string(r.take(from + at))
		r.take(r.at + len(messageMark))
		r.begin(header, true)
		return true
	case len(r.buf) > most: // no header; its marks are content too
		r.message, r.seen = message{open: true}, most
		return true
	case ended:
		if rest := r.take(len(r.buf)); !bytes.Contains(rest, []byte("<|")) { // what a cut header has is no text
			r.content(rest)
		}
	}
	r.seen = len(r.buf)
	return false
}

// begin begins a message behind its header. fresh tells whether none of its body has been read.
func (r *Reader) begin(header string, fresh bool) {
	name := ""
	if _, to, ok := strings.Cut(header, "to="); ok {
		name = to[:len(to)-len(strings.TrimLeft(to, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/"))]
	}
	kind := Content
	if _, channel, ok := strings.Cut(header, channelMark); ok {
		switch {
		case strings.HasPrefix(channel, "analysis"):
			kind = Reasoning
		case strings.HasPrefix(channel, "commentary"):
			kind = Commentary
		}
	}
	r.message = message{open: true, kind: kind, header: header + messageMark}
	if name != "" && name != "assistant" && name != "user" {
		r.message.kind = Content
		if r.message.call = r.functions.known(name); r.message.call == "" {
			r.content([]byte(r.message.header))
		}
		return
	}
	if kind != Reasoning {
		return
	}
	if r.space, r.cut = r.space[:0], fresh; r.o.Inline {
		r.emit(Content, []byte(r.message.header))
	}
}
