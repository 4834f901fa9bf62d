package front_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/internal/gopher"
	"grove/internal/text/chat"
	"grove/internal/text/token"
)

// TestLongPrompts: the tokens of a prompt are counted up to some times the context; a prediction counts as far as the context goes.
func TestLongPrompts(t *testing.T) {
	m, err := grove.OpenBytes(gopher.Model(), threaded(grove.Options{Context: 100}))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, tt := range []struct {
		name string
		r    grove.Request
		more bool
	}{
		{"some", grove.Request{Prompt: strings.Repeat("word ", 2000)}, false},
		{"many", grove.Request{Prompt: strings.Repeat("word ", 1<<19)}, true},
		{"many in one word", grove.Request{Prompt: strings.Repeat("x", 1<<19)}, true},
	} {
		var long *grove.PromptError
		_, err := m.Generate(t.Context(), tt.r)
		if !errors.As(err, &long) || long.More != tt.more || tt.more && (long.Tokens > 1<<18 || !strings.Contains(err.Error(), "or more")) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if ids, err := m.Tokenize(tt.r.Prompt, true, false); !tt.more && (err != nil || len(ids) != long.Tokens) {
			t.Errorf("%s: %d tokens counted as %d, %v", tt.name, len(ids), long.Tokens, err)
		}
	}
	g, err := m.Generate(t.Context(), grove.Request{Prompt: "a", Prediction: strings.Repeat("word ", 1<<19)})
	if err != nil || len(g.Prediction()) != 100 {
		t.Fatal(err)
	}
	if _, err := m.Chat(t.Context(), []grove.Message{{Role: "user", Content: strings.Repeat("word ", 1<<19)}}, grove.ChatOptions{Template: plainTemplate(t, m)}, grove.Request{}); err == nil || !strings.Contains(err.Error(), "or more") {
		t.Errorf("a long message: %v", err)
	}
}

func plainTemplate(t *testing.T, m *grove.Model) *chat.Template {
	t.Helper()
	tmpl, err := m.Templates().New("plain", `{% for m in messages %}{% for i in range(300) %}{% endfor %}{{ m.content }}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// TestTokenizeParts: the parts are the tokens of the text; io.EOF ends the work without an error, and a context that has ended does at once.
func TestTokenizeParts(t *testing.T) {
	m, err := grove.OpenBytes(gopher.Model(), threaded(grove.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	text := strings.Repeat("func main() {\n", 1<<12)
	want, err := m.Tokenize(text, true, false)
	if err != nil {
		t.Fatal(err)
	}
	var got []token.ID
	err = m.TokenizeParts(t.Context(), text, true, false, func(ids []token.ID) error {
		got = append(got, ids...)
		return nil
	})
	if err != nil || !slices.Equal(want, got) {
		t.Errorf("%d tokens in parts, %d at once, %v", len(got), len(want), err)
	}
	if err := m.TokenizeParts(t.Context(), text, true, false, func([]token.ID) error { return io.EOF }); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hello := []grove.Message{{Role: "user", Content: text}}
	_, generating := m.Generate(ctx, grove.Request{Prompt: text})
	_, predicting := m.Generate(ctx, grove.Request{Prompt: "a", Prediction: text})
	_, chatting := m.Chat(ctx, hello, grove.ChatOptions{Template: plainTemplate(t, m)}, grove.Request{})
	for i, err := range []error{generating, predicting, chatting, m.TokenizeParts(ctx, text, true, false, func([]token.ID) error { return nil })} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%d: %v", i, err)
		}
	}
	stop := errors.New("stop")
	for n := range 2 { // while the template runs, and while its text is read
		_, err := m.ApplyTemplate(hello, grove.ChatOptions{Template: plainTemplate(t, m), Options: chat.Options{Check: func(tokens int) error {
			if min(tokens, 1) == n {
				return stop
			}
			return nil
		}}})
		if !errors.Is(err, stop) {
			t.Errorf("with %d tokens: %v", n, err)
		}
	}
}
