package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// thinks makes serveCaller's model think Q, answer Z, call look and end: each token is the likeliest when those before are penalised.
const thinks = `"temperature":0,"logit_bias":{"316":100,"81":85,"315":70,"90":55,"319":42,"318":28},"repeat_penalty":10`

// TestReasoningApart: thoughts are apart from the content, whole and in streams, and stay in it where the request says so.
func TestReasoningApart(t *testing.T) {
	s := serveCaller(t)
	chat := func(fields string) string {
		t.Helper()
		body := `{"messages":[{"role":"user","content":"go"}],"max_tokens":4,` + thinks + fields
		o := s.post(t, "/v1/chat/completions", body+"}")
		content, _ := o.at("choices/0/message/content").(string)
		thoughts, _ := o.at("choices/0/message/reasoning_content").(string)
		streamed := map[string]string{}
		for _, e := range s.events(t, "/v1/chat/completions", body+`,"stream":true}`) {
			for _, name := range []string{"content", "reasoning_content"} {
				text, _ := e.at("choices/0/delta/" + name).(string)
				streamed[name] += text
			}
		}
		if streamed["content"] != content || streamed["reasoning_content"] != thoughts {
			t.Errorf("%s: the stream has %q, the whole answer %q and %q", fields, streamed, content, thoughts)
		}
		return thoughts + "|" + content
	}
	for fields, want := range map[string]string{
		"":                               "Q|Z",
		`,"reasoning_format":"auto"`:     "Q|Z",
		`,"reasoning_format":"deepseek"`: "Q|Z",
		`,"reasoning_format":"none"`:     "|<think>Q</think>Z",
		"," + tool:                       "Q|Z",
	} {
		if got := chat(fields); got != want {
			t.Errorf("%s: %q, want %q", fields, got, want)
		}
	}
}

// TestOneCall ends answers behind their first call, where they may have one only.
func TestOneCall(t *testing.T) {
	s := serveCaller(t)
	body := `{"messages":[{"role":"user","content":"go"}],"max_tokens":9,` + thinks + "," + tool
	for fields, tokens := range map[string]float64{"": 6, `,"parallel_tool_calls":true`: 6, `,"parallel_tool_calls":false`: 5, `,"parallel_tool_calls":false,"n":2`: 10} {
		o := s.post(t, "/v1/chat/completions", body+fields+"}")
		calls, _ := o.at("choices/0/message/tool_calls").([]any)
		if o.at("usage/completion_tokens") != tokens || len(calls) != 1 || o.at("choices/0/finish_reason") != "tool_calls" {
			t.Errorf("%s: want %v tokens: %v", fields, tokens, o)
		}
	}
	o := s.post(t, "/v1/messages", `{"messages":[{"role":"user","content":"go"}],"max_tokens":9,`+thinks+`,"tools":[{"name":"look","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`)
	if o.at("usage/output_tokens") != 5.0 || o.at("stop_reason") != "tool_use" {
		t.Errorf("/v1/messages: %v", o)
	}
}

// TestReasoningItems: thoughts are items of /v1/responses, which a client can send back.
func TestReasoningItems(t *testing.T) {
	s := serveCaller(t)
	body := `{"input":"go","max_output_tokens":4,` + thinks
	o := s.post(t, "/v1/responses", body+"}")
	want := []any{map[string]any{"type": "reasoning_text", "text": "Q"}}
	if o.at("output/0/type") != "reasoning" || cmp.Diff(any(want), o.at("output/0/content")) != "" || o.at("output/1/content/0/text") != "Z" {
		t.Errorf("%v", o["output"])
	}
	var kinds []string
	for _, e := range s.namedEvents(t, "/v1/responses", body+`,"stream":true}`) {
		kinds = append(kinds, strings.TrimPrefix(e["type"].(string), "response."))
	}
	events := []string{
		"created", "in_progress",
		"output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.done", "content_part.done", "output_item.done",
		"output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done", "output_item.done", "incomplete",
	}
	if d := cmp.Diff(events, kinds); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	back := s.post(t, "/v1/responses", `{"max_output_tokens":1,"input":[{"role":"user","content":"go"},{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"x"}],"encrypted_content":null},`+
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"y"}]},{"role":"user","content":"on"}]}`)
	plain := s.post(t, "/v1/responses", `{"max_output_tokens":1,"input":[{"role":"user","content":"go"},{"role":"assistant","content":"y"},{"role":"user","content":"on"}]}`)
	if got, want := back.at("usage/input_tokens"), plain.at("usage/input_tokens"); got != want {
		t.Errorf("with thoughts of an earlier turn the prompt has %v tokens, without %v", got, want)
	}
}

// TestThinkingBlocks: thoughts have the forms of the other APIs.
func TestThinkingBlocks(t *testing.T) {
	s := serveCaller(t)
	o := s.post(t, "/api/chat", fmt.Sprintf(`{"messages":[{"role":"user","content":"go"}],"stream":false,"options":{"num_predict":4,%s}}`, thinks))
	if o.at("message/thinking") != "Q" || o.at("message/content") != "Z" {
		t.Errorf("/api/chat: %v", o)
	}
	o = s.post(t, "/v1/messages", `{"messages":[{"role":"user","content":"go"}],"max_tokens":4,`+thinks+"}")
	if o.at("content/0/type") != "thinking" || o.at("content/0/thinking") != "Q" || o.at("content/1/text") != "Z" {
		t.Errorf("/v1/messages: %v", o)
	}
	o = s.post(t, "/v1/messages", `{"messages":[{"role":"user","content":"go"}],"max_tokens":4,"thinking":{"type":"adaptive","display":"omitted"},`+thinks+"}")
	if o.at("content/0/type") != "thinking" || o.at("content/0/thinking") != "" || o.at("content/1/text") != "Z" {
		t.Errorf("/v1/messages with thoughts left out: %v", o)
	}
}

// TestUsageAgrees: one request has the same counts by each API.
func TestUsageAgrees(t *testing.T) {
	s := serveCaller(t)
	const ask = `{"messages":[{"role":"user","content":"go"}],`
	chat := s.post(t, "/v1/chat/completions", ask+`"max_tokens":4,`+thinks+"}")
	response := s.post(t, "/v1/responses", `{"input":"go","max_output_tokens":4,`+thinks+"}")
	messages := s.post(t, "/v1/messages", ask+`"max_tokens":4,`+thinks+"}")
	lines := s.post(t, "/api/chat", ask+`"stream":false,"options":{"num_predict":4,`+thinks+"}}")
	read, _ := messages.at("usage/cache_read_input_tokens").(float64)
	input, _ := messages.at("usage/input_tokens").(float64)
	for _, tt := range []struct {
		what string
		got  []any
	}{
		{"prompt", []any{chat.at("usage/prompt_tokens"), response.at("usage/input_tokens"), read + input, lines["prompt_eval_count"]}},
		{"answer", []any{chat.at("usage/completion_tokens"), response.at("usage/output_tokens"), messages.at("usage/output_tokens"), lines["eval_count"]}},
		{"thoughts", []any{chat.at("usage/completion_tokens_details/reasoning_tokens"), response.at("usage/output_tokens_details/reasoning_tokens"), messages.at("usage/output_tokens_details/thinking_tokens")}},
	} {
		for _, n := range tt.got {
			if n != tt.got[0] || n == nil || n == 0.0 {
				t.Errorf("tokens of the %s: %v", tt.what, tt.got)
				break
			}
		}
	}
}

// TestEffortNone: an effort of none ends the thoughts before they begin.
func TestEffortNone(t *testing.T) {
	s := serveCaller(t)
	ask := `{"messages":[{"role":"user","content":"go"}],"chat_template_kwargs":{}`
	plain := s.post(t, "/apply-template", ask+`}`)["prompt"].(string)
	if none := s.post(t, "/apply-template", ask+`,"reasoning_effort":"none"}`)["prompt"]; none != plain {
		t.Errorf("a template without thoughts: %q, want %q", none, plain)
	}
}

// TestThoughtsBeforeForms: thoughts come before a form and are free; where they are switched off, the form holds at once.
func TestThoughtsBeforeForms(t *testing.T) {
	s := serveCaller(t)
	for _, c := range []struct{ fields, thoughts, content, call string }{
		{`,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"enum":["ZZ","no"]}}}`, "Q", `"ZZ"`, ""},
		{`,"guided_choice":["ZY"]`, "Q", "ZY", ""},
		{`,"grammar":"root ::= \"Z\" [0-9]"`, "Q", "Z?", ""},
		{`,"tool_choice":{"type":"function","function":{"name":"look"}},"parallel_tool_calls":false,` + lookTool, "Q", "", `{"at":"Z"}`},
		{`,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"enum":["ZZ"]}}},"reasoning_effort":"none"`, "", `"ZZ"`, ""},
		{`,"tool_choice":"required","parallel_tool_calls":false,"reasoning_effort":"none",` + lookTool, "", "", `{"at":"Z"}`},
	} {
		o := s.post(t, "/v1/chat/completions", `{"messages":[{"role":"user","content":"go"}],"max_tokens":90,`+thinks+c.fields+"}")
		content, _ := o.at("choices/0/message/content").(string)
		thoughts, _ := o.at("choices/0/message/reasoning_content").(string)
		call, _ := o.at("choices/0/message/tool_calls/0/function/arguments").(string)
		if strings.HasSuffix(c.content, "?") && len(content) == len(c.content) {
			content = content[:len(content)-1] + "?"
		}
		if thoughts != c.thoughts || content != c.content || call != c.call {
			t.Errorf("%s: thoughts %q, content %q, call %q: want %q, %q, %q: %v", c.fields, thoughts, content, call, c.thoughts, c.content, c.call, o)
		}
	}
}

// lookTool is a function with one possible call.
const lookTool = `"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{"at":{"const":"Z"}},"required":["at"],"additionalProperties":false}}}]`
