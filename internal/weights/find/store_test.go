package find

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/weights/gguf"
	"grove/internal/weights/ollama"
	"grove/internal/weights/tensor"
)

// fake is a home directory with caches in it.
type fake struct {
	t    *testing.T
	home string
	vars map[string]string
}

func newFake(t *testing.T) *fake {
	return &fake{t, t.TempDir(), map[string]string{}}
}

// store is the store of the fake's Linux, without what the machine's own directories hold.
func (f *fake) store() *Store {
	s := New(func(name string) string { return f.vars[name] }, f.home, "linux")
	var places []place
	for _, p := range s.places {
		if strings.HasPrefix(p.dir, f.home) {
			places = append(places, p)
		}
	}
	s.places = places
	return s
}

// write writes a file below the home directory and returns its path.
func (f *fake) write(name, content string) string {
	f.t.Helper()
	path := filepath.Join(f.home, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// link makes a symbolic link below the home directory.
func (f *fake) link(to, name string) {
	f.t.Helper()
	path := filepath.Join(f.home, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		f.t.Skip("symbolic links cannot be made here:", err)
	}
}

const (
	hubDir    = ".cache/huggingface/hub/"
	llamaDir  = ".cache/llama.cpp/"
	ollamaDir = ".ollama/models/"
	library   = ollamaDir + "manifests/registry.ollama.ai/library/"
)

var digestOf = strings.NewReplacer("a", strings.Repeat("a", 64), "b", strings.Repeat("b", 64))

func manifest(digest string) string {
	return `{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:0"},` +
		`{"mediaType":"application/vnd.ollama.image.model","digest":"` + digest + `","size":1}]}`
}

// filled is a home directory with a model or more in every kind of place.
func filled(t *testing.T) *fake {
	f := newFake(t)
	f.vars["GROVE_MODELS"] = filepath.Join(f.home, "models") + string(os.PathListSeparator) + filepath.Join(f.home, "more")
	f.write("models/tiny.gguf", "tiny")
	f.write("models/deep/Big-Q8_0-00001-of-00002.gguf", "big 1")
	f.write("models/deep/Big-Q8_0-00002-of-00002.gguf", "big 2")
	f.write("models/deep/mmproj-big.gguf", "eyes")
	f.write("models/hf/config.json", "{}")
	f.write("models/hf/model.safetensors", "")
	f.write("models/notes/config.json", "{}")
	f.write("models/readme.txt", "")
	f.write("models/.hidden/x.gguf", "")
	f.link(".", "models/loop")
	f.write("more/tiny.gguf", "another tiny")

	blob := f.write(hubDir+"models--org--one-GGUF/blobs/123", "hub one")
	f.write(hubDir+"models--org--one-GGUF/refs/main", "c0ffee")
	f.link(blob, hubDir+"models--org--one-GGUF/snapshots/c0ffee/one-Q4_K_M.gguf")
	f.write(hubDir+"models--org--one-GGUF/snapshots/c0ffee/one-Q8_0.gguf", "hub one, 8 bits")
	f.write(hubDir+"models--org--one-GGUF/snapshots/00dead/old.gguf", "an old one")
	f.write(hubDir+"models--gpt2/snapshots/1/config.json", "{}")
	f.write(hubDir+"models--gpt2/snapshots/1/model.safetensors", "")
	f.write(hubDir+"datasets--org--text/snapshots/1/data.gguf", "no model")

	f.write(llamaDir+"org_two-GGUF_two-q4_0.gguf", "llama two")
	f.write(llamaDir+"models--org--three/snapshots/1/q6/three-00001-of-00001.gguf", "llama three")

	f.write(ollamaDir+"blobs/sha256-"+digestOf.Replace("a"), "ollama a")
	f.write(ollamaDir+"blobs/sha256-"+digestOf.Replace("b"), "ollama b")
	f.write(library+"llama3.2/1b", manifest("sha256:"+digestOf.Replace("a")))
	f.write(library+"llama3.2/latest", manifest("sha256:"+digestOf.Replace("b")))
	f.write(library+"qwen3/0.6b", manifest("sha256:"+digestOf.Replace("a")))
	f.write(ollamaDir+"manifests/hf.co/org/four/Q4", manifest("sha256:"+digestOf.Replace("b")))
	f.write(ollamaDir+"manifests/registry.ollama.ai/me/own/v1", manifest("sha256:"+digestOf.Replace("a")))
	return f
}

func TestList(t *testing.T) {
	f := filled(t)
	models, faults := f.store().List()
	for _, err := range faults {
		t.Error(err)
	}
	var got []string
	for _, m := range models {
		got = append(got, m.Source+": "+m.Name)
	}
	want := []string{
		"GROVE_MODELS: deep/Big-Q8_0", "GROVE_MODELS: hf", "GROVE_MODELS: tiny", "GROVE_MODELS: tiny",
		"Hugging Face: gpt2", "Hugging Face: org/one-GGUF/one-Q4_K_M", "Hugging Face: org/one-GGUF/one-Q8_0",
		"llama.cpp: org/three/q6/three", "llama.cpp: org_two-GGUF_two-q4_0",
		"ollama: hf.co/org/four:Q4", "ollama: llama3.2:1b", "ollama: llama3.2:latest", "ollama: me/own:v1", "ollama: qwen3:0.6b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFind(t *testing.T) {
	f := filled(t)
	s := f.store()
	for _, c := range []struct {
		name string
		want string // the file's content, or "folder"
		err  string // part of the error
	}{
		{"big-q8_0", "big 1", ""},
		{"deep/Big-Q8_0", "big 1", ""},
		{"deep/Big-Q8_0.gguf", "big 1", ""},
		{"hf", "folder", ""},
		{"gpt2", "folder", ""},
		{"one-Q4_K_M", "hub one", ""},
		{"org/one-GGUF:q8_0", "hub one, 8 bits", ""},
		{"one-gguf:Q8", "hub one, 8 bits", ""},
		{"org/three", "llama three", ""},
		{"three", "llama three", ""},
		{"two-q4_0", "llama two", ""},
		{"llama3.2:1b", "ollama a", ""},
		{"llama3.2", "ollama b", ""},
		{"qwen3", "ollama a", ""},
		{"hf.co/org/four:q4", "ollama b", ""},
		{"own", "ollama a", ""},
		{filepath.Join(f.home, "models", "deep"), "big 1", ""},
		{filepath.Join(f.home, "models", "hf"), "folder", ""},
		{filepath.Join(f.home, llamaDir, "models--org--three"), "llama three", ""},
		{filepath.Join(f.home, "more", "tiny.gguf"), "another tiny", ""},

		{"tiny", "", `"tiny" fits several models; name one of "tiny" (` + filepath.Join(f.home, "models", "tiny.gguf") + `), "tiny" (` + filepath.Join(f.home, "more", "tiny.gguf") + ")"},
		{"org/one-GGUF", "", `fits several models; name one of "org/one-GGUF/one-Q4_K_M" (`},
		{"llama3.3:1b", "", `similar names: "llama3.2:1b" (`},
		{"lama3.2", "", `one of 14 models in GROVE_MODELS (`},
		{"old", "", "is neither a file nor one of"},
		{"org/one-GGUF:", "", "is neither a file nor one of"},
		{filepath.Join(f.home, "models", "notes"), "", "holds neither a GGUF file nor a config.json with safetensors"},
		{filepath.Join(f.home, hubDir, "models--org--one-GGUF"), "", "holds several GGUF files"},
	} {
		t.Run(strings.ReplaceAll(c.name, f.home, "~"), func(t *testing.T) {
			path, err := s.Find(c.name)
			if err != nil || c.err != "" {
				if err == nil || c.err == "" || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("found %q, error %v; want one that holds %q", path, err, c.err)
				}
				return
			}
			got := "folder"
			if b, err := os.ReadFile(path); err == nil {
				got = string(b)
			}
			if got != c.want {
				t.Errorf("found %s, which holds %q, want %q", path, got, c.want)
			}
		})
	}
}

// TestFindPaths: what is written as a path is opened as one, so that the system says what is wrong.
func TestFindPaths(t *testing.T) {
	f := newFake(t)
	for _, name := range []string{"none.gguf", "./none", "../none", filepath.Join(f.home, "none")} {
		if got, err := f.store().Find(name); got != name || err != nil {
			t.Errorf("Find(%q) = %q, %v", name, got, err)
		}
	}
	if _, err := f.store().Find("none"); err == nil || !strings.Contains(err.Error(), "no cache of Hugging Face, llama.cpp, ollama or LM Studio") {
		t.Errorf("error %v", err)
	}
}

// TestSameFile: a file under several names is no ambiguity.
func TestSameFile(t *testing.T) {
	f := newFake(t)
	f.vars["GROVE_MODELS"] = filepath.Join(f.home, "a") + string(os.PathListSeparator) + filepath.Join(f.home, "b")
	x := f.write("a/x.gguf", "x")
	f.link(x, "b/x.gguf")
	if got, err := f.store().Find("x"); got != x || err != nil {
		t.Errorf("found %q, %v", got, err)
	}
	if models, _ := f.store().List(); len(models) != 1 {
		t.Errorf("listed %v", models)
	}
}

// TestLMStudio: models of LM Studio have the names of their publisher, repository and file, in both of its folders and where its user has moved it.
func TestLMStudio(t *testing.T) {
	for _, dir := range []string{".lmstudio", ".cache/lm-studio", "elsewhere"} {
		t.Run(dir, func(t *testing.T) {
			f := newFake(t)
			want := f.write(dir+"/models/lmstudio-community/Tiny-GGUF/Tiny-Q4_K_M.gguf", "x")
			f.write(dir+"/models/lmstudio-community/Tiny-GGUF/mmproj-Tiny.gguf", "y")
			if dir == "elsewhere" {
				f.write(".lmstudio-home-pointer", filepath.Join(f.home, dir)+"\n")
			}
			models, faults := f.store().List()
			if len(models) != 1 || len(faults) > 0 || models[0].Source != LMStudio || models[0].Name != "lmstudio-community/Tiny-GGUF/Tiny-Q4_K_M" {
				t.Errorf("%v, %v", models, faults)
			}
			for _, name := range []string{"tiny-q4_k_m", "Tiny-GGUF", "lmstudio-community/Tiny-GGUF:Q4_K_M"} {
				if got, err := f.store().Find(name); got != want || err != nil {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			}
		})
	}
}

// TestNestedPlaces: what two places share is listed once, and found by the names of both.
func TestNestedPlaces(t *testing.T) {
	f := newFake(t)
	f.vars["GROVE_MODELS"] = filepath.Join(f.home, "m") + string(os.PathListSeparator) + filepath.Join(f.home, "m", "sub")
	f.write("m/sub/x.gguf", "x")
	blob := f.write(ollamaDir+"blobs/sha256-"+digestOf.Replace("a"), "ollama a")
	f.write(library+"llama3.2/1b", manifest("sha256:"+digestOf.Replace("a")))
	f.link(blob, "m/mine.gguf")
	models, _ := f.store().List()
	var got []string
	for _, m := range models {
		got = append(got, m.Source+": "+m.Name)
	}
	if diff := cmp.Diff([]string{"GROVE_MODELS: mine", "GROVE_MODELS: sub/x"}, got); diff != "" {
		t.Error(diff)
	}
	if path, err := f.store().Find("llama3.2:1b"); path != blob || err != nil {
		t.Errorf("found %q, %v", path, err)
	}
}

// TestHostile: what is broken is passed over with a reason, and nothing leads out of a cache.
func TestHostile(t *testing.T) {
	f := newFake(t)
	f.vars["GROVE_MODELS"] = filepath.Join(f.home, "gone")
	f.write("secret", "secret")
	for name, content := range map[string]string{
		"traversal/1": manifest("sha256:../../../../secret"),
		"upper/1":     manifest("sha256:" + strings.Repeat("A", 64)),
		"short/1":     manifest("sha256:abc"),
		"missing/1":   manifest("sha256:" + digestOf.Replace("a")),
		"none/1":      `{"layers":[]}`,
		"text/1":      "not a manifest",
		"giant/1":     strings.Repeat(" ", maxSmall) + "{}",
		"list/1":      "[]",
	} {
		f.write(library+name, content)
	}
	if err := os.MkdirAll(filepath.Join(f.home, library, "folder", "1", "deeper"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.write(hubDir+"models--a--escape/refs/main", "../../../../..")
	f.write(hubDir+"models--a--empty/refs/main", "c0ffee")
	f.write(hubDir+"models--a--giant/refs/main", strings.Repeat("x", maxSmall+1))
	f.write(hubDir+"models--a--giant/snapshots/1/giant.gguf", "x")
	f.link(filepath.Join(f.home, "nothing"), hubDir+"models--a--dangling/snapshots/1/dangling.gguf")
	f.write(llamaDir+"1/2/3/4/5/deep.gguf", "x")
	f.write(llamaDir+"1/2/3/4/5/6/deeper.gguf", "x")
	f.write(llamaDir+".gguf", "x")
	f.write(llamaDir+"a.gguf/b.txt", "x")

	models, faults := f.store().List()
	var got []string
	for _, m := range models {
		got = append(got, m.Name)
	}
	if diff := cmp.Diff([]string{"a/giant/giant", "1/2/3/4/5/deep"}, got); diff != "" {
		t.Error(diff)
	}
	all := ""
	for _, err := range faults {
		all += err.Error() + "\n"
	}
	for _, want := range []string{
		"gone", "dangling.gguf", `"sha256:../../../../secret" is not a digest`, `AAA" is not a digest`, `"sha256:abc" is not a digest`,
		"blob sha256:aaaa", "no layer holds a model", "invalid character", "has more than 1048576 bytes", "cannot unmarshal array",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no fault holds %q", want)
		}
	}
	if len(faults) != 10 {
		t.Errorf("%d faults, want 10:\n%s", len(faults), all)
	}
}

func TestEntriesAreBounded(t *testing.T) {
	f := newFake(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		f.write("m/"+name+".gguf", "x")
	}
	s := newScan("", "")
	s.left = 3
	s.tree(filepath.Join(f.home, "m"), "", maxDepth)
	if len(s.models) != 0 || len(s.faults) != 1 || !strings.Contains(s.faults[0].Error(), "the rest is not searched") {
		t.Errorf("models %v, faults %v", s.models, s.faults)
	}
}

func TestPlaces(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths below are those of other systems")
	}
	const service = "ollama /usr/share/ollama/.ollama/models"
	for _, c := range []struct {
		name, home, system string
		vars               map[string]string
		want               []string
	}{
		{"linux", "/h", "linux", nil, []string{"Hugging Face /h/.cache/huggingface/hub", "llama.cpp /h/.cache/llama.cpp", "ollama /h/.ollama/models", service, "LM Studio /h/.lmstudio/models", "LM Studio /h/.cache/lm-studio/models"}},
		{"darwin", "/h", "darwin", nil, []string{"Hugging Face /h/.cache/huggingface/hub", "llama.cpp /h/Library/Caches/llama.cpp", "ollama /h/.ollama/models", "LM Studio /h/.lmstudio/models", "LM Studio /h/.cache/lm-studio/models"}},
		{"windows", "/h", "windows", map[string]string{"LOCALAPPDATA": "/l"}, []string{"Hugging Face /h/.cache/huggingface/hub", "llama.cpp /l/llama.cpp", "ollama /h/.ollama/models", "LM Studio /h/.lmstudio/models", "LM Studio /h/.cache/lm-studio/models"}},
		{"no home", "", "linux", nil, []string{service}},
		{"variables", "/h", "linux", map[string]string{"GROVE_MODELS": "/a::/b/", "HF_HOME": "/f", "LLAMA_CACHE": "/c", "OLLAMA_MODELS": "/o"},
			[]string{"GROVE_MODELS /a", "GROVE_MODELS /b", "Hugging Face /f/hub", "llama.cpp /c", "ollama /o", "LM Studio /h/.lmstudio/models", "LM Studio /h/.cache/lm-studio/models"}},
		{"hub cache", "/h", "darwin", map[string]string{"HF_HOME": "/f", "HF_HUB_CACHE": "/u", "LLAMA_CACHE": "/u"}, []string{"Hugging Face /u", "ollama /h/.ollama/models", "LM Studio /h/.lmstudio/models", "LM Studio /h/.cache/lm-studio/models"}},
		{"xdg", "/h", "linux", map[string]string{"XDG_CACHE_HOME": "/x", "OLLAMA_MODELS": "/o"}, []string{"Hugging Face /x/huggingface/hub", "llama.cpp /x/llama.cpp", "ollama /o", "LM Studio /h/.lmstudio/models", "LM Studio /h/.cache/lm-studio/models"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, p := range New(func(name string) string { return c.vars[name] }, c.home, c.system).places {
				got = append(got, p.source+" "+p.dir)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if own := New(func(name string) string { return c.vars[name] }, c.home, c.system).Cache(Ollama); "ollama "+own == service {
				t.Errorf("models are written into %s", own)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	err := gguf.WriteFile(path, []gguf.KV{
		{Key: "general.architecture", Value: gguf.Of("llama")}, {Key: "llama.context_length", Value: gguf.Of(uint32(2048))},
	}, []tensor.View{
		{Name: "a", Type: tensor.F32, Shape: []int{8}, Data: make([]byte, 32)},
		{Name: "b", Type: tensor.Q8_0, Shape: []int{2, 32}, Data: make([]byte, 68)},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Model{Path: path}.Describe(gguf.Open)
	info, _ := os.Stat(path)
	want := Description{Arch: "llama", Params: 72, Bytes: info.Size(), Type: tensor.Q8_0, Context: 2048, Capabilities: []string{"completion"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := (Model{Path: path + "x"}).Describe(gguf.Open); err == nil {
		t.Error("a missing file is described")
	}
}

// FuzzManifest: whatever a manifest says, the file it leads to is a blob of its own cache.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(manifest("sha256:" + digestOf.Replace("a"))))
	f.Add([]byte(manifest("sha256:../../x")))
	f.Add([]byte(`{"layers":[{"mediaType":"application/vnd.ollama.image.model"}]}`))
	dir := f.TempDir()
	blob := filepath.Join(dir, "blobs", "sha256-"+digestOf.Replace("a"))
	if err := os.MkdirAll(filepath.Dir(blob), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(blob, nil, 0o644); err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(dir, "manifests", "host", "library", "name", "tag")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := ollama.Read(path)
		if err != nil {
			return
		}
		for _, got := range append(m.Adapters, m.Model) {
			if got != blob {
				t.Errorf("a manifest leads to %q", got)
			}
		}
	})
}

// TestCapabilities: what a header says that its model can do.
func TestCapabilities(t *testing.T) {
	key := func(key string, value gguf.Value) gguf.KV { return gguf.KV{Key: key, Value: value} }
	template := func(text string) gguf.KV { return key("tokenizer.chat_template", gguf.Of(text)) }
	for _, tt := range []struct {
		metadata []gguf.KV
		want     string
	}{
		{nil, "completion"},
		{[]gguf.KV{key("bert.pooling_type", gguf.Of(uint32(1)))}, "embedding"},
		{[]gguf.KV{key("bert.pooling_type", gguf.Of(uint32(0)))}, "completion"},
		{[]gguf.KV{template("{{ messages }}")}, "completion chat"},
		{[]gguf.KV{template("{{ tools }}<think></think>"), key("tokenizer.ggml.fim_pre_token_id", gguf.Of(uint32(1)))}, "completion chat tools thinking insert"},
	} {
		path := filepath.Join(t.TempDir(), "m.gguf")
		metadata := append([]gguf.KV{key("general.architecture", gguf.Of("bert"))}, tt.metadata...)
		if err := gguf.WriteFile(path, metadata, nil); err != nil {
			t.Fatal(err)
		}
		got, err := Model{Path: path}.Describe(gguf.Open)
		if all := strings.Join(got.Capabilities, " "); all != tt.want || err != nil {
			t.Errorf("%v: %q, %v; want %q", tt.metadata, all, err, tt.want)
		}
	}
}
