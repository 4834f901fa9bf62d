package front_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"grove"
	"grove/internal/engine"
	"grove/internal/model/synthetic"
	"grove/internal/oracle"
	"grove/internal/weights/gguf"
)

// randomModel opens a model of random weights whose tokenizer spells bytes, changed first.
func randomModel(t *testing.T, s synthetic.Spec, o grove.Options, change func(kv []gguf.KV) []gguf.KV) (*grove.Model, *gguf.File) {
	t.Helper()
	s.Vocabulary, s.Vocab, s.Context = true, 300, 128
	metadata, tensors, err := s.Parts()
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		metadata = change(metadata)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	m, err := grove.OpenBytes(b.Bytes(), threaded(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m, f
}

func pooling(p uint32) func([]gguf.KV) []gguf.KV {
	return func(kv []gguf.KV) []gguf.KV {
		for i := range kv {
			if strings.HasSuffix(kv[i].Key, ".pooling_type") {
				kv[i].Value = gguf.Of(p)
			}
		}
		return kv
	}
}

// TestEmbed holds embeddings to the oracle's states, pooled here.
func TestEmbed(t *testing.T) {
	const text = "Some text, longer than an attention block of sixty-four tokens: it goes on, and on."
	for p, name := range []string{"none", "mean", "cls", "last"} {
		t.Run(name, func(t *testing.T) {
			m, f := randomModel(t, synthetic.Spec{Arch: "bert"}, grove.Options{}, pooling(uint32(p)))
			o, err := oracle.New(f)
			if err != nil {
				t.Fatal(err)
			}
			ids, err := m.Tokenize(text, true, false)
			if err != nil {
				t.Fatal(err)
			}
			var plain []int
			for _, id := range ids {
				plain = append(plain, int(id))
			}
			states := o.Forward(plain)
			want := map[string][][]float64{"none": states, "cls": states[:1], "last": states[len(states)-1:]}[name]
			if name == "mean" {
				mean := make([]float64, len(states[0]))
				for _, row := range states {
					for i, v := range row {
						mean[i] += v / float64(len(states))
					}
				}
				want = [][]float64{mean}
			}
			got, err := m.EmbedTokens(context.Background(), text, grove.EmbedOptions{})
			if err != nil || len(got) != len(want) {
				t.Fatalf("%d rows, error %v; want %d rows", len(got), err, len(want))
			}
			for r, row := range want {
				var length float64
				for _, v := range row {
					length += v * v
				}
				for i, v := range row {
					if d := math.Abs(float64(got[r][i]) - v/math.Sqrt(length)); !(d < 1e-5) {
						t.Fatalf("row %d, value %d is %v, want %v", r, i, got[r][i], v/math.Sqrt(length))
					}
				}
			}
		})
	}
}

// TestEmbedGenerator expects the last token's state unless told otherwise, in chunks of any size.
func TestEmbedGenerator(t *testing.T) {
	const text = "func main() { println(1) }"
	var first []float32
	for _, chunk := range []int{0, 7} {
		m, _ := randomModel(t, synthetic.Spec{}, grove.Options{Chunk: chunk}, nil)
		got, err := m.Embed(context.Background(), text, grove.EmbedOptions{Raw: true})
		if err != nil {
			t.Fatal(err)
		}
		all, err := m.EmbedTokens(context.Background(), text, grove.EmbedOptions{Pooling: "none", Raw: true})
		if err != nil || len(all) != 1+len(text) {
			t.Fatalf("%d rows for %d bytes, error %v", len(all), len(text), err)
		}
		if first == nil {
			first = got
		}
		for i := range got {
			if got[i] != first[i] || got[i] != all[len(all)-1][i] {
				t.Fatalf("chunk %d: value %d is %v; want %v, and the last row's %v", chunk, i, got[i], first[i], all[len(all)-1][i])
			}
		}
	}
}

func TestEmbedErrors(t *testing.T) {
	ctx := context.Background()
	bert, _ := randomModel(t, synthetic.Spec{Arch: "bert"}, grove.Options{}, nil)
	rank, _ := randomModel(t, synthetic.Spec{Arch: "neo-bert"}, grove.Options{}, pooling(4))
	var option *grove.OptionError
	if _, err := bert.Embed(ctx, "x", grove.EmbedOptions{Pooling: "none"}); !errors.As(err, &option) {
		t.Errorf("one vector with a pooling of none: %v", err)
	}
	if _, err := bert.Embed(ctx, "x", grove.EmbedOptions{Pooling: "most"}); !errors.As(err, &option) || !strings.Contains(err.Error(), `"most"`) {
		t.Errorf("an unknown pooling: %v", err)
	}
	if _, err := rank.Embed(ctx, "x", grove.EmbedOptions{}); !errors.As(err, &option) {
		t.Errorf("a reranker: %v", err)
	}
	if _, err := rank.Embed(ctx, "x", grove.EmbedOptions{Pooling: "mean"}); err != nil {
		t.Errorf("a reranker's mean: %v", err)
	}
	if _, err := bert.Embed(ctx, strings.Repeat("x", 500), grove.EmbedOptions{}); !errors.Is(err, engine.ErrContext) {
		t.Errorf("a long text: %v", err)
	}
	if _, err := bert.Generate(ctx, grove.Request{Prompt: "x"}); !errors.Is(err, engine.ErrEncoder) || !errors.As(err, &option) {
		t.Errorf("generating with an encoder: %v", err)
	}
	if err := bert.Logits(ctx, nil, nil); !errors.Is(err, engine.ErrEncoder) {
		t.Errorf("logits of an encoder: %v", err)
	}
	if _, _, err := bert.Tune(ctx); !errors.Is(err, engine.ErrEncoder) {
		t.Errorf("tuning an encoder: %v", err)
	}
}
