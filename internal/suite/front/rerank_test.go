package front_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/internal/model/synthetic"
	"grove/internal/oracle"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// floats returns the values of a tensor in float64.
func floats(t *testing.T, f *gguf.File, name string) []float64 {
	t.Helper()
	v, ok := f.Tensor(name)
	if !ok {
		t.Fatal("no tensor " + name)
	}
	x := make([]float32, v.Elems())
	if err := tensor.Unpack(v.Type, x, v.Data); err != nil {
		t.Fatal(err)
	}
	out := make([]float64, len(x))
	for i := range x {
		out[i] = float64(x[i])
	}
	return out
}

// layered returns the product with a matrix, and its bias where the file has one.
func layered(t *testing.T, f *gguf.File, name string, x []float64) []float64 {
	w := floats(t, f, name+".weight")
	out := make([]float64, len(w)/len(x))
	for o := range out {
		for i, v := range x {
			out[o] += w[o*len(x)+i] * v
		}
		if _, ok := f.Tensor(name + ".bias"); ok {
			out[o] += floats(t, f, name+".bias")[o]
		}
	}
	return out
}

// TestRerank holds the scores of rerankers to the oracle's states and heads that are computed here, and expects each score to be that of its document alone.
func TestRerank(t *testing.T) {
	const query = "what is a grove?"
	documents := []string{"a small wood", "", "Go is a language, <300> a small one: it has functions, and more of them", "what is a grove?"}
	apply := func(f func(float64) float64, x []float64) []float64 {
		for i := range x {
			x[i] = f(x[i])
		}
		return x
	}
	for arch, score := range map[string]func(f *gguf.File, states [][]float64) float64{
		"neo-bert": func(f *gguf.File, states [][]float64) float64 {
			return layered(t, f, "cls.output", apply(math.Tanh, layered(t, f, "cls", states[0])))[0]
		},
		"jina-bert-v2": func(f *gguf.File, states [][]float64) float64 { return math.Tanh(layered(t, f, "cls", states[0])[0]) },
		"modern-bert": func(f *gguf.File, states [][]float64) float64 {
			mean := make([]float64, len(states[0]))
			for _, row := range states {
				for i, v := range row {
					mean[i] += v / float64(len(states))
				}
			}
			h := apply(func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }, layered(t, f, "cls", mean))
			var m, s float64
			for _, v := range h {
				m += v / float64(len(h))
			}
			for _, v := range h {
				s += (v - m) * (v - m) / float64(len(h))
			}
			w := floats(t, f, "cls.norm.weight")
			for i := range h {
				h[i] = (h[i] - m) / math.Sqrt(s+1e-5) * w[i]
			}
			return layered(t, f, "cls.output", h)[0]
		},
	} {
		t.Run(arch, func(t *testing.T) {
			m, f := randomModel(t, synthetic.Spec{Arch: arch}, grove.Options{}, nil)
			o, err := oracle.New(f)
			if err != nil {
				t.Fatal(err)
			}
			ranked, err := m.Rerank(context.Background(), query, documents)
			if err != nil || len(ranked) != len(documents) {
				t.Fatalf("%d scores, %v", len(ranked), err)
			}
			if !slices.IsSortedFunc(ranked, func(a, b grove.Ranked) int { return int(math.Copysign(1, float64(b.Score-a.Score))) }) {
				t.Errorf("not in the order of scores: %v", ranked)
			}
			for _, r := range ranked {
				ids, err := m.PairIDs(context.Background(), query, documents[r.Index])
				if err != nil || len(ids) != r.Tokens || len(ids) != 1+len(query)+len(documents[r.Index]) {
					t.Fatalf("%d tokens, %v; want %d", len(ids), err, r.Tokens)
				}
				var plain []int
				for _, id := range ids {
					plain = append(plain, int(id))
				}
				if want := score(f, o.Forward(plain)); !(math.Abs(float64(r.Score)-want) < 2e-5*(1+math.Abs(want))) {
					t.Errorf("document %d has %v, want %v", r.Index, r.Score, want)
				}
				alone, err := m.Rerank(context.Background(), query, documents[r.Index:r.Index+1])
				if err != nil || alone[0].Score != r.Score {
					t.Errorf("document %d alone has %v, %v; among others %v", r.Index, alone, err, r.Score)
				}
			}
		})
	}
}

// decider makes a Qwen 3 that ranks by two rows of its table, as its rerankers do.
func decider(t *testing.T, form string) (*grove.Model, *gguf.File) {
	t.Helper()
	metadata, tensors, err := synthetic.Spec{Arch: "qwen3", Vocab: 300, Vocabulary: true, Context: 256}.Parts()
	if err != nil {
		t.Fatal(err)
	}
	for i, kv := range metadata {
		if kv.Key == "tokenizer.ggml.token_type" {
			types := kv.Value.Any().([]int32)
			types[298], types[299] = 3, 3
			metadata[i].Value = gguf.ArrayOf(types)
		}
	}
	metadata = append(metadata, gguf.KV{Key: "qwen3.pooling_type", Value: gguf.Of(uint32(4))},
		gguf.KV{Key: "qwen3.classifier.output_labels", Value: gguf.ArrayOf([]string{"yes", "no"})})
	if form != "" {
		metadata = append(metadata, gguf.KV{Key: "tokenizer.chat_template.rerank", Value: gguf.Of(form)})
	}
	table := tensors[slices.IndexFunc(tensors, func(v tensor.View) bool { return v.Name == "token_embd.weight" })]
	row := len(table.Data) / table.Shape[0]
	tensors = append(tensors, tensor.View{Name: "cls.output.weight", Type: table.Type, Shape: []int{2, table.Shape[1]}, Data: table.Data[7*row : 9*row]})
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	m, err := grove.OpenBytes(b.Bytes(), threaded(grove.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m, f
}

// TestRerankDecoder: a decoder scores by the probability of yes against no behind the text that its file has for pairs.
func TestRerankDecoder(t *testing.T) {
	const form = "<298>Q: {query} D: {document}<299>"
	m, f := decider(t, form)
	document := "a wood <299> {query}"
	ids, err := m.PairIDs(context.Background(), "grove?", document)
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + len("Q: grove? D: ") + len(document) + 1; len(ids) != want || ids[0] != 298 || ids[want-1] != 299 || slices.Contains(ids[1:want-1], 299) {
		t.Errorf("%d tokens, want %d: %v", len(ids), want, ids)
	}
	ranked, err := m.Rerank(context.Background(), "grove?", []string{document})
	if err != nil {
		t.Fatal(err)
	}
	states, err := m.EmbedIDs(context.Background(), ids, grove.EmbedOptions{Pooling: "last", Raw: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	var last []float64
	for _, v := range states[0] {
		last = append(last, float64(v))
	}
	yesNo := layered(t, f, "cls.output", last)
	if want := 1 / (1 + math.Exp(yesNo[1]-yesNo[0])); !(math.Abs(float64(ranked[0].Score)-want) < 1e-6) {
		t.Errorf("the score is %v, want %v", ranked[0].Score, want)
	}
	if _, err := m.Generate(context.Background(), grove.Request{Prompt: "x"}); !errors.Is(err, grove.ErrEncoder) || !strings.Contains(err.Error(), "qwen3") {
		t.Errorf("a reranker that generates: %v", err)
	}
}

func TestRerankErrors(t *testing.T) {
	ctx, option := context.Background(), new(grove.OptionError)
	llama, _ := randomModel(t, synthetic.Spec{}, grove.Options{}, nil)
	if _, err := llama.Rerank(ctx, "q", []string{"d"}); !errors.As(err, &option) || !strings.Contains(err.Error(), "llama has no head to rank texts with") {
		t.Errorf("a decoder: %v", err)
	}
	bare, _ := decider(t, "")
	if _, err := bare.Rerank(ctx, "q", []string{"d"}); !errors.As(err, &option) || !strings.Contains(err.Error(), "tokenizer.chat_template.rerank") {
		t.Errorf("a reranker without a text for pairs: %v", err)
	}
	half, _ := decider(t, "{query}")
	if _, err := half.Rerank(ctx, "q", []string{"d"}); err == nil || !strings.Contains(err.Error(), "has no {document}") {
		t.Errorf("a text without a place for documents: %v", err)
	}
	m, _ := randomModel(t, synthetic.Spec{Arch: "neo-bert"}, grove.Options{}, nil)
	if _, err := m.Rerank(ctx, "q", []string{strings.Repeat("x", 200)}); !errors.Is(err, grove.ErrContext) {
		t.Errorf("a long document: %v", err)
	}
	if _, err := m.Rerank(ctx, "q", []string{strings.Repeat("x", 1<<20)}); !errors.Is(err, grove.ErrContext) || !strings.Contains(fmt.Sprint(err), "or more") {
		t.Errorf("a document that is not counted to its end: %v", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := m.Rerank(ctx, "q", []string{"x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
