package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"grove"
	"grove/internal/gopher"
	"grove/internal/weights/find"
	"grove/server"
	"grove/server/serving"
)

// serveCatalog starts a server of the model inside the program and of a directory of models and the caches of an empty home.
func serveCatalog(t *testing.T, pull bool) (s *site, dir string) {
	dir = t.TempDir()
	store := find.New(func(name string) string {
		return map[string]string{"GROVE_MODELS": dir, "OLLAMA_MODELS": filepath.Join(dir, "ollama")}[name]
	}, t.TempDir(), "linux")
	c := &server.Catalog{Store: store, Open: func(m find.Model, memory uint64) (*grove.Model, error) {
		o := options
		o.Memory = memory
		return grove.Open(m.Path, o)
	}}
	config := server.Config{Pull: pull, Store: store, Config: serving.Config{Catalog: c}}
	return serveModels(t, config, source(modelName, gopher.Model(), options)), dir
}

// names returns the names of the models that the server lists.
func (s *site) names(t *testing.T) (all []string) {
	t.Helper()
	_, text, _ := s.do(t, "GET", "/api/tags", "")
	for _, m := range parse(t, text)["models"].([]any) {
		all = append(all, m.(map[string]any)["name"].(string))
	}
	return all
}

// TestCatalog: models of the machine are listed, opened by their first request, and found in any spelling of their names.
func TestCatalog(t *testing.T) {
	s, dir := serveCatalog(t, false)
	if got := strings.Join(s.names(t), " "); got != "gopher" {
		t.Errorf("an empty catalog: %s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "small-model.gguf"), gopher.Model(), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.names(t), " "); got != "gopher small-model" {
		t.Errorf("models: %s", got)
	}
	if o := s.post(t, "/v1/completions", `{"model":"SMALL-model.gguf","prompt":"a","max_tokens":2}`); o["model"] != "small-model" {
		t.Errorf("%v", o)
	}
	for _, query := range []string{"", "&autoload=false"} { // no directory of the server
		if _, text, _ := s.do(t, "GET", "/props?model=small-model"+query, ""); parse(t, text)["model_path"] != "small-model.gguf" || strings.Contains(text, dir) {
			t.Errorf("/props: %s", text)
		}
	}
	if status := s.status(t, "small-model"); status != "loaded" {
		t.Errorf("the model is %v", status)
	}
	for _, name := range []string{"large", "../small-model", dir + "/small-model.gguf", strings.Repeat("x", 1000)} {
		if status, text, _ := s.do(t, "POST", "/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":"a"}`, name)); status != 404 || len(text) > 1000 {
			t.Errorf("%.60s: %d %.1000s", name, status, text)
		}
	}
}

// TestCatalogAtOnce: requests that name a model of the catalog for the first time at once open it once.
func TestCatalogAtOnce(t *testing.T) {
	s, dir := serveCatalog(t, false)
	if err := os.WriteFile(filepath.Join(dir, "small-model.gguf"), gopher.Model(), 0o644); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if i%2 == 0 {
				s.post(t, "/v1/completions", `{"model":"Small-Model","prompt":"a","max_tokens":1}`)
			} else {
				s.names(t)
			}
		})
	}
	all.Wait()
	if got := strings.Join(s.names(t), " "); got != "gopher small-model" {
		t.Errorf("models: %s", got)
	}
}

// registry is a registry of ollama's form with the model library/tiny:1b.
func registry(t *testing.T) string {
	blobs := map[string][]byte{}
	blob := func(kind string, data []byte) string {
		sum := sha256.Sum256(data)
		digest := "sha256:" + hex.EncodeToString(sum[:])
		blobs[digest] = data
		return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d}`, kind, digest, len(data))
	}
	manifest := `{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json","config":` +
		blob("application/vnd.docker.container.image.v1+json", []byte("{}")) + `,"layers":[` + blob("application/vnd.ollama.image.model", gopher.Model()) + `]}`
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch digest, isBlob := strings.CutPrefix(r.URL.Path, "/v2/library/tiny/blobs/"); {
		case r.URL.Path == "/v2/library/tiny/manifests/1b":
			fmt.Fprint(w, manifest)
		case isBlob && blobs[digest] != nil:
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(blobs[digest]))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(h.Close)
	return strings.TrimPrefix(h.URL, "http://")
}

// TestOllamaPull: a client pulls a model, uses it and deletes it.
func TestOllamaPull(t *testing.T) {
	host := registry(t)
	closed, _ := serveCatalog(t, false)
	for _, tt := range [][2]string{{"POST", "/api/pull"}, {"DELETE", "/api/delete"}} {
		if status, text, _ := closed.do(t, tt[0], tt[1], `{"model":"tiny"}`); status != 403 || !strings.Contains(text, "--allow-pull") {
			t.Errorf("%s: %d %s", tt[1], status, text)
		}
	}
	s, _ := serveCatalog(t, true)
	name := host + "/library/tiny:1b"
	var kinds []string
	for _, l := range s.lines(t, "/api/pull", fmt.Sprintf(`{"model":%q}`, name)) {
		if kind := strings.Join(strings.Fields(l["status"].(string))[:1], ""); len(kinds) == 0 || kinds[len(kinds)-1] != kind {
			kinds = append(kinds, kind)
		}
	}
	if got := strings.Join(kinds, " "); !strings.HasPrefix(got, "pulling") || !strings.HasSuffix(got, "success") {
		t.Errorf("lines: %s", got)
	}
	if all := s.names(t); len(all) != 2 || !strings.Contains(all[1], "tiny:1b") {
		t.Fatalf("models: %v", all)
	}
	if o := s.post(t, "/api/generate", fmt.Sprintf(`{"model":%q,"prompt":"a","stream":false,"options":{"num_predict":2}}`, name)); o["eval_count"] != 2.0 {
		t.Errorf("%v", o)
	}
	if o := s.post(t, "/api/pull", fmt.Sprintf(`{"name":%q,"stream":false}`, name)); o["status"] != "success" {
		t.Errorf("again: %v", o)
	}
	eventually(t, "the model stays in use", func() bool { return s.busy(t) == 0 })
	if status, text, _ := s.do(t, "DELETE", "/api/delete", fmt.Sprintf(`{"model":%q}`, name)); status != 200 || text != "" {
		t.Errorf("DELETE: %d %s", status, text)
	}
	if all := s.names(t); len(all) != 1 {
		t.Errorf("models: %v", all)
	}
	for _, tt := range []struct {
		method, path, model string
		status              int
		wants               string
	}{
		{"POST", "/api/pull", "", 400, "missing"}, {"POST", "/api/pull", "../../etc/passwd", 400, "etc"}, {"POST", "/api/pull", host + "/library/none:1b", 404, "404"},
		{"DELETE", "/api/delete", "none", 404, "none"}, {"DELETE", "/api/delete", modelName, 409, "started with it"}, {"DELETE", "/api/delete", "", 400, "missing"},
	} {
		status, text, _ := s.do(t, tt.method, tt.path, fmt.Sprintf(`{"model":%q,"stream":false}`, tt.model))
		if tt.method == "DELETE" {
			status, text, _ = s.do(t, tt.method, tt.path, fmt.Sprintf(`{"model":%q}`, tt.model))
		}
		if status != tt.status || !strings.Contains(text, tt.wants) {
			t.Errorf("%s %q: %d %s, want %d with %q", tt.path, tt.model, status, text, tt.status, tt.wants)
		}
	}
	all := s.lines(t, "/api/pull", fmt.Sprintf(`{"model":%q}`, host+"/library/none:1b"))
	if last := all[len(all)-1]; last["error"] == nil {
		t.Errorf("a pull that fails: %v", all)
	}
}

// TestPullGone: a pull ends when its client goes, which leaves its place to another, and when the server stops.
func TestPullGone(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })) // it never answers
	t.Cleanup(h.Close)
	s, _ := serveCatalog(t, true)
	body := fmt.Sprintf(`{"model":%q}`, strings.TrimPrefix(h.URL, "http://")+"/library/tiny:1b")
	pull := func(ctx context.Context) (*bufio.Reader, io.Closer) { return s.beginAt(t, ctx, "/api/pull", body) }
	for range 3 {
		ctx, leave := context.WithCancel(t.Context())
		for range 4 {
			_, c := pull(ctx)
			defer c.Close()
		}
		if status, text, _ := s.do(t, "POST", "/api/pull", body); status != 429 {
			t.Errorf("a fifth pull: %d %s", status, text)
		}
		leave()
		eventually(t, "a pull goes on although its client has left", func() bool {
			ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer leave()
			r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/api/pull", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				return false
			}
			return answer.Body.Close() == nil && answer.StatusCode == 200
		})
		time.Sleep(20 * time.Millisecond) // the last one leaves, too
	}
	lines, c := pull(t.Context())
	defer c.Close()
	s.Stop()
	if rest, err := io.ReadAll(lines); err != nil || !strings.Contains(string(rest), "shutting down") {
		t.Errorf("the server stops: %q %v", rest, err)
	}
}
