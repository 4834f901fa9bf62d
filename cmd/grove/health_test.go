package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
)

// TestHealth: grove health succeeds for a server that answers 200 alone.
func TestHealth(t *testing.T) {
	cases := []struct {
		name   string
		status int
		stderr string // "": success
	}{
		{"ready", 200, ""},
		{"loading", 503, "is not ready: it answers 503 Service Unavailable"},
		{"another server", 404, "is not ready: it answers 404 Not Found"},
		{"a redirect", 302, "is not ready: it answers 302 Found"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "/v1/models")
				w.WriteHeader(map[string]int{"/health": c.status}[r.URL.Path])
				_, _ = io.WriteString(w, "some text")
			}))
			defer s.Close()
			_, port, _ := strings.Cut(s.Listener.Addr().String(), ":")
			for _, host := range []string{"127.0.0.1", "", "0.0.0.0"} {
				text, err := exec.Command("grove", "health", "--addr", host+":"+port).CombinedOutput()
				if (err == nil) != (c.stderr == "") || !strings.Contains(string(text), c.stderr) {
					t.Errorf("%q: %v: %s", host, err, text)
				}
			}
		})
	}
}
