package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"
)

// maxAnswer bounds the bytes of an answer.
const maxAnswer = 256 << 20

// record is a line of the files that are written.
type record struct {
	ID       string    `json:"id"`
	CustomID *string   `json:"custom_id"`
	Line     int32     `json:"line,omitempty"` // of the requests; of failures alone
	Response *response `json:"response"`
	Error    *fault    `json:"error"`
}

// response is what the handler said.
type response struct {
	Status    int             `json:"status_code"`
	RequestID string          `json:"request_id"`
	Body      json.RawMessage `json:"body"`
}

// recorder takes a handler's answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
	long   bool
}

// Header implements [http.ResponseWriter].
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements [http.ResponseWriter].
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
}

var errLong = fmt.Errorf("the answer has more than %d bytes", maxAnswer)

// Write implements [http.ResponseWriter].
func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.long = r.long || r.body.Len()+len(b) > maxAnswer; r.long {
		return 0, errLong
	}
	return r.body.Write(b)
}

// Waits between attempts of a request that the handler cannot take now.
const (
	firstWait = 20 * time.Millisecond
	attempts  = 12 // which wait 41 s together
)

// answer lets the handler answer a request. One that it cannot take now is sent again, and fails in the end.
func answer(ctx context.Context, h http.Handler, q *request) (*record, error) {
	wait := firstWait
	for n := 1; ; n++ {
		w := &recorder{header: http.Header{}}
		bad, err := call(ctx, h, q, w)
		switch {
		case err != nil:
			return nil, err
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case bad != nil:
			return &record{ID: "batch_req_" + q.name(), CustomID: &q.id, Error: bad}, nil
		}
		if n == attempts || w.status != http.StatusTooManyRequests && w.status != http.StatusServiceUnavailable {
			return q.record(w), nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
			wait *= 2
		}
	}
}

// call calls the handler. A panic is a fault of the request.
func call(ctx context.Context, h http.Handler, q *request, w http.ResponseWriter) (bad *fault, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+q.url, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	r.RequestURI, r.RemoteAddr = q.url, "127.0.0.1:0"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", "batch-"+q.name())
	defer func() {
		if p := recover(); p != nil {
			bad = faultf("handler_failed", "the handler of %s failed: %v", q.url, p)
		}
	}()
	h.ServeHTTP(w, r)
	return nil, nil
}

// record returns the line that an answer becomes.
func (q *request) record(w *recorder) *record {
	r := &record{ID: "batch_req_" + q.name(), CustomID: &q.id}
	body, err := settle(w.body.Bytes(), q.name())
	if w.long {
		err = errLong
	}
	if err != nil {
		r.Error = faultf("invalid_answer", "status %d: %v", w.status, err)
		return r
	}
	r.Response = &response{Status: w.status, RequestID: "batch-" + q.name(), Body: body}
	return r
}

// fails reports whether a record is of a request without an answer, and by which code.
func (r *record) fails() (code string, fails bool) {
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

// settle takes out of an answer what differs between two runs, so that a request has the same answer, byte by byte, each time: times, and counts of what
// was found in caches or drafted. Ids become those of the request, which name gives.
func settle(body []byte, name string) ([]byte, error) {
	all, err := members(body)
	if err != nil {
		return nil, err
	}
	var id []byte // the part of the ids that the server made up
	all = slices.DeleteFunc(all, func(m member) bool { return m.key == "timings" })
	for i, m := range all {
		switch m.key {
		case "id":
			if m := made.FindSubmatch(m.value); m != nil {
				id = m[1]
			}
		case "created", "created_at", "completed_at":
			if m.value[0] != 'n' {
				all[i].value = json.RawMessage("0")
			}
		case "usage":
			all[i].value = settleUsage(m.value)
		}
	}
	body = object(all)
	if id != nil {
		body = bytes.ReplaceAll(body, id, []byte(name))
	}
	return body, nil
}

// made is an id: its kind, and a part that the server made up and that is long enough to be found.
var made = regexp.MustCompile(`^"[a-z]+[-_]([A-Za-z0-9_-]{12,})"$`)

// chance are counts that depend on what ran before or beside a request.
var chance = []string{"cached_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens"}

// settleUsage sets the counts that depend on chance to 0.
func settleUsage(value json.RawMessage) json.RawMessage {
	all, err := members(value)
	if err != nil {
		return value
	}
	for i, m := range all {
		if slices.Contains(chance, m.key) && m.value[0] != 'n' {
			all[i].value = json.RawMessage("0")
		} else if m.value[0] == '{' {
			all[i].value = settleUsage(m.value)
		}
	}
	return object(all)
}

// member is a member of an object.
type member struct {
	key   string
	value json.RawMessage
}

// members returns the members of an object, in their order.
func members(text []byte) (all []member, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("the answer is no JSON object")
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: t.(string)}
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	_, err = d.Token()
	return all, err
}

// object writes members as an object.
func object(all []member) []byte {
	b := []byte{'{'}
	for i, m := range all {
		if i > 0 {
			b = append(b, ',')
		}
		k, _ := json.Marshal(m.key) // a text can be written
		b = append(append(append(b, k...), ':'), m.value...)
	}
	return append(b, '}')
}
