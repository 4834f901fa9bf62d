package front_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
)

const think, thought token.ID = 300, 301

// thinker writes a model that would think forever: behind A it opens its thoughts, and of these it writes x alone. Behind
// the end of its thoughts it answers B.
func thinker(t *testing.T) string {
	return thinkerOf(t, append([]token.ID{thought, 'B', eos, 'A', think}, ids("xx")...))
}

// thinkerOf writes a model that answers by rote, in a vocabulary with markers of thinking.
func thinkerOf(t *testing.T, chain []token.ID) string {
	t.Helper()
	path := script(t, chain, nil)
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

// TestThinkingMessage puts a message before the end that a budget forces. It counts as thoughts.
func TestThinkingMessage(t *testing.T) {
	m := open(t, thinker(t), grove.Options{Eager: true})
	for _, budget := range []int{0, 3} {
		for _, method := range []string{grove.MethodOff, grove.MethodAuto} {
			r := grove.Request{PromptIDs: ids("A"), MaxTokens: 40, Method: method, Thinking: &budget, Thoughts: grove.Thoughts{Message: "So:"}}
			got, stats := generate(t, m, r)
			text := ""
			for _, tok := range got.Tokens {
				text += tok.Text
			}
			if text != "xxx"[:budget]+"So:B" || stats.Reasoning != budget+3 || !stats.ThoughtsForced {
				t.Errorf("budget %d, method %s: %q, %+v", budget, method, text, stats)
			}
		}
	}
}

// TestThinkingExtension lets a model that ends its thoughts after one token, and after one behind Wait, think longer.
func TestThinkingExtension(t *testing.T) {
	m := open(t, thinkerOf(t, []token.ID{'A', think, 'x', thought, 'B', eos, 't', 'y', thought}), grove.Options{Eager: true})
	budget := 9
	for _, tt := range []struct {
		name       string
		thoughts   grove.Thoughts
		budget     *int
		want       string
		extensions int
	}{
		{"none", grove.Thoughts{}, nil, "xB", 0},
		{"two tokens", grove.Thoughts{Least: 2}, nil, "xWaityB", 1},
		{"ten tokens", grove.Thoughts{Least: 10}, nil, "xWaityWaityB", 2},
		{"once", grove.Thoughts{Least: 10, Extensions: 1}, nil, "xWaityB", 1},
		{"another text", grove.Thoughts{Least: 2, Wait: "But:t"}, nil, "xBut:tyB", 1},
		{"a budget that a second extension exceeds", grove.Thoughts{Least: 9}, &budget, "xWaityB", 1},
	} {
		var plain []grove.Token
		for _, method := range []string{grove.MethodOff, grove.MethodAuto, "sam"} {
			got, stats := generate(t, m, grove.Request{PromptIDs: ids("A"), MaxTokens: 60, Method: method, Thinking: tt.budget, Thoughts: tt.thoughts})
			text := ""
			for _, tok := range got.Tokens {
				text += tok.Text
			}
			if method == grove.MethodOff {
				plain = got.Tokens
			}
			if text != tt.want || stats.Extensions != tt.extensions || stats.Reasoning != len(tt.want)-1 || stats.ThoughtsForced {
				t.Errorf("%s, method %s: %q, %d extensions, %d tokens of thoughts; want %q, %d", tt.name, method, text, stats.Extensions, stats.Reasoning, tt.want, tt.extensions)
			}
			if d := cmp.Diff(plain, got.Tokens, sameBits); d != "" {
				t.Errorf("%s, method %s (-plain +got):\n%s", tt.name, method, d)
			}
		}
	}
}

// TestThinkingDrafted compares answers with extensions of a model that draws at random with those of plain decoding, bit for bit: markers are two usual tokens.
func TestThinkingDrafted(t *testing.T) {
	m := open(t, thinkerOf(t, append([]token.ID{'A', think}, ids("xyxyzxyxyzxyx</")...)), grove.Options{Eager: true})
	extensions := 0
	for seed := range uint64(6) {
		r := grove.Request{PromptIDs: ids("A", think), MaxTokens: 60, Seed: &seed, Sampling: grove.Sampling{Temperature: 0.4}, Thoughts: grove.Thoughts{Least: 50, Extensions: 3}, Penalties: grove.Penalties{Bias: []grove.Bias{{ID: thought, Add: 0.3}}}}
		r.Method = grove.MethodOff
		plain, want := generate(t, m, r)
		extensions += want.Extensions
		for _, method := range []string{grove.MethodAuto, "lookup", "sam", "recycle"} {
			r.Method = method
			got, stats := generate(t, m, r)
			if d := cmp.Diff(plain, got, sameBits); d != "" || stats.Extensions != want.Extensions {
				t.Errorf("seed %d, method %s, %d extensions, want %d (-plain +got):\n%s", seed, method, stats.Extensions, want.Extensions, d)
			}
		}
	}
	if extensions == 0 {
		t.Error("no answer was extended")
	}
}

// TestThoughtsRefused names what is wrong with thoughts that are extended, or that have a message.
func TestThoughtsRefused(t *testing.T) {
	m, budget := open(t, thinker(t), grove.Options{}), 5
	option := new(grove.OptionError)
	for want, r := range map[string]grove.Request{
		"no budget is given":                       {Thoughts: grove.Thoughts{Message: "x"}},
		"both must be 0 or more":                   {Thoughts: grove.Thoughts{Least: -1}},
		"needs the tokens that they have at least": {Thoughts: grove.Thoughts{Extensions: 2}},
		"it must not be less":                      {Thinking: &budget, Thoughts: grove.Thoughts{Least: 6}},
		"and a search":                             {Thoughts: grove.Thoughts{Least: 6}, Search: "best,n=2"},
		"it must have from 1 to 256":               {Thoughts: grove.Thoughts{Least: 6, Wait: strings.Repeat("x ", 300)}},
	} {
		r.PromptIDs = ids("A")
		if _, err := m.Generate(t.Context(), r); !errors.As(err, &option) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := m.NewSequence(t.Context(), grove.Request{PromptIDs: ids("A"), Thoughts: grove.Thoughts{Least: 3}}); !errors.As(err, &option) {
		t.Errorf("a sequence: %v", err)
	}
	if _, err := open(t, goldenModel, grove.Options{}).Generate(t.Context(), grove.Request{Prompt: "a", Thoughts: grove.Thoughts{Least: 3}}); !errors.As(err, &option) || !strings.Contains(err.Error(), "no markers") {
		t.Errorf("a model without markers: %v", err)
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
