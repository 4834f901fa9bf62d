package front_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"grove"
	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// TestHostileSettings gives keys of models values that no sane file has: each is refused with a message of one line, or
// the model answers, and nothing panics.
func TestHostileSettings(t *testing.T) {
	values := []gguf.Value{
		gguf.Of(uint32(0)), gguf.Of(uint32(1)), gguf.Of(uint32(3)), gguf.Of(uint32(128)), gguf.Of(uint32(4096)), gguf.Of(uint32(1 << 16)), gguf.Of(uint32(1 << 24)),
		gguf.Of(uint32(math.MaxUint32)), gguf.Of(int32(-1)), gguf.Of(int64(math.MinInt64)), gguf.Of(uint64(1 << 63)),
		gguf.Of(float32(0)), gguf.Of(float32(-1)), gguf.Of(float32(math.NaN())), gguf.Of(float32(math.Inf(1))), gguf.Of(float32(1e-38)), gguf.Of(float32(3e38)), gguf.Of(1e300),
		gguf.Of(""), gguf.Of("yarn"), gguf.Of("llama3"), gguf.Of("longrope"), gguf.Of(strings.Repeat("x", 1000)), gguf.Of(true), gguf.Of(false),
		gguf.ArrayOf([]string{}), gguf.ArrayOf([]string{"a"}), gguf.ArrayOf(make([]string, 300)), gguf.ArrayOf([]float32{}), gguf.ArrayOf([]uint32{1}),
		gguf.ArrayOf([]int32{-1, 5}), gguf.ArrayOf([]uint8{1, 2, 3, 255, 255, 255, 255}), gguf.ArrayOf([]bool{true}),
	}
	// Keys that the random models lack; a dot begins those of the architecture.
	others := strings.Fields(`.rope.freq_base_swa .rope.scaling.type .rope.scaling.factor .rope.scaling.original_context_length .rope.scaling.attn_factor
		.rope.scaling.yarn_beta_fast .rope.scaling.yarn_beta_slow .rope.scaling.low_freq_factor .rope.scaling.high_freq_factor .attention.sliding_window
		.attention.sliding_window_pattern .attn_logit_softcapping .final_logit_softcapping .pooling_type .expert_count .expert_used_count
		.expert_weights_scale .expert_gating_func .expert_group_count .expert_group_used_count .leading_dense_block_count .expert_shared_count
		.attention.q_lora_rank .attention.layer_norm_epsilon general.alignment tokenizer.ggml.pre tokenizer.ggml.scores tokenizer.ggml.merges
		tokenizer.ggml.unknown_token_id tokenizer.ggml.add_bos_token tokenizer.ggml.precompiled_charsmap tokenizer.chat_template tokenizer.chat_templates
		general.sampling.temp general.sampling.top_k general.sampling.penalty_last_n split.count split.no`)
	type parts struct {
		arch     string
		metadata []gguf.KV
		tensors  []tensor.View
		keys     []string
	}
	var models []parts
	for _, arch := range model.Names() {
		s := synthetic.Spec{Arch: arch, Vocab: 300, Vocabulary: true, Context: 128}
		if arch == "deepseek2" {
			s.Latent = synthetic.Latent{Dense: 1, Shared: 1}
		}
		metadata, tensors, err := s.Parts()
		if err != nil {
			t.Fatal(err)
		}
		p := parts{arch: arch, metadata: metadata, tensors: tensors}
		for _, kv := range metadata {
			p.keys = append(p.keys, kv.Key)
		}
		for _, k := range others {
			if k[0] == '.' {
				k = arch + k
			}
			p.keys = append(p.keys, k)
		}
		models = append(models, p)
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := rapid.SampledFrom(models).Draw(rt, "model")
		metadata := slices.Clone(p.metadata)
		for range rapid.IntRange(1, 3).Draw(rt, "changes") {
			key, v := rapid.SampledFrom(p.keys).Draw(rt, "key"), values[rapid.IntRange(0, len(values)-1).Draw(rt, "value")]
			metadata = append(slices.DeleteFunc(metadata, func(kv gguf.KV) bool { return kv.Key == key }), gguf.KV{Key: key, Value: v})
		}
		var b bytes.Buffer
		if gguf.Write(&b, metadata, p.tensors) != nil {
			return // an alignment of another kind
		}
		m, err := grove.OpenBytes(b.Bytes(), grove.Options{Threads: 1})
		if err != nil {
			if text := err.Error(); strings.Contains(text, "\n") || strings.Contains(text, "panic") || !strings.Contains(text, ": ") {
				rt.Errorf("%s: %q", p.arch, text)
			}
			return
		}
		defer m.Close()
		if p.arch == "bert" {
			_, err = m.Embed(rt.Context(), "ab", grove.EmbedOptions{})
		} else if g, e := m.Generate(rt.Context(), grove.Request{Prompt: "ab", MaxTokens: 2}); e == nil {
			_, err = g.Text()
		}
		if err != nil && strings.Contains(err.Error(), "panic") {
			rt.Errorf("%s: %v", p.arch, err)
		}
	})
}
