package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/internal/model/synthetic"
	"grove/internal/suite/modeltest"
	"grove/internal/weights/gguf"
	"grove/server"
)

// TestSource asks an encoder-decoder by the routes of completions: whole and in a stream, several answers, with stops,
// log-probabilities and seeds; conversations and sessions are refused by name.
func TestSource(t *testing.T) {
	metadata, tensors, err := synthetic.Spec{Arch: "t5", KVHeads: 4, Context: 200, Vocab: 300, Vocabulary: true}.Parts()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	s := serveModels(t, server.Config{}, advising("t5", b.Bytes(), grove.Options{Parallel: 4}))
	const fields = `"prompt":["one source","another"],"n":2,"max_tokens":20,"seed":7,"temperature":1,"logprobs":2`
	whole := s.post(t, "/v1/completions", "{"+fields+"}")
	var texts [4]string
	for _, e := range s.events(t, "/v1/completions", "{"+fields+`,"stream":true}`) {
		for _, c := range e["choices"].([]any) {
			texts[int(c.(map[string]any)["index"].(float64))] += c.(map[string]any)["text"].(string)
		}
	}
	for i, text := range texts {
		c := whole["choices"].([]any)[i].(map[string]any)
		if c["text"] != text || text == "" || c["logprobs"] == nil {
			t.Errorf("answer %d is %q in a stream, and whole %v", i, text, c)
		}
	}
	if slices.Equal(texts[:2], texts[2:]) || texts[0] == texts[1] {
		t.Errorf("answers to two sources, or with two sample indices, are equal: %q", texts)
	}
	o := s.post(t, "/completion", `{"prompt":"one source","n_predict":20,"seed":7,"temperature":0,"samplers":["temperature"]}`)
	text := o["content"].(string)
	if o.at("tokens_evaluated") != 11.0 || text == "" {
		t.Errorf("llama.cpp's route: %v", o)
	}
	if got := s.post(t, "/completion", `{"prompt":"one source","n_predict":20,"temperature":0,"samplers":["temperature"]}`); got["content"] != text || got.at("timings/cache_n") != 11.0 {
		t.Errorf("again: %v, want %q, of a source that is stored", got, text)
	}
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"x"}]}`,
		"/v1/responses":        `{"input":"x"}`,
		"/apply-template":      `{"messages":[{"role":"user","content":"x"}]}`,
	} {
		if status, answer, _ := s.do(t, "POST", path, body, "Content-Type", "application/json"); status != 400 || !strings.Contains(answer, "t5 is an encoder-decoder") {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	e := s.post(t, "/v1/embeddings", `{"input":"some text"}`)
	if v := e.at("data/0/embedding").([]any); len(v) != 64 {
		t.Errorf("an embedding of %d values", len(v))
	}
}

// TestEditor asks an encoder-decoder of Flan-T5's kind, from a folder of Hugging Face, for a text: by the routes of completions, and by those of conversations with a
// template, which makes the whole conversation the source.
func TestEditor(t *testing.T) {
	h, err := modeltest.Editor(false)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := h.Write(dir); err != nil {
		t.Fatal(err)
	}
	template := filepath.Join(t.TempDir(), "last.jinja")
	if err := os.WriteFile(template, []byte("{% for m in messages %}{{ m.content }} {% endfor %}{{ eos_token }}"), 0o600); err != nil {
		t.Fatal(err)
	}
	source := func(name string, o grove.Options) server.Entry {
		return server.Entry{Name: name, Open: func(context.Context, uint64) (*grove.Model, error) { return grove.Open(dir, o) }}
	}
	s := serveModels(t, server.Config{}, source("flan", grove.Options{Parallel: 2}), source("chat", grove.Options{Parallel: 2, ChatTemplate: template}))
	text, _ := json.Marshal(modeltest.EditorSource)
	got := s.post(t, "/v1/completions", `{"model":"flan","temperature":0,"max_tokens":100,"prompt":`+string(text)+`}`)
	if got.at("choices/0/text") != modeltest.EditorAnswer || got.at("choices/0/finish_reason") != "stop" {
		t.Errorf("a completion: %v", got)
	}
	rest, _ := json.Marshal(strings.TrimPrefix(modeltest.EditorSource, "fix: "))
	for n := range 2 {
		got = s.post(t, "/v1/chat/completions", `{"model":"chat","temperature":0,"messages":[{"role":"system","content":"fix:"},{"role":"user","content":`+string(rest)+`}]}`)
		if got.at("choices/0/message/content") != modeltest.EditorAnswer {
			t.Errorf("conversation %d: %v", n, got)
		}
	}
	for model, body := range map[string]string{
		"flan": `,"messages":[{"role":"user","content":"x"}]}`,
		"chat": `,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}],"continue_final_message":true,"add_generation_prompt":false}`,
	} {
		status, answer, _ := s.do(t, "POST", "/v1/chat/completions", `{"model":"`+model+`"`+body, "Content-Type", "application/json")
		if status != 400 || !strings.Contains(answer, "it holds conversations by a chat template alone, and continues no answer") {
			t.Errorf("%s: %d %s", model, status, answer)
		}
	}
}
