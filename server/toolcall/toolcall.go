// Package toolcall finds calls of tools in the text of a model.
package toolcall

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Call is a function's name and its arguments, an object as a text.
type Call struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// Reader finds the calls of tools in an answer, in the forms that models are taught:
//
//	<tool_call>{"name": ..., "arguments": {...}}</tool_call>      Hermes, Qwen
//	[TOOL_CALLS][{"name": ..., "arguments": {...}}, ...]          Mistral
//	[TOOL_CALLS]name[ARGS]{...}                                   Mistral, since 2025
//	{"name": ..., "parameters": {...}}, as all of the answer      Llama 3
//
// A call of an unknown function is text.
type Reader struct {
	Names []string // of the functions; none: everything is text
	ID    string   // of the answer: the ids of its calls follow from it
	begun bool     // the answer has more than white space
	held  string   // text that is, or could become, a call
	calls int
}

const (
	hermesBegin  = "<tool_call>"
	hermesEnd    = "</tool_call>"
	mistralBegin = "[TOOL_CALLS]"
	mistralArgs  = "[ARGS]"
)

// IsMarker reports whether a control token marks a call. The text of an answer has no control tokens.
func IsMarker(piece string) bool {
	return piece == hermesBegin || piece == hermesEnd || piece == mistralBegin || piece == mistralArgs
}

// Add reads further text of the answer and returns the part that is text, and the calls that are complete.
func (r *Reader) Add(text string) (content string, calls []Call) {
	if len(r.Names) == 0 {
		return text, nil
	}
	r.held += text
	for {
		at := r.begin()
		content += r.held[:at]
		if strings.TrimSpace(r.held[:at]) != "" {
			r.begun = true
		}
		r.held = r.held[at:]
		found, n := r.read(false)
		if n == 0 {
			return content, calls
		}
		if found == nil { // it is text
			content += r.held[:n]
		}
		calls = append(calls, found...)
		r.held, r.begun = r.held[n:], true
	}
}

// End returns the rest when the answer ends.
func (r *Reader) End() (content string, calls []Call) {
	if len(r.Names) == 0 {
		return "", nil
	}
	if calls, n := r.read(true); calls != nil {
		rest := strings.TrimSpace(r.held[n:])
		r.held = ""
		return rest, calls
	}
	content, r.held = r.held, ""
	return content, nil
}

// begin returns the offset in the held text at which a call may begin; its length where none may.
func (r *Reader) begin() int {
	first := len(r.held)
	if !r.begun {
		if at := len(r.held) - len(strings.TrimLeft(r.held, " \t\r\n")); at < len(r.held) && r.held[at] == '{' {
			return at
		}
	}
	for _, m := range []string{hermesBegin, mistralBegin} {
		if at := strings.Index(r.held, m); at >= 0 {
			first = min(first, at)
		}
		for n := min(len(m)-1, len(r.held)); n > 0; n-- {
			if strings.HasSuffix(r.held, m[:n]) {
				first = min(first, len(r.held)-n)
				break
			}
		}
	}
	return first
}

// read returns the calls at the beginning of the held text, and their length. Length 0 means that more text is needed, which does not come
// once the answer has ended; no calls means that the text of that length is text.
func (r *Reader) read(ended bool) (calls []Call, n int) {
	switch {
	case strings.HasPrefix(r.held, hermesBegin):
		inner := r.held[len(hermesBegin):]
		at := strings.Index(inner, hermesEnd)
		if n = len(hermesBegin) + at + len(hermesEnd); at < 0 {
			if n = 0; !ended {
				return nil, 0
			}
			at, n = len(inner), len(r.held)
		}
		return r.parse(inner[:at]), n
	case strings.HasPrefix(r.held, mistralBegin):
		return r.mistral(ended)
	case strings.HasPrefix(r.held, "{"):
		d := json.NewDecoder(strings.NewReader(r.held))
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			if !ended && !isSyntax(err) {
				return nil, 0
			}
			return nil, 1
		}
		return r.parse(string(raw)), int(d.InputOffset())
	}
	return nil, 0
}

// isSyntax reports whether a text cannot become JSON by more text.
func isSyntax(err error) bool {
	_, ok := err.(*json.SyntaxError)
	return ok
}

// mistral reads the calls that follow Mistral's marker: a list, or a name and its arguments.
func (r *Reader) mistral(ended bool) (calls []Call, n int) {
	inner := r.held[len(mistralBegin):]
	name := ""
	if at := strings.Index(inner, mistralArgs); at >= 0 {
		name = strings.TrimSpace(inner[:at])
		inner = inner[at+len(mistralArgs):]
	}
	d := json.NewDecoder(strings.NewReader(inner))
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		if !ended && (name == "" && !strings.HasPrefix(strings.TrimSpace(inner), "[") || !isSyntax(err)) {
			return nil, 0
		}
		return nil, len(mistralBegin)
	}
	n = len(r.held) - len(inner) + int(d.InputOffset())
	if name != "" {
		raw = json.RawMessage(`{"name":` + strconv.Quote(name) + `,"arguments":` + string(raw) + `}`)
	}
	return r.parse(string(raw)), n
}

// parse reads one call or a list of calls; nil where the text is neither, or calls an unknown function.
func (r *Reader) parse(text string) (calls []Call) {
	type form struct {
		Name       string          `json:"name"`
		Arguments  json.RawMessage `json:"arguments"`
		Parameters json.RawMessage `json:"parameters"`
	}
	var list []form
	if one := (form{}); json.Unmarshal([]byte(text), &one) == nil {
		list = []form{one}
	} else if json.Unmarshal([]byte(text), &list) != nil {
		return nil
	}
	for _, f := range list {
		raw := f.Arguments
		if raw == nil {
			raw = f.Parameters
		}
		var quoted string
		if json.Unmarshal(raw, &quoted) == nil && json.Valid([]byte(quoted)) {
			raw = json.RawMessage(quoted)
		}
		var packed bytes.Buffer
		if !slices.Contains(r.Names, f.Name) || raw != nil && json.Compact(&packed, raw) != nil {
			return nil
		}
		if packed.Len() == 0 {
			packed.WriteString("{}")
		}
		calls = append(calls, Call{f.Name, packed.String()})
	}
	return calls
}

// NextID returns the id of the next call: nine letters and digits, as Mistral's templates need.
func (r *Reader) NextID() string {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := sha256.Sum256([]byte(r.ID + "/" + strconv.Itoa(r.calls)))
	r.calls++
	id := make([]byte, 9)
	for i := range id {
		id[i] = alphabet[int(sum[i])%len(alphabet)]
	}
	return string(id)
}
