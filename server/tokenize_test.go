package server_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTokenizeForms: /tokenize has llama.cpp's form and both of vLLM's; its answers have the fields of both.
func TestTokenizeForms(t *testing.T) {
	s := serveCaller(t)
	ids := func(body string) []any {
		t.Helper()
		o := s.post(t, "/tokenize", body)
		all := o["tokens"].([]any)
		if o["count"] != float64(len(all)) || o["max_model_len"] != s.post(t, "/tokenize", `{"content":""}`)["max_model_len"] {
			t.Errorf("%s: %v", body, o)
		}
		return all
	}
	const question = `"messages":[{"role":"user","content":"hi"}]`
	prompt := s.post(t, "/apply-template", `{`+question+`}`)["prompt"].(string)
	if d := cmp.Diff(ids(`{"content":`+quote(prompt)+`,"add_special":true}`), ids(`{`+question+`,"add_generation_prompt":true,"add_special_tokens":false,"chat_template":null}`)); d != "" {
		t.Errorf("messages:\n%s", d)
	}
	if a, b := ids(`{`+question+`,"add_generation_prompt":false}`), ids(`{`+question+`}`); len(a) >= len(b) {
		t.Errorf("%d tokens without the beginning of an answer, %d with it", len(a), len(b))
	}
	if a, b := ids(`{`+question+`,`+tool+`}`), ids(`{`+question+`}`); len(a) <= len(b) {
		t.Errorf("%d tokens with a tool, %d without", len(a), len(b))
	}
	if d := cmp.Diff(ids(`{"content":"func main","add_special":true}`), ids(`{"prompt":"func main"}`)); d != "" {
		t.Errorf("a prompt has special tokens:\n%s", d)
	}
	if d := cmp.Diff(ids(`{"content":"func main"}`), ids(`{"prompt":"func main","add_special_tokens":false}`)); d != "" {
		t.Errorf("a prompt without special tokens:\n%s", d)
	}
	o := s.post(t, "/tokenize", `{"content":"func main","return_token_strs":true}`)
	var text strings.Builder
	for _, piece := range o["token_strs"].([]any) {
		text.WriteString(piece.(string))
	}
	if text.String() != "func main" {
		t.Errorf("%v", o)
	}
	for body, wants := range map[string]string{
		`{}`: "one of them must be given", `{"content":"a","prompt":"b"}`: "another name", `{"content":"a",` + question + `}`: "cannot be combined", `{"prompt":"a",` + tool + `}`: "tools are of messages",
		`{` + question + `,"add_special_tokens":true}`: "special tokens", `{` + question + `,"chat_template":"x"}`: "chat_template", `{"messages":[]}`: "no message", `{"messages":[{"role":"king"}]}`: "king",
	} {
		if status, text, _ := s.do(t, "POST", "/tokenize", body); status != 400 || !strings.Contains(text, wants) {
			t.Errorf("%s: %d %s, want %q", body, status, text, wants)
		}
	}
}

// TestEmbedFields: names of fields of other servers for the length of vectors, and what says nothing.
func TestEmbedFields(t *testing.T) {
	s := serveChat(t)
	vector := func(fields string) any {
		return s.post(t, "/v1/embeddings", `{"input":"a"`+fields+`}`).at("data/0/embedding")
	}
	for fields, same := range map[string]string{
		`,"input_type":"query","normalize":true,"encoding_format":"float","user":"x"`: ``, `,"normalize":false`: `,"embd_normalize":-1`, `,"normalize":true,"embd_normalize":2`: ``,
	} {
		if d := cmp.Diff(vector(same), vector(fields)); d != "" {
			t.Errorf("%s:\n%.300s", fields, d)
		}
	}
	if cmp.Equal(vector(""), vector(`,"normalize":false`)) {
		t.Error("normalize false changes nothing")
	}
	if status, text, _ := s.do(t, "POST", "/v1/embeddings", `{"input":"a","normalize":true,"embd_normalize":-1}`); status != 400 || !strings.Contains(text, "differ") {
		t.Errorf("%d %s", status, text)
	}
}
