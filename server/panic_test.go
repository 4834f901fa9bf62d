package server_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"grove"
	"grove/internal/gopher"
	"grove/method"
	"grove/server"
	"grove/server/serving"
)

func init() {
	method.Register(method.Info{
		Name: "faulty", Kind: method.KindText, Grade: method.Exact,
		Open: func(method.Env) (method.Method, error) { panic("a fault of a method") },
	})
}

// TestPanicFailsOne: a panic, wherever it is, fails its request alone with an error that names it, counted once. A stream whose
// connection panics has no end.
func TestPanicFailsOne(t *testing.T) {
	const internal = `{"error":{"message":"internal error; the server's log has its cause","type":"server_error","param":null,"code":"internal_error"}}` + "\n"
	s := serveTarget(t, server.Config{})
	body := httptest.NewRequest("POST", "http://localhost/v1/completions", panics{})
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, body); w.Code != 500 || w.Body.String() != internal {
		t.Errorf("in the handler: %d %s", w.Code, w.Body)
	}
	for _, path := range []string{"/v1/completions", "/completion"} {
		status, text, _ := s.do(t, "POST", path, `{"prompt":"a","method":"faulty"}`)
		if status != 500 || text != internal {
			t.Errorf("%s: in the generation: %d %s", path, status, text)
		}
	}
	stream := &faulty{ResponseRecorder: httptest.NewRecorder()}
	s.ServeHTTP(stream, httptest.NewRequest("POST", "http://localhost/v1/completions", strings.NewReader(`{"prompt":"a","max_tokens":9,"stream":true}`)))
	if !stream.fell || strings.Contains(stream.Body.String(), "[DONE]") {
		t.Errorf("in a stream: %q", stream.Body)
	}
	if _, text, _ := s.do(t, "GET", "/metrics", ""); !strings.Contains(text, "grove_internal_errors_total 4\n") {
		t.Errorf("faults are not counted: %s", text)
	}
	s.post(t, "/v1/completions", `{"prompt":"a"}`)
	eventually(t, "a slot stays in use", func() bool { return s.busy(t) == 0 })
}

// TestPanicOpening: a model whose opening panics is one that cannot be opened; others are served.
func TestPanicOpening(t *testing.T) {
	bad := server.Entry{Name: "bad", Open: func(context.Context, uint64) (*grove.Model, error) { panic("a fault of a file") }}
	s := serveModels(t, server.Config{Config: serving.Config{OnDemand: true}}, bad, source(modelName, gopher.Model(), options))
	status, text, _ := s.do(t, "POST", "/v1/completions", `{"prompt":"a"}`)
	if _, _, _, code := wantError(t, text); status != 503 || code != "model_failed" {
		t.Errorf("%d %s", status, text)
	}
	s.post(t, "/v1/completions", `{"model":"gopher","prompt":"a"}`)
}

// panics is a body that cannot be read.
type panics struct{}

// Read implements [io.Reader].
func (panics) Read([]byte) (int, error) { panic("a fault of a reader") }
