package server_test

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/server"
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
	s := serve(t, server.Config{})
	o := s.post(t, "/completion", `{"prompt":"func main() {","n_predict":6,"temperature":0,"return_tokens":true,"seed":9}`)
	for path, want := range map[string]any{
		"content": " return a }\n\nfunc main()", "stop": true, "tokens_predicted": 6.0, "tokens_evaluated": 5.0, "stop_type": "limit",
		"stopping_word": "", "truncated": false, "prompt": "func main() {", "model": "gopher", "has_new_line": true,
		"generation_settings/n_predict": 6.0, "generation_settings/seed": 9.0, "timings/predicted_n": 6.0, "tokens/0": 513.0,
	} {
		if got := o.at(path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if o := s.post(t, "/completion", `{"prompt":"func main() {","temperature":0,"stop":["main"]}`); o["stop_type"] != "word" || o["stopping_word"] != "main" {
		t.Errorf("%v", o)
	}
	if o := s.post(t, "/completion", `{"prompt":"a","n_predict":1,"response_fields":["content","timings/prompt_n","nothing","content/x"]}`); len(o) != 2 || o["prompt_n"] == nil {
		t.Errorf("chosen fields: %v", o)
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
	if status != 200 || content != " return a }\n\nfunc main()" {
		t.Errorf("%q", content)
	}
	status, text, _ = s.do(t, "POST", "/completion", `{"prompt":["a","b"],"n_predict":1}`)
	if status != 200 || !strings.HasPrefix(text, "[{") || strings.Count(text, `"stop":true`) != 2 {
		t.Errorf("two prompts: %d %s", status, text)
	}
}
