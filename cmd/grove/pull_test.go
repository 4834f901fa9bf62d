package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"grove/internal/gopher"
	"grove/internal/suite/scripts"
)

// registryHandler serves gopher-nano as tiny-Q8_0.gguf of the repository org/tiny, as library/tiny:1b of a registry, and as
// /files/nano.gguf. The repository org/gated is gated. The server's own name for a broken file is tiny-Q4_0.gguf.
func registryHandler() http.Handler {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	model := gopher.Named(gopher.NanoName)
	sum := fmt.Sprintf("%x", sha256.Sum256(model))
	config := fmt.Sprintf("%x", sha256.Sum256([]byte("{}")))
	text := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, text) }
	}
	file := func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(model))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/models/org/tiny/revision/main", text(`{"sha":"`+commit+`"}`))
	mux.HandleFunc("GET /api/models/org/tiny/tree/"+commit, text(fmt.Sprintf(
		`[{"type":"file","path":"tiny-Q8_0.gguf","size":%[2]d,"lfs":{"oid":"%[1]s","size":%[2]d}},{"type":"file","path":"mmproj-tiny.gguf","size":1,"oid":"x"},`+
			`{"type":"file","path":"tiny-Q4_0.gguf","size":%[2]d,"lfs":{"oid":"%[3]s","size":%[2]d}}]`, sum, len(model), config)))
	mux.HandleFunc("GET /org/tiny/resolve/"+commit+"/{file}", file)
	mux.HandleFunc("GET /api/models/org/gated/revision/main", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Error-Code", "GatedRepo")
		w.WriteHeader(http.StatusUnauthorized)
	})
	mux.HandleFunc("GET /v2/library/tiny/manifests/1b", text(fmt.Sprintf(
		`{"schemaVersion":2,"config":{"digest":"sha256:%s","size":2},"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s","size":%d}]}`, config, sum, len(model))))
	mux.HandleFunc("GET /v2/library/tiny/blobs/sha256:"+config, text("{}"))
	mux.HandleFunc("GET /v2/library/tiny/blobs/sha256:"+sum, file)
	mux.HandleFunc("GET /files/{file}", file)
	return mux
}

// startRegistry starts such a server. It sets HF_ENDPOINT to its URL and REGISTRY to its host.
func startRegistry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: registry")
	}
	s := httptest.NewServer(registryHandler())
	ts.Defer(s.Close)
	scripts.Setenv(ts, "HF_ENDPOINT", s.URL)
	scripts.Setenv(ts, "REGISTRY", strings.TrimPrefix(s.URL, "http://"))
}

// TestServedName: a model is served under a name that a person can write.
func TestServedName(t *testing.T) {
	dir := t.TempDir()
	blob := filepath.Join(dir, "sha256-abc")
	if err := os.WriteFile(blob, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ given, path, want string }{
		{"llama3.2:3b", blob, "llama3.2:3b"},
		{"org/folder", filepath.Join(dir, "0123abcd"), "org/folder"},
		{"org/repo:Q8_0", filepath.Join(dir, "tiny-Q8_0.gguf"), "tiny-Q8_0"},
		{blob, blob, "sha256-abc"},
		{dir, dir, filepath.Base(dir)},
		{"gopher-nano", "gopher-nano", "gopher-nano"},
	} {
		if got := ServedName(c.given, c.path); got != c.want {
			t.Errorf("%s at %s is served as %q, want %q", c.given, c.path, got, c.want)
		}
	}
}
