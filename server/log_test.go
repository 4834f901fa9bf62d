package server_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"grove/server"
	"grove/server/serving"
)

// journal is what a server logs, one JSON object a line.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

// take returns the lines since the last call.
func (j *journal) take(t *testing.T) (lines []map[string]any) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.text.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		lines = append(lines, fields)
	}
	j.text.Reset()
	return lines
}

// TestRequestID: an answer has the id of its request, and so has each line about the request in the log. A client's id that is
// none is replaced.
func TestRequestID(t *testing.T) {
	var log journal
	s := serve(t, server.Config{Config: serving.Config{Log: slog.New(slog.NewJSONHandler(&log, nil))}})
	long := strings.Repeat("x", 64)
	cases := []struct {
		name string
		ids  []string
		want string // "": one that the server makes
	}{
		{"none", nil, ""},
		{"a client's", []string{"trace-7f/3:a"}, "trace-7f/3:a"},
		{"the longest", []string{long}, long},
		{"too long", []string{long + "x"}, ""},
		{"empty", []string{""}, ""},
		{"with a space", []string{"a b"}, ""},
		{"with a line end", []string{"a\nlevel=ERROR"}, ""},
		{"beyond ASCII", []string{"grün"}, ""},
		{"two", []string{"a", "b"}, ""},
	}
	made := map[string]bool{}
	for _, c := range cases {
		for _, body := range []string{`{"prompt":"a","max_tokens":1}`, `{"prompt":"a","max_tokens":1,"stream":true}`, `{`, `{"prompt":"a","method":"faulty"}`} {
			log.take(t)
			r := httptest.NewRequest("POST", "http://localhost/v1/completions", strings.NewReader(body))
			r.Header[http.CanonicalHeaderKey("X-Request-ID")] = c.ids
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			id := w.Header().Get("X-Request-Id")
			if c.want != "" && id != c.want || c.want == "" && (id == "" || made[id] || strings.Contains(strings.Join(c.ids, " "), id)) {
				t.Errorf("%s: the id of %s is %q", c.name, body, id)
			}
			made[id] = true
			lines := log.take(t)
			if want := 1 + strings.Count(body, "faulty"); len(lines) != want {
				t.Errorf("%s: %s: %d lines, want %d: %v", c.name, body, len(lines), want, lines)
			}
			for _, line := range lines {
				if line["id"] != id {
					t.Errorf("%s: %s: a line has the id %v, want %q: %v", c.name, body, line["id"], id, line)
				}
			}
		}
	}
}
