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
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxAnswer bounds the bytes of an answer.
const maxAnswer = 256 << 20

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

// call calls the handler. A panic is a fault of the request.
func call(ctx context.Context, h http.Handler, q *Request, w http.ResponseWriter) (bad *Refusal, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+q.url, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	r.RequestURI, r.RemoteAddr = q.url, "127.0.0.1:0"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", "batch-"+q.name())
	defer func() {
		if p := recover(); p != nil {
			bad = refusalf("handler_failed", "the handler of %s failed: %v", q.url, p)
		}
	}()
	h.ServeHTTP(w, r)
	return nil, nil
}

// result returns the result of an answer.
func (r *Request) result(w *recorder) *Result {
	result := &Result{ID: "batch_req_" + r.name(), CustomID: &r.id}
	body, err := settle(w.body.Bytes(), r.name())
	if w.long {
		err = errLong
	}
	if err != nil {
		result.Error = refusalf("invalid_answer", "status %d: %v", w.status, err)
	} else {
		result.Response = &Response{Status: w.status, RequestID: "batch-" + r.name(), Body: body}
	}
	if _, failed := result.Failed(); failed {
		result.Line = r.Line
	}
	return result
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

// apart are those of chance that Anthropic's API takes off input_tokens, where the tokens that were not computed are not counted.
var apart = []string{"cache_read_input_tokens", "cache_creation_input_tokens"}

// settleUsage sets the counts that depend on chance to 0, and gives those that are apart back to the input's.
func settleUsage(value json.RawMessage) json.RawMessage {
	all, err := members(value)
	if err != nil {
		return value
	}
	input, cached := -1, 0
	for i, m := range all {
		var n int
		switch {
		case m.key == "input_tokens":
			input = i
		case slices.Contains(apart, m.key) && json.Unmarshal(m.value, &n) == nil:
			cached += n
		}
	}
	if n := 0; input >= 0 && cached > 0 && json.Unmarshal(all[input].value, &n) == nil {
		all[input].value = json.RawMessage(strconv.Itoa(n + cached))
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

// members returns the members of an object, in their order. Their values are parts of the text.
func members(text []byte) (all []member, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != jsontext.KindBeginObject {
		return nil, errors.New("the answer is no JSON object")
	}
	for _, err = d.ReadToken(); err == nil && d.PeekKind() != jsontext.KindEndObject; {
		var name jsontext.Token
		if name, err = d.ReadToken(); err != nil {
			break
		}
		m := member{key: name.String()}
		var value jsontext.Value
		if value, err = d.ReadValue(); err == nil {
			end := d.InputOffset()
			m.value = json.RawMessage(text[end-int64(len(value)) : end])
			all = append(all, m)
		}
	}
	if err == nil {
		_, err = d.ReadToken()
	}
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
