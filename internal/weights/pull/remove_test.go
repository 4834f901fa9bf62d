package pull_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/weights/pull"
)

// names returns the names of the files below a directory of the home, sorted as maps are compared.
func (h *home) names(dir string) map[string]bool {
	all := map[string]bool{}
	for name := range h.files(dir) {
		all[name] = true
	}
	return all
}

func TestRemoveHub(t *testing.T) {
	h, f := newHome(t), newHub(t, tiny)
	for _, name := range []string{"org/tiny", "org/tiny:Q8_0", "org/tiny:F16"} {
		if _, _, err := h.run(name, pull.Options{Endpoint: f.URL}); err != nil {
			t.Fatal(err)
		}
	}
	// An older snapshot has the file of Q8_0 under two names.
	const dir = "hub/models--org--tiny/"
	old := h.path(dir + "snapshots/00dead")
	if err := os.Mkdir(old, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tiny-Q8_0.gguf", "copy.gguf"} {
		if err := os.Symlink("../../blobs/"+sum("GGUF eight"), filepath.Join(old, name)); err != nil {
			t.Skip("symbolic links cannot be made here:", err)
		}
	}
	for _, c := range []struct {
		name  string
		freed int64
		files int
		left  int
	}{
		{"org/tiny:Q8_0", 0, 2, 9},                       // copy.gguf needs the blob
		{"org/tiny/tiny-Q4_K_M.gguf", 9, 2, 7},           // the link and the blob
		{"hf.co/org/tiny:F16", 16, 4, 2 + 1},             // both parts; copy.gguf, its blob and the reference stay
		{dir + "snapshots/" + commit + "/none", 0, 0, 3}, // refused
	} {
		r, err := pull.Remove(h.store, c.name)
		if (err == nil) != (c.files > 0) || r.Freed != c.freed || len(r.Files) != c.files {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
		if left := h.names(dir); len(left) != c.left {
			t.Errorf("after %s there is %v", c.name, left)
		}
	}
}

// TestRemoveRepository: a repository without files goes as a whole, a folder with all its files.
func TestRemoveRepository(t *testing.T) {
	h := newHome(t)
	f := newHub(t, map[string]string{"config.json": "{}", "model.safetensors": "weights", "tokenizer.json": "{}"})
	if _, _, err := h.run("org/tiny", pull.Options{Endpoint: f.URL}); err != nil {
		t.Fatal(err)
	}
	h.write("hub/models--org--tiny/blobs/old.incomplete", "partial")
	h.write("hub/models--org--other/refs/main", "x")
	r, err := pull.Remove(h.store, "org/tiny")
	if err != nil || r.Freed < int64(len("{}weightspartial")) || r.Source != "Hugging Face" || r.Name != "org/tiny" {
		t.Errorf("%+v, %v", r, err)
	}
	if diff := cmp.Diff(map[string]bool{"models--org--other/refs/main": true}, h.names("hub")); diff != "" {
		t.Error(diff)
	}
}

func TestRemoveOllama(t *testing.T) {
	h, f := newHome(t), newRegistry(t, false)
	if _, _, err := h.run(f.name("tiny:1b"), pull.Options{}); err != nil {
		t.Fatal(err)
	}
	dir := "ollama/manifests/" + f.name("tiny")
	other := strings.ReplaceAll(f.manifest, sum("free"), sum("own"))
	h.write(dir+"/other", other)
	if _, err := pull.Remove(h.store, f.name("tiny")); err == nil || !strings.Contains(err.Error(), "the name fits 2 models") {
		t.Error(err)
	}
	h.write("ollama/manifests/broken/a/b/c", "{")
	if _, err := pull.Remove(h.store, f.name("tiny:1b")); err == nil || !strings.Contains(err.Error(), "nothing is removed") {
		t.Error(err)
	}
	os.RemoveAll(h.path("ollama/manifests/broken"))
	r, err := pull.Remove(h.store, f.name("tiny:1b"))
	if want := int64(len(f.manifest) + len("free")); err != nil || r.Freed != want || len(r.Files) != 2 {
		t.Errorf("%+v, %v; want %d bytes freed", r, err, want)
	}
	if r, err = pull.Remove(h.store, f.name("tiny:other")); err != nil || len(h.names("ollama")) != 0 {
		t.Errorf("%+v, %v; there is %v", r, err, h.names("ollama"))
	}
	if entries, _ := os.ReadDir(h.path("ollama/manifests")); len(entries) != 0 {
		t.Errorf("directories are left: %v", entries)
	}
}

// TestRemoveHostile: a manifest or a link that leads elsewhere removes nothing there.
func TestRemoveHostile(t *testing.T) {
	h := newHome(t)
	h.write("secret", "secret")
	h.write("ollama/blobs/sha256-"+strings.Repeat("a", 64), "GGUF")
	h.write("ollama/manifests/registry.ollama.ai/library/evil/1", `{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:`+strings.Repeat("a", 64)+
		`"},{"digest":"sha256:../../../secret"},{"digest":"../../secret"}]}`)
	if r, err := pull.Remove(h.store, "evil:1"); err != nil || len(r.Files) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	h.write("hub/models--a--b/refs/main", "1")
	for name, to := range map[string]string{"x.gguf": "../../../../secret", "y.gguf": h.path("secret")} {
		if err := os.MkdirAll(h.path("hub/models--a--b/snapshots/1"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, h.path("hub/models--a--b/snapshots/1/"+name)); err != nil {
			t.Skip("symbolic links cannot be made here:", err)
		}
		if r, err := pull.Remove(h.store, "a/b:"+name); err != nil || len(r.Files) == 0 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	h.write("elsewhere/z.gguf", "GGUF")
	if err := os.MkdirAll(h.path("llama.cpp"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(h.path("elsewhere"), h.path("llama.cpp/link")); err != nil {
		t.Fatal(err)
	}
	if _, err := pull.Remove(h.store, "link/z"); err == nil {
		t.Error("a file is removed through a link out of the cache")
	}
	for _, name := range []string{"secret", "elsewhere/z.gguf"} {
		if _, err := os.Stat(h.path(name)); err != nil {
			t.Error(err)
		}
	}
}

func TestRemoveFiles(t *testing.T) {
	h := newHome(t)
	for _, name := range []string{
		"llama.cpp/x-Q8_0.gguf", "llama.cpp/x-Q8_0.gguf.json", "llama.cpp/s-00001-of-00002.gguf", "llama.cpp/s-00002-of-00002.gguf", "llama.cpp/s-00001-of-00003.gguf",
		"llama.cpp/f/config.json", "llama.cpp/f/model.safetensors", "mine/own.gguf", "other/foreign.gguf",
	} {
		h.write(name, "GGUF")
	}
	for _, c := range []struct {
		name, err string
		files     int
	}{
		{"x-Q8_0", "", 2},
		{"x-Q8_0", "no such model in the caches", 0},
		{h.path("llama.cpp/s-00001-of-00002.gguf"), "", 2},
		{"f", "remove it yourself", 0},
		{"own", "lies in a directory of GROVE_MODELS", 0},
		{h.path("mine/own.gguf"), "lies in a directory of GROVE_MODELS", 0},
		{h.path("other/foreign.gguf"), "outside the caches", 0},
		{"../../etc/passwd", "", 0},
		{"", "no such model", 0},
	} {
		r, err := pull.Remove(h.store, c.name)
		if len(r.Files) != c.files || (c.files > 0) != (err == nil) || c.err != "" && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
	}
	if _, err := pull.Remove(h.store, "nothing"); !errors.Is(err, pull.ErrNotFound) {
		t.Error(err)
	}
	if left := len(h.names(".")); left != 5 {
		t.Errorf("there is %v", h.names("."))
	}
}
