package structured_test

import (
	"encoding/json"
	"testing"

	"grove"
	"grove/internal/text/answer"
	"grove/internal/text/calls"
	"grove/internal/text/chat"
	"grove/server/structured"
	"grove/server/wire"
)

// conversation is a body with tools.
type conversation struct {
	body
	Tools  []json.RawMessage `json:"tools"`
	Choice json.RawMessage   `json:"tool_choice"`
}

// FuzzForm: whatever a body says, it gives a form or an error, in the way of each family.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{
		`{"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"a":1}}}}`,
		`{"grammar":"root ::= x","grammar_lazy":true,"grammar_triggers":[{"type":1,"value":"x"}],"preserved_tokens":["x"]}`,
		`{"structured_outputs":{"structural_tag":"{\"structures\":[{\"begin\":\"<a\",\"end\":\">\"}],\"triggers\":[\"<\"]}"}}`,
		`{"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"enum":["x"]},"b":{"anyOf":[{"type":"string"}]}},"required":["a","c"],"$defs":{}}}}],"tool_choice":"required"}`,
		`{"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"a":{"const":"x","type":"string"},"b":false,"c":[]}}}}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}}`,
	} {
		f.Add(seed, uint8(0))
		f.Add(seed, uint8(7))
	}
	signs := []string{
		"", "<|channel|><|message|>", "｜DSML｜", "<｜tool▁calls▁begin｜>", "<minimax:tool_call>", "<seed:tool_call>", "<arg_key>", "<function=<parameter=", ">>>all", "[TOOL_CALLS][ARGS]",
		"<|START_ACTION|>", "<|tool_list_start|>", "<|tool_call>", "<|tool_call:begin|>", "ipython", "func_name1(params_name1", "</think>",
	}
	none := func(string) bool { return false }
	f.Fuzz(func(t *testing.T, text string, family uint8) {
		var b conversation
		if wire.Decode([]byte(text), &b) != nil {
			return
		}
		format, err := b.Format.Asks("response_format")
		if err != nil {
			return
		}
		form, err := b.Form(format)
		if err != nil {
			return
		}
		choice, err := structured.ChoiceOf(b.Choice)
		if err != nil {
			return
		}
		names, strict, err := structured.Names(b.Tools)
		if err != nil || choice.Check(names) != nil {
			return
		}
		sign := signs[int(family)%len(signs)] + " tools"
		c := structured.Conversation{
			Options: &grove.ChatOptions{Options: chat.Options{Tools: b.Tools}}, Prompt: &grove.ChatPrompt{Style: calls.StyleOf(sign, none), Format: answer.FormatOf(sign, none)},
			Choice: choice, Strict: strict,
		}
		if made, err := c.Form(form); err == nil && choice.Must && made == nil {
			t.Errorf("a call must be made, and the answer is not held to it: %s", text)
		}
	})
}
