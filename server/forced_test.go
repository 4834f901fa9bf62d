package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"grove/internal/gopher"
	"grove/internal/weights/gguf"
	"grove/server"
)

// functions are the tools of these tests, in the forms of the APIs.
const (
	lookSchema = `{"type":"object","properties":{"at":{"type":"string","maxLength":6},"n":{"type":"integer","minimum":1,"maximum":9}},"required":["at","n"],"additionalProperties":false}`
	stopSchema = `{"type":"object","properties":{"now":{"type":"boolean"}},"required":["now"],"additionalProperties":false}`
)

func tools(form string) string {
	var all []string
	for _, f := range [][2]string{{"look", lookSchema}, {"halt", stopSchema}} {
		all = append(all, fmt.Sprintf(form, f[0], f[1]))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// called is a call as the APIs have it.
type called struct{ name, arguments string }

// checkCall says what is wrong with a call.
func checkCall(c called) string {
	var o map[string]any
	if err := json.Unmarshal([]byte(c.arguments), &o); err != nil {
		return err.Error()
	}
	switch c.name {
	case "look":
		text, _ := o["at"].(string)
		n, _ := o["n"].(float64)
		if len(o) == 2 && len([]rune(text)) <= 6 && n >= 1 && n <= 9 && n == float64(int(n)) {
			return ""
		}
	case "halt":
		if _, ok := o["now"].(bool); ok && len(o) == 1 {
			return ""
		}
	}
	return c.name + c.arguments
}

// callsOf returns the calls of an answer, and why it ended.
func callsOf(path string, o map[string]any) (all []called, why string) {
	switch path {
	case "/v1/chat/completions":
		list, _ := at(o, "choices", 0, "message", "tool_calls").([]any)
		for i := range list {
			all = append(all, called{fmt.Sprint(at(list, i, "function", "name")), fmt.Sprint(at(list, i, "function", "arguments"))})
		}
		return all, fmt.Sprint(at(o, "choices", 0, "finish_reason"))
	case "/v1/responses":
		list, _ := o["output"].([]any)
		for i := range list {
			if at(list, i, "type") == "function_call" {
				all = append(all, called{fmt.Sprint(at(list, i, "name")), fmt.Sprint(at(list, i, "arguments"))})
			}
		}
		return all, fmt.Sprint(o["status"])
	case "/v1/messages":
		list, _ := o["content"].([]any)
		for i := range list {
			if at(list, i, "type") == "tool_use" {
				raw, _ := json.Marshal(at(list, i, "input"))
				all = append(all, called{fmt.Sprint(at(list, i, "name")), string(raw)})
			}
		}
		return all, fmt.Sprint(o["stop_reason"])
	}
	list, _ := at(o, "message", "tool_calls").([]any)
	for i := range list {
		raw, _ := json.Marshal(at(list, i, "function", "arguments"))
		all = append(all, called{fmt.Sprint(at(list, i, "function", "name")), string(raw)})
	}
	return all, fmt.Sprint(o["done_reason"])
}

// TestForcedCalls: a call that must be made is made, of a function that is allowed, with arguments that keep to its schema, in each API.
func TestForcedCalls(t *testing.T) {
	s := serveModels(t, server.Config{}, source(modelName, edited(t, gopher.Model(), template), options))
	const (
		chat      = `"messages":[{"role":"user","content":"hi"}],"max_tokens":150,"temperature":1.2,"tools":`
		responses = `"input":"hi","max_output_tokens":150,"temperature":1.2,"tools":`
	)
	openAI := tools(`{"type":"function","function":{"name":%q,"parameters":%s}}`)
	strict := tools(`{"type":"function","function":{"name":%q,"parameters":%s,"strict":true}}`)
	flat := tools(`{"type":"function","name":%q,"parameters":%s}`)
	anthropic := tools(`{"name":%q,"input_schema":%s}`)
	for _, c := range []struct {
		path, fields string
		name         string // that is called; "": any
		least, most  int
	}{
		{"/v1/chat/completions", chat + openAI + `,"tool_choice":"required","parallel_tool_calls":false`, "", 1, 1},
		{"/v1/chat/completions", chat + openAI + `,"tool_choice":{"type":"function","function":{"name":"halt"}},"parallel_tool_calls":false`, "halt", 1, 1},
		{"/v1/chat/completions", chat + openAI + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"look"}}]}},"parallel_tool_calls":false`, "look", 1, 1},
		{"/v1/chat/completions", chat + strict + `,"parallel_tool_calls":false`, "", 0, 1},
		{"/v1/chat/completions", chat + strict + `,"tool_choice":"none"`, "", 0, 0},
		{"/v1/responses", responses + flat + `,"tool_choice":"required","parallel_tool_calls":false`, "", 1, 1},
		{"/v1/responses", responses + flat + `,"tool_choice":{"type":"function","name":"look"},"parallel_tool_calls":false`, "look", 1, 1},
		{"/v1/messages", chat + anthropic + `,"tool_choice":{"type":"any","disable_parallel_tool_use":true}`, "", 1, 1},
		{"/v1/messages", chat + anthropic + `,"tool_choice":{"type":"tool","name":"halt","disable_parallel_tool_use":true}`, "halt", 1, 1},
	} {
		for seed := range 3 {
			body := fmt.Sprintf(`{%s,"seed":%d}`, c.fields, seed)
			o := s.post(t, c.path, body)
			all, why := callsOf(c.path, o)
			if len(all) < c.least || len(all) > c.most {
				t.Errorf("%s %.300s: %d calls (%s): %v", c.path, c.fields, len(all), why, o)
			}
			for _, one := range all {
				if bad := checkCall(one); bad != "" || c.name != "" && one.name != c.name {
					t.Errorf("%s %.300s: %v: %s", c.path, c.fields, one, bad)
				}
			}
			if c.least == 0 {
				continue
			}
			want := map[string]string{"/v1/chat/completions": "tool_calls", "/v1/responses": "completed", "/v1/messages": "tool_use"}[c.path]
			if why != want {
				t.Errorf("%s %.300s: it ended for %s, want %s", c.path, c.fields, why, want)
			}
			if c.path == "/v1/chat/completions" {
				streamed(t, s, body, all)
			}
		}
	}
}

// streamed expects the calls of an answer in a stream: the name first, then the arguments in parts.
func streamed(t *testing.T, s *site, body string, want []called) {
	t.Helper()
	_, text, _ := s.do(t, "POST", "/v1/chat/completions", `{"stream":true,`+body[1:])
	var got []called
	parts := 0
	for line := range strings.Lines(text) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var o map[string]any
		if err := json.Unmarshal([]byte(data), &o); err != nil {
			t.Fatal(err)
		}
		list, _ := at(o, "choices", 0, "delta", "tool_calls").([]any)
		for i := range list {
			n, _ := at(list, i, "index").(float64)
			if name, ok := at(list, i, "function", "name").(string); ok && name != "" {
				got = append(got, called{name: name})
			}
			arguments, _ := at(list, i, "function", "arguments").(string)
			if int(n) != len(got)-1 {
				t.Errorf("arguments of call %v behind the beginning of %d", n, len(got))
			}
			got[len(got)-1].arguments += arguments
			parts++
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("streamed %v, whole %v", got, want)
	}
	if parts < 4 {
		t.Errorf("the arguments come in %d parts", parts-1)
	}
}

// TestFormsOfCalls: models of all families whose calls are read make calls that must be made.
func TestFormsOfCalls(t *testing.T) {
	for name, sign := range map[string]string{
		"Qwen3-Coder": "<function=<parameter=", "GLM": "<arg_key>", "Mistral": "[TOOL_CALLS][ARGS]", "Llama 3": "ipython", "Llama 4": "func_name1(params_name1",
		"Gemma 4": "<|tool_call>", "gpt-oss": "<|channel|><|message|>", "Qwen 3": "</think>",
	} {
		t.Run(name, func(t *testing.T) {
			text := "{# " + sign + " #}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}{% if add_generation_prompt %}assistant: {% endif %}"
			if name == "gpt-oss" {
				text += "<|start|>assistant"
			}
			m := edited(t, gopher.Model(), gguf.KV{Key: "tokenizer.chat_template", Value: gguf.Of(text)})
			s := serveModels(t, server.Config{}, source(modelName, m, options))
			shown := tools(`{"type":"function","function":{"name":%q,"parameters":%s}}`)
			shown = strings.ReplaceAll(strings.ReplaceAll(shown, `,"maxLength":6`, ""), `"type":"function","function"`, `"type":"function","function"`)
			for seed := range 3 {
				o := s.post(t, "/v1/chat/completions", fmt.Sprintf(`{"messages":[{"role":"user","content":"hi"}],"temperature":0.7,"max_tokens":120,"tools":%s,"tool_choice":{"type":"function","function":{"name":"halt"}},"parallel_tool_calls":false,"seed":%d}`, shown, seed))
				all, why := callsOf("/v1/chat/completions", o)
				if why == "length" && (name == "Qwen 3" || name == "gpt-oss") { // it thinks
					continue
				}
				if len(all) != 1 || checkCall(all[0]) != "" || why != "tool_calls" {
					t.Errorf("%v, %s: %v", all, why, o)
				}
			}
		})
	}
}
