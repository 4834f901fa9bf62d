package e2e

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"grove"
	"grove/internal/fileio"
	"grove/internal/gopher"
	"grove/internal/weights/gguf"
	"grove/server"
	"grove/server/access"
	"grove/server/batches"
)

// model is the name that the tests' model is served by.
const model = "gopher"

// TestMain keeps the tests out of the user's cache directory.
func TestMain(m *testing.M) { os.Exit(fileio.RunApart(m)) }

// file returns the model inside grove with a chat template.
func file(t *testing.T) []byte {
	t.Helper()
	f, err := gguf.Parse(gopher.Model())
	if err != nil {
		t.Fatal(err)
	}
	const template = `{% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}{% if tools %} {{ tools | tojson }}{% endif %}`
	var b bytes.Buffer
	metadata := append(f.Metadata[:len(f.Metadata):len(f.Metadata)], gguf.KV{Key: "tokenizer.chat_template", Value: gguf.Of(template)})
	if err := gguf.Write(&b, metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// connect starts a server and returns a client of it.
func connect(t *testing.T) openai.Client {
	t.Helper()
	return openai.NewClient(option.WithBaseURL(serve(t)+"/v1"), option.WithAPIKey("key"), option.WithMaxRetries(0))
}

// serve starts a server whose key is "key", and returns its URL.
func serve(t *testing.T) string {
	t.Helper()
	gate, err := access.New(access.Config{Keys: []access.Key{{Secret: "key"}}})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := batches.Open(batches.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := server.New(server.Config{Access: gate, Batches: kept})
	bytes := file(t)
	err = s.Add(server.Entry{Name: model, Open: func(context.Context, uint64) (*grove.Model, error) {
		return grove.OpenBytes(bytes, grove.Options{Parallel: 2, Queue: 16, Threads: 1, Eager: true})
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		h.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return h.URL
}

var messages = []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief."), openai.UserMessage("func main()")}

func TestModels(t *testing.T) {
	c := connect(t)
	list, err := c.Models.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	one, err := c.Models.Get(t.Context(), model)
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Data) != 1 || list.Data[0].ID != model || one.ID != model || one.Object != "model" || one.Created == 0 {
		t.Errorf("%+v, %+v", list.Data, one)
	}
}

// TestChat: an answer whole, streamed, and put together by the client's accumulator is the same.
func TestChat(t *testing.T) {
	c := connect(t)
	request := openai.ChatCompletionNewParams{
		Model: model, Messages: messages, MaxCompletionTokens: openai.Int(16), Seed: openai.Int(5), Temperature: openai.Float(0.8), TopP: openai.Float(0.9),
		N: openai.Int(2), Logprobs: openai.Bool(true), TopLogprobs: openai.Int(3), Stop: openai.ChatCompletionNewParamsStopUnion{OfStringArray: []string{"\n\n\n"}},
		LogitBias: map[string]int64{"5": 1}, PresencePenalty: openai.Float(0.1), FrequencyPenalty: openai.Float(0.1), User: openai.String("me"),
	}
	whole, err := c.Chat.Completions.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Choices) != 2 || whole.Usage.PromptTokens == 0 || whole.Usage.CompletionTokens == 0 || len(whole.Choices[0].Logprobs.Content[0].TopLogprobs) != 3 {
		t.Errorf("%+v", whole)
	}
	if whole.Choices[0].Message.Content == whole.Choices[1].Message.Content {
		t.Errorf("two answers are the same: %q", whole.Choices[0].Message.Content)
	}
	request.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
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
	for i, choice := range whole.Choices {
		got := all.Choices[i]
		if got.Message.Content != choice.Message.Content || got.FinishReason != choice.FinishReason || len(got.Logprobs.Content) != len(choice.Logprobs.Content) {
			t.Errorf("answer %d: streamed %q %s, whole %q %s", i, got.Message.Content, got.FinishReason, choice.Message.Content, choice.FinishReason)
		}
	}
	if all.Usage.TotalTokens != whole.Usage.TotalTokens {
		t.Errorf("usage: streamed %d, whole %d", all.Usage.TotalTokens, whole.Usage.TotalTokens)
	}
}

// TestPrediction: a predicted output is counted where it comes true.
func TestPrediction(t *testing.T) {
	c := connect(t)
	request := openai.ChatCompletionNewParams{Model: model, Messages: messages, MaxCompletionTokens: openai.Int(30), Temperature: openai.Float(0)}
	plain, err := c.Chat.Completions.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	request.Prediction = openai.ChatCompletionPredictionContentParam{
		Content: openai.ChatCompletionPredictionContentContentUnionParam{OfString: openai.String(plain.Choices[0].Message.Content)},
	}
	got, err := c.Chat.Completions.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if got.Choices[0].Message.Content != plain.Choices[0].Message.Content || got.Usage.CompletionTokensDetails.AcceptedPredictionTokens < 25 {
		t.Errorf("%q, want %q; %d accepted", got.Choices[0].Message.Content, plain.Choices[0].Message.Content, got.Usage.CompletionTokensDetails.AcceptedPredictionTokens)
	}
}

func TestCompletions(t *testing.T) {
	c := connect(t)
	request := openai.CompletionNewParams{
		Model: model, Prompt: openai.CompletionNewParamsPromptUnion{OfArrayOfStrings: []string{"func main() {", "package main"}},
		MaxTokens: openai.Int(8), Echo: openai.Bool(true), Logprobs: openai.Int(2), Temperature: openai.Float(0),
	}
	whole, err := c.Completions.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Choices) != 2 || !strings.HasPrefix(whole.Choices[1].Text, "package main") || len(whole.Choices[0].Logprobs.Tokens) != len(whole.Choices[0].Logprobs.TextOffset) {
		t.Errorf("%s", whole.RawJSON())
	}
	stream := c.Completions.NewStreaming(t.Context(), request)
	text := make([]string, 2)
	for stream.Next() {
		for _, choice := range stream.Current().Choices {
			text[choice.Index] += choice.Text
		}
	}
	if err := stream.Err(); err != nil || text[0] != whole.Choices[0].Text || text[1] != whole.Choices[1].Text {
		t.Errorf("streamed %q, whole %q, %v", text, whole.RawJSON(), err)
	}
}

func TestEmbeddings(t *testing.T) {
	c := connect(t)
	r, err := c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
		Model: model, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "func main"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Data) != 2 || len(r.Data[0].Embedding) == 0 || r.Data[1].Index != 1 || r.Usage.PromptTokens == 0 {
		t.Errorf("%s", r.RawJSON())
	}
}

// TestResponses: the answer whole, streamed, and of the chat route is the same.
func TestResponses(t *testing.T) {
	c := connect(t)
	request := responses.ResponseNewParams{
		Model: model, Instructions: openai.String("Be brief."), Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("func main()")},
		MaxOutputTokens: openai.Int(12), Temperature: openai.Float(0), Store: openai.Bool(false),
	}
	whole, err := c.Responses.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	chat, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: model, Messages: messages, MaxCompletionTokens: openai.Int(12), Temperature: openai.Float(0),
	})
	if err != nil {
		t.Fatal(err)
	}
	if whole.OutputText() != chat.Choices[0].Message.Content || whole.Status != "incomplete" || whole.Usage.OutputTokens != 12 {
		t.Errorf("%s, want the text %q", whole.RawJSON(), chat.Choices[0].Message.Content)
	}
	stream := c.Responses.NewStreaming(t.Context(), request)
	var text, last string
	for stream.Next() {
		e := stream.Current()
		last = e.Type
		if e.Type == "response.output_text.delta" {
			text += e.Delta
		}
	}
	if err := stream.Err(); err != nil || text != whole.OutputText() || last != "response.incomplete" {
		t.Errorf("streamed %q up to %s, whole %q, %v", text, last, whole.OutputText(), err)
	}
}

// TestTools: tools are shown to the model, and what would have to be enforced is refused.
func TestTools(t *testing.T) {
	c := connect(t)
	request := openai.ChatCompletionNewParams{
		Model: model, MaxCompletionTokens: openai.Int(4),
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.UserMessage("go"),
			{OfAssistant: &openai.ChatCompletionAssistantMessageParam{ToolCalls: []openai.ChatCompletionMessageToolCallUnionParam{{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
					ID: "123456789", Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "look", Arguments: "{}"},
				},
			}}}},
			openai.ToolMessage("look: here", "123456789"),
		},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: "look", Parameters: shared.FunctionParameters{"type": "object"},
		})},
	}
	if _, err := c.Chat.Completions.New(t.Context(), request); err != nil {
		t.Error(err)
	}
	request.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("perhaps")}
	_, err := c.Chat.Completions.New(t.Context(), request)
	expect(t, err, 400, "invalid_request_error", "tool_choice")
}

// expect fails unless an error is the one that the client makes of an answer.
func expect(t *testing.T, err error, status int, kind, field string) {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) || e.StatusCode != status || e.Type != kind || e.Param != field || e.Message == "" {
		t.Errorf("%v; want %d, %s, %q", err, status, kind, field)
	}
}

func TestErrors(t *testing.T) {
	c := connect(t)
	ctx := t.Context()
	request := openai.ChatCompletionNewParams{Model: model, Messages: messages, MaxCompletionTokens: openai.Int(4)}
	for _, tt := range []struct {
		status      int
		kind, field string
		change      func(*openai.ChatCompletionNewParams)
		options     []option.RequestOption
	}{
		{401, "invalid_request_error", "", func(*openai.ChatCompletionNewParams) {}, []option.RequestOption{option.WithAPIKey("wrong")}},
		{404, "invalid_request_error", "model", func(r *openai.ChatCompletionNewParams) { r.Model = "gpt-5" }, nil},
		{400, "invalid_request_error", "n", func(r *openai.ChatCompletionNewParams) { r.N = openai.Int(1000) }, nil},
		{400, "invalid_request_error", "temperature", func(r *openai.ChatCompletionNewParams) { r.Temperature = openai.Float(-1) }, nil},
		{400, "invalid_request_error", "messages", func(r *openai.ChatCompletionNewParams) {
			r.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage(strings.Repeat("word ", 400))}
		}, nil},
		{400, "invalid_request_error", "audio", func(*openai.ChatCompletionNewParams) {}, []option.RequestOption{option.WithJSONSet("audio", map[string]string{"voice": "alloy"})}},
		{400, "invalid_request_error", "response_format", func(r *openai.ChatCompletionNewParams) {
			r.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
				JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "none", Schema: map[string]any{"enum": []any{}}},
			}}
		}, nil},
		{400, "invalid_request_error", "temprature", func(*openai.ChatCompletionNewParams) {}, []option.RequestOption{option.WithJSONSet("temprature", 3)}},
	} {
		r := request
		tt.change(&r)
		_, err := c.Chat.Completions.New(ctx, r, tt.options...)
		expect(t, err, tt.status, tt.kind, tt.field)
	}
	request.Messages = nil
	_, err := c.Chat.Completions.New(ctx, request)
	expect(t, err, 400, "invalid_request_error", "messages")
	_, err = c.Models.Get(ctx, "other")
	expect(t, err, 404, "invalid_request_error", "model")
	_, err = c.Responses.New(ctx, responses.ResponseNewParams{
		Model: model, PreviousResponseID: param.NewOpt("resp_1"), Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("a")},
	})
	expect(t, err, 404, "invalid_request_error", "previous_response_id")
}

// TestLeaving: a stream that the client leaves ends, and the next request is answered.
func TestLeaving(t *testing.T) {
	c := connect(t)
	for range 4 {
		ctx, leave := context.WithCancel(t.Context())
		stream := c.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: model, Messages: messages})
		if !stream.Next() {
			t.Fatal(stream.Err())
		}
		leave()
		if err := stream.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: model, Messages: messages, MaxCompletionTokens: openai.Int(3)}); err != nil {
		t.Error(err)
	}
}
