package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"
)

// This file answers one line without files. [Batch] uses it, and so do programs that read and write by other means: their results are those of a batch, byte by byte.

// Bounds of requests.
const (
	MaxLine     = 16 << 20 // bytes of a line
	MaxLines    = 1 << 24  // of a file
	MaxCustomID = 512      // bytes
	MaxFlight   = 4096     // requests under way at a time
)

// Flight returns how many requests are under way at a time for models that compute so many texts at a time: while some requests are read or written, all slots are busy.
func Flight(slots int) int { return min(MaxFlight, 2*slots) }

// Request is a line that can be answered.
type Request struct {
	Line    int32 // its number in the file, from 1
	index   int   // among the lines that are not empty
	id, url string
	body    []byte
	sum     [32]byte
	model   json.RawMessage // of the body, for the order
	text    json.RawMessage
}

// Refusal is why a line has no response.
type Refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Result is the outcome of a line. Its JSON is a line of the files that are written.
type Result struct {
	ID       string    `json:"id"`
	CustomID *string   `json:"custom_id"`
	Line     int32     `json:"line,omitempty"` // of the requests; of failures alone
	Response *Response `json:"response"`
	Error    *Refusal  `json:"error"`
}

// Response is the answer of the handler.
type Response struct {
	Status    int             `json:"status_code"`
	RequestID string          `json:"request_id"`
	Body      json.RawMessage `json:"body"`
}

// CustomID returns the custom_id that a line takes, also where the line is refused; "": it takes none. Of several lines with one custom_id, the first in the file is answered,
// and the others are refused by [Repeated] unless [Parse] refuses them.
func CustomID(line []byte) string {
	var named struct {
		ID string `json:"custom_id"`
	}
	if json.Unmarshal(line, &named) != nil {
		return ""
	}
	return named.ID
}

// Repeated is the refusal of a line whose custom_id an earlier line has.
func Repeated(first int32) *Refusal {
	return refusalf("repeated_custom_id", "custom_id is that of line %d; it must be a text that no other line has", first)
}

// Parse reads the line of a number. The request beside a refusal can be refused alone.
func Parse(number int32, line []byte) (*Request, *Refusal) {
	var l struct {
		ID     *string         `json:"custom_id"`
		Method string          `json:"method"`
		URL    string          `json:"url"`
		Body   json.RawMessage `json:"body"`
	}
	if len(line) > MaxLine {
		return &Request{Line: number}, refusalf("line_too_long", "the line has more than %d bytes", MaxLine)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(&l)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = errors.New("something follows the object")
		}
	}
	r := &Request{Line: number, url: l.URL, body: l.Body}
	if l.ID != nil && len(*l.ID) <= MaxCustomID {
		r.id = *l.ID
	}
	switch {
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return r, refusalf("invalid_json", "the line ends within its JSON")
	case err != nil:
		return r, refusalf("invalid_json", "%v; a line is an object with custom_id, method, url and body", err)
	case l.ID == nil || *l.ID == "":
		return r, refusalf("missing_custom_id", "custom_id is missing; it must be a text that no other line has")
	case len(*l.ID) > MaxCustomID:
		return r, refusalf("invalid_custom_id", "custom_id has %d bytes; it must have at most %d", len(*l.ID), MaxCustomID)
	case l.Method != http.MethodPost:
		return r, refusalf("invalid_method", "method is %q; it must be POST", clip(l.Method))
	case !urls.MatchString(l.URL) || slices.ContainsFunc(denied, func(d string) bool { return l.URL == d || strings.HasPrefix(l.URL, d+"/") }):
		return r, refusalf("invalid_url", "url is %q; it must be a path that answers a request, such as /v1/chat/completions", clip(l.URL))
	}
	return r, r.complete()
}

// Refuse returns the result of a line that nothing is asked for.
func (r *Request) Refuse(why *Refusal) *Result {
	result := &Result{ID: fmt.Sprintf("batch_req_line_%d", r.Line), Line: r.Line, Error: why}
	if r.id != "" {
		result.CustomID = &r.id
	}
	return result
}

// Waits between attempts of a request that the handler cannot take now.
const (
	firstWait = 20 * time.Millisecond
	mostWait  = 5 * time.Second // between two attempts of a request that a full queue refuses
	attempts  = 12              // which wait 41 s together
)

// Answer lets the handler answer a request. One that a full queue refuses (429) is sent again until it is taken: a queue is no fault of the line. One that the handler cannot serve
// (503) is sent again too, and fails in the end. The result depends on the line and the handler's model alone. Errors: ctx's.
func Answer(ctx context.Context, h http.Handler, r *Request) (*Result, error) {
	wait := firstWait
	for n := 1; ; n++ {
		w := &recorder{header: http.Header{}}
		bad, err := call(ctx, h, r, w)
		runtime.Gosched() // first the requests beside it, which the model's next step waits for; then what follows here
		switch {
		case err != nil:
			return nil, err
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case bad != nil:
			return &Result{ID: "batch_req_" + r.name(), CustomID: &r.id, Line: r.Line, Error: bad}, nil
		}
		switch queued := w.status == http.StatusTooManyRequests; {
		case !queued && (n == attempts || w.status != http.StatusServiceUnavailable):
			return r.result(w), nil
		case queued:
			wait = min(wait, mostWait)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
			wait *= 2
		}
	}
}

// Failed reports whether a line has no answer, and by which code.
func (r *Result) Failed() (code string, failed bool) {
	switch {
	case r.Error != nil:
		return r.Error.Code, true
	case r.Response == nil:
		return "no_response", true
	case r.Response.Status == http.StatusOK:
		return "", false
	}
	var body struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(r.Response.Body, &body); body.Error.Code != "" {
		return body.Error.Code, true
	}
	return fmt.Sprintf("status_%d", r.Response.Status), true
}
