package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/gopher"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
	"grove/server"
	"grove/server/access"
	"grove/server/serving"
)

// adapterFiles writes random adapters of the model inside the program, one.gguf and two.gguf, and one of another base, other.gguf.
func adapterFiles(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i, name := range []string{"one", "two", "other"} {
		of := gopher.Model()
		if name == "other" {
			of = gopher.Named(gopher.NanoName)
		}
		base, err := gguf.Parse(of)
		if err != nil {
			t.Fatal(err)
		}
		picks := func(name string) bool { return strings.Contains(name, "attn_q") || strings.Contains(name, "ffn_down") }
		metadata, tensors, err := synthetic.Adapter(base, uint64(i), 8, tensor.F16, picks, nil)
		if err == nil {
			err = gguf.WriteFile(filepath.Join(dir, name+".gguf"), metadata, tensors)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestAdapters asks for adapters as llama.cpp's clients and vLLM's do, one after the other and together: an answer is that of the
// adapter's model alone.
func TestAdapters(t *testing.T) {
	dir := adapterFiles(t)
	o := options
	o.ChatTemplate = "chatml"
	o.Adapters = []grove.AdapterFile{{Path: filepath.Join(dir, "one.gguf"), Name: "one"}, {Path: filepath.Join(dir, "two.gguf"), Name: "two"}}
	s := serveModels(t, server.Config{AdapterDir: dir, Metrics: []serving.MetricNames{serving.MetricsVLLM}}, source(modelName, gopher.Model(), o))
	if _, text, _ := s.do(t, "GET", "/metrics", ""); !strings.Contains(text, `vllm:lora_requests_info{max_lora="2",running_lora_adapters="one,two",waiting_lora_adapters=""}`) {
		t.Errorf("no adapters in %s", text)
	}
	const prompt = `"prompt":"func main() {\n\tfor i := range 10 {\n","max_tokens":12,"temperature":0`
	ask := func(fields string) string {
		return s.post(t, "/completion", "{"+prompt+fields+"}").at("content").(string)
	}
	bare, one, two := ask(""), ask(`,"lora":[{"id":0,"scale":1}]`), ask(`,"lora":[{"id":1,"scale":1}]`)
	if bare == one || bare == two || one == two {
		t.Fatalf("the answers are %q, %q and %q", bare, one, two)
	}
	plain := serveTarget(t, server.Config{})
	if got := plain.post(t, "/completion", "{"+prompt+"}").at("content"); got != bare {
		t.Errorf("without adapters %q, with adapters of scale 0 %q", got, bare)
	}
	want := map[string]string{
		`,"lora":[]`: bare, `,"model":"gopher"`: bare, `,"model":"one"`: one, `,"model":"two"`: two, `,"lora":[{"id":0,"scale":1},{"id":1,"scale":0}]`: one,
	}
	var all sync.WaitGroup
	for fields, text := range want {
		all.Go(func() {
			if got := ask(fields); got != text {
				t.Errorf("%s: %q, want %q", fields, got, text)
			}
		})
	}
	all.Wait()
	if got := s.post(t, "/v1/completions", `{"model":"two",`+prompt+"}").at("choices/0/text"); got != two {
		t.Errorf("/v1/completions: %q, want %q", got, two)
	}
	chat := func(model string) any {
		return s.post(t, "/v1/chat/completions", `{"model":"`+model+`","max_tokens":8,"temperature":0,"messages":[{"role":"user","content":"func"}]}`).at("choices/0/message/content")
	}
	if chat("one") == chat(modelName) {
		t.Error("/v1/chat/completions: the adapter changes nothing")
	}

	if status, text, _ := s.do(t, "POST", "/lora-adapters", `[{"id":1,"scale":1}]`, "Content-Type", "application/json"); status != 200 || !strings.Contains(text, `"success":true`) {
		t.Fatalf("/lora-adapters: %d %s", status, text)
	}
	if got := ask(""); got != two {
		t.Errorf("with other scales: %q, want %q", got, two)
	}
	_, text, _ := s.do(t, "GET", "/lora-adapters", "")
	list := parse(t, `{"all":`+text+`}`)
	if list.at("all/0/id") != 0.0 || list.at("all/0/scale") != 0.0 || list.at("all/1/scale") != 1.0 || list.at("all/1/path") != "two.gguf" {
		t.Errorf("the list is %s", text)
	}
	_, text, _ = s.do(t, "GET", "/v1/models", "")
	models := parse(t, text)
	if models.at("data/1/id") != "one" || models.at("data/1/parent") != modelName || models.at("data/2/root") != "two.gguf" || models.at("data/0/parent") != nil {
		t.Errorf("the models are %s", text)
	}
	if _, text, _ = s.do(t, "GET", "/v1/models/two", ""); parse(t, text).at("parent") != modelName {
		t.Errorf("the model is %s", text)
	}
}

// TestAdapterUpdates opens and closes adapters by vLLM's routes, and expects what is not allowed, not there or not fitting to be refused
// by name.
func TestAdapterUpdates(t *testing.T) {
	dir := adapterFiles(t)
	s := serveTarget(t, server.Config{AdapterDir: dir})
	closed := serveTarget(t, server.Config{})
	outside := filepath.Join(t.TempDir(), "out.gguf")
	if err := os.WriteFile(outside, []byte("GGUF"), 0o644); err == nil {
		_ = os.Symlink(outside, filepath.Join(dir, "link.gguf")) // without links there is nothing to test
	}
	load := func(s *site, path, body string) (int, string) {
		status, text, _ := s.do(t, "POST", path, body, "Content-Type", "application/json")
		return status, text
	}
	const loads, unloads = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
	for _, tt := range []struct {
		name, path, body string
		status           int
		want             string
		on               *site
	}{
		{"not allowed", loads, `{"lora_name":"a","lora_path":"one.gguf"}`, 403, "--lora-dir", closed},
		{"closing, not allowed", unloads, `{"lora_name":"a"}`, 403, "--lora-dir", closed},
		{"no name", loads, `{"lora_path":"one.gguf"}`, 400, "both must be given", s},
		{"a path out", loads, `{"lora_name":"a","lora_path":"../x.gguf"}`, 400, "not a path within", s},
		{"an absolute path", loads, `{"lora_name":"a","lora_path":"/etc/passwd"}`, 400, "not a path within", s},
		{"a link out", loads, `{"lora_name":"a","lora_path":"link.gguf"}`, 404, "there is no adapter", s},
		{"no file", loads, `{"lora_name":"a","lora_path":"none.gguf"}`, 404, "there is no adapter", s},
		{"another base", loads, `{"lora_name":"a","lora_path":"other.gguf"}`, 400, "the base", s},
		{"a model's name", loads, `{"lora_name":"gopher","lora_path":"one.gguf"}`, 400, "a model is served as", s},
		{"an adapter", loads, `{"lora_name":"a","lora_path":"one.gguf"}`, 200, "added successfully", s},
		{"a name twice", loads, `{"lora_name":"a","lora_path":"two.gguf"}`, 404, "is open already", s},
		{"an unknown name", unloads, `{"lora_name":"b"}`, 404, "is not open", s},
		{"an unknown number", "/lora-adapters", `[{"id":9,"scale":1}]`, 404, "is not open", s},
		{"an object", "/lora-adapters", `{"id":9,"scale":1}`, 400, "JSON array", s},
		{"both ways", "/completion", `{"model":"a","lora":[],"prompt":"x"}`, 400, "is an adapter already", s},
		{"no embeddings", "/v1/embeddings", `{"model":"a","input":"x"}`, 404, "is not served", s},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, text := load(tt.on, tt.path, tt.body)
			if status != tt.status || !strings.Contains(text, tt.want) || strings.Contains(text, dir) {
				t.Errorf("%d %s; want %d and %q", status, text, tt.status, tt.want)
			}
		})
	}
	ask := func(model string) any {
		return s.post(t, "/completion", `{"model":"`+model+`","prompt":"func main() {","n_predict":8,"temperature":0}`).at("content")
	}
	if ask("a") == ask(modelName) {
		t.Error("the adapter changes nothing")
	}
	if status, text := load(s, unloads, `{"lora_name":"a"}`); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := load(s, "/completion", `{"model":"a","prompt":"x"}`); status != 404 {
		t.Errorf("a closed adapter answers with %d", status)
	}
}

// TestAdapterKeys: keys that may not see what all do together change no adapters.
func TestAdapterKeys(t *testing.T) {
	gate, err := access.New(access.Config{Keys: []access.Key{{Secret: "s3cret-of-a-client", Name: "client"}, {Secret: "s3cret-of-an-operator", Name: "admin", Operator: true}}})
	if err != nil {
		t.Fatal(err)
	}
	s := serveTarget(t, server.Config{Access: gate, AdapterDir: adapterFiles(t)})
	got := map[string]int{}
	for _, key := range []string{"s3cret-of-a-client", "s3cret-of-an-operator"} {
		for path, body := range map[string]string{"/v1/load_lora_adapter": `{"lora_name":"a","lora_path":"one.gguf"}`, "/lora-adapters": `[]`} {
			status, _, _ := s.do(t, "POST", path, body, "Content-Type", "application/json", "Authorization", "Bearer "+key)
			got[key+" "+path] = status
		}
	}
	want := map[string]int{
		"s3cret-of-a-client /v1/load_lora_adapter": 403, "s3cret-of-a-client /lora-adapters": 403,
		"s3cret-of-an-operator /v1/load_lora_adapter": 200, "s3cret-of-an-operator /lora-adapters": 200,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
