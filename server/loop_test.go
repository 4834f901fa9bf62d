package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grove/internal/gopher"
	"grove/server"
)

// nineTemplate wants ids of nine letters, as those of Mistral do.
const nineTemplate = `{% for m in messages %}{% if m.role == 'tool' %}{% if m.tool_call_id is not defined or m.tool_call_id|length != 9 %}{{ raise_exception('ids have nine characters') }}{% endif %}<result {{ m.tool_call_id }}>{{ m.content }}` +
	`{% elif m.tool_calls %}{% for c in m.tool_calls %}{% if c.id is not defined or c.id|length != 9 %}{{ raise_exception('ids have nine characters') }}{% endif %}<call {{ c.id }}>{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}` +
	`{% else %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}{% if tools %}{{ tools|tojson }}{% endif %}`

// TestToolLoop: the second turn of a loop of tools works on each route with a template that wants ids of nine letters, with the ids that
// the route itself makes, with those of other servers, and with none.
func TestToolLoop(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nine.jinja")
	if err := os.WriteFile(file, []byte(nineTemplate), 0o644); err != nil {
		t.Fatal(err)
	}
	chosen := options
	chosen.ChatTemplate = file
	s := serveModels(t, server.Config{}, source(modelName, gopher.Model(), chosen))
	const function = `{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{"x":{"type":"string"}}}}}`
	for _, id := range []string{"abcdefghi", "call_0123456789abcdef", "toolu_abcdefghi", "1", strings.Repeat("y", 5000)} {
		for _, c := range []struct{ path, body string }{
			{"/v1/chat/completions", `{"max_tokens":1,"tools":[` + function + `],"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"ID","type":"function","function":{"name":"look","arguments":"{}"}}]},{"role":"tool","tool_call_id":"ID","content":"3"}]}`},
			{"/v1/responses", `{"max_output_tokens":1,"tools":[{"type":"function","name":"look","parameters":{"type":"object","properties":{}}}],"input":[{"role":"user","content":"q"},{"type":"function_call","call_id":"ID","name":"look","arguments":"{}"},{"type":"function_call_output","call_id":"ID","output":"3"}]}`},
			{"/v1/messages", `{"max_tokens":1,"tools":[{"name":"look","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"ID","name":"look","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"ID","content":"3"}]}]}`},
			{"/api/chat", `{"stream":false,"options":{"num_predict":1},"tools":[` + function + `],"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"","tool_calls":[{"id":"ID","function":{"name":"look","arguments":{}}}]},{"role":"tool","tool_call_id":"ID","tool_name":"look","content":"3"}]}`},
			{"/api/chat", `{"stream":false,"options":{"num_predict":1},"tools":[` + function + `],"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"look","arguments":{}}}]},{"role":"tool","tool_name":"look","content":"3"}]}`},
		} {
			if status, text, _ := s.do(t, "POST", c.path, strings.ReplaceAll(c.body, "ID", id)); status != 200 {
				t.Errorf("%s, id %.20s: %d %s", c.path, id, status, text)
			}
		}
	}
}

// TestCutCalls: a call that must be made and that max_tokens cuts leaves nothing of it in the content, in each API, whole and as a stream.
func TestCutCalls(t *testing.T) {
	s := serveModels(t, server.Config{}, source(modelName, edited(t, gopher.Model(), template), options))
	function := tools(`{"type":"function","function":{"name":%q,"parameters":%s}}`)
	anthropic := tools(`{"name":%q,"input_schema":%s}`)
	flat := tools(`{"type":"function","name":%q,"parameters":%s}`)
	for n := 1; n <= 24; n += 3 {
		for _, c := range []struct{ path, body string }{
			{"/v1/chat/completions", fmt.Sprintf(`{"messages":[{"role":"user","content":"hi"}],"max_tokens":%d,"tools":%s,"tool_choice":"required"`, n, function)},
			{"/v1/responses", fmt.Sprintf(`{"input":"hi","max_output_tokens":%d,"tools":%s,"tool_choice":"required"`, n, flat)},
			{"/v1/messages", fmt.Sprintf(`{"messages":[{"role":"user","content":"hi"}],"max_tokens":%d,"tools":%s,"tool_choice":{"type":"any"}`, n, anthropic)},
		} {
			for _, stream := range []string{"", `,"stream":true`} {
				status, text, _ := s.do(t, "POST", c.path, c.body+stream+"}")
				if status != 200 || strings.Contains(text, "tool_call>") || strings.Contains(text, `tool_call\u003e`) || strings.Contains(text, `{\"name`) {
					t.Errorf("%s, %d tokens%s: %d %s", c.path, n, stream, status, text)
				}
			}
		}
	}
}

// TestArgumentBounds: JSON in arguments that are a text counts to the values of a request on each route.
func TestArgumentBounds(t *testing.T) {
	s := serveChat(t)
	text := `"{\"a\":[` + strings.Repeat(`{\"\":0},`, 40_000) + `0]}"`
	for _, c := range []struct{ path, body string }{
		{"/v1/chat/completions", `{"max_tokens":1,"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":TEXT}}]},{"role":"user","content":"q"}]}`},
		{"/apply-template", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":TEXT}}]},{"role":"user","content":"q"}]}`},
		{"/v1/responses", `{"input":[{"role":"user","content":"q"},{"type":"function_call","call_id":"1","name":"f","arguments":TEXT},{"type":"function_call_output","call_id":"1","output":"3"}]}`},
		{"/v1/messages", `{"max_tokens":1,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":TEXT}]},{"role":"user","content":"q"}]}`},
		{"/v1/messages/count_tokens", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":TEXT}]},{"role":"user","content":"q"}]}`},
		{"/api/chat", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":TEXT}}]},{"role":"user","content":"q"}]}`},
	} {
		status, got, _ := s.do(t, "POST", c.path, strings.Replace(c.body, "TEXT", text, 1))
		if status != 400 || !strings.Contains(got, "more than 100000 values of JSON") {
			t.Errorf("%s: %d %.300s", c.path, status, got)
		}
	}
}
