package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"grove/internal/gopher"
	"grove/internal/weights/gguf"
	"grove/server"
)

// TestSecondTurns: the second turn of an agent, with its call and the tool's result behind the first, computes at most 5 % of what the first did, in each API.
func TestSecondTurns(t *testing.T) {
	s := serveModels(t, server.Config{}, source(modelName, edited(t, gopher.Model(), template, gguf.KV{Key: "llama.context_length", Value: gguf.Of(uint32(16384))}), options))
	system := strings.Repeat("A rule: keep func main short and return early.\n", 400)
	const ask, result = "Read main.go.", "package main"
	schema := json.RawMessage(lookSchema)
	for _, c := range []struct {
		path   string
		first  object
		second func(first object) []any // the messages of the second turn
		usage  func(o object) (prompt, cached float64)
	}{
		{"/v1/chat/completions", object{
			"messages":    []any{object{"role": "system", "content": "chat. " + system}, object{"role": "user", "content": ask}},
			"tools":       []any{object{"type": "function", "function": object{"name": "look", "parameters": schema}}},
			"tool_choice": "required", "parallel_tool_calls": false, "max_tokens": 150,
		}, func(o object) []any {
			m := o.at("choices/0/message")
			return []any{m, object{"role": "tool", "tool_call_id": at(m, "tool_calls", 0, "id"), "content": result}}
		}, func(o object) (prompt, cached float64) {
			return o.at("usage/prompt_tokens").(float64), o.at("usage/prompt_tokens_details/cached_tokens").(float64)
		}},
		{"/v1/messages", object{
			"system": "messages. " + system, "messages": []any{object{"role": "user", "content": ask}}, "tools": []any{object{"name": "look", "input_schema": schema}},
			"tool_choice": object{"type": "any", "disable_parallel_tool_use": true}, "max_tokens": 150,
		}, func(o object) []any {
			return []any{object{"role": "assistant", "content": o["content"]},
				object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": o.at("content/0/id"), "content": result}}}}
		}, func(o object) (prompt, cached float64) {
			cached, _ = o.at("usage/cache_read_input_tokens").(float64)
			return o.at("usage/input_tokens").(float64) + cached, cached
		}},
		{"/v1/responses", object{
			"instructions": "responses. " + system, "input": []any{object{"type": "message", "role": "user", "content": ask}}, "tools": []any{object{"type": "function", "name": "look", "parameters": schema, "strict": false}},
			"tool_choice": "required", "parallel_tool_calls": false, "max_output_tokens": 150,
		}, func(o object) []any {
			return []any{o.at("output/0"), object{"type": "function_call_output", "call_id": o.at("output/0/call_id"), "output": result}}
		}, func(o object) (prompt, cached float64) {
			return o.at("usage/input_tokens").(float64), o.at("usage/input_tokens_details/cached_tokens").(float64)
		}},
	} {
		t.Run(c.path, func(t *testing.T) {
			send := func(o object) object {
				body, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				return s.post(t, c.path, string(body))
			}
			o := send(c.first)
			prompt, _ := c.usage(o)
			list := "messages"
			if c.path == "/v1/responses" {
				list = "input"
			}
			c.first[list] = append(c.first[list].([]any), c.second(o)...)
			delete(c.first, "tool_choice")
			again, cached := c.usage(send(c.first))
			if computed := again - cached; prompt < 4000 || again <= prompt || computed > prompt/20 {
				t.Errorf("the first turn has %v tokens; of the %v of the second %v are computed, more than 5 %%", prompt, again, computed)
			}
		})
	}
}
