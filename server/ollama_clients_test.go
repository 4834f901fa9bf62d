package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/server"
)

// TestClientsOllama: what clients of ollama and of /tokenize send gets the status that it should. Each file says what it got before.
func TestClientsOllama(t *testing.T) {
	files, err := filepath.Glob("testdata/clients/*.json")
	if err != nil {
		t.Fatal(err)
	}
	s, n := serveCaller(t), 0
	for _, file := range files {
		var replay struct {
			Path, Method string
			Body         json.RawMessage
			Status       int
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &replay)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if !strings.HasPrefix(replay.Path, "/api/") && replay.Path != "/tokenize" {
			continue
		}
		n++
		if status, text, _ := s.do(t, replay.Method, replay.Path, string(replay.Body)); status != replay.Status {
			t.Errorf("%s: %d %.300s, want %d", file, status, text, replay.Status)
		}
	}
	if n < 8 {
		t.Errorf("only %d requests", n)
	}
}

// TestOllamaToolLoops: calls and results in the forms of all clients make the same prompt.
func TestOllamaToolLoops(t *testing.T) {
	s := serveCaller(t)
	prompt := func(assistant, result string) any {
		return s.post(t, "/api/chat", `{"stream":false,"options":{"num_predict":1},"messages":[{"role":"user","content":"q"},{"role":"assistant",`+assistant+`},{"role":"tool",`+result+`}]}`)["prompt_eval_count"]
	}
	const call = `"tool_calls":[{"function":{"name":"look","arguments":{"path":"a"}}}]`
	want := prompt(`"content":"",`+call, `"tool_name":"look","content":"3"`)
	for _, tt := range [][2]string{
		{`"content":"","tool_calls":[{"type":"function","function":{"name":"look","arguments":{"path":"a"}}}]`, `"tool_name":"look","content":"3"`},
		{`"content":null,"tool_calls":[{"index":0,"function":{"name":"look","arguments":{"path":"a"}}}]`, `"name":"look","content":"3"`},
		{`"tool_calls":[{"function":{"index":0,"name":"look","arguments":"{\"path\":\"a\"}"}}]`, `"name":"look","tool_name":"look","content":[{"type":"text","text":"3"}]`},
		{`"content":[],"tool_calls":[{"type":"function","index":0,"function":{"index":0,"name":"look","arguments":{"path":"a"}}}],"images":[]`, `"tool_name":"look","content":[{"type":"text","text":"3","cache_control":null}]`},
	} {
		if got := prompt(tt[0], tt[1]); got != want {
			t.Errorf("%s: a prompt of %v tokens, want %v", tt, got, want)
		}
	}
	status, text, _ := s.do(t, "POST", "/api/chat", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`)
	if status != 400 || !strings.Contains(text, "messages[0].content[0]") {
		t.Errorf("an image: %d %s", status, text)
	}
}

// TestOllamaOptions: options that change nothing leave the answer as it is; those that ollama reads no more are named.
func TestOllamaOptions(t *testing.T) {
	s := serveChat(t)
	body := func(options string) string {
		return `{"stream":false,"messages":[{"role":"user","content":"a"}],"options":{"seed":4,"num_predict":6` + options + `}}`
	}
	_, want, _ := s.do(t, "POST", "/api/chat", body(""))
	for options, ignored := range map[string]string{
		`,"num_keep":5,"num_batch":2,"num_gpu":1,"main_gpu":0,"num_thread":8,"use_mmap":true,"use_mlock":false,"numa":false,"low_vram":true,"f16_kv":true,"vocab_only":false,"logits_all":true,"embedding_only":true,"num_gqa":8`: "",
		`,"num_ctx":1000000`: "", `,"num_ctx":0`: "", `,"tfs_z":1.0`: "", `,"tfs_z":0.5`: "options.tfs_z", `,"penalize_newline":true`: "", `,"penalize_newline":false,"repeat_penalty":1.0`: "",
		`,"mirostat":0,"mirostat_tau":5.0,"mirostat_eta":0.1,"typical_p":1.0,"presence_penalty":0.0,"frequency_penalty":0`: "",
		`,"rope_frequency_base":10000,"rope_frequency_scale":1`:                                                            "options.rope_frequency_base", `,"something_new":1`: "options.something_new",
	} {
		status, text, header := s.do(t, "POST", "/api/chat", body(options))
		if status != 200 || parse(t, text).at("message/content") != parse(t, want).at("message/content") || header.Get("Grove-Ignored") != ignored {
			t.Errorf("%s: %d %s, the header names %q", options, status, text, header.Get("Grove-Ignored"))
		}
	}
	// The example of ollama's own page.
	status, text, header := s.do(t, "POST", "/api/chat", body(`,"num_keep":5,"top_k":20,"top_p":0.9,"min_p":0.0,"tfs_z":0.5,"typical_p":0.7,"repeat_last_n":33,"temperature":0.8,"repeat_penalty":1.2,"presence_penalty":1.5,
		"frequency_penalty":1.0,"mirostat":1,"mirostat_tau":0.8,"mirostat_eta":0.6,"penalize_newline":true,"stop":["\n","user:"],"numa":false,"num_ctx":1024,"num_batch":2,"num_gpu":1,"main_gpu":0,"low_vram":false,"vocab_only":false,
		"use_mmap":true,"use_mlock":false,"num_thread":8`))
	if d := cmp.Diff([]string{"options.typical_p", "options.tfs_z"}, header.Values("Grove-Ignored")); status != 200 || d != "" {
		t.Errorf("%d %s\n%s", status, text, d)
	}
	other := s.post(t, "/api/chat", body(`,"mirostat":2,"mirostat_tau":0.1`))
	if other.at("message/content") == parse(t, want).at("message/content") {
		t.Error("mirostat changes nothing")
	}
	for fields, ignored := range map[string]string{`"temperature":0.8,"top_p":0.9,"max_output_tokens":60`: "", `"truncate":true`: "", `"truncate":false`: "", `"shift":false`: "", `"shift":true`: "shift"} {
		status, text, header := s.do(t, "POST", "/api/chat", `{`+fields+`,`+body("")[1:])
		if status != 200 || parse(t, text).at("message/content") != parse(t, want).at("message/content") || header.Get("Grove-Ignored") != ignored {
			t.Errorf("%s: %d %s, the header names %q", fields, status, text, header.Get("Grove-Ignored"))
		}
	}
}

// TestOllamaOutside: what the provider of the AI SDK writes outside of the options is honoured where they do not say otherwise.
func TestOllamaOutside(t *testing.T) {
	s := serveChat(t)
	const messages = `"stream":false,"messages":[{"role":"user","content":"a"}]`
	want := s.post(t, "/api/chat", `{`+messages+`,"options":{"temperature":0,"num_predict":3}}`)
	for _, fields := range []string{`"temperature":0,"top_p":0.9,"max_output_tokens":3,"think":false`, `"temperature":1.5,"top_p":0,"max_output_tokens":3`, `"temperature":0,"max_output_tokens":9,"options":{"num_predict":3}`,
		`"temperature":0,"num_predict":3,"seed":4,"top_k":3,"stop":["zzz"],"num_gpu":1`} {
		if got := s.post(t, "/api/chat", `{`+messages+`,`+fields+`}`); got.at("message/content") != want.at("message/content") || got["eval_count"] != 3.0 {
			t.Errorf("%s: %v, want %v", fields, got, want)
		}
	}
}

// TestOllamaContext: num_ctx bounds a prompt and its answer. Of a longer conversation the oldest messages are dropped, and none of the system.
func TestOllamaContext(t *testing.T) {
	s := serveChat(t)
	chat := func(fields, messages string) (object, string) {
		t.Helper()
		status, text, header := s.do(t, "POST", "/api/chat", `{"stream":false,`+fields+`,"messages":[`+messages+`]}`)
		if status != 200 {
			t.Fatalf("%s: %d %s", fields, status, text)
		}
		return parse(t, text), header.Get("Grove-Ignored")
	}
	message := func(role, text string) string { return fmt.Sprintf(`{"role":%q,"content":%q}`, role, text) }
	long := strings.Repeat("word ", 30)
	const greedy = `"options":{"temperature":0,"num_predict":4`
	system, question := message("system", "be brief"), message("user", "what?")
	for _, tt := range []struct {
		name, fields string
		all, left    []string
		dropped      string
	}{
		{"fits", `}`, []string{system, question}, []string{system, question}, ""},
		{"the oldest turns", `,"num_ctx":60}`, []string{system, message("user", long), message("assistant", long), question}, []string{system, question}, "messages:2"},
		{"no more than needed", `,"num_ctx":100},"truncate":true`, []string{message("user", long), message("assistant", long), message("user", long), message("assistant", "yes"), question},
			[]string{message("user", long), message("assistant", "yes"), question}, "messages:2"},
		{"system messages stay", `,"num_ctx":40}`, []string{message("user", long), system, message("user", long), question}, []string{system, question}, "messages:2"},
		{"the server's context", `}`, []string{message("user", strings.Repeat(long, 9)), question}, []string{question}, "messages:1"},
		{"one turn of many steps", `,"num_ctx":60}`, []string{question, message("assistant", long), message("tool", long), message("assistant", "b"), message("tool", "c")}, []string{message("assistant", "b"), message("tool", "c")}, "messages:3"},
	} {
		got, dropped := chat(greedy+tt.fields, strings.Join(tt.all, ","))
		want, _ := chat(greedy+"}", strings.Join(tt.left, ","))
		if got.at("message/content") != want.at("message/content") || got["prompt_eval_count"] != want["prompt_eval_count"] || dropped != tt.dropped {
			t.Errorf("%s: %v, want %v; the header names %q", tt.name, got, want, dropped)
		}
	}
	whole, _ := chat(`"options":{"seed":1}`, question)
	n := whole["prompt_eval_count"].(float64)
	for bound, want := range map[string]float64{fmt.Sprint(n + 3): 3, fmt.Sprint(n + 3.0): 3, "1000000": whole["eval_count"].(float64)} {
		got, _ := chat(`"options":{"seed":1,"num_ctx":`+bound+`}`, question)
		if got["eval_count"] != want || want == 3 && got["done_reason"] != "length" {
			t.Errorf("num_ctx %s: %v, want %v tokens", bound, got, want)
		}
	}
	if got := s.post(t, "/api/generate", `{"stream":false,"raw":true,"prompt":"a b c","options":{"num_ctx":8,"seed":1}}`); got["eval_count"].(float64)+got["prompt_eval_count"].(float64) != 8 {
		t.Errorf("a text: %v", got)
	}
}

// TestOllamaEmbedCut: a text that is too long is cut as its tokens say; no text has no vector.
func TestOllamaEmbedCut(t *testing.T) {
	s := serve(t, server.Config{})
	ids := s.post(t, "/tokenize", `{"content":"`+strings.Repeat("word ", 400)+`","add_special":true}`)["tokens"].([]any)
	for options, most := range map[string]int{"": 256, `,"options":{"num_ctx":9,"num_thread":4,"temperature":0}`: 9, `,"truncate":true,"options":{"num_ctx":512}`: 256} {
		want := s.post(t, "/v1/embeddings", `{"input":`+quoteAny(t, ids[:most])+`}`).at("data/0/embedding")
		got := s.post(t, "/api/embed", `{"input":["`+strings.Repeat("word ", 400)+`"]`+options+`}`)
		if d := cmp.Diff(want, got.at("embeddings/0")); d != "" || got["prompt_eval_count"] != float64(most) {
			t.Errorf("%s: %v tokens\n%.300s", options, got["prompt_eval_count"], d)
		}
		if old := s.post(t, "/api/embeddings", `{"prompt":"`+strings.Repeat("word ", 400)+`"`+options+`}`)["embedding"].([]any); len(old) != len(want.([]any)) {
			t.Errorf("%s: %d values", options, len(old))
		}
	}
	for _, body := range []string{`{"input":[]}`, `{"input":""}`, `{}`, `{"model":"gopher","input":null,"keep_alive":"1m"}`} {
		if o := s.post(t, "/api/embed", body); len(o["embeddings"].([]any)) != 0 {
			t.Errorf("%s: %v", body, o)
		}
	}
	if o := s.post(t, "/api/embed", `{"input":["a",""]}`); len(o["embeddings"].([]any)) != 2 {
		t.Errorf("%v", o)
	}
	if status, text, _ := s.do(t, "POST", "/api/embed", `{"input":"a b c d e f g h i j k","truncate":false,"options":{"num_ctx":4}}`); status != 400 || !strings.Contains(text, "4 tokens") {
		t.Errorf("truncate false: %d %s", status, text)
	}
}
