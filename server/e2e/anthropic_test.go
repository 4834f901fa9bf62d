package e2e

import (
	"errors"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
)

// connectAnthropic starts a server and returns Anthropic's client of it.
func connectAnthropic(t *testing.T, key string) anthropic.Client {
	t.Helper()
	return anthropic.NewClient(anthropicoption.WithBaseURL(serve(t)), anthropicoption.WithAPIKey(key), anthropicoption.WithMaxRetries(0))
}

func question() anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: model, MaxTokens: 16, Temperature: anthropic.Float(0.8), TopP: anthropic.Float(0.9), TopK: anthropic.Int(40),
		System:        []anthropic.TextBlockParam{{Text: "Be brief.", CacheControl: anthropic.NewCacheControlEphemeralParam()}},
		Messages:      []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("func main()"))},
		StopSequences: []string{"\n\n\n"}, Metadata: anthropic.MetadataParam{UserID: anthropic.String("me")},
	}
}

// TestMessages: an answer whole, and one that the client puts together from a stream, at temperature 0.
func TestMessages(t *testing.T) {
	c := connectAnthropic(t, "key")
	request := question()
	request.Temperature = anthropic.Float(0)
	whole, err := c.Messages.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Content) != 1 || whole.Content[0].Text == "" || whole.StopReason != anthropic.StopReasonMaxTokens || whole.Usage.OutputTokens != 16 {
		t.Errorf("%+v", whole)
	}
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
	if len(all.Content) != 1 || all.Content[0].Text != whole.Content[0].Text || all.StopReason != whole.StopReason || all.Usage.OutputTokens != 16 {
		t.Errorf("streamed %+v, whole %+v", all, whole)
	}
	next := question()
	next.Messages = append(next.Messages, whole.ToParam(), anthropic.NewUserMessage(anthropic.NewTextBlock("and then?")))
	if _, err := c.Messages.New(t.Context(), next); err != nil {
		t.Errorf("the second turn: %v", err)
	}
}

// TestMessagesCount: the count of the prompt's tokens is that of the answer's usage.
func TestMessagesCount(t *testing.T) {
	c := connectAnthropic(t, "key")
	request := question()
	count, err := c.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{
		Model: model, Messages: request.Messages, System: anthropic.MessageCountTokensParamsSystemUnion{OfTextBlockArray: request.System},
	})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := c.Messages.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if u := whole.Usage; count.InputTokens != u.InputTokens+u.CacheReadInputTokens {
		t.Errorf("count_tokens gives %d, the answer %+v", count.InputTokens, u)
	}
}

// TestMessagesErrors: the client reads errors in Anthropic's form.
func TestMessagesErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		key    string
		change func(*anthropic.MessageNewParams)
		status int
		kind   anthropic.ErrorType
		wants  string
	}{
		{"key", "wrong", func(*anthropic.MessageNewParams) {}, 401, anthropic.ErrorTypeAuthenticationError, "key"},
		{"model", "key", func(q *anthropic.MessageNewParams) { q.Model = "missing" }, 404, anthropic.ErrorTypeNotFoundError, "missing"},
		{"bound", "key", func(q *anthropic.MessageNewParams) { q.MaxTokens = 0 }, 400, anthropic.ErrorTypeInvalidRequestError, "max_tokens"},
		{"context", "key", func(q *anthropic.MessageNewParams) {
			q.Messages = []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(strings.Repeat("word ", 400)))}
		}, 400, anthropic.ErrorTypeInvalidRequestError, "context"},
	} {
		c := connectAnthropic(t, tt.key)
		request := question()
		tt.change(&request)
		_, err := c.Messages.New(t.Context(), request)
		var api *anthropic.Error
		if !errors.As(err, &api) || api.StatusCode != tt.status || api.Type() != tt.kind || !strings.Contains(api.RawJSON(), tt.wants) {
			t.Errorf("%s: %v; want %d, %s with %q", tt.name, err, tt.status, tt.kind, tt.wants)
		}
	}
}
