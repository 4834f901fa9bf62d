package server_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/weights/gguf"
	"grove/server"
	"grove/server/serving"
)

func TestModels(t *testing.T) {
	s := serve(t, server.Config{})
	_, text, _ := s.do(t, "GET", "/v1/models", "")
	o := parse(t, text)
	for path, want := range map[string]any{"object": "list", "data/0/id": "gopher", "data/0/object": "model", "data/0/owned_by": "grove", "data/0/max_model_len": 256.0, "data/1": nil} {
		if got := o.at(path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	_, text, _ = s.do(t, "GET", "/v1/models/gopher", "")
	if d := cmp.Diff(o.at("data/0"), any(map[string]any(parse(t, text)))); d != "" {
		t.Error(d)
	}
	_, text, _ = s.do(t, "GET", "/props", "")
	if o := parse(t, text); o["total_slots"] != 2.0 || o.at("default_generation_settings/n_ctx") != 256.0 {
		t.Errorf("%v", o)
	}
}

func TestTokenize(t *testing.T) {
	s := serve(t, server.Config{})
	for _, content := range []string{"func main() {}", "é\u20ac\U0001F600", "", "<|begin_of_text|>"} {
		body := strings.NewReplacer("C", quote(content))
		ids := s.post(t, "/tokenize", body.Replace(`{"content":C}`))
		list := strings.Trim(strings.Join(strings.Fields(quoteAny(t, ids["tokens"])), ""), "\n")
		if back := s.post(t, "/detokenize", `{"tokens":`+list+`}`); back["content"] != content {
			t.Errorf("%q became %v and then %q", content, list, back["content"])
		}
		special := s.post(t, "/tokenize", body.Replace(`{"content":C,"add_special":true}`))["tokens"].([]any)
		if len(special) != len(ids["tokens"].([]any))+1 {
			t.Errorf("%q with the token that begins a text: %v", content, special)
		}
	}
	plain := s.post(t, "/tokenize", `{"content":"<|begin_of_text|>","parse_special":false}`)["tokens"].([]any)
	if len(plain) < 2 {
		t.Errorf("a special token as text: %v", plain)
	}
	pieces := s.post(t, "/tokenize", `{"content":"\u20ac a","with_pieces":true}`)
	var whole []byte
	for _, p := range pieces["tokens"].([]any) {
		switch piece := p.(map[string]any)["piece"].(type) {
		case string:
			whole = append(whole, piece...)
		case []any:
			for _, b := range piece {
				whole = append(whole, byte(b.(float64)))
			}
		}
	}
	if string(whole) != "€ a" {
		t.Errorf("the pieces make %q", whole)
	}
}

func TestEmbeddings(t *testing.T) {
	s := serve(t, server.Config{})
	o := s.post(t, "/v1/embeddings", `{"model":"gopher","input":["func","main"]}`)
	one := s.post(t, "/v1/embeddings", `{"input":"main"}`)
	if d := cmp.Diff(o.at("data/1/embedding"), one.at("data/0/embedding")); d != "" || o.at("data/1/index") != 1.0 || o.at("data/0/object") != "embedding" {
		t.Errorf("beside another text: %s", d)
	}
	if o.at("usage/prompt_tokens") != 4.0 || o.at("usage/total_tokens") != 4.0 {
		t.Errorf("usage: %v", o["usage"])
	}
	raw, err := base64.StdEncoding.DecodeString(s.post(t, "/v1/embeddings", `{"input":"main","encoding_format":"base64"}`).at("data/0/embedding").(string))
	want := one.at("data/0/embedding").([]any)
	if err != nil || len(raw) != 4*len(want) {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	length := 0.0
	for i, v := range want {
		got := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		if float32(v.(float64)) != got {
			t.Fatalf("value %d: %v, want %v", i, got, v)
		}
		length += float64(got) * float64(got)
	}
	if math.Abs(length-1) > 1e-5 {
		t.Errorf("a vector of length %v", math.Sqrt(length))
	}
	status, text, _ := s.do(t, "POST", "/embedding", `{"content":"a b","pooling":"none"}`)
	if status != 200 || strings.Count(text, "],[") < 1 {
		t.Errorf("a vector a token: %d %s", status, text)
	}
}

// TestNative holds llama.cpp's route to its fields.
func TestNative(t *testing.T) {
	s := serveTarget(t, server.Config{})
	o := s.post(t, "/completion", `{"prompt":"func main() {","n_predict":6,"temperature":0,"return_tokens":true,"seed":9}`)
	for path, want := range map[string]any{
		"content": "}\n\nfunc main() {}\n\n", "stop": true, "tokens_predicted": 6.0, "tokens_evaluated": 5.0, "stop_type": "limit",
		"stopping_word": "", "truncated": false, "prompt": "<|begin_of_text|>func main() {", "model": "gopher", "has_new_line": true,
		"generation_settings/n_predict": 6.0, "generation_settings/seed": 9.0, "timings/predicted_n": 6.0, "tokens/0": 318.0,
	} {
		if got := o.at(path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if o := s.post(t, "/completion", `{"prompt":"func main() {","temperature":0,"stop":["main"]}`); o["stop_type"] != "word" || o["stopping_word"] != "main" {
		t.Errorf("%v", o)
	}
	if o := s.post(t, "/completion", `{"prompt":"a","n_predict":1,"response_fields":["content","timings/prompt_n","nothing","content/x"]}`); len(o) != 2 || o["content"] == nil || o["timings/prompt_n"] != 2.0 {
		t.Errorf("chosen fields: %v", o)
	}
	if o := s.post(t, "/completion", `{"prompt":"a","n_predict":1,"response_fields":[]}`); o["timings"] == nil {
		t.Errorf("no field is chosen: %v", o)
	}
	status, text, _ := s.do(t, "POST", "/completion", `{"prompt":"func main() {","n_predict":6,"temperature":0,"stream":true}`)
	var content string
	all := split(t, text)
	for i, data := range all {
		e := parse(t, data)
		content += e["content"].(string)
		if e["stop"] != (i == len(all)-1) {
			t.Errorf("part %d: %v", i, e)
		}
	}
	if status != 200 || content != "}\n\nfunc main() {}\n\n" {
		t.Errorf("%q", content)
	}
	status, text, _ = s.do(t, "POST", "/completion", `{"prompt":["a","b"],"n_predict":1}`)
	if status != 200 || !strings.HasPrefix(text, "[{") || strings.Count(text, `"stop":true`) != 2 {
		t.Errorf("two prompts: %d %s", status, text)
	}
}

// TestNativeForms checks the fields that llama.cpp's clients may write in several ways.
func TestNativeForms(t *testing.T) {
	o := options
	o.Context = 64
	s := serveModels(t, server.Config{}, source(modelName, served(), o))
	content := func(fields string) any {
		return s.post(t, "/completion", `{"n_predict":6,"temperature":0,`+fields+`}`)["content"]
	}
	want := content(`"prompt":"func main() {"`)
	for _, fields := range []string{
		`"prompt":{"prompt_string":"func main() {"}`, `"prompt":[{"prompt_string":"func main() {"}]`, `"prompt":"func main() {","id_slot":1`,
	} {
		if got := content(fields); got != want {
			t.Errorf("%s: %q, want %q", fields, got, want)
		}
	}
	for _, bias := range []string{`{" return":100}`, `[[" return",100]]`} {
		if got := content(`"prompt":"a","logit_bias":` + bias); got != strings.Repeat(" return", 6) {
			t.Errorf("%s: %q", bias, got)
		}
	}
	full := s.post(t, "/completion", `{"prompt":"a","n_predict":-1,"ignore_eos":true,"temperature":0}`)
	if full["truncated"] != true || full["stop_type"] != "limit" {
		t.Errorf("the context's end: truncated %v, %v", full["truncated"], full["stop_type"])
	}
	if never := full.at("generation_settings/logit_bias/0").(map[string]any); never["token"] == nil || never["bias"] != nil {
		t.Errorf("ignore_eos: %v", never)
	}
	settings := s.post(t, "/completion", `{"prompt":"a","n_predict":1,"logit_bias":{"5":2}}`).at("generation_settings").(map[string]any)
	if diff := cmp.Diff([]any{map[string]any{"token": 5.0, "bias": 2.0}}, settings["logit_bias"]); diff != "" {
		t.Error(diff)
	}
	for fields, want := range map[string]any{`"n_predict":3`: 3.0, `"n_predict":3,"max_tokens":3`: 3.0, `"n_predict":-1,"ignore_eos":true`: 62.0} {
		if got := s.post(t, "/v1/completions", `{"prompt":"a",`+fields+`}`).at("usage/completion_tokens"); got != want {
			t.Errorf("%s: %v tokens, want %v", fields, got, want)
		}
	}
}

// TestChosenTemplate: conversations are rendered by the template that a model is served with.
func TestChosenTemplate(t *testing.T) {
	const body = `{"messages":[{"role":"user","content":"Hi"}]}`
	chosen := options
	chosen.ChatTemplate = "llama3"
	s := serveModels(t, server.Config{}, source(modelName, served(), chosen))
	want := "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
	if got := s.post(t, "/apply-template", body)["prompt"]; got != want {
		t.Errorf("prompt %q, want %q", got, want)
	}
	s.post(t, "/v1/chat/completions", body[:len(body)-1]+`,"max_tokens":1}`)
	_, text, _ := s.do(t, "GET", "/props", "")
	if got := parse(t, text)["chat_template"].(string); !strings.Contains(got, "start_header_id") {
		t.Errorf("props: %q", got)
	}
	chosen.ChatTemplate = "none"
	bad := server.New(server.Config{})
	if err := bad.Add(source(modelName, served(), chosen)); err != nil {
		t.Fatal(err)
	}
	if err := bad.Load(t.Context()); err == nil || !strings.Contains(err.Error(), `template "none" is none of`) {
		t.Errorf("a template that is not there: %v", err)
	}
}

// TestAnyModel: where it is asked for, the first model answers for those that are not served, under its own name.
func TestAnyModel(t *testing.T) {
	s := serve(t, server.Config{Config: serving.Config{AnyModel: true}})
	if got := s.post(t, "/v1/completions", `{"model":"gpt-3.5-turbo","prompt":"a","max_tokens":1}`)["model"]; got != modelName {
		t.Errorf("model %v", got)
	}
}

// TestInfill: the prompt has the files, then the texts before and behind the place to fill in.
func TestInfill(t *testing.T) {
	file := served()
	for i, key := range []string{"fim_pre", "fim_suf", "fim_mid", "fim_sep"} {
		file = edited(t, file, gguf.KV{Key: "tokenizer.ggml." + key + "_token_id", Value: gguf.Of(uint32(300 + i))})
	}
	s := serveModels(t, server.Config{}, source(modelName, file, options))
	pieces := s.post(t, "/detokenize", `{"tokens":[300,301,302,303]}`)["content"].(string)
	mark := make([]string, 4)
	for i := range mark {
		mark[i] = s.post(t, "/detokenize", fmt.Sprintf(`{"tokens":[%d]}`, 300+i))["content"].(string)
	}
	if strings.Join(mark, "") != pieces {
		t.Fatalf("%q are not %q", mark, pieces)
	}
	o := s.post(t, "/infill", `{"input_prefix":"func ","prompt":"f","input_suffix":"}","n_predict":1,"input_extra":[{"filename":"a.go","text":"package a","time":7},{"text":"b"}]}`)
	want := "<|begin_of_text|>" + mark[3] + "a.go\npackage a" + mark[3] + "tmp\nb" + mark[3] + "filename\n" + mark[0] + "func f" + mark[1] + "}" + mark[2]
	if o["prompt"] != want {
		t.Errorf("prompt %q, want %q", o["prompt"], want)
	}
}
