package ollama

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/gopher"
	"grove/internal/weights/gguf"
)

// made writes a folder of ollama's with a model of gopher's weights and some layers, each a kind and its text, and returns the manifest.
func made(t testing.TB, layers ...[2]string) string {
	t.Helper()
	dir := t.TempDir()
	manifest := filepath.Join(dir, "manifests", "registry.ollama.ai", "library", "own", "latest")
	var list []string
	for i, l := range append([][2]string{{"model", string(gopher.Model())}}, layers...) {
		name := fmt.Sprintf("%064x", i)
		list = append(list, fmt.Sprintf(`{"mediaType":"application/vnd.ollama.image.%s","digest":"sha256:%s"}`, l[0], name))
		write(t, filepath.Join(dir, "blobs", "sha256-"+name), l[1])
	}
	write(t, manifest, `{"layers":[`+strings.Join(list, ",")+"]}")
	return manifest
}

func write(t testing.TB, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpen(t *testing.T) {
	path := made(t,
		[2]string{"params", `{"temperature":0.5,"top_k":7,"presence_penalty":0.25,"stop":["a","","b"],"num_ctx":2048,"num_predict":-1,"seed":0,"num_gpu":9,"tfs_z":1,"x":1,"min_p":"y"}`},
		[2]string{"system", "be brief"}, [2]string{"template", "{{ .Prompt }}"}, [2]string{"license", "MIT\nmore"}, [2]string{"adapter", "lora"}, [2]string{"projector", "clip"})
	if !Is(path) {
		t.Fatal("it is no manifest")
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := map[string]any{}
	for _, key := range []string{"general.sampling.temp", "general.sampling.top_k", "general.sampling.penalty_present", KeyStop, KeyContext, KeyMaxTokens, KeySeed, KeySystem, "general.license"} {
		if v, ok := f.Lookup(key); ok {
			got[key] = v.Any()
		}
	}
	want := map[string]any{
		"general.sampling.temp": float32(0.5), "general.sampling.top_k": float32(7), "general.sampling.penalty_present": float32(0.25), KeyStop: []string{"a", "b"},
		KeyContext: uint32(2048), KeySeed: uint32(0), KeySystem: "be brief", "general.license": "bsd-3-clause",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	notes, _, err := f.Strings(KeyNotes)
	if err != nil || len(notes) != 3 || !strings.Contains(notes[0], "Go template") || notes[1] != `the parameter "min_p" is "y"; it must be a number` || notes[2] != `the parameter "x" is not known` {
		t.Errorf("%q, %v", notes, err)
	}
	if len(f.Adapters) != 1 || !strings.HasSuffix(f.Adapters[0], "5") {
		t.Errorf("adapters %q", f.Adapters)
	}
}

func TestBroken(t *testing.T) {
	for _, c := range []struct{ name, kind, text, want string }{
		{"params", "params", "{", "the layer of kind params"}, {"stop", "params", `{"stop":1}`, "the layer of kind params: stop"}, {"messages", "messages", "x", "the layer of kind messages"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Open(made(t, [2]string{c.kind, c.text})); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
	path := made(t, [2]string{"system", "x"})
	if err := os.Remove(filepath.Join(path, "../../../../../blobs", "sha256-"+fmt.Sprintf("%064x", 1))); err != nil {
		t.Fatal(err)
	}
	m, err := Read(path)
	if err != nil || m.Plain() {
		t.Errorf("a manifest without a layer is not read, or is its weights alone: %v", err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Error(err)
	}
	for _, none := range []string{filepath.Dir(path), filepath.Join(t.TempDir(), "model.gguf")} {
		if Is(none) {
			t.Errorf("%s is taken for a manifest", none)
		}
	}
}

// FuzzParameters: whatever the layer of parameters says, it is read or refused.
func FuzzParameters(f *testing.F) {
	f.Add([]byte(`{"temperature":1e99,"num_ctx":-1,"stop":null,"seed":1.5}`))
	f.Add([]byte(`{"num_ctx":99999999999}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := gguf.Parse(gopher.Model())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = parameters(file, b)
	})
}
