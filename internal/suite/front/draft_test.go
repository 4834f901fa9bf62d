package front_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
)

// changed writes a copy of a model with other values of some keys.
func changed(t *testing.T, path string, values map[string]any) string {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	metadata := append([]gguf.KV(nil), f.Metadata...)
	for key, v := range values {
		value := gguf.Of("")
		switch v := v.(type) {
		case string:
			value = gguf.Of(v)
		case uint32:
			value = gguf.Of(v)
		}
		found := false
		for i := range metadata {
			if metadata[i].Key == key {
				metadata[i].Value, found = value, true
			}
		}
		if !found {
			metadata = append(metadata, gguf.KV{Key: key, Value: value})
		}
	}
	out := filepath.Join(t.TempDir(), "changed.gguf")
	if err := gguf.WriteFile(out, metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDraftShortContext: a draft model whose context is shorter than the text drafts as far as it goes, and the text goes on without its
// drafts and without an error, by every method that has one.
func TestDraftShortContext(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	target := sharedModel(t, "stories260K.gguf")
	short := changed(t, target, map[string]any{"llama.context_length": uint32(48)})
	type key struct {
		prompt      string
		temperature float32
	}
	plain := plainly[key](t)
	m := open(t, target, grove.Options{Draft: short, Middle: short, Eager: true, Parallel: 1, Forget: true})
	for _, c := range []struct {
		method       string
		temperatures []float32
	}{
		{"draft", []float32{0, 0.8}}, {"draft-chain", []float32{0, 0.8}}, {"draft-fixed", []float32{0}}, {"draft-block", []float32{0}}, {"draft-rsd", []float32{0}},
		{"draft-dyspec", []float32{0}}, {"kseq", []float32{0}}, {"pearl", []float32{0, 0.8}}, {"mirror", []float32{0, 0.8}}, {"levels", []float32{0, 0.8}},
	} {
		for _, prompt := range []string{"Once upon a time", strings.Repeat("One day, a girl went to the park. ", 6)} {
			for _, temperature := range c.temperatures {
				seed := uint64(3)
				r := grove.Request{Prompt: prompt, MaxTokens: 80, Seed: &seed, Method: grove.MethodOff, Sampling: grove.Sampling{Temperature: temperature}}
				want := plain(key{prompt, temperature}, m, r)
				r.Method = c.method
				got, stats := generate(t, m, r)
				if d := cmp.Diff(want, got, sameBits); d != "" {
					t.Errorf("%s, temperature %v (-want +got):\n%s", c.method, temperature, d)
				}
				fits := len(prompt) < 20
				if s := stats.Drafting; fits && s.Accepted == 0 || !fits && s.Drafted > 0 || s.Rounds < 80-48 {
					t.Errorf("%s, temperature %v: %d of %d drafts accepted in %d rounds behind %q", c.method, temperature, s.Accepted, s.Drafted, s.Rounds, prompt)
				}
			}
		}
	}
}

// TestDraftTemplate: a draft model's chat template is not used, whatever it is: answers in conversations are those of plain decoding.
func TestDraftTemplate(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	target := sharedModel(t, "stories260K.gguf")
	for name, template := range map[string]string{
		"another": "{% for m in messages %}<<{{ m['content'] }}>>{% endfor %}", "broken": "{% for m in", "hostile": "{{ raise_exception('no') }}",
	} {
		draft := changed(t, target, map[string]any{"tokenizer.chat_template": template})
		m, err := grove.Open(target, threaded(grove.Options{Draft: draft, Eager: true, Parallel: 1, Forget: true, ChatTemplate: "chatml"}))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		t.Cleanup(func() { m.Close() })
		chat := func(method string) answer {
			r := grove.Request{MaxTokens: 24, Method: method}
			g, err := m.Chat(t.Context(), []grove.Message{{Role: "user", Content: "A tale of a dog"}}, grove.ChatOptions{}, r)
			if err != nil {
				t.Fatal(err)
			}
			a, err := answerOf(g)
			if err != nil {
				t.Fatal(err)
			}
			if s := g.Stats().Drafting; method != grove.MethodOff && s.Accepted < 5 {
				t.Errorf("%s: %d of %d drafts accepted: the draft model reads another text", name, s.Accepted, s.Drafted)
			}
			return a
		}
		if d := cmp.Diff(chat(grove.MethodOff), chat("draft"), sameBits); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestDraftSmallerVocabulary: a text with tokens that the draft model's vocabulary lacks, and a draft model that ends texts by another
// token, change no answer.
func TestDraftSmallerVocabulary(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	stories := sharedModel(t, "stories260K.gguf")
	target := reordered(t, stories, upTo(600))
	for name, draft := range map[string]string{"smaller": stories, "another end": changed(t, stories, map[string]any{"tokenizer.ggml.eos_token_id": uint32(300)})} {
		m := open(t, target, grove.Options{Draft: draft, Middle: draft, Eager: true, Parallel: 1, Forget: true})
		for _, method := range []string{"draft", "draft-block", "draft-rsd", "kseq", "pearl", "mirror", "levels"} {
			r := grove.Request{PromptIDs: []token.ID{1, 403, 550, 407, 599, 261}, MaxTokens: 40, Method: grove.MethodOff}
			want, _ := generate(t, m, r)
			r.Method = method
			got, stats := generate(t, m, r)
			if d := cmp.Diff(want, got, sameBits); d != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, method, d)
			}
			// The last three follow the text token by token: behind a token that they do not know they draft nothing.
			if s := stats.Drafting; slices.Contains([]string{"pearl", "mirror", "levels"}, method) != (s.Drafted == 0) || s.Drafted > 0 && s.Accepted == 0 {
				t.Errorf("%s, %s: %d of %d drafts accepted", name, method, s.Accepted, s.Drafted)
			}
		}
	}
}
