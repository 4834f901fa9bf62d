package front_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/engine"
	"grove/internal/gopher"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
	"grove/method"
)

// reordered writes a copy of a model whose token i is the one that was order[i]; from the vocabulary's size on,
// a token that the model never says.
func reordered(t *testing.T, path string, order []int) string {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tokens, _, err := f.Strings("tokenizer.ggml.tokens")
	if err != nil {
		t.Fatal(err)
	}
	var metadata []gguf.KV
	for _, kv := range f.Metadata {
		switch name, _ := strings.CutPrefix(kv.Key, "tokenizer.ggml."); {
		case name == "tokens":
			kv.Value = gguf.ArrayOf(inOrder(tokens, order, func(i int) string { return fmt.Sprintf("never%d", i) }))
		case name == "scores":
			scores, _, err := f.Floats(kv.Key)
			if err != nil {
				t.Fatal(err)
			}
			floats := make([]float32, len(scores))
			for i, s := range scores {
				floats[i] = float32(s)
			}
			kv.Value = gguf.ArrayOf(inOrder(floats, order, func(int) float32 { return -1e9 }))
		case name == "token_type":
			types, _, err := f.Ints(kv.Key)
			if err != nil {
				t.Fatal(err)
			}
			ints := make([]int32, len(types))
			for i, n := range types {
				ints[i] = int32(n)
			}
			kv.Value = gguf.ArrayOf(inOrder(ints, order, func(int) int32 { return 1 }))
		case strings.HasSuffix(name, "_token_id"):
			id, _, err := f.Uint(kv.Key)
			if err != nil {
				t.Fatal(err)
			}
			for i, was := range order {
				if was == id {
					kv.Value = gguf.Of(uint32(i))
				}
			}
		case strings.HasSuffix(kv.Key, ".vocab_size"):
			kv.Value = gguf.Of(uint32(len(order)))
		}
		metadata = append(metadata, kv)
	}
	var tensors []tensor.View
	for _, v := range f.Tensors {
		if v.Shape[0] == len(tokens) {
			row := len(v.Data) / len(tokens)
			data := make([]byte, 0, row*len(order))
			for _, was := range order {
				if was < len(tokens) {
					data = append(data, v.Data[was*row:(was+1)*row]...)
				} else {
					data = append(data, make([]byte, row)...)
				}
			}
			v.Shape, v.Data = append([]int{len(order)}, v.Shape[1:]...), data
		}
		tensors = append(tensors, v)
	}
	out := filepath.Join(t.TempDir(), "reordered.gguf")
	if err := gguf.WriteFile(out, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	return out
}

func inOrder[T any](all []T, order []int, other func(i int) T) []T {
	out := make([]T, len(order))
	for i, was := range order {
		if out[i] = other(was); was < len(all) {
			out[i] = all[was]
		}
	}
	return out
}

func shuffled(n int) []int { return rand.New(rand.NewPCG(1, 1)).Perm(n) }

// upTo counts.
func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// sharedModel returns a model of the shared data.
func sharedModel(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("../../../../shared/models", name)
	if _, err := os.Stat(path); err != nil {
		if _, err := os.Stat("../../../../shared"); err == nil && os.Getenv("CI") != "" {
			t.Fatalf("../../../../shared is here and models/%s is not", name)
		}
		t.Skipf("needs ../shared/models/%s: no such file", name)
	}
	return path
}

func gopherFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gopher.gguf")
	if err := os.WriteFile(path, gopher.Model(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOtherVocabulary drafts by models with other vocabularies, every guess run: answers are those of plain
// decoding, and a model that is the target but for the vocabulary is nearly always right.
func TestOtherVocabulary(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	stories := func(t *testing.T) string { return sharedModel(t, "stories260K.gguf") }
	for _, c := range []struct {
		name    string
		target  func(t *testing.T) string
		draft   func(t *testing.T) string
		mapping string
		greedy  float64 // least tokens a step
		drawn   float64
	}{
		{
			"shuffled", func(*testing.T) string { return goldenModel }, func(t *testing.T) string { return reordered(t, goldenModel, shuffled(320)) },
			"shared 100 % of tokens", 5, 4,
		},
		{
			"shuffled pieces", stories, func(t *testing.T) string { return reordered(t, stories(t), shuffled(512)) },
			"shared 100 % of tokens", 5, 4,
		},
		{
			"shuffled and more", stories, func(t *testing.T) string { return reordered(t, stories(t), shuffled(700)) },
			"shared 73 % of tokens", 5, 4,
		},
		{
			"padded", stories, func(t *testing.T) string { return reordered(t, stories(t), upTo(600)) },
			"same vocabulary", 5, 4,
		},
		{
			"through text", stories, func(t *testing.T) string { return reordered(t, stories(t), shuffled(1200)) },
			"through text (shared 43 % of tokens)", 5, 1.5,
		},
		{"go for random", func(*testing.T) string { return goldenModel }, gopherFile, "through text (shared 8 % of tokens)", 1, 1},
		{"go for stories", stories, gopherFile, "through text (shared 9 % of tokens)", 1, 1},
		{"stories for go", gopherFile, stories, "through text (shared 9 % of tokens)", 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := open(t, c.target(t), grove.Options{Draft: c.draft(t), Eager: true, Parallel: 2})
			if got := m.Info().Draft; !strings.HasSuffix(got, ": "+c.mapping) {
				t.Errorf("%s, want %s", got, c.mapping)
			}
			for _, temperature := range []float32{0, 0.8} {
				seed := uint64(3)
				r := grove.Request{
					Prompt: "Once upon a time, é世", MaxTokens: 40, Seed: &seed, Method: grove.MethodOff,
					Sampling: grove.Sampling{Temperature: temperature, TopK: 40},
				}
				want, _ := generate(t, m, r)
				r.Method = "draft"
				got, stats := generate(t, m, r)
				if d := cmp.Diff(want, got, sameBits); d != "" {
					t.Errorf("temperature %v (-want +got):\n%s", temperature, d)
				}
				least := c.greedy
				if temperature > 0 {
					least = c.drawn
				}
				s := stats.Drafting
				if rate := float64(s.Tokens) / float64(s.Rounds); rate < least || s.Drafted == 0 {
					t.Errorf("temperature %v: %.2f tokens a step, want %v; %d guesses", temperature, rate, least, s.Drafted)
				}
			}
		})
	}
}

// TestOtherVocabularyDistributions: methods that compare distributions need the same vocabulary.
func TestOtherVocabularyDistributions(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	m := open(t, goldenModel, grove.Options{Draft: reordered(t, goldenModel, shuffled(320))})
	for _, name := range []string{"draft-block", "draft-rsd"} {
		_, err := m.Generate(t.Context(), grove.Request{Prompt: "x", MaxTokens: 2, Method: name})
		if !errors.Is(err, method.ErrNeeds) || !strings.Contains(err.Error(), "method "+name) || !strings.Contains(err.Error(), "shared 100 %") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoDraft: models that cannot draft are refused when the model is opened, with both names.
func TestNoDraft(t *testing.T) {
	metadata, tensors, err := synthetic.Spec{Arch: "bert", Vocabulary: true, Vocab: 300}.Parts()
	if err != nil {
		t.Fatal(err)
	}
	encoder := filepath.Join(t.TempDir(), "encoder.gguf")
	if err := gguf.WriteFile(encoder, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	_, err = grove.Open(goldenModel, threaded(grove.Options{Draft: encoder}))
	const want = "grove: random weights, seed 0 cannot draft for random weights, seed 1: "
	option := new(grove.OptionError)
	if !errors.As(err, &option) || !errors.Is(err, engine.ErrEncoder) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("an encoder: %v", err)
	}
}

// TestDraftVocab drafts with a part of the vocabulary, in every way: answers are the same, and a model that drafts
// for itself is right where the part holds what is said.
func TestDraftVocab(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	target, plain := sharedModel(t, "stories260K.gguf"), plainly[float32](t)
	for name, draft := range map[string]string{
		"same": target, "shared": reordered(t, target, shuffled(512)), "text": reordered(t, target, shuffled(1200)),
	} {
		for _, n := range []int{1, 64, 300, 5000, grove.AutoVocab} {
			if !long && name != "same" && n != 300 && n != 5000 {
				continue // numbers of tokens with another vocabulary: two show that they are mapped
			}
			m := open(t, target, grove.Options{Draft: draft, DraftVocab: n, Eager: true, Parallel: 1})
			methods := []string{"draft"}
			if name == "same" {
				methods = append(methods, "draft-block", "draft-rsd")
			}
			for _, method := range methods {
				for _, temperature := range []float32{0, 0.8} {
					if temperature > 0 && method != "draft" {
						continue // another draw of the same law
					}
					seed := uint64(3)
					r := grove.Request{
						Prompt: "Once upon a time", MaxTokens: 30, Seed: &seed, Method: grove.MethodOff, Sampling: grove.Sampling{Temperature: temperature},
					}
					want := plain(temperature, m, r)
					r.Method = method
					got, stats := generate(t, m, r)
					if d := cmp.Diff(want, got, sameBits); d != "" {
						t.Errorf("%s, %d tokens, %s, temperature %v (-want +got):\n%s", name, n, method, temperature, d)
					}
					if s := stats.Drafting; n == 5000 && temperature == 0 && s.Tokens < 3*s.Rounds {
						t.Errorf("%s, %s: %d steps for %d tokens", name, method, s.Rounds, s.Tokens)
					} else if n == 300 && s.Accepted == 0 {
						t.Errorf("%s, %s: no guess of %d was right", name, method, s.Drafted)
					}
				}
			}
		}
	}
	option := new(grove.OptionError)
	for _, n := range []int{5, grove.AutoVocab} {
		if _, err := grove.Open(target, threaded(grove.Options{DraftVocab: n})); !errors.As(err, &option) || !strings.Contains(err.Error(), "no draft model") {
			t.Errorf("%d tokens without a draft model: %v", n, err)
		}
	}
	if _, err := grove.Open(target, threaded(grove.Options{Draft: target, DraftVocab: -5})); !errors.As(err, &option) {
		t.Errorf("a negative number: %v", err)
	}
}
