package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove/internal/weights/gguf"
	"grove/server"
)

// lines sends a request whose answer is lines of JSON.
func (s *site) lines(t testing.TB, path, body string) (all []object) {
	t.Helper()
	status, text, header := s.do(t, "POST", path, body)
	if status != 200 || header.Get("Content-Type") != "application/x-ndjson" || !strings.HasSuffix(text, "\n") {
		t.Fatalf("%s %s: %d %v %q", path, body, status, header, text)
	}
	for line := range strings.Lines(text) {
		all = append(all, parse(t, line))
	}
	return all
}

// TestOllamaChat: an answer of /api/chat is the one of the chat route, whole and in lines.
func TestOllamaChat(t *testing.T) {
	s := serveChat(t)
	const fields = `"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"func main()"}],"options":{"num_predict":20,"seed":3,"temperature":1,"top_k":0,"top_p":1,"repeat_last_n":0}`
	chat := s.post(t, "/v1/chat/completions", "{"+hello+`,"max_tokens":20,"seed":3,"samplers":["penalties","dry","top_n_sigma","top_k","typ_p","top_p","min_p","xtc","temperature"]}`)
	o := s.post(t, "/api/chat", `{"model":"gopher:latest",`+fields+`,"stream":false}`)
	for path, want := range map[string]any{
		"model": "gopher", "done": true, "done_reason": "length", "message/role": "assistant", "message/content": chat.at("choices/0/message/content"),
		"prompt_eval_count": chat.at("usage/prompt_tokens"), "eval_count": 20.0, "response": nil, "context": nil,
	} {
		if got := o.at(path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if total, load := o["total_duration"].(float64), o["load_duration"].(float64); total <= 0 || load < 0 || load > total {
		t.Errorf("%v of %v ns loading", load, total)
	}
	var text string
	all := s.lines(t, "/api/chat", `{"model":"gopher",`+fields+`}`)
	for i, l := range all {
		if last := i == len(all)-1; l["done"] != last || l.at("message/role") != "assistant" || (l["eval_count"] != nil) != last {
			t.Errorf("line %d of %d: %v", i+1, len(all), l)
		}
		text += l.at("message/content").(string)
	}
	if text != o.at("message/content") {
		t.Errorf("%q in lines, %q whole", text, o.at("message/content"))
	}
}

// TestOllamaCalls: a call of a tool has an object as arguments, and goes back to the model.
func TestOllamaCalls(t *testing.T) {
	s := serveCaller(t)
	const options = `"options":{"temperature":0,"num_predict":4,"logit_bias":{"319":100,"318":98},"presence_penalty":2,"frequency_penalty":2},`
	const fields = options + tool + `,"messages":[{"role":"user","content":"go"}`
	o := s.post(t, "/api/chat", "{"+fields+`],"stream":false}`)
	call := object(o.at("message/tool_calls/0").(map[string]any))
	if d := cmp.Diff(map[string]any{"index": 0.0, "name": "look", "arguments": map[string]any{"at": "home"}}, call["function"]); d != "" || o.at("message/content") != "" {
		t.Errorf("%v\n%s", o, d)
	}
	calls := 0
	for _, l := range s.lines(t, "/api/chat", "{"+fields+"]}") {
		if l.at("message/tool_calls/0/function/name") == "look" {
			calls++
		}
	}
	if calls != 1 {
		t.Errorf("%d calls in lines", calls)
	}
	s.post(t, "/api/chat", "{"+fields+fmt.Sprintf(`,{"role":"assistant","content":"","thinking":"hm","tool_calls":[%s]},{"role":"tool","tool_name":"look","content":"here"}],"stream":false}`, quoteAny(t, call)))
}

// TestOllamaGenerate: texts, with a template and without, that go on from the tokens of an earlier answer.
func TestOllamaGenerate(t *testing.T) {
	const options = `"options":{"num_predict":6,"temperature":0},"stream":false`
	s := serveChat(t)
	chat := s.post(t, "/api/chat", `{`+options+`,"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"}]}`)
	text := s.post(t, "/api/generate", `{`+options+`,"system":"s","prompt":"a"}`)
	if text["response"] != chat.at("message/content") || text["message"] != nil {
		t.Errorf("%v, and as a chat %v", text, chat)
	}
	plain := s.post(t, "/v1/completions", `{"prompt":"func main() {","max_tokens":6,"temperature":0}`)
	raw := s.post(t, "/api/generate", `{`+options+`,"raw":true,"prompt":"func main() {"}`)
	if raw["response"] != plain.at("choices/0/text") {
		t.Errorf("raw: %v, and as a completion %v", raw["response"], plain.at("choices/0/text"))
	}
	if n := len(raw["context"].([]any)); float64(n) != raw["prompt_eval_count"].(float64)+6 {
		t.Errorf("a context of %d tokens: %v", n, raw)
	}
	more := s.post(t, "/api/generate", `{`+options+`,"raw":true,"prompt":"","context":`+quoteAny(t, raw["context"])+`}`)
	if more["done_reason"] != "load" {
		t.Errorf("no prompt: %v", more)
	}
	next := s.post(t, "/api/generate", `{"options":{"num_predict":1,"temperature":0},"stream":false,"raw":true,"prompt":" ","context":`+quoteAny(t, raw["context"])+`}`)
	if next["prompt_eval_count"].(float64) <= raw["prompt_eval_count"].(float64)+6 {
		t.Errorf("behind a context: %v", next)
	}
	bare := serve(t, server.Config{})
	if got := bare.post(t, "/api/generate", `{`+options+`,"prompt":"func main() {"}`)["response"]; got != plain.at("choices/0/text") {
		t.Errorf("a model without a template: %v", got)
	}
	logprobs := bare.post(t, "/api/generate", `{`+options+`,"prompt":"a","logprobs":true,"top_logprobs":2}`)["logprobs"].([]any)
	if first := object(logprobs[0].(map[string]any)); len(logprobs) != 6 || len(first["top_logprobs"].([]any)) != 2 || first["logprob"] != first.at("top_logprobs/0/logprob") {
		t.Errorf("log-probabilities: %v", logprobs)
	}
}

// TestOllamaModels: lists of models, their figures, and how long they stay open.
func TestOllamaModels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, edited(t, served(), template), 0o644); err != nil {
		t.Fatal(err)
	}
	m := source("gopher", edited(t, served(), template), options)
	m.Path = path
	s := serveModels(t, server.Config{}, m)
	get := func(path string) object {
		_, text, _ := s.do(t, "GET", path, "")
		return parse(t, text)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		o    object
		path string
		want any
	}{
		{get("/api/tags"), "models/0/name", "gopher"}, {get("/api/tags"), "models/0/size", float64(info.Size())},
		{get("/api/tags"), "models/0/details/family", "llama"}, {get("/api/tags"), "models/0/details/quantization_level", "Q8_0"},
		{get("/api/ps"), "models/0/size_vram", 0.0}, {get("/api/ps"), "models/0/context_length", 256.0},
		{get("/api/version"), "version", "0.33.0"},
		{s.post(t, "/api/show", `{"name":"gopher:latest"}`), "template", lines},
		{s.post(t, "/api/show", `{"model":"gopher"}`), "capabilities/1", "chat"},
		{s.post(t, "/api/show", `{"model":"gopher"}`), "capabilities/2", "tools"},
		{s.post(t, "/api/show", `{"model":"gopher"}`), "model_info/general.architecture", "llama"},
		{s.post(t, "/api/show", `{"model":"gopher"}`), "model_info/tokenizer.ggml.tokens", nil},
	} {
		if got := tt.o.at(tt.path); got != tt.want {
			t.Errorf("%s is %v, want %v", tt.path, got, tt.want)
		}
	}
	if err := os.WriteFile(path, edited(t, served(), gguf.KV{Key: "tokenizer.chat_template", Value: gguf.Of("{{ messages[0].content }}" + strings.Repeat(" ", 99))}), 0o644); err != nil {
		t.Fatal(err)
	}
	s.post(t, "/models/unload", `{"model":"gopher"}`) // an open model has the capabilities of its template
	if got := s.post(t, "/api/show", `{"model":"gopher"}`).at("capabilities/2"); got != nil {
		t.Errorf("a header that changed is not read again: %v", got)
	}
	if all := s.post(t, "/api/show", `{"model":"gopher","verbose":true}`).at("model_info/tokenizer.ggml.tokens"); len(all.([]any)) == 0 {
		t.Error("verbose shows no vocabulary")
	}
	if o := s.post(t, "/api/generate", `{"keep_alive":0}`); o["done_reason"] != "unload" {
		t.Errorf("%v", o)
	}
	eventually(t, "the model stays open", func() bool { return len(get("/api/ps")["models"].([]any)) == 0 })
	s.post(t, "/api/chat", `{"keep_alive":"-1m","messages":[]}`)
	if n := len(get("/api/ps")["models"].([]any)); n != 1 {
		t.Errorf("%d models are open", n)
	}
}

// TestKeepAlive: a time of a request holds until the model is closed. Many times leave one timer.
func TestKeepAlive(t *testing.T) {
	s := serveChat(t)
	open := func() int {
		_, text, _ := s.do(t, "GET", "/api/ps", "")
		return len(parse(t, text)["models"].([]any))
	}
	s.post(t, "/api/generate", `{"keep_alive":0}`)
	eventually(t, "the model stays open", func() bool { return open() == 0 })
	for range 3 {
		s.post(t, "/v1/completions", `{"prompt":"a","max_tokens":1}`)
		if time.Sleep(5 * time.Millisecond); open() != 1 {
			t.Fatal("the time of an earlier opening still holds")
		}
	}
	s.post(t, "/api/generate", `{"keep_alive":0.02}`)
	for range 5 {
		s.post(t, "/api/generate", `{"keep_alive":"1h"}`)
	}
	if time.Sleep(50 * time.Millisecond); open() != 1 {
		t.Error("a time that a later one replaced closes the model")
	}
	s.post(t, "/api/generate", `{"keep_alive":0.001}`)
	eventually(t, "the model stays open", func() bool { return open() == 0 })
}

// TestOllamaEmbed: vectors are those of the other routes.
func TestOllamaEmbed(t *testing.T) {
	s := serve(t, server.Config{})
	want := s.post(t, "/v1/embeddings", `{"input":["a","func"]}`)
	got := s.post(t, "/api/embed", `{"model":"gopher","input":["a","func"],"truncate":true,"options":{"num_ctx":9},"keep_alive":"5m"}`)
	for i := range 2 {
		if d := cmp.Diff(want.at(fmt.Sprintf("data/%d/embedding", i)), got.at(fmt.Sprintf("embeddings/%d", i))); d != "" {
			t.Errorf("text %d:\n%s", i, d)
		}
	}
	if got["prompt_eval_count"] != want.at("usage/prompt_tokens") {
		t.Errorf("%v tokens, want %v", got["prompt_eval_count"], want["usage"])
	}
	old := s.post(t, "/api/embeddings", `{"model":"gopher","prompt":"a"}`)
	if n := len(old["embedding"].([]any)); n != len(got.at("embeddings/0").([]any)) {
		t.Errorf("%d values", n)
	}
	if empty := s.post(t, "/api/embeddings", `{"prompt":""}`)["embedding"].([]any); len(empty) != 0 {
		t.Errorf("no text: %v", empty)
	}
}

// TestOllamaRefused: errors have the form of this API.
func TestOllamaRefused(t *testing.T) {
	s := serveChat(t)
	const hi = `"messages":[{"role":"user","content":"a"}]`
	for _, tt := range []struct {
		method, path, body string
		status             int
		wants              string
	}{
		{"POST", "/api/chat", `{"model":"missing",` + hi + `}`, 404, "missing"},
		{"POST", "/api/chat", `{"messages":[{"role":"user","content":"a","images":["aGk="]}]}`, 400, "images"},
		{"POST", "/api/chat", `{"messages":[{"role":"king","content":"a"}]}`, 400, "king"},
		{"POST", "/api/chat", `{` + hi + `,"format":"xml"}`, 400, "it must be json or a schema"},
		{"POST", "/api/chat", `{` + hi + `,"format":{"type":"none"}}`, 400, "format: #/type"},
		{"POST", "/api/chat", `{` + hi + `,"options":{"num_ctx":1000000}}`, 400, "256 tokens"},
		{"POST", "/api/chat", `{` + hi + `,"options":{"num_predict":-3}}`, 400, "num_predict"},
		{"POST", "/api/chat", `{` + hi + `,"options":{"temperature":-1}}`, 400, "temperature"},
		{"POST", "/api/chat", `{` + hi + `,"options":{"temprature":1}}`, 400, "temprature"},
		{"POST", "/api/chat", `{` + hi + `,"formet":1}`, 400, "formet"},
		{"POST", "/api/chat", `{` + hi + `,"think":"deep"}`, 400, "think"},
		{"POST", "/api/chat", `{` + hi + `,"keep_alive":"soon"}`, 400, "keep_alive"},
		{"POST", "/api/chat", `{` + hi + `,"truncate":true}`, 400, "never cut"},
		{"POST", "/api/chat", `{` + hi + `,"top_logprobs":3}`, 400, "logprobs"},
		{"POST", "/api/generate", `{"prompt":"a","images":["aGk="]}`, 400, "images"},
		{"POST", "/api/generate", `{"prompt":"a","template":"{{ .Prompt }}"}`, 400, "template"},
		{"POST", "/api/generate", `{"prompt":"a","context":[-1]}`, 400, "context"},
		{"POST", "/api/generate", `{"prompt":"a","context":[99999999]}`, 400, "context"},
		{"POST", "/api/generate", `{"prompt":"` + strings.Repeat("word ", 400) + `"}`, 400, "context"},
		{"POST", "/api/generate", `{"prompt":"a","raw":true,"think":true}`, 400, "think"},
		{"POST", "/api/generate", `{"prompt":"a","suffix":"b","think":"low"}`, 400, "think"},
		{"POST", "/api/generate", `{"prompt":"a","raw":true,"system":"b"}`, 400, "system"},
		{"POST", "/api/chat", `{` + hi + `,"options":{"timings_per_token":true}}`, 400, "timings_per_token"},
		{"POST", "/api/embed", `{"input":"a","dimensions":257}`, 400, "it must be from 1 to "},
		{"POST", "/api/embed", `{}`, 400, "input"},
		{"POST", "/api/show", `{}`, 400, "model"},
		{"POST", "/api/show", `{"model":"../../etc/passwd"}`, 404, "passwd"},
		{"POST", "/api/create", `{}`, 501, "convert"},
		{"POST", "/api/push", `{}`, 501, "convert"},
	} {
		status, text, _ := s.do(t, tt.method, tt.path, tt.body)
		message, isText := parse(t, text)["error"].(string)
		if status != tt.status || !isText || !strings.Contains(message, tt.wants) {
			t.Errorf("%s %.150s: %d %s, want %d with %q", tt.path, tt.body, status, text, tt.status, tt.wants)
		}
	}
}
