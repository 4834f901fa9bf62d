package batches

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"grove/server/access"
	"grove/server/driver"
	"grove/server/serving"
)

// host answers each request with its own body.
type host struct {
	gate     *access.Gate
	identity string
	handle   func(w http.ResponseWriter, r *http.Request) // nil: echo
	asked    atomic.Int64
}

// ServeHTTP implements [Host].
func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked.Add(1)
	if access.BehindOf(r.Context()) == nil {
		panic("a request has no caller")
	}
	if h.handle != nil {
		h.handle(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, `{"echo":%s}`, body)
}

// Owner implements [Host].
func (h *host) Owner(folder string) *access.Caller { return h.gate.Owner(folder) }

// Identity implements [Host].
func (h *host) Identity(context.Context, []string) (string, error) { return h.identity, nil }

// site is a service behind its routes, for the keys ann and bob.
type site struct {
	*Service
	http.Handler
	host *host
}

// open opens a service in a directory and starts it.
func open(t *testing.T, c Config, h *host) *site {
	t.Helper()
	if h.gate == nil {
		var err error
		if h.gate, err = access.New(access.Config{Keys: []access.Key{{Name: "ann", Secret: "ann"}, {Name: "bob", Secret: "bob"}}}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	d := &driver.Server{Pool: serving.NewPool(serving.Config{}), Body: 1 << 20, WriteTimeout: driver.WriteTime, Log: slog.New(slog.DiscardHandler)}
	mux := http.NewServeMux()
	for _, r := range s.Routes() {
		mux.HandleFunc(r.Patterns[0], func(w http.ResponseWriter, x *http.Request) {
			d.Answer(w, x, r, func(x *driver.Request) error {
				caller, err := h.gate.Caller(x.R)
				x.R = x.R.WithContext(access.With(x.R.Context(), caller))
				return err
			})
		})
	}
	s.Start(h)
	return &site{s, mux, h}
}

// close closes the service.
func (s *site) close(t *testing.T) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// ask sends a request of a key and returns status and body.
func (s *site) ask(key, method, path, kind, body string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// get sends a request that succeeds, and returns its answer.
func (s *site) get(t *testing.T, key, method, path, body string) map[string]any {
	t.Helper()
	status, text := s.ask(key, method, path, "application/json", body)
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil || status != 200 {
		t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return o
}

// formOf returns a form of names and values; the value of file is the file's text.
func formOf(t *testing.T, fields ...string) (kind, body string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		var part io.Writer
		var err error
		if fields[i] == "file" {
			part, err = w.CreateFormFile("file", "requests.jsonl")
		} else {
			part, err = w.CreateFormField(fields[i])
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(part, fields[i+1])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), b.String()
}

// keep uploads a file and returns its id.
func (s *site) keep(t *testing.T, key, text string) string {
	t.Helper()
	kind, body := formOf(t, "purpose", "batch", "file", text)
	status, answer := s.ask(key, "POST", "/v1/files", kind, body)
	var f fileBody
	if err := json.Unmarshal([]byte(answer), &f); err != nil || status != 200 || f.Bytes != int64(len(text)) {
		t.Fatalf("%d %s", status, answer)
	}
	return f.ID
}

// lines returns n requests.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"%d","method":"POST","url":"/v1/embeddings","body":{"input":"%d"}}`+"\n", i, i)
	}
	return b.String()
}

// begin uploads requests, begins a batch and returns its id.
func (s *site) begin(t *testing.T, key, text string) string {
	t.Helper()
	body := fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/embeddings","completion_window":"24h","metadata":{"a":"b"}}`, s.keep(t, key, text))
	return s.get(t, key, "POST", "/v1/batches", body)["id"].(string)
}

// until waits until a batch has a status, and returns it.
func (s *site) until(t *testing.T, key, id string, want status) map[string]any {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		b := s.get(t, key, "GET", "/v1/batches/"+id, "")
		switch now := status(b["status"].(string)); {
		case now == want:
			return b
		case now.ended() || time.Now().After(end):
			t.Fatalf("the batch is %v, not %s: %v", now, want, b)
		}
	}
}

// text returns the content of a file.
func (s *site) text(t *testing.T, key string, id any) string {
	t.Helper()
	status, text := s.ask(key, "GET", fmt.Sprintf("/v1/files/%v/content", id), "", "")
	if status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	return text
}
