package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"grove"
	"grove/internal/fileio"
	"grove/internal/gopher"
	"grove/server"
	"grove/server/access"
)

// model is the name that the tests' model is served by.
const model = "gopher"

// TestMain keeps the tests out of the user's cache directory.
func TestMain(m *testing.M) { os.Exit(fileio.RunApart(m)) }

// withKey adds the key to requests: ollama's client sends none.
type withKey struct{}

// RoundTrip implements [http.RoundTripper].
func (withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer key")
	return http.DefaultTransport.RoundTrip(r)
}

// connectOllama starts a server and returns ollama's client of it.
func connectOllama(t *testing.T) *api.Client {
	t.Helper()
	gate, err := access.New(access.Config{Keys: []access.Key{{Secret: "key"}}})
	if err != nil {
		t.Fatal(err)
	}
	s := server.New(server.Config{Access: gate})
	err = s.Add(server.Entry{Name: model, Open: func(context.Context, uint64) (*grove.Model, error) {
		return grove.OpenBytes(gopher.Model(), grove.Options{ChatTemplate: "chatml", Parallel: 2, Threads: 1})
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
	base, err := url.Parse(h.URL)
	if err != nil {
		t.Fatal(err)
	}
	return api.NewClient(base, &http.Client{Transport: withKey{}})
}

// TestOllamaChat: an answer in lines is the one that comes whole.
func TestOllamaChat(t *testing.T) {
	c := connectOllama(t)
	whole := false
	request := &api.ChatRequest{
		Model: model, Messages: []api.Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "func main()"}},
		Options: map[string]any{"temperature": 0.7, "seed": 5, "num_predict": 16, "top_p": 0.9, "num_ctx": 256, "stop": []string{"\n\n\n"}},
	}
	var text string
	var last api.ChatResponse
	if err := c.Chat(t.Context(), request, func(r api.ChatResponse) error {
		text, last = text+r.Message.Content, r
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !last.Done || last.DoneReason != "length" || last.EvalCount != 16 || last.PromptEvalCount == 0 || last.TotalDuration <= 0 {
		t.Errorf("%+v", last)
	}
	request.Stream = &whole
	if err := c.Chat(t.Context(), request, func(r api.ChatResponse) error {
		if r.Message.Content != text {
			t.Errorf("%q in lines, %q whole", text, r.Message.Content)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestOllamaGenerate: the second text goes on from the context of the first.
func TestOllamaGenerate(t *testing.T) {
	c := connectOllama(t)
	var context []int
	for range 2 {
		var text string
		err := c.Generate(t.Context(), &api.GenerateRequest{
			Model: model, Prompt: "func main()", Context: context, Options: map[string]any{"num_predict": 8},
		}, func(r api.GenerateResponse) error {
			text, context = text+r.Response, r.Context
			return nil
		})
		if err != nil || text == "" || len(context) < 8 {
			t.Fatalf("%q, %d tokens of context: %v", text, len(context), err)
		}
	}
}

// TestOllamaModels: the lists, what a model is, its vectors.
func TestOllamaModels(t *testing.T) {
	c := connectOllama(t)
	list, err := c.List(t.Context())
	if err != nil || len(list.Models) != 1 || list.Models[0].Name != model {
		t.Errorf("%+v: %v", list, err)
	}
	running, err := c.ListRunning(t.Context())
	if err != nil || len(running.Models) != 1 || running.Models[0].Size == 0 || running.Models[0].ExpiresAt.IsZero() {
		t.Errorf("%+v: %v", running, err)
	}
	if _, err := c.Show(t.Context(), &api.ShowRequest{Model: model}); err != nil {
		t.Error(err)
	}
	if version, err := c.Version(t.Context()); err != nil || version == "" {
		t.Errorf("version %q: %v", version, err)
	}
	if err := c.Heartbeat(t.Context()); err != nil {
		t.Error(err)
	}
	vectors, err := c.Embed(t.Context(), &api.EmbedRequest{Model: model, Input: []string{"a", "b"}})
	if err != nil || len(vectors.Embeddings) != 2 || len(vectors.Embeddings[0]) == 0 {
		t.Errorf("%v: %v", vectors, err)
	}
	one, err := c.Embeddings(t.Context(), &api.EmbeddingRequest{Model: model, Prompt: "a"})
	if err != nil || len(one.Embedding) == 0 {
		t.Errorf("%v: %v", one, err)
	}
}

// TestOllamaNames: a name with a system text and parameters is made, shown, used, copied and deleted.
func TestOllamaNames(t *testing.T) {
	c := connectOllama(t)
	var steps []string
	request := &api.CreateRequest{Model: "mario", From: model, System: "You are Mario", Parameters: map[string]any{"temperature": 0, "num_predict": 3, "stop": []string{"zzz"}}}
	if err := c.Create(t.Context(), request, func(r api.ProgressResponse) error {
		steps = append(steps, r.Status)
		return nil
	}); err != nil || len(steps) == 0 || steps[len(steps)-1] != "success" {
		t.Fatalf("%v: %v", steps, err)
	}
	shown, err := c.Show(t.Context(), &api.ShowRequest{Model: "mario"})
	if err != nil || shown.System != "You are Mario" || !strings.Contains(shown.Parameters, "num_predict") {
		t.Errorf("%+v: %v", shown, err)
	}
	if err := c.Copy(t.Context(), &api.CopyRequest{Source: "mario", Destination: "luigi"}); err != nil {
		t.Fatal(err)
	}
	stream := false
	if err := c.Chat(t.Context(), &api.ChatRequest{Model: "luigi", Stream: &stream, Messages: []api.Message{{Role: "user", Content: "hi"}}}, func(r api.ChatResponse) error {
		if r.EvalCount > 3 || r.Model != "luigi" {
			t.Errorf("%+v", r)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"mario", "luigi"} {
		if err := c.Delete(t.Context(), &api.DeleteRequest{Model: name}); err != nil {
			t.Error(err)
		}
	}
	if list, err := c.List(t.Context()); err != nil || len(list.Models) != 1 {
		t.Errorf("%+v: %v", list, err)
	}
}

// TestOllamaErrors: the client reads errors, with their status.
func TestOllamaErrors(t *testing.T) {
	c := connectOllama(t)
	for _, tt := range []struct {
		request api.ChatRequest
		status  int
		wants   string
	}{
		{api.ChatRequest{Model: "missing", Messages: []api.Message{{Role: "user", Content: "a"}}}, 404, "missing"},
		{api.ChatRequest{Model: model, Messages: []api.Message{{Role: "user", Content: "a", Images: []api.ImageData{{1}}}}}, 400, "images"},
		{api.ChatRequest{Model: model, Messages: []api.Message{{Role: "user", Content: "a"}}, Format: []byte(`{"type":"none"}`)}, 400, "format: #/type"},
		{api.ChatRequest{Model: model, Messages: []api.Message{{Role: "user", Content: "a"}}, Options: map[string]any{"num_ctx": 3}}, 400, "num_ctx"},
	} {
		err := c.Chat(t.Context(), &tt.request, func(api.ChatResponse) error { return nil })
		var status api.StatusError
		if !errors.As(err, &status) || status.StatusCode != tt.status || !strings.Contains(status.ErrorMessage, tt.wants) {
			t.Errorf("%+v: %v, want %d with %q", tt.request, err, tt.status, tt.wants)
		}
	}
}

// TestFormats: the formats of ollama's client: JSON, and a schema.
func TestFormats(t *testing.T) {
	c := connectOllama(t)
	stream := false
	for _, format := range []string{`"json"`, `{"type":"object","properties":{"yes":{"type":"boolean"},"n":{"type":"integer","maximum":99,"minimum":0}},"required":["yes","n"],"additionalProperties":false}`} {
		text := ""
		err := c.Chat(t.Context(), &api.ChatRequest{
			Model: model, Stream: &stream, Format: json.RawMessage(format), Messages: []api.Message{{Role: "user", Content: "hi"}},
			Options: map[string]any{"num_predict": 120, "temperature": 0.5, "seed": 2},
		}, func(r api.ChatResponse) error {
			text += r.Message.Content
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var o struct {
			Yes *bool
			N   *int
		}
		if format == `"json"` {
			if !strings.HasPrefix(text, "{") {
				t.Errorf("%s: %q", format, text)
			}
			continue
		}
		if err := json.Unmarshal([]byte(text), &o); err != nil || o.Yes == nil || o.N == nil || *o.N < 0 || *o.N > 99 {
			t.Errorf("%s: %q: %v", format, text, err)
		}
	}
}
