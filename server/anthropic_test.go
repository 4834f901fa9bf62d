package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/server"
)

// TestMessages: an answer of /v1/messages is the one of the chat route, whole and as a stream.
func TestMessages(t *testing.T) {
	s := serveChat(t)
	const fields = `"model":"gopher","max_tokens":20,"seed":3,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],` +
		`"messages":[{"role":"user","content":"func main()"}],"metadata":{"user_id":"a"}`
	chat := s.post(t, "/v1/chat/completions", "{"+hello+`,"max_tokens":20,"seed":3}`)
	o := s.post(t, "/v1/messages", "{"+fields+"}")
	for path, want := range map[string]any{
		"type": "message", "role": "assistant", "model": "gopher", "stop_reason": "max_tokens", "stop_sequence": nil,
		"content/0/type": "text", "content/0/text": chat.at("choices/0/message/content"),
		"usage/output_tokens": 20.0, "usage/cache_creation_input_tokens": 0.0,
	} {
		if got := o.at(path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	prompt := o.at("usage/input_tokens").(float64) + o.at("usage/cache_read_input_tokens").(float64)
	if prompt != chat.at("usage/prompt_tokens") {
		t.Errorf("%v tokens of the prompt, want %v", prompt, chat.at("usage/prompt_tokens"))
	}
	if n := s.post(t, "/v1/messages/count_tokens", `{"system":"Be brief.","messages":[{"role":"user","content":"func main()"}]}`)["input_tokens"]; n != prompt {
		t.Errorf("count_tokens gives %v, want %v", n, prompt)
	}
	var kinds []string
	var text string
	for _, e := range s.namedEvents(t, "/v1/messages", "{"+fields+`,"stream":true}`) {
		if kind := e["type"].(string); len(kinds) == 0 || kinds[len(kinds)-1] != kind {
			kinds = append(kinds, kind)
		}
		if part, ok := e.at("delta/text").(string); ok {
			text += part
		}
	}
	want := strings.Fields("message_start content_block_start content_block_delta content_block_stop message_delta message_stop")
	if d := cmp.Diff(want, kinds); d != "" || text != o.at("content/0/text") {
		t.Errorf("events of %q:\n%s", text, d)
	}
}

// TestMessagesCalls: a call of a tool as a block, whole and as a stream, and the conversation that goes on behind it.
func TestMessagesCalls(t *testing.T) {
	s := serveCaller(t)
	const fields = `"max_tokens":4,"temperature":0,"logit_bias":{"319":100,"318":98},"presence_penalty":2,"frequency_penalty":2,` +
		`"tools":[{"name":"look","description":"looks","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"go"}`
	o := s.post(t, "/v1/messages", "{"+fields+"]}")
	id, _ := o.at("content/0/id").(string)
	want := []any{map[string]any{"type": "tool_use", "id": id, "name": "look", "input": map[string]any{"at": "home"}}}
	if d := cmp.Diff(any(want), o["content"]); d != "" || o["stop_reason"] != "tool_use" || !strings.HasPrefix(id, "toolu_") {
		t.Errorf("%v\n%s", o, d)
	}
	var input string
	for _, e := range s.namedEvents(t, "/v1/messages", "{"+fields+`],"stream":true}`) {
		if part, ok := e.at("delta/partial_json").(string); ok {
			input += part
		}
	}
	if input != `{"at":"home"}` {
		t.Errorf("the input of the call: %q", input)
	}
	s.post(t, "/v1/messages", "{"+fields+fmt.Sprintf(`,{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"Well"},%s]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":[{"type":"text","text":"here"}],"is_error":false},{"type":"text","text":"and now?"}]}]}`, quoteAny(t, want[0]), id))
}

// TestMessagesPrompt: what the blocks of a conversation become in the prompt.
func TestMessagesPrompt(t *testing.T) {
	s := serveChat(t)
	const conversation = `[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]}`
	goesOn := s.post(t, "/v1/messages/count_tokens", `{"messages":`+conversation+`]}`)["input_tokens"]
	want := s.post(t, "/tokenize", `{"content":"user: a\nassistant: b\nc","add_special":true}`)["tokens"].([]any)
	if goesOn != float64(len(want)) {
		t.Errorf("an answer to continue has %v tokens, want %d", goesOn, len(want))
	}
	answered := s.post(t, "/v1/messages/count_tokens", `{"system":"s","messages":`+conversation+`,{"role":"user","content":[{"type":"text","text":"d"}]}]}`)["input_tokens"]
	want = s.post(t, "/tokenize", `{"content":"system: s\nuser: a\nassistant: b\nc\nuser: d\nassistant:","add_special":true}`)["tokens"].([]any)
	if answered != float64(len(want)) {
		t.Errorf("a conversation has %v tokens, want %d", answered, len(want))
	}
}

// TestMessagesThread: a client that asks for a thread gets an answer, and is told to send all messages when it goes on with it.
func TestMessagesThread(t *testing.T) {
	s := serveChat(t)
	const body = `{"max_tokens":1,"messages":[{"role":"user","content":"a"}],"thread":`
	o := s.post(t, "/v1/messages", body+`{"type":"create"}}`)
	_, text, _ := s.do(t, "POST", "/v1/messages", body+`{"type":"continue","previous_message_id":`+quoteAny(t, o["id"])+`}}`)
	if code := parse(t, text).at("error/details/error_code"); code != "thread_not_found" {
		t.Errorf("the thread goes on with %s", text)
	}
	s.post(t, "/v1/messages", body+`null}`)
}

// TestMessagesRefused: errors have the form of this API.
func TestMessagesRefused(t *testing.T) {
	s := serveChat(t)
	const messages = `"messages":[{"role":"user","content":"a"}]`
	const result = `[{"type":"tool_result","content":`
	nested := strings.Repeat(result, 4000) + `"` + strings.Repeat("a", 1<<20) + `"` + strings.Repeat("}]", 4000)
	thoughts := strings.Repeat(`{"type":"thinking","thinking":"a"},`, 20_000) + `{"type":"text","text":"a"}`
	for _, tt := range []struct {
		body   string
		status int
		kind   string
		wants  string
	}{
		{`{` + messages + `}`, 400, "invalid_request_error", "max_tokens: the field is required"},
		{`{"max_tokens":0,` + messages + `}`, 400, "invalid_request_error", "max_tokens is 0"},
		{`{"max_tokens":1}`, 400, "invalid_request_error", "no message"},
		{`{"max_tokens":1,"messages":[{"role":"user","content":[]}]}`, 400, "invalid_request_error", "empty"},
		{`{"max_tokens":1,"messages":[{"role":"critic","content":"a"}]}`, 400, "invalid_request_error", "user, assistant or system"},
		{`{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]}`, 400, "invalid_request_error", "image"},
		{`{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"document"}]}]}]}`, 400, "invalid_request_error", "document"},
		{`{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","texts":"b"}]}]}`, 400, "invalid_request_error", "texts"},
		{`{"max_tokens":1,"streams":1,` + messages + `}`, 400, "invalid_request_error", "streams"},
		{`{"max_tokens":1,"model":"missing",` + messages + `}`, 404, "not_found_error", "missing"},
		{`{"max_tokens":1,"tools":[{"type":"computer_20250124","name":"computer"},{"type":"notebook_2030","name":"n"}],` + messages + `}`, 400, "invalid_request_error", "2 faults: tools: tool computer_20250124 answers with pictures"},
		{`{"max_tokens":1,"tools":[{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"tool","name":"web_search"},` + messages + `}`, 400, "invalid_request_error", "web_search"},
		{`{"max_tokens":1,"mcp_servers":[{}],"container":"c",` + messages + `}`, 400, "invalid_request_error", "2 faults: mcp_servers: the client calls them; give their tools; container: "},
		{`{"max_tokens":1,"context_management":{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":5}}]},` + messages + `}`, 400, "invalid_request_error", "compact_20260112 is due"},
		{`{"max_tokens":1,"context_management":{"edits":[{"type":"fold"}]},` + messages + `}`, 400, "invalid_request_error", "fold"},
		{`{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":""}}]}]}`, 400, "invalid_request_error", "application/pdf"},
		{`{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"text"}]}]}`, 400, "invalid_request_error", "has no text"},
		{`{"max_tokens":1,"tools":[{"name":"f"}],` + messages + `}`, 400, "invalid_request_error", "input_schema"},
		{`{"max_tokens":1,"tools":[{"name":"f","input_schema":{"type":"string"}}],"tool_choice":{"type":"any"},` + messages + `}`, 400, "invalid_request_error", "tools: function \"f\": #/type: arguments are an object"},
		{`{"max_tokens":1,"tool_choice":{"type":"perhaps"},` + messages + `}`, 400, "invalid_request_error", "perhaps"},
		{`{"max_tokens":1,"thinking":{"type":"enabled"},` + messages + `}`, 400, "invalid_request_error", "budget_tokens"},
		{`{"max_tokens":1,"thinking":{"type":"enabled","budget_tokens":0},` + messages + `}`, 400, "invalid_request_error", "budget_tokens is 0; it must be from 1 to 2147483647"},
		{`{"max_tokens":1,"thinking":{"type":"deep"},` + messages + `}`, 400, "invalid_request_error", "deep"},
		{`{"max_tokens":1,"mcp_servers":[{}],` + messages + `}`, 400, "invalid_request_error", "mcp_servers"},
		{`{"max_tokens":1,"thread":{"type":"continue","previous_message_id":"msg_1"},` + messages + `}`, 404, "not_found_error", "thread: the message \"msg_1\" is not held"},
		{`{"max_tokens":1,"thread":{"type":"fork"},` + messages + `}`, 400, "invalid_request_error", "fork"},
		{`{"max_tokens":1,"thread":{"id":"a"},` + messages + `}`, 400, "invalid_request_error", "thread"},
		{`{"max_tokens":1,"container":"c",` + messages + `}`, 400, "invalid_request_error", "container"},
		{`{"max_tokens":1,"output_config":{"format":{"type":"json_schema"}},` + messages + `}`, 400, "invalid_request_error", "format"},
		{`{"max_tokens":1,"stop_sequences":[""],` + messages + `}`, 400, "invalid_request_error", "stop_sequences"},
		{`{"max_tokens":1,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 400) + `"}]}`, 400, "invalid_request_error", " tokens > 256 maximum"},
		{`{"max_tokens":1,"stop_sequences":["a"],"stop":["b"],` + messages + `}`, 400, "invalid_request_error", "another name"},
		{`{"max_tokens":1,"thinking":{"type":"adaptive","display":"loud"},` + messages + `}`, 400, "invalid_request_error", "loud"},
		{`{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","texts":"b"}]}]}]}`, 400, "invalid_request_error", "texts"},
		{`{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","content":7}]}]}`, 400, "invalid_request_error", "messages[0].content[0].content: "},
		{`{"max_tokens":1,"messages":[{"role":"user","content":` + nested + `}]}`, 400, "invalid_request_error", "nested deeper than 64"},
		{`{"max_tokens":1,"messages":[{"role":"assistant","content":[` + thoughts + `]}]}`, 400, "invalid_request_error", "more than 16384 elements"},
		{`{`, 400, "invalid_request_error", "JSON"},
	} {
		for _, path := range []string{"/v1/messages", "/v1/messages?beta=true"} {
			status, text, _ := s.do(t, "POST", path, tt.body)
			o := parse(t, text)
			message, _ := o.at("error/message").(string)
			if status != tt.status || o["type"] != "error" || o.at("error/type") != tt.kind || !strings.Contains(message, tt.wants) {
				t.Errorf("%s %.150s: %d %s, want %d, %s with %q", path, tt.body, status, text, tt.status, tt.kind, tt.wants)
			}
		}
	}
	for body, want := range map[string]string{ // the field is named once
		`{"max_tokens":1,"tool_choice":{"type":"any"},` + messages + `}`: "tool_choice: a call is asked for, and there is no tool",
		`{"max_tokens":1,"streams":1,` + messages + `}`:                  "streams: the field is not known",
	} {
		if _, text, _ := s.do(t, "POST", "/v1/messages", body); !strings.HasPrefix(parse(t, text).at("error/message").(string), want) {
			t.Errorf("%s: %s, want %q", body, text, want)
		}
	}
	locked := serve(t, server.Config{Access: keyed(t, "secret")})
	if status, text, _ := locked.do(t, "POST", "/v1/messages", "{}"); status != 401 || parse(t, text).at("error/type") != "authentication_error" {
		t.Errorf("without a key: %d %s", status, text)
	}
	if status, text, _ := locked.do(t, "POST", "/v1/messages", "{}", "X-Api-Key", "secret"); status != 400 {
		t.Errorf("with a key: %d %s", status, text)
	}
}
