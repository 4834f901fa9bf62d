// Package synthetic makes models of random weights: large ones to measure with, and small ones for tests.
package synthetic

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Spec describes a model of random weights. The zero value of a field is a small default.
type Spec struct {
	Arch             string      // one that package arch registers; "": llama
	Type             tensor.Type // of every matrix; norms are F32
	Seed             uint64
	Layers, Width    int
	FFN, Vocab       int
	Heads            int
	KVHeads, KeySize int
	ValueSize        int // of a head's values; 0: KeySize
	Context          int
	Window           int // gemma2, gemma3, gpt-oss, mimo2, step35; olmo2, phi3, starcoder2: 0 is none; llama4: the size of chunks
	LongRope         int // phi3, phimoe: the context of the short factors of its rotation; 0: none
	Experts          int // qwen3moe, or llama as Mixtral
	ExpertsPerToken  int
	ExpertsBias      bool // nomic-bert-moe: a bias behind each mixture
	Block            int  // sdar, sdar_moe: tokens of a block
	Shift            bool // sdar, sdar_moe: a row gives the token behind its own place
	Tied             bool
	Vocabulary       bool   // a tokenizer too: the bytes, and names for the rest
	Latent           Latent // deepseek2, mistral4
	Scan             Scan   // hybrid models
}

// WithDefaults returns the specification with every zero field replaced.
func (s Spec) WithDefaults() Spec {
	or := func(v *int, other int) {
		if *v == 0 {
			*v = other
		}
	}
	if s.Arch == "" {
		s.Arch = "llama"
	}
	if s.Arch == "gemma3n" || s.Arch == "gemma4" || s.canvas() {
		or(&s.Layers, 8)
		or(&s.Window, 50)
	}
	if s.Arch == "sambay" {
		or(&s.Layers, 8)
		or(&s.Window, 50)
		or(&s.Heads, 8)
		or(&s.KVHeads, 4)
		or(&s.KeySize, 16)
	}
	or(&s.Layers, 3)
	or(&s.Width, 64)
	or(&s.FFN, 64)
	or(&s.Vocab, 48)
	or(&s.Heads, 4)
	or(&s.KVHeads, 2)
	or(&s.KeySize, 32)
	or(&s.Context, 4096)
	switch s.Arch {
	case "gemma2", "gemma3", "gpt-oss":
		or(&s.Window, 80)
	case "llama4":
		or(&s.Window, 50)
	case "mimo2", "step35":
		or(&s.Window, 40)
		or(&s.Experts, 6)
		or(&s.ExpertsPerToken, 2)
	case "gemma-embedding":
		or(&s.Window, 20)
	case "modern-bert":
		or(&s.Window, 20)
		s.KVHeads, s.KeySize = s.Heads, s.Width/s.Heads
	case "sdar", "sdar_moe":
		or(&s.Block, 4)
	case "step3":
		s.KVHeads = 1
		or(&s.Experts, 6)
		or(&s.ExpertsPerToken, 2)
	case "blockffn":
		or(&s.Experts, 10)
		or(&s.ExpertsPerToken, 2)
	case "kimi-linear", "lfm2moe", "phimoe", "qwen35moe", "qwen3next":
		or(&s.Experts, 6)
		or(&s.ExpertsPerToken, 2)
	case "bert", "unixcoder", "jina-bert-v2", "jina-bert-v3", "neo-bert", "nomic-bert", "nomic-bert-moe":
		s.KVHeads, s.KeySize = s.Heads, s.Width/s.Heads
	case "deepseek2", "mistral4":
		s.KVHeads = 1
		if s.Latent.Fused {
			s.KVHeads = s.Heads
		}
		or(&s.Latent.Rank, 32)
		or(&s.Latent.Rope, 16)
		or(&s.ValueSize, 32)
	}
	or(&s.ValueSize, s.KeySize)
	s.scanDefaults()
	if s.Arch == "qwen3moe" || s.Arch == "llada-moe" || s.Arch == "rnd1" || s.Arch == "sdar_moe" || s.Arch == "gpt-oss" || s.latent() || s.canvas() || s.Arch == "llama4" || s.Arch == "nomic-bert-moe" {
		or(&s.Experts, 6)
		or(&s.ExpertsPerToken, 2)
	}
	return s
}

// latent reports whether the architecture has latent attention with [Latent]'s settings.
func (s Spec) latent() bool { return s.Arch == "deepseek2" || s.Arch == "mistral4" }

// Parts makes the model's metadata and tensors. It returns an error where rows of a tensor are not whole blocks of
// the type, or the type cannot be written.
func (s Spec) Parts() ([]gguf.KV, []tensor.View, error) {
	s = s.WithDefaults()
	b := builder{spec: s, rng: rand.New(rand.NewPCG(s.Seed, 1))}
	tensors := b.tensors()
	own := func(kv gguf.KV) bool { // an architecture may have it by layer
		return slices.ContainsFunc(b.metadata, func(other gguf.KV) bool { return other.Key == kv.Key })
	}
	metadata := append(slices.DeleteFunc(s.metadata(), own), b.metadata...)
	if s.Vocabulary {
		metadata = append(metadata, vocabulary(s.Vocab)...)
	}
	return metadata, tensors, b.err
}

func (s Spec) metadata() []gguf.KV {
	m := []gguf.KV{
		{Key: "general.architecture", Value: gguf.Of(s.Arch)},
		{Key: "general.name", Value: gguf.Of(fmt.Sprintf("random weights, seed %d", s.Seed))},
	}
	count := func(key string, n int) {
		m = append(m, gguf.KV{Key: s.Arch + "." + key, Value: gguf.Of(uint32(n))})
	}
	count("context_length", s.Context)
	count("embedding_length", s.Width)
	count("block_count", s.Layers)
	count("attention.head_count", s.Heads)
	if s.Arch != "gemma4" && !s.canvas() { // they have one of each layer
		count("feed_forward_length", s.FFN)
		count("attention.head_count_kv", s.KVHeads)
	}
	key, value, rotated := s.KeySize, s.ValueSize, s.rotated()
	if s.Arch == "gemma4" || s.canvas() { // of layers without a window
		key, value, rotated = 2*s.KeySize, 2*s.KeySize, 2*s.KeySize
	}
	if l := s.Latent; s.latent() {
		rotated = l.Rope
		if !l.Fused {
			key, value = l.Rank+l.Rope, l.Rank
		}
	}
	count("attention.key_length", key)
	count("attention.value_length", value)
	count("rope.dimension_count", rotated)
	switch {
	case s.Arch == "llama4" && s.Window > 0:
		count("attention.chunk_size", s.Window)
	case s.Window > 0:
		count("attention.sliding_window", s.Window)
	}
	if s.Experts > 0 {
		count("expert_count", s.Experts)
		count("expert_used_count", s.ExpertsPerToken)
		count("expert_feed_forward_length", s.FFN)
	}
	return append(m, gguf.KV{Key: s.Arch + ".attention.layer_norm_rms_epsilon", Value: gguf.Of(float32(1e-5))})
}

type builder struct {
	spec Spec
	rng  *rand.Rand
	out  []tensor.View
	err  error

	metadata []gguf.KV // what an architecture has of its own
}

// set adds a hyperparameter.
func (b *builder) set(key string, value any) {
	kv := gguf.KV{Key: b.spec.Arch + "." + key}
	switch v := value.(type) {
	case uint32:
		kv.Value = gguf.Of(v)
	case float32:
		kv.Value = gguf.Of(v)
	case bool:
		kv.Value = gguf.Of(v)
	case string:
		kv.Value = gguf.Of(v)
	case []uint32:
		kv.Value = gguf.ArrayOf(v)
	case []float32:
		kv.Value = gguf.ArrayOf(v)
	case []bool:
		kv.Value = gguf.ArrayOf(v)
	}
	b.metadata = append(b.metadata, kv)
}

// layerOf names the tensors of a layer.
func layerOf(l int) func(string) string {
	return func(t string) string { return fmt.Sprintf("blk.%d.%s", l, t) }
}

// ends adds the embedding table, the final norm and the head.
func (b *builder) ends() {
	b.matrix("token_embd.weight", b.spec.Vocab, b.spec.Width)
	b.vector("output_norm.weight", b.spec.Width)
	if !b.spec.Tied {
		b.matrix("output.weight", b.spec.Vocab, b.spec.Width)
	}
}

// gated adds a gated feed-forward block whose tensors have a suffix.
func (b *builder) gated(name func(string) string, suffix string, ffn int) {
	b.matrix(name("ffn_gate"+suffix+".weight"), ffn, b.spec.Width)
	b.matrix(name("ffn_up"+suffix+".weight"), ffn, b.spec.Width)
	b.matrix(name("ffn_down"+suffix+".weight"), b.spec.Width, ffn)
}

// experts adds the stacks of a mixture.
func (b *builder) experts(name func(string) string, ffn int) {
	s := b.spec
	b.matrix(name("ffn_gate_exps.weight"), s.Experts, ffn, s.Width)
	b.matrix(name("ffn_up_exps.weight"), s.Experts, ffn, s.Width)
	b.matrix(name("ffn_down_exps.weight"), s.Experts, s.Width, ffn)
}

func (b *builder) tensors() []tensor.View {
	s := b.spec
	if family, ok := families[s.Arch]; ok {
		family(b)
		return b.out
	}
	b.decoder(decoders[s.Arch])
	return b.out
}

func (b *builder) vector(name string, n int) {
	v := make([]float32, n)
	for i := range v {
		v[i] = 1 + float32(0.1*float32(b.rng.NormFloat64()))
	}
	b.add(name, tensor.F32, v, n)
}

func (b *builder) matrix(name string, shape ...int) { b.floats(name, b.spec.Type, shape...) }

func (b *builder) floats(name string, t tensor.Type, shape ...int) {
	n := 1
	for _, d := range shape {
		n *= d
	}
	v := make([]float32, min(n, repeatFrom))
	scale := float32(1.5 / math.Sqrt(float64(shape[len(shape)-1])))
	for i := range v {
		v[i] = scale * float32(b.rng.NormFloat64())
	}
	b.add(name, t, v, shape...)
}

// repeatFrom is the number of values after which a large matrix repeats itself: random values are slow to make.
const repeatFrom = 1 << 18

func (b *builder) add(name string, t tensor.Type, v []float32, shape ...int) {
	view := tensor.View{Name: name, Type: t, Shape: shape}
	size, ok := t.RowBytes(view.Elems())
	part, _ := t.RowBytes(len(v))
	if !ok || part == 0 {
		b.fail(fmt.Errorf("synthetic: tensor %q of shape %v cannot be of type %v", name, shape, t))
		return
	}
	view.Data = make([]byte, size)
	if err := tensor.Pack(t, view.Data[:part], v); err != nil {
		b.fail(fmt.Errorf("synthetic: tensor %q: %w", name, err))
		return
	}
	for done := part; done < size; done *= 2 {
		copy(view.Data[done:], view.Data[:done])
	}
	b.out = append(b.out, view)
}

func (b *builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// vocabulary returns a byte-level tokenizer of n tokens: the bytes, then tokens that no text contains. The last two
// begin and end a text.
func vocabulary(n int) []gguf.KV {
	tokens, types := make([]string, n), make([]int32, n)
	extra := rune(256)
	for i := range tokens {
		tokens[i], types[i] = fmt.Sprintf("<%d>", i), 1
		if i < 256 {
			r := rune(i)
			if i < 33 || i > 126 && i < 161 || i == 173 { // not printable: as GPT-2 spells it
				r = extra
				extra++
			}
			tokens[i] = string(r)
		}
	}
	return []gguf.KV{
		{Key: "tokenizer.ggml.model", Value: gguf.Of("gpt2")},
		{Key: "tokenizer.ggml.pre", Value: gguf.Of("llama-bpe")},
		{Key: "tokenizer.ggml.tokens", Value: gguf.ArrayOf(tokens)},
		{Key: "tokenizer.ggml.token_type", Value: gguf.ArrayOf(types)},
		{Key: "tokenizer.ggml.merges", Value: gguf.ArrayOf([]string{"a b"})},
		{Key: "tokenizer.ggml.bos_token_id", Value: gguf.Of(uint32(n - 2))},
		{Key: "tokenizer.ggml.eos_token_id", Value: gguf.Of(uint32(n - 1))},
	}
}

// named are the specifications with a name.
var named = map[string]Spec{
	"0.5b":      {Layers: 24, Width: 1280, FFN: 3584, Heads: 20, KVHeads: 5, KeySize: 64, Vocab: 32000, Context: 32768},
	"0.5b-151k": {Layers: 24, Width: 896, FFN: 4864, Heads: 14, KVHeads: 2, KeySize: 64, Vocab: 151936, Context: 32768, Tied: true},
	"0.5b-delta": {
		Arch: "qwen35", Layers: 24, Width: 1024, FFN: 2560, Heads: 8, KVHeads: 2, KeySize: 256, Vocab: 32000, Context: 32768,
		Scan: Scan{State: 128, Rank: 16, Groups: 16, Period: 4},
	},
	"0.5b-mamba2": {
		Arch: "granitehybrid", Layers: 24, Width: 1280, FFN: 2048, Heads: 20, KVHeads: 5, KeySize: 64, Vocab: 32000, Context: 32768,
		Scan: Scan{Inner: 2560, State: 128, Rank: 40, Groups: 1},
	},
	"0.5b-sambay": {
		Arch: "sambay", Layers: 24, Width: 1280, FFN: 2560, Heads: 20, KVHeads: 10, KeySize: 64, Window: 512, Vocab: 32000, Context: 32768,
		Scan: Scan{Inner: 2560, State: 16, Rank: 80},
	},
	"1b":   {Layers: 16, Width: 2048, FFN: 8192, Heads: 32, KVHeads: 8, KeySize: 64, Vocab: 128256, Context: 32768, Tied: true},
	"7b":   {Layers: 32, Width: 4096, FFN: 11008, Heads: 32, KVHeads: 32, KeySize: 128, Vocab: 32000, Context: 32768},
	"tiny": {Layers: 4, Width: 256, FFN: 768, Heads: 8, KVHeads: 4, KeySize: 32, Vocab: 4096, Context: 4096},
}

// Named returns the specification of a name, with every matrix of type t and a tokenizer. An unknown name is an error
// that lists the others.
func Named(name string, t tensor.Type) (Spec, error) {
	s, ok := named[name]
	if !ok {
		return s, fmt.Errorf("synthetic: model %q is not known; %s are", name, strings.Join(slices.Sorted(maps.Keys(named)), ", "))
	}
	s.Type, s.Vocabulary = t, true
	return s, nil
}
