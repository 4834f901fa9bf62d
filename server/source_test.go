package server_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/model/synthetic"
	"grove/server"
	"grove/weights/gguf"
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
