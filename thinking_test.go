package grove_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/text/token"
	"grove/weights/gguf"
)

const think, thought token.ID = 300, 301

// thinker writes a model that would think forever: behind A it opens its thoughts, and of these it writes x alone. Behind
// the end of its thoughts it answers B.
func thinker(t *testing.T) string {
	t.Helper()
	path := script(t, append([]token.ID{thought, 'B', eos, 'A', think}, ids("xx")...), nil)
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	metadata := slices.Clone(f.Metadata)
	for i, kv := range metadata {
		switch v := kv.Value.Any().(type) {
		case []string:
			if kv.Key == "tokenizer.ggml.tokens" {
				v = slices.Clone(v)
				v[think], v[thought] = "<think>", "</think>"
				metadata[i].Value = gguf.ArrayOf(v)
			}
		case []int32:
			if kv.Key == "tokenizer.ggml.token_type" {
				v = slices.Clone(v)
				v[think], v[thought] = 3, 3
				metadata[i].Value = gguf.ArrayOf(v)
			}
		}
	}
	path = filepath.Join(t.TempDir(), "thinker.gguf")
	if err := gguf.WriteFile(path, metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestThinkingBudget bounds the thoughts of a model that never ends them.
func TestThinkingBudget(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	m := open(t, thinker(t), grove.Options{Eager: true})
	for _, tt := range []struct {
		name   string
		prompt []token.ID
		budget int // -1: none
		want   string
		tokens int
	}{
		{"no bound", ids("A"), -1, strings.Repeat("x", 39), 39},
		{"three tokens", ids("A"), 3, "xxxB", 3},
		{"none", ids("A"), 0, "B", 0},
		{"the prompt opens the thoughts", ids("A", think), 2, "xxB", 2},
		{"the prompt has thought", append(ids("A", think), ids("xxx")...), 2, "xxB", 2},
	} {
		for _, method := range []string{grove.MethodOff, grove.MethodAuto} {
			r := grove.Request{PromptIDs: tt.prompt, MaxTokens: 40, Method: method}
			if tt.budget >= 0 {
				r.Thinking = &tt.budget
			}
			got, stats := generate(t, m, r)
			text := ""
			for _, tok := range got.Tokens {
				text += tok.Text
			}
			if text != tt.want || stats.Reasoning != tt.tokens {
				t.Errorf("%s, method %s: %q, %d tokens of thoughts; want %q, %d", tt.name, method, text, stats.Reasoning, tt.want, tt.tokens)
			}
		}
	}
}

// TestThinkingRefused expects budgets that cannot be kept to be refused before the first token.
func TestThinkingRefused(t *testing.T) {
	m := open(t, goldenModel, grove.Options{})
	option := new(grove.OptionError)
	for want, budget := range map[string]int{"no markers of thinking; known are <think> and </think>": 5, "the thinking budget is -2 tokens": -2} {
		if _, err := m.Generate(t.Context(), grove.Request{Prompt: "a", Thinking: &budget}); !errors.As(err, &option) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestThinkingTurns expects a conversation to answer as a text by itself does where turns have other budgets.
func TestThinkingTurns(t *testing.T) {
	template := filepath.Join(t.TempDir(), "template.jinja")
	if err := os.WriteFile(template, []byte("{{ messages[0].content }}"), 0o644); err != nil {
		t.Fatal(err)
	}
	m := open(t, thinker(t), grove.Options{ChatTemplate: template})
	c := m.NewConversation()
	defer c.Close()
	turn := []grove.Message{{Role: "user", Content: "A"}}
	for _, budget := range []int{4, 4, 1} {
		r := grove.Request{MaxTokens: 20, Thinking: &budget}
		g, err := c.Chat(t.Context(), turn, grove.ChatOptions{}, r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := answerOf(g)
		if err != nil {
			t.Fatal(err)
		}
		alone, err := m.Chat(t.Context(), turn, grove.ChatOptions{}, r)
		if err != nil {
			t.Fatal(err)
		}
		want, err := answerOf(alone)
		if d := cmp.Diff(want, got, sameBits); d != "" || err != nil || g.Stats().Reasoning != budget {
			t.Errorf("budget %d: %v (-want +got):\n%s", budget, err, d)
		}
	}
}

// TestBreakers finds the tokens that a text begins in.
func TestBreakers(t *testing.T) {
	m := open(t, goldenModel, grove.Options{})
	got, err := m.Breakers([]string{"in", "\n"})
	if err != nil {
		t.Fatal(err)
	}
	var single, longer int
	for _, b := range got {
		text, err := m.Detokenize(b)
		if err != nil || !strings.Contains(text, "in") && !strings.Contains(text, "\n") {
			t.Errorf("%v is %q, %v", b, text, err)
		}
		if len(b) == 1 {
			single++
		} else {
			longer++
		}
	}
	if !slices.ContainsFunc(got, func(b []token.ID) bool { return slices.Equal(b, []token.ID{in}) }) ||
		!slices.ContainsFunc(got, func(b []token.ID) bool { return slices.Equal(b, ids("in")) }) || single < 2 || longer < 1 {
		t.Errorf("%d tokens that contain a breaker and %d that begin one: %v", single, longer, got)
	}
	for _, texts := range [][]string{{""}, {strings.Repeat("a", 41)}, make([]string, 17)} {
		if _, err := m.Breakers(texts); err == nil {
			t.Errorf("%d breakers, the first of %d bytes, are accepted", len(texts), len(texts[0]))
		}
	}
}
