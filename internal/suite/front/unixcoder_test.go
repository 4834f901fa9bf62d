package front_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/model/synthetic"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
)

// The tokens of UniXcoder's modes and gap in the test's vocabulary.
const (
	encodes token.ID = 290 + iota
	continues
	answers
	gap
	begins
	ends
)

// uniXcoder opens a random UniXcoder with a vocabulary of bytes, modes and a gap.
func uniXcoder(t *testing.T, o grove.Options) *grove.Model {
	t.Helper()
	texts := map[token.ID]string{
		encodes: "<encoder-only>", continues: "<decoder-only>", answers: "<encoder-decoder>", gap: "<mask0>", begins: "<s>", ends: "</s>",
	}
	m, _ := randomModel(t, synthetic.Spec{Arch: "unixcoder"}, o, func(kvs []gguf.KV) (out []gguf.KV) {
		for _, kv := range kvs {
			switch name, _ := strings.CutPrefix(kv.Key, "tokenizer.ggml."); name {
			case "tokens":
				tokens := slices.Clone(kv.Value.Any().([]string))
				for id, text := range texts {
					tokens[id] = text
				}
				kv.Value = gguf.ArrayOf(tokens)
			case "bos_token_id", "eos_token_id", "add_bos_token", "add_eos_token":
				continue
			}
			out = append(out, kv)
		}
		return append(out, gguf.KV{Key: "tokenizer.ggml.bos_token_id", Value: gguf.Of(uint32(begins))}, gguf.KV{Key: "tokenizer.ggml.eos_token_id", Value: gguf.Of(uint32(ends))},
			gguf.KV{Key: "tokenizer.ggml.add_bos_token", Value: gguf.Of(true)}, gguf.KV{Key: "tokenizer.ggml.add_eos_token", Value: gguf.Of(true)})
	})
	return m
}

// around returns the ids of a text between others.
func around(mode token.ID, text string, behind ...token.ID) []token.ID {
	return append(append([]token.ID{begins, mode, ends}, ids(text)...), behind...)
}

// TestUniXcoder expects the tokens of each mode before and behind a text, states of tokens that see each other, answers behind prompts that do or do not, and answers
// with drafts that are the same bit for bit.
func TestUniXcoder(t *testing.T) {
	const text = "func add(a, b int) int { return a + b }"
	m := uniXcoder(t, grove.Options{})
	if i := m.Info(); i.Encoder || i.Arch != "unixcoder" {
		t.Fatalf("opened as %+v", i)
	}
	got, err := m.Embed(t.Context(), text, grove.EmbedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.EmbedIDs(t.Context(), around(encodes, text, ends), grove.EmbedOptions{Pooling: "mean", Mask: "full"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want[0], got, sameBits); d != "" {
		t.Errorf("an embedding is not the mean of tokens that see each other:\n%s", d)
	}
	causal, err := m.Embed(t.Context(), text, grove.EmbedOptions{Mask: "causal"})
	if err != nil || cmp.Equal(causal, got, sameBits) {
		t.Errorf("the mask changes nothing, or %v", err)
	}
	suffix, seed := " = 1", uint64(4)
	for name, c := range map[string]struct {
		r    grove.Request
		want []token.ID
	}{
		"decoder only":    {grove.Request{Prompt: text}, around(continues, text)},
		"encoder-decoder": {grove.Request{Prompt: text, Prefix: true}, around(answers, text, ends)},
		"a gap":           {grove.Request{Prompt: text, Suffix: &suffix}, around(answers, text, append([]token.ID{gap}, append(ids(suffix), ends)...)...)},
		"a written gap":   {grove.Request{Prompt: "a<mask0>b", Prefix: true}, around(answers, "a", gap, 'b', ends)},
	} {
		t.Run(name, func(t *testing.T) {
			c.r.Seed, c.r.MaxTokens, c.r.Sampling, c.r.Method = &seed, 40, grove.DefaultSampling(), grove.MethodOff
			g, err := m.Generate(t.Context(), c.r)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(g.Prompt(), c.want) {
				t.Errorf("prompt %v, want %v", g.Prompt(), c.want)
			}
			plain, err := answerOf(g)
			if err != nil {
				t.Fatal(err)
			}
			other := c.r
			other.PromptIDs, other.Suffix, other.Prefix = c.want, nil, name == "decoder only"
			if causal, _ := generate(t, m, other); cmp.Equal(plain, causal, sameBits) {
				t.Error("the mask of the prompt changes nothing")
			}
			for _, o := range []grove.Options{{Eager: true}, {Chunk: 90, Threads: 2}} {
				c.r.Method = "lookup,sam,swift"
				drafted, _ := generate(t, uniXcoder(t, o), c.r)
				if d := cmp.Diff(plain, drafted, sameBits); d != "" {
					t.Errorf("with drafts (-without +with):\n%s", d)
				}
			}
		})
	}
}
