package server_test

import (
	"fmt"
	"strings"
	"testing"

	"grove/server"
)

// promptOf returns how many tokens the prompt of a conversation has.
func promptOf(t *testing.T, s *site, fields string) float64 {
	t.Helper()
	return s.post(t, "/v1/messages/count_tokens", `{`+fields+`}`)["input_tokens"].(float64)
}

// TestClaudeCode: what Claude Code sends besides the conversation changes no prompt; a note of the system stands where it is.
func TestClaudeCode(t *testing.T) {
	s := serveChat(t)
	const messages = `"messages":[{"role":"user","content":"a"}]`
	want := promptOf(t, s, messages)
	for _, more := range []string{
		`"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}`, `"context_management":{"edits":[{"type":"clear_tool_uses_20250919"},{"type":"compact_20260112"}]}`,
		`"speed":"fast","inference_geo":"eu","diagnostics":{"a":1},"metadata":{"user_id":"x"}`, `"tools":[],"mcp_servers":[],"container":null`, `"anything_new":{"a":[1]}`,
		`"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":3},{"type":"mcp_toolset","mcp_server_name":"a"}]`,
		`"output_config":{"effort":"medium"},"thinking":{"type":"adaptive","display":"omitted"}`,
	} {
		if got := promptOf(t, s, messages+`,`+more); got != want {
			t.Errorf("%s: a prompt of %v tokens, want %v", more, got, want)
		}
		o := s.post(t, "/v1/messages", `{"max_tokens":1,`+messages+`,`+more+`}`)
		if strings.Contains(more, "context_management") && len(o.at("context_management/applied_edits").([]any)) > 0 {
			t.Errorf("%s: %v", more, o)
		}
	}
	note := promptOf(t, s, `"messages":[{"role":"user","content":"a"},{"role":"system","content":[{"type":"text","text":"note","cache_control":{"type":"ephemeral"}}]}]`)
	tokens := s.post(t, "/tokenize", `{"content":"user: a\nsystem: note\nassistant:","add_special":true}`)["tokens"].([]any)
	if note != float64(len(tokens)) {
		t.Errorf("with a note the prompt has %v tokens, want %d", note, len(tokens))
	}
	_, _, header := s.do(t, "POST", "/v1/messages", `{"max_tokens":1,`+messages+`,"tools":[{"type":"web_search_20250305","name":"web_search"}]}`)
	if got := header.Get("Grove-Ignored"); got != "tools:web_search_20250305" || header.Get("Request-Id") == "" || header.Get("Request-Id") != header.Get("X-Request-Id") {
		t.Errorf("%v", header)
	}
	_, text, header := s.do(t, "POST", "/v1/messages", `{"max_tokens":1,`+messages+`,"model":"claude-sonnet-4-5"}`)
	if o := parse(t, text); o["request_id"] != header.Get("Request-Id") || !strings.Contains(o.at("error/message").(string), "--any-model") {
		t.Errorf("%s of %v", text, header)
	}
}

// TestClientTools: tools whose input Anthropic's API fixes and that the client runs are offered with that input.
func TestClientTools(t *testing.T) {
	s := serveCaller(t)
	const messages = `,"messages":[{"role":"user","content":"a"}]`
	for _, kind := range []string{"bash_20250124", "text_editor_20250728", "text_editor_20250124", "memory_20250818"} {
		tool := `"tools":[{"type":"` + kind + `","name":"it","cache_control":{"type":"ephemeral"}}]` + messages
		if with, without := promptOf(t, s, tool), promptOf(t, s, messages[1:]); with <= without {
			t.Errorf("%s: %v tokens with the tool, %v without", kind, with, without)
		}
	}
	s.post(t, "/v1/messages", `{"max_tokens":4,"tools":[{"type":"bash_20250124","name":"bash"}],"tool_choice":{"type":"any"}`+messages+`}`)
}

// TestDocuments: documents of text are read as text.
func TestDocuments(t *testing.T) {
	s := serveChat(t)
	plain := promptOf(t, s, `"messages":[{"role":"user","content":"T\nhello\nwhat?"}]`)
	for _, document := range []string{
		`{"type":"document","title":"T","source":{"type":"text","media_type":"text/plain","data":"hello"},"citations":{"enabled":true}}`,
		`{"type":"document","title":"T","source":{"type":"content","content":[{"type":"text","text":"hello"}]}}`,
		`{"type":"document","title":"T","source":{"type":"content","content":"hello"}}`,
		`{"type":"search_result","title":"T","source":"hello","content":[]}`,
	} {
		if got := promptOf(t, s, `"messages":[{"role":"user","content":[`+document+`,{"type":"text","text":"what?"}]}]`); got != plain {
			t.Errorf("%s: %v tokens, want %v", document, got, plain)
		}
	}
	s.post(t, "/v1/messages", `{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"document","source":{"type":"text","data":"x"}},{"type":"tool_reference","tool_name":"f"}]}]}]}`)
}

// TestClearing: what the client asks to clear is not read.
func TestClearing(t *testing.T) {
	s := serveCaller(t)
	use := func(n int, thought, input, result string) string {
		return fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":%q,"signature":""},{"type":"tool_use","id":"toolu_%d","name":"f","input":%s}]},`+
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":%q}]}`, thought, n, input, n, result)
	}
	conversation := func(uses ...string) string {
		return `"messages":[{"role":"user","content":"go"},` + strings.Join(uses, ",") + `],"max_tokens":1`
	}
	const management = `,"context_management":{"edits":[{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":1},"keep":{"type":"tool_uses","value":1},"clear_tool_inputs":true%s}]}`
	whole := conversation(use(1, "", `{"a":1}`, "long long long long"), use(2, "", `{"b":2}`, "short"))
	short := conversation(use(1, "", `{}`, "[cleared to save context]"), use(2, "", `{"b":2}`, "short"))
	if got, want := promptOf(t, s, whole+fmt.Sprintf(management, "")), promptOf(t, s, short); got != want {
		t.Errorf("%v tokens, want %v", got, want)
	}
	if got, want := promptOf(t, s, whole+fmt.Sprintf(management, `,"exclude_tools":["f"]`)), promptOf(t, s, whole); got != want {
		t.Errorf("an excluded tool: %v tokens, want %v", got, want)
	}
	o := s.post(t, "/v1/messages", `{`+whole+fmt.Sprintf(management, "")+`}`)
	if got := o.at("context_management/applied_edits/0/cleared_tool_uses"); got != 1.0 {
		t.Errorf("%v", o)
	}
	thoughts := conversation(use(1, "first", `{}`, "x"), use(2, "second", `{}`, "y"))
	less := conversation(use(1, "", `{}`, "x"), use(2, "second", `{}`, "y"))
	const clear = `,"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":1}}]}`
	if got, want := promptOf(t, s, thoughts+clear), promptOf(t, s, less); got != want {
		t.Errorf("thoughts: %v tokens, want %v", got, want)
	}
	for _, e := range s.namedEvents(t, "/v1/messages", `{`+thoughts+clear+`,"stream":true}`) {
		if e["type"] == "message_delta" && e.at("context_management/applied_edits/0/cleared_thinking_turns") != 1.0 {
			t.Errorf("%v", e)
		}
	}
}

// TestAnthropicModels: a client of Anthropic's API gets the models as that describes them.
func TestAnthropicModels(t *testing.T) {
	s := serve(t, server.Config{})
	get := func(path string) object {
		status, text, _ := s.do(t, "GET", path, "", "anthropic-version", "2023-06-01")
		if status != 200 {
			t.Errorf("%s: %d %s", path, status, text)
		}
		return parse(t, text)
	}
	list := get("/v1/models?limit=5")
	for path, want := range map[string]any{"data/0/type": "model", "data/0/id": "gopher", "has_more": false, "first_id": "gopher", "last_id": "gopher", "data/0/max_input_tokens": 256.0} {
		if got := list.at(path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if one := get("/v1/models/gopher"); one["type"] != "model" || one["display_name"] == "" || !strings.HasSuffix(one["created_at"].(string), "Z") {
		t.Errorf("%v", one)
	}
	if n := len(get("/v1/models?after_id=gopher")["data"].([]any)); n != 0 {
		t.Errorf("%d models behind the last", n)
	}
	if status, _, _ := s.do(t, "GET", "/v1/models?limit=0", "", "anthropic-version", "2023-06-01"); status != 400 {
		t.Errorf("limit 0: %d", status)
	}
}
