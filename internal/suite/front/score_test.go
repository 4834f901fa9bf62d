package front_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"grove"
	"grove/internal/engine"
	"grove/internal/gopher"
	"grove/score"
)

// TestScore compares the scores of continuations with the log-probabilities of prompt and continuation as one text, and with those of each
// continuation alone; and finds the text that greedy decoding writes greedy.
func TestScore(t *testing.T) {
	const prompt = "package strings\n\n// Contains reports whether substr is within s.\nfunc Contains"
	m := open(t, gopher.Name, grove.Options{})
	all := []string{"(s, substr string) bool {", "(r io.Reader) error {", "x", strings.Repeat("(a)", 40), greedy(t, m, prompt, 12)}
	got, err := m.Score(t.Context(), prompt, all, grove.ScoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range got.Continuations {
		ids, err := m.Tokenize(prompt+all[i], true, false)
		if err != nil {
			t.Fatal(err)
		}
		ids = ids[:got.PromptTokens+len(c.Tokens)]
		at, sum := 0, 0.0
		err = m.Logprobs(t.Context(), ids[:len(ids)-1], func(row grove.LogprobRow) error {
			if at++; at < got.PromptTokens {
				return nil
			}
			token := c.Tokens[at-got.PromptTokens]
			sum += float64(token.Logprob)
			if want := row.Of(ids[at]); token.ID != ids[at] || token.Logprob != want {
				t.Fatalf("continuation %d: %v, want token %d with %v", i, token, ids[at], want)
			}
			return nil
		})
		if err != nil || sum != c.Logprob {
			t.Fatalf("the sum is %v, %v, want %v", c.Logprob, err, sum)
		}
		alone, err := m.Score(t.Context(), prompt, all[i:i+1], grove.ScoreOptions{Private: true})
		if err != nil || alone.ReusedTokens != 0 || alone.Continuations[0].Logprob != c.Logprob {
			t.Fatalf("alone %v, %v; want %v", alone, err, c.Logprob)
		}
	}
	if c := got.Continuations[4]; !c.Greedy || got.Continuations[1].Greedy {
		t.Errorf("greedy decoding writes %q", c.Text)
	}
	if best := score.Best(got.Continuations[:3], score.Characters); best != 0 {
		t.Errorf("the best signature is %q", all[best])
	}
}

// greedy returns the text of n tokens that greedy decoding writes.
func greedy(t *testing.T, m *grove.Model, prompt string, n int) string {
	t.Helper()
	a, _ := generate(t, m, grove.Request{Prompt: prompt, MaxTokens: n})
	return a.text()
}

// TestScoreUnconditional subtracts the scores behind a prompt without a question, and behind none without white space.
func TestScoreUnconditional(t *testing.T) {
	m := open(t, gopher.Name, grove.Options{})
	for _, c := range []struct{ free, alone string }{{"// Answer:", " io.EOF"}, {"", "io.EOF"}} {
		got, err := m.Score(t.Context(), "// At the end, Read returns", []string{" io.EOF"}, grove.ScoreOptions{Unconditional: &c.free})
		if err != nil {
			t.Fatal(err)
		}
		want, err := m.Score(t.Context(), c.free, []string{c.alone}, grove.ScoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		one := got.Continuations[0]
		if *one.Unconditional != want.Continuations[0].Logprob || one.Score(score.Mutual) != one.Logprob-want.Continuations[0].Logprob {
			t.Errorf("behind %q: %v, want %v", c.free, *one.Unconditional, want.Continuations[0].Logprob)
		}
	}
}

// TestScoreErrors checks each error.
func TestScoreErrors(t *testing.T) {
	m := open(t, gopher.Name, grove.Options{Context: 40})
	long := strings.Repeat("word ", 60)
	for name, c := range map[string]struct {
		prompt, continuation, want string
		is                         error
	}{
		"a continuation of nothing": {"a", "", `score: continuation 0: "" has no token of its own`, nil},
		"a long prompt":             {long, "a", "tokens: the context is full of 40 tokens", engine.ErrContext},
		"a long continuation":       {"a", long, "score: continuation 0 and the prompt have ", engine.ErrContext},
	} {
		_, err := m.Score(t.Context(), c.prompt, []string{c.continuation}, grove.ScoreOptions{})
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Score(cancelled, "a", []string{"b"}, grove.ScoreOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	var option *grove.OptionError
	if _, err := open(t, gopher.DiffusionName, grove.Options{}).Score(t.Context(), "a", []string{"b"}, grove.ScoreOptions{}); !errors.As(err, &option) {
		t.Errorf("a diffusion model: %v", err)
	}
}

// TestScoreSum keeps the log-probabilities of texts finite and below 0.
func TestScoreSum(t *testing.T) {
	m := open(t, gopher.NanoName, grove.Options{})
	got, err := m.Score(t.Context(), "", []string{"func main() {}", "\x00\xff"}, grove.ScoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range got.Continuations {
		if !(c.Logprob < 0) || math.IsInf(c.Logprob, 0) {
			t.Errorf("%q has %v", c.Text, c.Logprob)
		}
	}
}
