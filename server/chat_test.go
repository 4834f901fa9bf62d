package server_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/weights/gguf"
	"grove/server"
)

// lines is a template: tools, then each message behind its role, on lines.
const lines = `{% for t in tools or [] %}{{ t | tojson }}
{% endfor %}{% for m in messages %}{{ m.role }}: {{ m.content }}
{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}
{% endfor %}{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}`

var template = gguf.KV{Key: "tokenizer.chat_template", Value: gguf.Of(lines)}

func serveChat(t testing.TB) *site {
	return serveModels(t, server.Config{}, source(modelName, edited(t, served(), template), options))
}

const hello = `"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"func main()"}]}]`

// TestChat checks the fields of an answer that OpenAI's clients read.
func TestChat(t *testing.T) {
	s := serveChat(t)
	o := s.post(t, "/v1/chat/completions", `{"model":"gopher",`+hello+`,"max_completion_tokens":6,"temperature":0,"logprobs":true,"top_logprobs":2,"n":2}`)
	for path, want := range map[string]any{
		"object": "chat.completion", "model": "gopher", "choices/0/message/role": "assistant", "choices/0/message/refusal": nil,
		"choices/0/finish_reason": "length", "choices/1/index": 1.0, "usage/completion_tokens": 12.0, "choices/0/message/tool_calls": nil,
	} {
		if got := o.at(path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	prompt := s.post(t, "/apply-template", "{"+hello+"}")["prompt"]
	if want := "system: Be brief.\nuser: func main()\nassistant:"; prompt != want {
		t.Errorf("prompt %q, want %q", prompt, want)
	}
	plain := s.post(t, "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":6,"temperature":0,"logprobs":2}`, prompt))
	if got, want := o.at("choices/0/message/content"), plain.at("choices/0/text"); got != want || got == "" {
		t.Errorf("%q, and as a completion %q", got, want)
	}
	var probs []any
	for _, l := range o.at("choices/0/logprobs/content").([]any) {
		l := l.(map[string]any)
		top := l["top_logprobs"].([]any)
		if len(top) != 2 || l["logprob"] != top[0].(map[string]any)["logprob"] || len(l["bytes"].([]any)) != len(l["token"].(string)) {
			t.Errorf("%v", l)
		}
		probs = append(probs, l["logprob"])
	}
	if d := cmp.Diff(plain.at("choices/0/logprobs/token_logprobs"), any(probs)); d != "" {
		t.Errorf("log-probabilities as a completion and as an answer:\n%s", d)
	}
}

// TestChatStream: the first part has the role and an empty text, the last an empty delta and the reason to end, which
// is null before.
func TestChatStream(t *testing.T) {
	s := serveChat(t)
	const fields = hello + `,"max_tokens":20,"seed":3,"n":2,"logprobs":true`
	whole := s.post(t, "/v1/chat/completions", "{"+fields+"}")
	for _, usage := range []bool{false, true} {
		events := s.events(t, "/v1/chat/completions", fmt.Sprintf(`{%s,"stream":true,"stream_options":{"include_usage":%v}}`, fields, usage))
		if usage {
			if last := events[len(events)-1]; len(last["choices"].([]any)) != 0 || last.at("usage/total_tokens") != whole.at("usage/total_tokens") {
				t.Errorf("usage: %v", last)
			}
			events = events[:len(events)-1]
		}
		var parts [2][]object
		for _, e := range events {
			if v, has := e["usage"]; has != usage || v != nil || e["object"] != "chat.completion.chunk" {
				t.Errorf("%v", e)
			}
			i := int(e.at("choices/0/index").(float64))
			parts[i] = append(parts[i], e.at("choices/0").(map[string]any))
		}
		for i, all := range parts {
			first, last := all[0], all[len(all)-1]
			if d := cmp.Diff(map[string]any{"role": "assistant", "content": ""}, first["delta"]); d != "" {
				t.Errorf("first part:\n%s", d)
			}
			if len(last["delta"].(map[string]any)) != 0 || last["finish_reason"] != whole.at(fmt.Sprintf("choices/%d/finish_reason", i)) {
				t.Errorf("last part: %v", last)
			}
			var text string
			var probs []any
			for _, p := range all[:len(all)-1] {
				if v, has := p["finish_reason"]; !has || v != nil {
					t.Errorf("a part has finish_reason %v", v)
				}
				text += p.at("delta/content").(string)
				if l, ok := p.at("logprobs/content").([]any); ok {
					probs = append(probs, l...)
				}
			}
			if want := whole.at(fmt.Sprintf("choices/%d/message/content", i)); text != want {
				t.Errorf("%q, want %q", text, want)
			}
			if d := cmp.Diff(whole.at(fmt.Sprintf("choices/%d/logprobs/content", i)), any(probs)); d != "" {
				t.Errorf("log-probabilities:\n%s", d)
			}
		}
	}
}

const tool = `"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]`

func TestChatRefused(t *testing.T) {
	s := serveChat(t)
	for _, tt := range []struct{ body, param, wants string }{
		{`{}`, "messages", "no message"},
		{`{"messages":[]}`, "messages", "no message"},
		{`{"messages":[{"role":"king","content":"a"}]}`, "messages[0]", `messages[0]: the role "king" is not known`},
		{`{"messages":[{"role":"user","content":"a","contents":"b"}]}`, "messages[0].contents", "not known"},
		{`{"messages":[{"role":"user","content":"a","contents":"b"}]}`, "messages[0].contents", `did you mean "content"?`},
		{`{` + hello + `,"thinking":{"type":"perhaps"}}`, "thinking.type", "enabled, disabled or auto"},
		{`{` + hello + `,"reasoning":{"max_tokens":5}}`, "reasoning.max_tokens", "use reasoning_budget"},
		{`{` + hello + `,"reasoning":{"effort":"low"},"reasoning_effort":"high"}`, "reasoning.effort", "leave one of them out"},
		{`{"messages":[{"role":"assistant","content":"a","function_call":{"name":"f"}}]}`, "messages[0].function_call", "use tool_calls"},
		{`{"messages":[{"role":"assistant","content":"a","audio":{"id":"x"}}]}`, "messages[0].audio", "text alone"},
		{`{"messages":[{"role":"user","content":"a","Role":"b"}]}`, "messages[0].Role", "not known"},
		{`{"messages":[{"role":"user","content":"a"},{"role":"user","content":"a","role":"user"}]}`, "messages[1].role", "twice"},
		{`{"messages":[{"role":"user","content":"a"},null]}`, "messages[1]", "element is null"},
		{`{"messages":[{"role":"user","content":[{"type":"text","text":"a","texts":"b"}]}]}`, "messages[0].content[0].texts", "not known"},
		{`{"messages":[{"role":"user","content":[{"type":"text"}]}]}`, "messages[0].content[0]", "has no text"},
		{`{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]}`, "messages[0].content[0]", "sound"},
		{`{` + hello + `,"best_of":2,"n":3}`, "best_of", "n is 3; it must be 1"},
		{`{` + hello + `,"echo":true}`, "echo", "template"},
		{`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://169.254.169.254/"}}]}]}`, "messages[0].content[0]", "image_url"},
		{`{"messages":[{"role":"user","content":3}]}`, "messages[0].content", "text"},
		{`{` + hello + `,"max_tokens":0}`, "max_tokens", "0"},
		{`{` + hello + `,"max_tokens":3,"max_completion_tokens":4}`, "max_completion_tokens", "another name"},
		{`{` + hello + `,"top_logprobs":3}`, "top_logprobs", "logprobs"},
		{`{` + hello + `,"logprobs":true,"top_logprobs":1000000}`, "top_logprobs", "from 0 to 20"},
		{`{` + hello + `,"logprobs":5}`, "logprobs", "number"},
		{`{` + hello + `,"response_format":{"type":"json_schema"}}`, "response_format", "no schema"},
		{`{` + hello + `,` + tool + `,"tool_choice":"required","grammar":"root ::= \"a\""}`, "grammar", "calls of tools"},
		{`{` + hello + `,` + tool + `,"tool_choice":{"type":"function","function":{"name":"gone"}}}`, "tool_choice", "no tool \"gone\""},
		{`{` + hello + `,` + tool + `,"tool_choice":"perhaps"}`, "tool_choice", "perhaps"},
		{`{` + hello + `,"reasoning_format":"hidden"}`, "reasoning_format", "none, auto or deepseek"},
		{`{` + hello + `,"tools":[{"type":"function"}]}`, "tools[0]", "tools[0] is not a function with a name"},
		{`{` + hello + `,"functions":[{"name":"f"}]}`, "functions", "use tools"},
		{`{` + hello + `,"modalities":["audio"]}`, "modalities", "text alone"},
		{`{"messages":[{"role":"user","content":"` + strings.Repeat("word ", 400) + `"}]}`, "messages", "exceeds the available context size of 256 tokens"},
	} {
		status, text, _ := s.do(t, "POST", "/v1/chat/completions", tt.body)
		if message, _, param, _ := wantError(t, text); status != 400 || param != tt.param || !strings.Contains(message, tt.wants) {
			t.Errorf("%.150s: %d %s, want %q of %s", tt.body, status, text, tt.wants, tt.param)
		}
	}
	bare := serve(t, server.Config{})
	status, text, _ := bare.do(t, "POST", "/v1/chat/completions", "{"+hello+"}")
	if message, _, _, _ := wantError(t, text); status != 400 || !strings.Contains(message, "no chat template") {
		t.Errorf("a model without a template: %d %s", status, text)
	}
}

// serveCaller starts a server of a model with tokens that begin and end thoughts, and one that is a call.
func serveCaller(t *testing.T) *site {
	return serveSaying(t, `<tool_call>{"name":"look","arguments":{"at":"home"}}</tool_call>`)
}

// serveSaying serves a model with a token of a text.
func serveSaying(t testing.TB, text string) *site {
	t.Helper()
	file, err := os.ReadFile("../internal/suite/modeltest/testdata/llama-gqa.gguf")
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	changes := []gguf.KV{template, {Key: "llama.context_length", Value: gguf.Of(uint32(1 << 16))}}
	for _, kv := range f.Metadata {
		switch v := kv.Value.Any().(type) {
		case []string:
			if kv.Key == "tokenizer.ggml.tokens" {
				v = slices.Clone(v)
				v[319] = text
				v[315], v[316] = "</think>", "<think>"
				changes = append(changes, gguf.KV{Key: kv.Key, Value: gguf.ArrayOf(v)})
			}
		case []int32:
			if kv.Key == "tokenizer.ggml.token_type" {
				v = slices.Clone(v)
				v[315], v[316], v[319] = 3, 4, 4 // texts do not show the first
				changes = append(changes, gguf.KV{Key: kv.Key, Value: gguf.ArrayOf(v)})
			}
		}
	}
	return serveModels(t, server.Config{}, source(modelName, edited(t, file, changes...), grove.Options{Parallel: 2, Threads: 1, Context: 1 << 15}))
}

// TestToolCalls: a model that is made to call a tool, whole and as a stream.
func TestToolCalls(t *testing.T) {
	s := serveCaller(t)
	// The call is likeliest at first, and the end of the text behind it.
	const fields = `"messages":[{"role":"user","content":"go"}],"temperature":0,"max_tokens":4,"logit_bias":{"319":100,"318":98},"presence_penalty":2,"frequency_penalty":2,` + tool
	o := s.post(t, "/v1/chat/completions", "{"+fields+"}")
	if o.at("choices/0/finish_reason") != "tool_calls" || o.at("choices/0/message/content") != nil {
		t.Errorf("%v", o)
	}
	id, _ := o.at("choices/0/message/tool_calls/0/id").(string)
	want := []any{map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "look", "arguments": `{"at":"home"}`}}}
	if d := cmp.Diff(any(want), o.at("choices/0/message/tool_calls")); d != "" || len(id) != 9 {
		t.Errorf("id %q:\n%s", id, d)
	}
	var fragments []any
	events := s.events(t, "/v1/chat/completions", "{"+fields+`,"stream":true}`)
	for _, e := range events {
		if calls, ok := e.at("choices/0/delta/tool_calls").([]any); ok {
			fragments = append(fragments, calls...)
		}
	}
	if len(fragments) != 2 {
		t.Fatalf("%v", fragments)
	}
	first, second := object(fragments[0].(map[string]any)), object(fragments[1].(map[string]any))
	if first["index"] != 0.0 || len(first["id"].(string)) != 9 || first["type"] != "function" || first.at("function/name") != "look" || first.at("function/arguments") != "" {
		t.Errorf("first fragment: %v", first)
	}
	if second["index"] != 0.0 || second["id"] != nil || second.at("function/arguments") != `{"at":"home"}` {
		t.Errorf("second fragment: %v", second)
	}
	if last := events[len(events)-1]; last.at("choices/0/finish_reason") != "tool_calls" {
		t.Errorf("last part: %v", last)
	}
	plain := s.post(t, "/v1/chat/completions", "{"+fields+`,"tool_choice":"none"}`)
	if plain.at("choices/0/finish_reason") != "stop" || !strings.HasPrefix(plain.at("choices/0/message/content").(string), "<tool_call>") {
		t.Errorf("without tools: %v", plain)
	}
	s.post(t, "/v1/chat/completions", `{"max_tokens":1,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":"123456789","type":"function","function":{"name":"look","arguments":"{}"}}]},{"role":"tool","tool_call_id":"123456789","content":"here"}]}`)
}
