package batch

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// request is a line that can be answered.
type request struct {
	index   int // of the line
	id, url string
	body    []byte
	sum     [sha256.Size]byte
	model   json.RawMessage // of the body, for the order
	text    json.RawMessage
}

// fault is why a line cannot be answered.
type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func faultf(code, format string, args ...any) *fault {
	return &fault{code, fmt.Sprintf(format, args...)}
}

// urls are the paths that a line may name: those of the APIs, without what changes the server.
var urls = regexp.MustCompile(`^/v1/[a-z0-9_/-]{1,100}$`)

// denied are paths that change what later lines get.
var denied = []string{"/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/v1/files", "/v1/batches"}

// seeded are the paths whose requests have a seed.
var seeded = []string{"/v1/chat/completions", "/v1/completions", "/v1/responses"}

// parse reads a line. A fault beside a request says which custom_id the faulty line has.
func parse(line []byte) (*request, *fault) {
	var l struct {
		ID     *string         `json:"custom_id"`
		Method string          `json:"method"`
		URL    string          `json:"url"`
		Body   json.RawMessage `json:"body"`
	}
	if len(line) > maxLine {
		return &request{}, faultf("line_too_long", "the line has more than %d bytes", maxLine)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(&l)
	if err == nil && d.More() {
		err = errors.New("something follows the object")
	}
	r := &request{url: l.URL, body: l.Body}
	if l.ID != nil && len(*l.ID) <= maxID {
		r.id = *l.ID
	}
	switch {
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return r, faultf("invalid_json", "the line ends within its JSON")
	case err != nil:
		return r, faultf("invalid_json", "%v; a line is an object with custom_id, method, url and body", err)
	case l.ID == nil || *l.ID == "":
		return r, faultf("missing_custom_id", "custom_id is missing; it must be a text that no other line has")
	case len(*l.ID) > maxID:
		return r, faultf("invalid_custom_id", "custom_id has %d bytes; it must have at most %d", len(*l.ID), maxID)
	case l.Method != http.MethodPost:
		return r, faultf("invalid_method", "method is %q; it must be POST", clip(l.Method))
	case !urls.MatchString(l.URL) || slices.ContainsFunc(denied, func(d string) bool { return l.URL == d || strings.HasPrefix(l.URL, d+"/") }):
		return r, faultf("invalid_url", "url is %q; it must be a path that answers a request, such as /v1/chat/completions", clip(l.URL))
	}
	return r, r.complete()
}

// clip returns the beginning of a text for a message.
func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), 80)], "?") }

// complete reads the body, and gives it a seed where it may have one and has none.
func (r *request) complete() *fault {
	h := sha256.New()
	for _, part := range []string{r.id, r.url, string(r.body)} {
		_ = binary.Write(h, binary.LittleEndian, uint64(len(part))) // it never fails
		_, _ = io.WriteString(h, part)
	}
	h.Sum(r.sum[:0])
	var body map[string]json.RawMessage
	if err := json.Unmarshal(r.body, &body); err != nil || body == nil {
		return faultf("invalid_body", "body is no JSON object")
	}
	if s, ok := body["stream"]; ok && string(s) != "false" && string(s) != "null" {
		return faultf("stream_not_supported", "body has stream; an answer of a batch comes whole: leave stream out")
	}
	r.model = body["model"]
	for _, name := range []string{"messages", "prompt", "input", "query"} {
		if r.text == nil {
			r.text = body[name]
		}
	}
	if _, has := body["seed"]; !has && slices.Contains(seeded, r.url) {
		rest := bytes.TrimPrefix(bytes.TrimSpace(r.body), []byte("{"))
		comma := ","
		if len(body) == 0 {
			comma = ""
		}
		r.body = slices.Concat(fmt.Appendf(nil, `{"seed":%d%s`, r.seed(), comma), rest)
	}
	return nil
}

// seed returns the seed of a line: a number that every JSON reader keeps.
func (r *request) seed() uint64 { return binary.LittleEndian.Uint64(r.sum[:]) >> 11 }

// name returns a name of the line that depends on its content alone.
func (r *request) name() string { return hex.EncodeToString(r.sum[8:20]) }

// modelName returns the name of the model that the request asks for; "": it names none.
func (r *request) modelName() (name string) {
	_ = json.Unmarshal(r.model, &name) // the handler refuses another type
	return name
}

// compare orders requests so that those that begin alike follow each other.
func compare(a, b *request) int {
	if c := strings.Compare(a.url, b.url); c != 0 {
		return c
	}
	if c := bytes.Compare(a.model, b.model); c != 0 {
		return c
	}
	if c := bytes.Compare(a.text, b.text); c != 0 {
		return c
	}
	return a.index - b.index
}
