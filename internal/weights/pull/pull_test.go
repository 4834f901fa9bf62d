package pull_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove/internal/weights/find"
	"grove/internal/weights/ollama"
	"grove/internal/weights/pull"
)

// home is a home directory with empty caches.
type home struct {
	t     *testing.T
	dir   string
	store *find.Store
}

func newHome(t *testing.T) *home {
	for _, name := range []string{
		"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HOME", "HF_ENDPOINT", "XDG_CACHE_HOME", "HF_HUB_OFFLINE", "GROVE_OFFLINE",
	} {
		t.Setenv(name, "")
	}
	h := &home{t: t, dir: t.TempDir()}
	t.Setenv("HOME", h.dir)
	t.Setenv("USERPROFILE", h.dir)
	vars := map[string]string{"OLLAMA_MODELS": h.path("ollama"), "LLAMA_CACHE": h.path("llama.cpp"), "HF_HUB_CACHE": h.path("hub"), "GROVE_MODELS": h.path("mine")}
	h.store = find.New(func(name string) string { return vars[name] }, h.dir, "linux")
	if err := os.Mkdir(h.path("mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *home) path(name string) string { return filepath.Join(h.dir, filepath.FromSlash(name)) }

func (h *home) write(name, text string) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(h.path(name)), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(h.path(name), []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// files lists the files below a directory of the home, with their contents; of links the targets.
func (h *home) files(dir string) map[string]string {
	all := map[string]string{}
	_ = filepath.WalkDir(h.path(dir), func(at string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		name, _ := filepath.Rel(h.path(dir), at)
		if name = filepath.ToSlash(name); strings.Contains("/"+name, "/.locks/") {
			return nil
		}
		b, _ := os.ReadFile(at)
		if all[name] = string(b); d.Type()&os.ModeSymlink != 0 {
			target, _ := os.Readlink(at)
			all[name] = "-> " + filepath.ToSlash(target)
		}
		return nil
	})
	return all
}

// run pulls a name, and returns the result and the events as text.
func (h *home) run(name string, o pull.Options) (r pull.Result, said string, err error) {
	h.t.Helper()
	ref, err := pull.Parse(name)
	if err != nil {
		h.t.Fatal(err)
	}
	o.Store, o.Backoff = h.store, time.Millisecond
	o.Progress = func(e pull.Event) { said += fmt.Sprintln(e.State, e.File, e.Text) }
	r, err = pull.Run(h.t.Context(), ref, o)
	return r, said, err
}

const commit = "0123456789abcdef0123456789abcdef01234567"

func sum(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

func gitSum(text string) string {
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(text), text)))
}

// fakeHub is a hub with one repository, org/tiny. Large files redirect to another server.
type fakeHub struct {
	files   map[string]string
	change  func(list []map[string]any) []map[string]any // of the listing; nil: none
	refuse  func(w http.ResponseWriter, r *http.Request) bool
	fetched atomic.Int64 // of large files
	cdn     *httptest.Server
	*httptest.Server
}

func newHub(t *testing.T, files map[string]string) *fakeHub {
	f := &fakeHub{files: files}
	f.cdn = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the server of large files gets the token")
		}
		f.fetched.Add(1)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(f.files[r.URL.Path[1:]]))
	}))
	t.Cleanup(f.cdn.Close)
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// ServeHTTP implements [http.Handler].
func (f *fakeHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.refuse != nil && f.refuse(w, r) {
		return
	}
	file, isFile := strings.CutPrefix(r.URL.Path, "/org/tiny/resolve/"+commit+"/")
	switch {
	case r.URL.Path == "/api/models/org/tiny/revision/main", r.URL.Path == "/api/models/org/tiny/revision/v2":
		fmt.Fprintf(w, `{"sha":%q,"siblings":[]}`, commit)
	case r.URL.Path == "/api/models/org/tiny/tree/"+commit:
		f.list(w, r)
	case isFile && large(file):
		http.Redirect(w, r, f.cdn.URL+"/"+file+"?X-Signature=s", http.StatusFound)
	case isFile && f.files[file] != "":
		fmt.Fprint(w, f.files[file])
	default:
		http.NotFound(w, r)
	}
}

func large(name string) bool {
	return strings.HasSuffix(name, ".gguf") || strings.HasSuffix(name, ".safetensors")
}

// list serves the listing in two pages.
func (f *fakeHub) list(w http.ResponseWriter, r *http.Request) {
	var all []map[string]any
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		text := f.files[name]
		e := map[string]any{"type": "file", "path": name, "size": len(text), "oid": gitSum(text)}
		if large(name) {
			e["lfs"] = map[string]any{"oid": sum(text), "size": len(text), "pointerSize": 130}
		}
		all = append(all, e)
	}
	if f.change != nil {
		all = f.change(all)
	}
	half := len(all) / 2
	if r.URL.Query().Get("cursor") == "" {
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?recursive=true&cursor=2>; rel="next"`, f.URL, r.URL.Path))
		all = all[:half]
	} else {
		all = all[half:]
	}
	json.NewEncoder(w).Encode(all)
}

var tiny = map[string]string{
	"README.md": "# tiny", "tiny-Q4_K_M.gguf": "GGUF four", "tiny-Q8_0.gguf": "GGUF eight", "mmproj-tiny.gguf": "GGUF eyes",
	"big/tiny-F16-00001-of-00002.gguf": "GGUF one", "big/tiny-F16-00002-of-00002.gguf": "GGUF two",
}

func TestHub(t *testing.T) {
	h, f := newHome(t), newHub(t, tiny)
	t.Setenv("HF_ENDPOINT", f.URL)
	r, said, err := h.run("hf.co/org/tiny", pull.Options{Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(r.Path); string(b) != "GGUF four" || err != nil || r.Received != 9 {
		t.Errorf("%s holds %q, %v; %d bytes came", r.Path, b, err, r.Received)
	}
	for _, want := range []string{"pulling manifest", `note  left out, because grove reads text alone: "mmproj-tiny.gguf"`, "pulling tiny-Q4_K_M.gguf", "ready tiny-Q4_K_M.gguf", "success"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not among the events:\n%s", want, said)
		}
	}
	const dir = "models--org--tiny/"
	want := map[string]string{
		dir + "refs/main": commit, dir + "blobs/" + sum("GGUF four"): "GGUF four",
		dir + "snapshots/" + commit + "/tiny-Q4_K_M.gguf": "-> ../../blobs/" + sum("GGUF four"),
	}
	if diff := cmp.Diff(want, h.files("hub")); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"org/tiny", "org/tiny:Q4_K_M", "tiny-Q4_K_M"} {
		if path, err := h.store.Find(name); path != r.Path || err != nil {
			t.Errorf("%s is %q, %v", name, path, err)
		}
	}
	if _, _, err = h.run("org/tiny:q4_k_m", pull.Options{}); err != nil || f.fetched.Load() != 1 {
		t.Errorf("fetched %d times, %v", f.fetched.Load(), err)
	}
	if r, _, err = h.run("org/tiny:F16", pull.Options{}); err != nil || len(r.Files) != 2 || !strings.HasSuffix(r.Path, "tiny-F16-00001-of-00002.gguf") {
		t.Errorf("%+v, %v", r, err)
	}
	if r, _, err = h.run("https://huggingface.co/org/tiny/resolve/v2/tiny-Q8_0.gguf?download=true", pull.Options{}); err != nil || h.files("hub")[dir+"refs/v2"] != commit {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestFolder: a model of safetensors opens as a folder.
func TestFolder(t *testing.T) {
	h := newHome(t)
	f := newHub(t, map[string]string{"config.json": "{}", "model.safetensors": "weights", "tokenizer.json": "{}", "pytorch_model.bin": "pickle", "README.md": "x"})
	r, _, err := h.run("org/tiny", pull.Options{Endpoint: f.URL})
	if err != nil {
		t.Fatal(err)
	}
	if path, err := h.store.Find("org/tiny"); path != r.Path || err != nil || len(r.Files) != 3 {
		t.Errorf("found %q, %v; pulled %+v", path, err, r)
	}
	if _, err := os.Stat(filepath.Join(r.Path, "pytorch_model.bin")); err == nil {
		t.Error("pickles are pulled")
	}
}

// TestHubRefuses: each refusal of the hub says what to do.
func TestHubRefuses(t *testing.T) {
	answer := func(code int, kind, text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("X-Error-Code", kind)
			w.Header().Set("X-Error-Message", text)
			w.WriteHeader(code)
			return true
		}
	}
	change := func(key string, value any) func(list []map[string]any) []map[string]any {
		return func(list []map[string]any) []map[string]any {
			for _, e := range list {
				if e["path"] == "tiny-Q4_K_M.gguf" {
					e[key] = value
				}
			}
			return list
		}
	}
	for _, c := range []struct {
		name, token string
		refuse      func(http.ResponseWriter, *http.Request) bool
		change      func(list []map[string]any) []map[string]any
		want        string
	}{
		{"401", "", answer(401, "RepoNotFound", "Repository not found"), nil, "Repository not found; there is no such repository, or it is private: check the name, or set HF_TOKEN"},
		{"401 with a token", "bad", answer(401, "", "Invalid credentials"), nil, "the hub refuses the token"},
		{"gated", "", answer(401, "GatedRepo", "Access is restricted"), nil, "the model is gated: accept its terms at "},
		{"gated with a token", "t", answer(403, "GatedRepo", "Access is restricted"), nil, "your token has no access"},
		{"404", "", answer(404, "", ""), nil, "404 Not Found; there is no such repository or revision"},
		{"revision", "", answer(404, "RevisionNotFound", ""), nil, "no revision main"},
		{"429", "", answer(429, "", ""), nil, "429 Too Many Requests (5 attempts); too many requests"},
		{"500", "", answer(500, "", "oops"), nil, "500 Internal Server Error: oops (5 attempts)"},
		{"a page", "", func(w http.ResponseWriter, r *http.Request) bool { fmt.Fprint(w, "<html>"); return true }, nil, `names no commit of org/tiny: it sends "<html>"`},
		{"a path as commit", "", func(w http.ResponseWriter, r *http.Request) bool { fmt.Fprint(w, `{"sha":"../../x"}`); return true }, nil, "names no commit"},
		{"a giant listing", "", func(w http.ResponseWriter, r *http.Request) bool {
			w.Write(bytes.Repeat([]byte(" "), 16<<20+1))
			return true
		}, nil, "sends more than 16777216 bytes"},
		{"pages elsewhere", "", func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Link", `<https://elsewhere.example/>; rel="next"`)
			return false
		}, func(list []map[string]any) []map[string]any { return nil }, "the list of files"},
		{"no hash", "", nil, change("lfs", map[string]any{"oid": "x", "size": 9}), `tiny-Q4_K_M.gguf: "sha256:x" is not a digest`},
		{"wrong hash", "", nil, change("lfs", map[string]any{"oid": sum("x"), "size": 9}), "and sha256:" + sum("x") + " was promised"},
		{"wrong size", "", nil, func(l []map[string]any) []map[string]any {
			return change("lfs", map[string]any{"oid": sum("GGUF four"), "size": 5})(change("size", 5)(l))
		}, "were promised"},
		{"negative size", "", nil, func(l []map[string]any) []map[string]any {
			return change("lfs", map[string]any{"oid": sum("GGUF four"), "size": -5})(l)
		}, "-5 bytes"},
		{"traversal", "", nil, change("path", "../../../tiny-Q4_K_M.gguf"), `".." is not the name of a file`},
		{"absolute", "", nil, change("path", "/etc/tiny-Q4_K_M.gguf"), `"" is not the name of a file`},
		{"backslashes", "", nil, change("path", `..\..\tiny-Q4_K_M.gguf`), "is not the name of a file"},
		{"drive", "", nil, change("path", `C:tiny-Q4_K_M.gguf`), "is not the name of a file"},
		{"NUL", "", nil, change("path", "tiny\x00-Q4_K_M.gguf"), "is not the name of a file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, f := newHome(t), newHub(t, tiny)
			f.refuse, f.change = c.refuse, c.change
			if c.name == "pages elsewhere" {
				f.refuse = func(w http.ResponseWriter, r *http.Request) bool {
					if strings.Contains(r.URL.Path, "/tree/") {
						w.Header().Set("Link", `<https://elsewhere.example/>; rel="next"`)
						fmt.Fprint(w, "[]")
						return true
					}
					return false
				}
				c.want = "continues its list of files elsewhere"
			}
			_, _, err := h.run("org/tiny", pull.Options{Endpoint: f.URL, Token: c.token})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "pull: org/tiny: ") {
				t.Errorf("the error begins otherwise: %v", err)
			}
			for name := range h.files("hub") {
				if !strings.HasSuffix(name, pull.Suffix) {
					t.Errorf("%s is written", name)
				}
			}
			if rest := h.files("."); len(rest) != len(h.files("hub")) {
				t.Errorf("outside the cache there is %v", rest)
			}
		})
	}
}

// TestToken: the token comes from the places in which huggingface_hub keeps it, and is a word.
func TestToken(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   func(h *home, t *testing.T)
		want  string
		error string
	}{
		{"none", func(*home, *testing.T) {}, "", ""},
		{"HF_TOKEN", func(h *home, t *testing.T) { t.Setenv("HF_TOKEN", "one"); t.Setenv("HUGGING_FACE_HUB_TOKEN", "two") }, "Bearer one", ""},
		{"HUGGING_FACE_HUB_TOKEN", func(h *home, t *testing.T) {
			t.Setenv("HUGGING_FACE_HUB_TOKEN", "two")
			h.write(".cache/huggingface/token", "three")
		}, "Bearer two", ""},
		{"file", func(h *home, t *testing.T) { h.write(".cache/huggingface/token", "three\n") }, "Bearer three", ""},
		{"HF_HOME", func(h *home, t *testing.T) { t.Setenv("HF_HOME", h.path("f")); h.write("f/token", "four") }, "Bearer four", ""},
		{"HF_TOKEN_PATH", func(h *home, t *testing.T) {
			t.Setenv("HF_TOKEN_PATH", h.path("t"))
			h.write("t", "five")
			h.write(".cache/huggingface/token", "three")
		}, "Bearer five", ""},
		{"two words", func(h *home, t *testing.T) { t.Setenv("HF_TOKEN", "one two") }, "", "HF_TOKEN holds no token: 7 bytes"},
		{"lines", func(h *home, t *testing.T) { t.Setenv("HF_TOKEN", "one\r\nHost: x") }, "", "HF_TOKEN holds no token"},
		{"giant", func(h *home, t *testing.T) { h.write(".cache/huggingface/token", strings.Repeat("x", 5000)) }, "", "token holds no token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, f := newHome(t), newHub(t, tiny)
			c.set(h, t)
			f.refuse = func(w http.ResponseWriter, r *http.Request) bool {
				if got := r.Header.Get("Authorization"); got != c.want {
					t.Errorf("the hub gets %q, want %q", got, c.want)
				}
				return false
			}
			_, _, err := h.run("org/tiny", pull.Options{Endpoint: f.URL})
			if c.error == "" && err != nil || c.error != "" && (err == nil || !strings.Contains(err.Error(), c.error)) {
				t.Errorf("error %v, want %q", err, c.error)
			}
		})
	}
	h := newHome(t)
	for _, endpoint := range []string{"huggingface.co", "ftp://x", "https://user:password@x", "https://"} {
		if _, _, err := h.run("org/tiny", pull.Options{Endpoint: endpoint}); err == nil || !strings.Contains(err.Error(), "is not the address of a hub") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

func TestOffline(t *testing.T) {
	h := newHome(t)
	if _, _, err := h.run("org/tiny", pull.Options{Offline: true}); !errors.Is(err, pull.ErrOffline) {
		t.Error(err)
	}
	for value, want := range map[string]bool{"1": true, "true": true, "0": false, "": false, "no": false, "OFF": false} {
		t.Setenv("HF_HUB_OFFLINE", value)
		if pull.Offline() != want {
			t.Errorf("%q is %v", value, !want)
		}
	}
	t.Setenv("GROVE_OFFLINE", "1")
	if _, _, err := h.run("llama3.2", pull.Options{}); !errors.Is(err, pull.ErrOffline) {
		t.Error(err)
	}
}

// fakeRegistry is a registry of form v2 with one model, library/tiny:1b.
type fakeRegistry struct {
	manifest string
	blobs    map[string]string
	token    string // that requests must carry; "": none
	*httptest.Server
}

func newRegistry(t *testing.T, projector bool) *fakeRegistry {
	f := &fakeRegistry{blobs: map[string]string{}}
	blob := func(kind, text string) string {
		f.blobs["sha256:"+sum(text)] = text
		return fmt.Sprintf(`{"mediaType":%q,"digest":"sha256:%s","size":%d}`, kind, sum(text), len(text))
	}
	layers := []string{
		blob("application/vnd.ollama.image.model", "GGUF of a registry"), blob("application/vnd.ollama.image.template", "{{ .Prompt }}"),
		blob("application/vnd.ollama.image.license", "free"), blob("application/vnd.ollama.image.params", `{"temperature":0}`),
	}
	if projector {
		layers = append(layers, blob("application/vnd.ollama.image.projector", "GGUF eyes"))
	}
	f.manifest = `{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json","config":` +
		blob("application/vnd.docker.container.image.v1+json", "{}") + `,"layers":[` + strings.Join(layers, ",") + "]}"
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// ServeHTTP implements [http.Handler].
func (f *fakeRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" {
		fmt.Fprintf(w, `{"token":%q}`, f.token)
		return
	}
	if f.token != "" && r.Header.Get("Authorization") != "Bearer "+f.token {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+f.URL+`/token",service="fake",scope="repository:library/tiny:pull"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	digest, isBlob := strings.CutPrefix(r.URL.Path, "/v2/library/tiny/blobs/")
	switch {
	case r.URL.Path == "/v2/library/tiny/manifests/1b" && strings.Contains(r.Header.Get("Accept"), "manifest.v2+json"):
		fmt.Fprint(w, f.manifest)
	case isBlob && f.blobs[digest] != "":
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(f.blobs[digest]))
	default:
		http.NotFound(w, r)
	}
}

func (f *fakeRegistry) name(model string) string {
	return strings.TrimPrefix(f.URL, "http://") + "/library/" + model
}

func TestRegistry(t *testing.T) {
	for _, projector := range []bool{false, true} {
		t.Run(fmt.Sprint(projector), func(t *testing.T) {
			h, f := newHome(t), newRegistry(t, projector)
			f.token = "of a stranger"
			r, said, err := h.run(f.name("tiny:1b"), pull.Options{})
			if err != nil {
				t.Fatal(err)
			}
			m, err := ollama.Read(r.Path)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(m.Model); string(b) != "GGUF of a registry" || err != nil {
				t.Errorf("%s holds %q, %v", m.Model, b, err)
			}
			if path, err := h.store.Find(f.name("tiny:1b")); path != r.Path || err != nil {
				t.Errorf("found %q, %v", path, err)
			}
			files := h.files("ollama")
			manifest := files["manifests/"+f.name("tiny")+"/1b"]
			if len(files) != 6 {
				t.Errorf("%d files: %v", len(files), files)
			}
			if projector {
				if strings.Contains(manifest, "projector") || strings.Contains(manifest, sum("GGUF eyes")) || !strings.Contains(said, "the projector of images") {
					t.Errorf("%s\n%s", manifest, said)
				}
			} else if manifest != f.manifest {
				t.Errorf("the manifest has changed:\n%s", manifest)
			}
			if r, _, err = h.run(f.name("tiny:1b"), pull.Options{}); err != nil || r.Received != 0 {
				t.Errorf("%d bytes came again, %v", r.Received, err)
			}
		})
	}
}

func TestRegistryRefuses(t *testing.T) {
	for _, c := range []struct {
		name, model string
		change      func(f *fakeRegistry)
		want        string
	}{
		{"tag", "tiny:2b", nil, "404 Not Found: 404 page not found; the registry has no such model or tag"},
		{"model", "none", nil, "no such model or tag"},
		{"giant manifest", "tiny:1b", func(f *fakeRegistry) { f.manifest = strings.Repeat(" ", 1<<20+1) }, "sends more than 1048576 bytes"},
		{"no manifest", "tiny:1b", func(f *fakeRegistry) { f.manifest = "<html>" }, "the manifest: invalid character"},
		{"digest", "tiny:1b", func(f *fakeRegistry) { f.manifest = strings.ReplaceAll(f.manifest, sum("free"), "../../../../x") }, "is not a digest"},
		{"other content", "tiny:1b", func(f *fakeRegistry) { f.blobs["sha256:"+sum("free")] = "evil" }, "and sha256:" + sum("free") + " was promised"},
		{"more content", "tiny:1b", func(f *fakeRegistry) { f.blobs["sha256:"+sum("free")] = strings.Repeat("free", 1000) }, "and 4 were promised"},
		{"missing blob", "tiny:1b", func(f *fakeRegistry) { delete(f.blobs, "sha256:"+sum("free")) }, "404"},
		{"no GGUF", "tiny:1b", func(f *fakeRegistry) {
			f.blobs["sha256:"+sum("PK34 of a registry")] = "PK34 of a registry"
			f.manifest = strings.ReplaceAll(f.manifest, sum("GGUF of a registry"), sum("PK34 of a registry"))
		}, `begins with "PK34"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, f := newHome(t), newRegistry(t, false)
			if c.change != nil {
				c.change(f)
			}
			_, _, err := h.run(f.name(c.model), pull.Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "pull: 127.0.0.1:") {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			for name := range h.files("ollama") {
				if strings.HasPrefix(name, "manifests") {
					t.Errorf("%s is written", name)
				}
			}
		})
	}
}

func TestURL(t *testing.T) {
	files := map[string]string{
		"/x.gguf": "GGUF x", "/s-00001-of-00002.gguf": "GGUF 1", "/s-00002-of-00002.gguf": "GGUF 2", "/page.gguf": "<html>", "/half-00001-of-00002.gguf": "GGUF 1",
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if files[r.URL.Path] == "" {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(files[r.URL.Path]))
	}))
	defer server.Close()
	h := newHome(t)
	r, _, err := h.run(server.URL+"/x.gguf?signature=s", pull.Options{})
	if err != nil || r.Path != h.path("llama.cpp/x.gguf") {
		t.Errorf("%+v, %v", r, err)
	}
	if path, err := h.store.Find("x"); path != r.Path || err != nil {
		t.Errorf("found %q, %v", path, err)
	}
	if r, _, err = h.run(server.URL+"/s-00001-of-00002.gguf", pull.Options{}); err != nil || len(r.Files) != 2 || r.Received != 12 {
		t.Errorf("%+v, %v", r, err)
	}
	for name, want := range map[string]string{
		"page.gguf": "it is no model", "none.gguf": "404 Not Found", "half-00001-of-00002.gguf": "half-00002-of-00002.gguf: 127.0.0.1", "many-00001-of-99999.gguf": "99999 parts",
	} {
		if _, _, err := h.run(server.URL+"/"+name, pull.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", name, err, want)
		}
	}
	if _, there := h.files("llama.cpp")["page.gguf"]; there {
		t.Error("a page is kept as a model")
	}
	u, _ := url.Parse(server.URL)
	if _, err := pull.Run(t.Context(), pull.Ref{Kind: pull.URL, URL: u.JoinPath("..%2fx.gguf")}, pull.Options{Store: h.store}); err == nil {
		t.Error("a name with a separator is taken")
	}
}

// TestCaches: without a home there is no cache, and an ended context is the error.
func TestCaches(t *testing.T) {
	newHome(t)
	nowhere := find.New(func(string) string { return "" }, "", "linux")
	ref, _ := pull.Parse("org/tiny")
	if _, err := pull.Run(t.Context(), ref, pull.Options{Store: nowhere}); err == nil || !strings.Contains(err.Error(), "no home directory") {
		t.Error(err)
	}
	if _, err := pull.Run(t.Context(), pull.Ref{}, pull.Options{}); err == nil {
		t.Error("no name is pulled")
	}
	h := newHome(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	cancel(reason)
	if _, err := pull.Run(ctx, ref, pull.Options{Store: h.store}); !errors.Is(err, reason) {
		t.Error(err)
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, kind, local string }{
		{"org/repo", "hub org/repo", "org/repo"},
		{"Org/Re.po-1_GGUF:Q4_K_M", "hub Org/Re.po-1_GGUF:Q4_K_M", "Org/Re.po-1_GGUF:Q4_K_M"},
		{"hf.co/org/repo:IQ4_XS", "hub org/repo:IQ4_XS", "org/repo:IQ4_XS"},
		{"HF.co/org/repo:latest", "hub org/repo", "org/repo"},
		{"huggingface.co/gpt2", "hub gpt2", "gpt2"},
		{"https://huggingface.co/org/repo", "hub org/repo", "org/repo"},
		{"https://huggingface.co/org/repo/tree/main", "hub org/repo", "org/repo"},
		{"https://huggingface.co/org/repo/blob/main/sub/x.gguf?x=y#z", "hub org/repo/sub/x.gguf", "org/repo/sub/x"},
		{"llama3.2", "registry.ollama.ai llama3.2:latest", "llama3.2:latest"},
		{"llama3.2:3b", "registry.ollama.ai llama3.2:3b", "llama3.2:3b"},
		{"library/llama3.2:3b", "registry.ollama.ai llama3.2:3b", "llama3.2:3b"},
		{"ollama.com/me/own", "registry.ollama.ai me/own:latest", "me/own:latest"},
		{"https://ollama.com/library/qwen3:0.6b", "registry.ollama.ai qwen3:0.6b", "qwen3:0.6b"},
		{"registry.example/ns/model:tag", "registry.example registry.example/ns/model:tag", "registry.example/ns/model:tag"},
		{"localhost:5000/ns/model", "localhost:5000 localhost:5000/ns/model:latest", "localhost:5000/ns/model:latest"},
		{"https://example.com/a/b.gguf?sig=1", "url https://example.com/a/b.gguf", "b"},
	} {
		r, err := pull.Parse(c.name)
		got := r.From() + " " + r.String()
		switch r.Kind {
		case pull.Hub:
			got = "hub " + r.String()
		case pull.URL:
			got = "url " + r.String()
		}
		if got != c.kind || r.Local() != c.local || err != nil {
			t.Errorf("%s is %q, found as %q, %v", c.name, got, r.Local(), err)
		}
	}
	for _, name := range []string{
		"", " ", "a b", "./x", "../x", "/x", "~/x", "x.gguf", "dir/x.gguf", `C:\x`, "C:x", "a\x00b", "a/b/c", "a/b/c/d", "org/re..po", "org/a--b", "-x", "org/-x", "org/repo:", "org/repo:a/b",
		"org/repo:..", ":tag", "model:", "model:../x", "https://example.com", "https://example.com/x.bin", "https://u:p@example.com/x.gguf", "https:///x.gguf", "https://example.com/.gguf",
		"https://huggingface.co/org/repo/blob/main/../../x.gguf", "https://huggingface.co/org", "hf.co/", "hf.co/a/b/c", "ftp://x/y.gguf", "registry.example/ns/../x", strings.Repeat("x", 3000),
		"https://huggingface.co/org/repo/blob/main/x.bin", "model:con", "a.example/nul/x",
	} {
		if r, err := pull.Parse(name); err == nil && r.String() != "org" {
			t.Errorf("%q is %q from %s", name, r, r.From())
		}
	}
}

// FuzzParse: whatever a name holds, it leads to no path outside a cache.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"org/repo:Q4", "hf.co/a/b", "x:y", "h.example/a/b:c", "https://h.example/x.gguf", "https://huggingface.co/o/r/blob/main/x.gguf"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		r, err := pull.Parse(name)
		if err != nil {
			return
		}
		for _, part := range []string{r.Hub.Repo, r.Hub.File, r.Hub.Revision, r.Model.Host, r.Model.Namespace, r.Model.Model, r.Model.Tag} {
			if part != "" && (!filepath.IsLocal(part)) {
				t.Errorf("%q has the part %q", name, part)
			}
		}
		if r.Kind == pull.Registry {
			if again, err := pull.ParseRegistry(r.String()); err != nil || again != r.Model {
				t.Errorf("%q is %+v, and %q is %+v, %v", name, r.Model, r, again, err)
			}
		}
	})
}
