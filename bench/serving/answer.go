package serving

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// answer is the result of a request.
type answer struct {
	asked       int // tokens
	start, end  time.Time
	late        time.Duration // time from when the request was due to when it was sent
	first, last time.Time     // chunks with text; zero: none
	gaps        []float64     // between such chunks, in seconds
	chunks      int           // such chunks
	usage       *usage        // nil: not reported
	timings     *timings      // nil: not reported
	finish      string        // why it ended; "": not reported
	stopped     bool          // by the end of the run
	failure     *Failure
}

// Failure is requests that failed for the same reason.
type Failure struct {
	Kind   string `json:"kind"` // "HTTP 503", "timeout", "no answer", ...
	Count  int    `json:"count"`
	Detail string `json:"detail,omitempty"` // message of the first
}

// Error implements error.
func (f *Failure) Error() string {
	if f.Detail == "" {
		return f.Kind
	}
	return f.Kind + ": " + f.Detail
}

// failure returns a Failure with a short detail, without control characters.
func failure(kind, format string, args ...any) *Failure {
	detail := strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, fmt.Sprintf(format, args...))
	if len(detail) > maxDetail {
		cut := maxDetail
		for !utf8.RuneStart(detail[cut]) {
			cut--
		}
		detail = detail[:cut] + "…"
	}
	return &Failure{Kind: kind, Detail: strings.Join(strings.Fields(detail), " ")}
}

// refuses reports whether a request was refused because of a field.
func (f *Failure) refuses(field string) bool {
	return (f.Kind == "HTTP 400" || f.Kind == "HTTP 422") && strings.Contains(f.Detail, field)
}

// usage is the counts of a server.
type usage struct {
	Prompt        tokens `json:"prompt_tokens"`
	Completion    tokens `json:"completion_tokens"`
	PromptDetails struct {
		Cached tokens `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Details struct {
		Accepted *tokens `json:"accepted_prediction_tokens"`
		Rejected *tokens `json:"rejected_prediction_tokens"`
	} `json:"completion_tokens_details"`
}

// timings is a part of the answers of llama.cpp's server.
type timings struct {
	Drafted  tokens `json:"draft_n"`
	Accepted tokens `json:"draft_n_accepted"`
}

// tokens is a count that a server reports.
type tokens int

// UnmarshalJSON refuses a value that is not a count.
func (n *tokens) UnmarshalJSON(b []byte) error {
	var v int32
	if err := json.Unmarshal(b, &v); err != nil || v < 0 {
		return fmt.Errorf("a count of %s", b)
	}
	*n = tokens(v)
	return nil
}

// chunk is an event of a stream.
type chunk struct {
	Choices []struct {
		Text  string `json:"text"`
		Delta struct {
			Content          string            `json:"content"`
			ReasoningContent string            `json:"reasoning_content"`
			Reasoning        string            `json:"reasoning"`
			ToolCalls        []json.RawMessage `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage   *usage          `json:"usage"`
	Timings *timings        `json:"timings"`
	Error   json.RawMessage `json:"error"`
}

// hasText reports whether the chunk has a part of the answer: text, reasoning or tool calls.
func (c *chunk) hasText() bool {
	for _, choice := range c.Choices {
		d := &choice.Delta
		if choice.Text != "" || d.Content != "" || d.ReasoningContent != "" || d.Reasoning != "" || len(d.ToolCalls) > 0 {
			return true
		}
	}
	return false
}

// errorMessage returns the message of an error, which is a string or an object.
func errorMessage(raw json.RawMessage) string {
	var object struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &object) == nil && object.Message != "" {
		return object.Message
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// read reads the stream that answers a request.
func (a *answer) read(r io.Reader) *Failure {
	e := newEvents(r)
	for {
		data, err := e.next()
		switch {
		case err == io.EOF && a.finish != "": // a server that sends no [DONE]
			a.end = time.Now()
			return nil
		case err == io.EOF:
			return failure("stream cut short", "after %d chunks of text", a.chunks)
		case err == bufio.ErrTooLong:
			return failure("broken stream", "an event has more than %d bytes", maxEvent)
		case err != nil:
			return failure("stream cut short", "after %d chunks of text: %v", a.chunks, err)
		case bytes.Equal(data, []byte("[DONE]")):
			a.end = time.Now()
			return nil
		}
		if f := a.take(data, time.Now()); f != nil {
			return f
		}
	}
}

// take reads an event that came at a time.
func (a *answer) take(data []byte, at time.Time) *Failure {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return failure("broken stream", "%v", err)
	}
	if c.Error != nil && !bytes.Equal(c.Error, []byte("null")) {
		return failure("error in the stream", "%s", errorMessage(c.Error))
	}
	for _, choice := range c.Choices {
		if choice.FinishReason != "" {
			a.finish = clip(choice.FinishReason)
		}
	}
	if c.Usage != nil {
		a.usage = c.Usage
	}
	if c.Timings != nil {
		a.timings = c.Timings
	}
	if !c.hasText() {
		return nil
	}
	// A chunk holds at least one character, and a token seldom more than a word. More chunks would fill the memory.
	if a.chunks++; a.chunks > 64*a.asked+1024 {
		return failure("broken stream", "more than %d chunks for %d tokens", a.chunks-1, a.asked)
	}
	if a.chunks == 1 {
		a.first = at
	} else {
		a.gaps = append(a.gaps, at.Sub(a.last).Seconds())
	}
	a.last = at
	return nil
}

// clip copies a reason, so that it does not keep a long text in memory.
func clip(s string) string { return strings.Clone(s[:min(len(s), 32)]) }

// maxEvent bounds an event of a stream.
const maxEvent = 1 << 20

// events reads a stream of server-sent events.
type events struct {
	lines *bufio.Scanner
	data  []byte
}

func newEvents(r io.Reader) *events {
	e := &events{lines: bufio.NewScanner(r)}
	e.lines.Buffer(nil, maxEvent)
	return e
}

// next returns the data of the next event that has some, valid until the next call. A stream may end without a blank
// line behind its last event.
func (e *events) next() ([]byte, error) {
	e.data = e.data[:0]
	some := false
	for e.lines.Scan() {
		line := e.lines.Bytes()
		if len(line) == 0 {
			if some {
				return e.data, nil
			}
			continue
		}
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue // a comment, or a field that is not used
		}
		if len(e.data)+len(value) > maxEvent {
			return nil, bufio.ErrTooLong
		}
		if some {
			e.data = append(e.data, '\n')
		}
		e.data, some = append(e.data, bytes.TrimPrefix(value, []byte(" "))...), true
	}
	if err := e.lines.Err(); err != nil {
		return nil, err
	}
	if some {
		return e.data, nil
	}
	return nil, io.EOF
}
