package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"grove/internal/gopher"
	"grove/server"
)

// BenchmarkCompletion measures what one request of 16 tokens allocates from its body to its last byte: completions and conversations, whole and
// streamed. The handler is called without a connection.
func BenchmarkCompletion(b *testing.B) {
	o := options
	o.Eager, o.ChatTemplate = false, "chatml"
	s := load(b, server.Config{}, source(modelName, gopher.Model(), o))
	for _, c := range []struct{ name, path, body string }{
		{"whole", "/v1/completions", `{"prompt":"func main() {","max_tokens":16,"temperature":0,"ignore_eos":true,"method":"off"}`},
		{"stream", "/v1/completions", `{"prompt":"func main() {","max_tokens":16,"temperature":0,"ignore_eos":true,"method":"off","stream":true}`},
		{"chat", "/v1/chat/completions", `{"messages":[{"role":"user","content":"func main() {"}],"max_tokens":16,"temperature":0,"ignore_eos":true,"method":"off"}`},
		{"health", "/health", ""},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodPost, "http://localhost"+c.path, strings.NewReader(c.body))
				if c.body == "" {
					r = httptest.NewRequest(http.MethodGet, "http://localhost"+c.path, nil)
				}
				if s.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}
