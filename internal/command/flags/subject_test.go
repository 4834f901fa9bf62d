package flags

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLooksLikeModel(t *testing.T) {
	for _, name := range []string{
		"llama3.2", "llama3.2:1b", "qwen3:8b", "qwen3", "gemma", "mistral", "Mistral-Nemo", "deepseek-r1", "phi4", "gpt-oss", "gpt-oss:20b", "org/name", "org/name:Q4_K_M",
		"hf.co/org/name", "https://host/m.gguf", "./models", "../x", "~/models/m", "m.gguf", "M.GGUF", "größe.gguf", `C:\m.gguf`, "model:latest", "yes/no", "/models",
	} {
		if !LooksLikeModel(name) {
			t.Errorf("%q does not look like a model", name)
		}
	}
	for _, text := range []string{
		"", "hello", "Hello!", "func", "func main() {", "Once upon a time", "2+2", "10:30", "1/2", "42", "fmt.Println", "a=b", "/", ":", "-", "it's", "a\nb.gguf", "my model.gguf",
		"llamas", "phillip", "\xff/x", strings.Repeat("a/", 200), "what?is:this",
	} {
		if LooksLikeModel(text) {
			t.Errorf("%q looks like a model", text)
		}
	}
}

func TestLookup(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"HF_HUB_CACHE", "LLAMA_CACHE", "OLLAMA_MODELS"} {
		t.Setenv(name, filepath.Join(dir, "nowhere"))
	}
	t.Setenv("GROVE_MODELS", filepath.Join(dir, "models"))
	for name, content := range map[string]string{
		"text": "hello", "magic": "GGUF and more", "short": "GG", "m.gguf": "", "models/org/one.gguf": "GGUF", "models/two.gguf": "GGUF", "full/a.gguf": "", "full/b.gguf": "", "single/a.gguf": "",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{
		"magic": true, "m.gguf": true, "one": true, "org/one": true, "TWO.gguf": true, "single": true, "gopher-nano": true, "models/two.gguf": true,
		"text": false, "short": false, "three": false, "three.gguf": false, ".": true, "full": false, "": false, "one two": false, "/dev/null": false, "a\x00b": false,
		strings.Repeat("x", 5000): false, "gopher-giant": false, "../none": false,
	} {
		if path, got := lookup(name); got != want {
			t.Errorf("%.40q: got %q, %v, want %v", name, path, got, want)
		}
	}
}

func TestServer(t *testing.T) {
	for _, c := range []struct{ url, addr, host, port, want string }{
		{"", "", "", "", "http://127.0.0.1:8080"}, {"", "10.0.0.1:9", "", "", "http://10.0.0.1:9"}, {"", "", "0.0.0.0", "", "http://127.0.0.1:8080"},
		{"", "", "box:11434", "", "http://box:11434"}, {"", "", "::1", "9", "http://[::1]:9"}, {"", ":9", "", "", "http://127.0.0.1:9"},
		{"", "", "https://box/api/", "", "https://box/api"}, {"box:9", "x", "y", "z", "http://box:9"}, {"https://a/b/", "", "", "", "https://a/b"},
		{"ftp://a", "", "", "", ""}, {"http://", "", "", "", ""}, {"http://a:b@c", "", "", "", ""}, {"http://a?b", "", "", "", ""}, {"http://a b", "", "", "", ""},
		{"", "nowhere", "", "", ""}, {"", "", "a/b", "", ""}, {"", "", "", "99999", ""},
	} {
		for name, value := range map[string]string{"GROVE_ADDR": c.addr, "GROVE_HOST": c.host, "GROVE_PORT": c.port} {
			t.Setenv(name, value)
		}
		if got, err := (Server{URL: c.url}).Base(); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%+v: got %q, %v", c, got, err)
		}
	}
}
