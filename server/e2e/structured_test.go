package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/invopop/jsonschema"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// address and person are what the answers of these tests are read into. Their schemas are made as the client's examples make them.
type address struct {
	Town string `json:"town" jsonschema:"maxLength=8" jsonschema_description:"the name of the town"`
	Zip  int    `json:"zip" jsonschema:"minimum=1000,maximum=9999"`
}

type person struct {
	Name string  `json:"name" jsonschema:"maxLength=8"`
	Kind string  `json:"kind" jsonschema:"enum=friend,enum=stranger"`
	Home address `json:"home"`
	Tags []bool  `json:"tags" jsonschema:"maxItems=1"`
}

// check says what is wrong with a text that should be a person.
func (p *person) check(text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	switch err := d.Decode(p); {
	case err != nil:
		return err.Error()
	case d.More():
		return "the text goes on"
	case p.Kind != "friend" && p.Kind != "stranger", p.Home.Zip < 1000 || p.Home.Zip > 9999, len([]rune(p.Name)) > 8, len(p.Tags) > 1:
		return text
	}
	return ""
}

// schemaOf returns the schema of a type, with its parts in it or beside it.
func schemaOf[T any](parts bool) *jsonschema.Schema {
	r := jsonschema.Reflector{AllowAdditionalProperties: false, DoNotReference: !parts}
	var v T
	return r.Reflect(v)
}

// TestSchema: the client's structured outputs, whole and streamed, keep to schemas made of Go's types.
func TestSchema(t *testing.T) {
	c := connect(t)
	for _, parts := range []bool{false, true} {
		request := openai.ChatCompletionNewParams{
			Model: model, Messages: messages, MaxCompletionTokens: openai.Int(150), Seed: openai.Int(4), Temperature: openai.Float(0.7),
			ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
				JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
					Name: "person", Description: openai.String("a person"), Schema: schemaOf[person](parts), Strict: openai.Bool(true),
				},
			}},
		}
		whole, err := c.Chat.Completions.New(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		text := whole.Choices[0].Message.Content
		if bad := new(person).check(text); bad != "" {
			t.Errorf("%q (%s): %s", text, whole.Choices[0].FinishReason, bad)
		}
		stream := c.Chat.Completions.NewStreaming(t.Context(), request)
		var all openai.ChatCompletionAccumulator
		for stream.Next() {
			if !all.AddChunk(stream.Current()) {
				t.Fatalf("the client does not take %s", stream.Current().RawJSON())
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		if got := all.Choices[0].Message.Content; got != text {
			t.Errorf("streamed %q, whole %q", got, text)
		}
	}
	answer, err := c.Responses.New(t.Context(), responses.ResponseNewParams{
		Model: model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("who?")}, MaxOutputTokens: openai.Int(150), Temperature: openai.Float(0.7),
		Text: responses.ResponseTextConfigParam{Format: responses.ResponseFormatTextConfigUnionParam{OfJSONSchema: &responses.ResponseFormatTextJSONSchemaConfigParam{
			Name: "person", Schema: object(t, schemaOf[person](true)), Strict: openai.Bool(true),
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if bad := new(person).check(answer.OutputText()); bad != "" {
		t.Errorf("responses: %q: %s", answer.OutputText(), bad)
	}
}

// object returns a schema as a map.
func object(t *testing.T, v any) (o map[string]any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	if err != nil {
		t.Fatal(err)
	}
	delete(o, "$schema") // as the client's helpers do
	delete(o, "$id")
	return o
}

// TestStrictTools: calls that must be made are made, with arguments of Go's types, whole and streamed.
func TestStrictTools(t *testing.T) {
	c := connect(t)
	request := openai.ChatCompletionNewParams{
		Model: model, Messages: messages, MaxCompletionTokens: openai.Int(100), Temperature: openai.Float(0.7), Seed: openai.Int(9), ParallelToolCalls: openai.Bool(false),
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: "visit", Strict: openai.Bool(true), Parameters: object(t, schemaOf[address](false)),
		})},
		ToolChoice: openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "visit"}),
	}
	whole, err := c.Chat.Completions.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	m := whole.Choices[0].Message
	if len(m.ToolCalls) != 1 || m.ToolCalls[0].Function.Name != "visit" || whole.Choices[0].FinishReason != "tool_calls" {
		t.Fatalf("%+v", m)
	}
	visit(t, m.ToolCalls[0].Function.Arguments)
	stream := c.Chat.Completions.NewStreaming(t.Context(), request)
	var all openai.ChatCompletionAccumulator
	finished := ""
	for stream.Next() {
		if !all.AddChunk(stream.Current()) {
			t.Fatalf("the client does not take %s", stream.Current().RawJSON())
		}
		if call, ok := all.JustFinishedToolCall(); ok {
			finished = call.Arguments
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if finished != m.ToolCalls[0].Function.Arguments {
		t.Errorf("streamed %q, whole %q", finished, m.ToolCalls[0].Function.Arguments)
	}
	request.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")}
	if whole, err = c.Chat.Completions.New(t.Context(), request); err != nil || len(whole.Choices[0].Message.ToolCalls) != 1 {
		t.Errorf("required: %v %+v", err, whole)
	}
	answer, err := c.Responses.New(t.Context(), responses.ResponseNewParams{
		Model: model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("where?")}, MaxOutputTokens: openai.Int(100), Temperature: openai.Float(0.7), ParallelToolCalls: openai.Bool(false),
		Tools:      []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "visit", Strict: openai.Bool(true), Parameters: object(t, schemaOf[address](false))}}},
		ToolChoice: responses.ResponseNewParamsToolChoiceUnion{OfFunctionTool: &responses.ToolChoiceFunctionParam{Name: "visit"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	called := 0
	for _, item := range answer.Output {
		if item.Type == "function_call" {
			called++
			visit(t, item.AsFunctionCall().Arguments)
		}
	}
	if called != 1 {
		t.Errorf("responses: %d calls", called)
	}
}

// visit expects the arguments of a call.
func visit(t *testing.T, arguments string) {
	t.Helper()
	var a address
	if err := json.Unmarshal([]byte(arguments), &a); err != nil || a.Zip < 1000 || a.Zip > 9999 || len([]rune(a.Town)) > 8 {
		t.Errorf("%s: %v", arguments, err)
	}
}

// TestMessagesForms: Anthropic's output format and forced tools, whole and streamed.
func TestMessagesForms(t *testing.T) {
	c := connectAnthropic(t, "key")
	request := question()
	request.MaxTokens, request.StopSequences = 150, nil
	request.OutputConfig = anthropic.OutputConfigParam{Format: anthropic.JSONOutputFormatParam{Schema: object(t, schemaOf[person](true))}}
	whole, err := c.Messages.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Content) != 1 {
		t.Fatalf("%+v", whole)
	}
	if bad := new(person).check(whole.Content[0].Text); bad != "" {
		t.Errorf("%q: %s", whole.Content[0].Text, bad)
	}
	request = question()
	request.MaxTokens, request.StopSequences, request.Temperature = 100, nil, anthropic.Float(0)
	schema := object(t, schemaOf[address](false))
	request.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
		Name: "visit", InputSchema: anthropic.ToolInputSchemaParam{Properties: schema["properties"], Required: []string{"town", "zip"}, ExtraFields: map[string]any{"additionalProperties": false}},
	}}}
	request.ToolChoice = anthropic.ToolChoiceUnionParam{OfTool: &anthropic.ToolChoiceToolParam{Name: "visit", DisableParallelToolUse: anthropic.Bool(true)}}
	if whole, err = c.Messages.New(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if len(whole.Content) != 1 || whole.Content[0].Name != "visit" || whole.StopReason != anthropic.StopReasonToolUse {
		t.Fatalf("%+v", whole)
	}
	visit(t, string(whole.Content[0].Input))
	stream := c.Messages.NewStreaming(t.Context(), request)
	var all anthropic.Message
	for stream.Next() {
		if err := all.Accumulate(stream.Current()); err != nil {
			t.Fatalf("the client does not take %s: %v", stream.Current().RawJSON(), err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if len(all.Content) != 1 || string(all.Content[0].Input) != string(whole.Content[0].Input) {
		t.Errorf("streamed %+v, whole %+v", all.Content, whole.Content)
	}
}
