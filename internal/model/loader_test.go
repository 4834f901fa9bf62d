package model_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/par"
	"grove/internal/suite/modeltest"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// parts is the content of a model's file, to be spoilt.
type parts struct {
	metadata []gguf.KV
	tensors  []tensor.View
}

// set replaces or adds a key.
func set[T gguf.Basic](key string, value T) func(*parts) { return setValue(key, gguf.Of(value)) }

func setValue(key string, value gguf.Value) func(*parts) {
	return func(p *parts) {
		for i := range p.metadata {
			if p.metadata[i].Key == key {
				p.metadata[i].Value = value
				return
			}
		}
		p.metadata = append(p.metadata, gguf.KV{Key: key, Value: value})
	}
}

func both(changes ...func(*parts)) func(*parts) {
	return func(p *parts) {
		for _, c := range changes {
			c(p)
		}
	}
}

func without(key string) func(*parts) {
	return func(p *parts) {
		p.metadata = slices.DeleteFunc(p.metadata, func(kv gguf.KV) bool { return kv.Key == key })
	}
}

func withoutTensor(name string) func(*parts) {
	return func(p *parts) {
		p.tensors = slices.DeleteFunc(p.tensors, func(v tensor.View) bool { return v.Name == name })
	}
}

// setTensor replaces a tensor by zeros of another type and shape, or adds one.
func setTensor(name string, t tensor.Type, shape ...int) func(*parts) {
	return func(p *parts) {
		withoutTensor(name)(p)
		v := tensor.View{Name: name, Type: t, Shape: shape}
		n, _ := t.RowBytes(v.Elems())
		v.Data = make([]byte, n)
		p.tensors = append(p.tensors, v)
	}
}

func open(t *testing.T, spec modeltest.Spec, change func(*parts)) (model.Model, error) {
	t.Helper()
	var p parts
	p.metadata, p.tensors = spec.Parts(t)
	change(&p)
	var b bytes.Buffer
	if err := gguf.Write(&b, p.metadata, p.tensors); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	pool := par.New(1)
	t.Cleanup(pool.Close)
	return model.Open(f, pool, model.Options{})
}

var (
	llama    = modeltest.Spec{}
	gemma3   = modeltest.Spec{Arch: "gemma3"}
	gemma2   = modeltest.Spec{Arch: "gemma2"}
	gemma3n  = modeltest.Spec{Arch: "gemma3n"}
	gemma4   = modeltest.Spec{Arch: "gemma4"}
	llama4   = modeltest.Spec{Arch: "llama4"}
	gpt2     = modeltest.Spec{Arch: "gpt2"}
	phi3     = modeltest.Spec{Arch: "phi3", LongRope: 1024}
	qwen     = modeltest.Spec{Arch: "qwen3moe"}
	gptOSS   = modeltest.Spec{Arch: "gpt-oss"}
	blockFFN = modeltest.Spec{Arch: "blockffn"}
	deepseek = modeltest.Spec{Arch: "deepseek2", Latent: synthetic.Latent{Dense: 1, Shared: 1}}
	bert     = modeltest.Spec{Arch: "bert", Context: 128}
	modern   = modeltest.Spec{Arch: "modern-bert"}
)

// TestRefusals spoils one thing of a file and expects the message that names it.
func TestRefusals(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tests := []struct {
		name   string
		spec   modeltest.Spec
		change func(*parts)
		want   string
	}{
		{"no architecture", llama, without("general.architecture"), "model: general.architecture is missing"},
		{"unknown architecture", llama, set("general.architecture", "rwkv7"),
			`model: architecture "rwkv7" is not supported; supported: ` + strings.Join(model.Names(), ", ")},
		{"architecture of another kind", llama, set("general.architecture", uint32(7)), `key "general.architecture": want a string, found uint32`},

		{"no layers", llama, set("llama.block_count", uint32(0)), "model: llama.block_count is 0; it must be 1 to 128"},
		{"too many layers", llama, set("llama.block_count", uint32(129)), "model: llama.block_count is 129; it must be 1 to 128"},
		{"layers missing", llama, without("llama.block_count"), "model: llama.block_count is missing"},
		{"layers negative", llama, set("llama.block_count", int32(-1)), `key "llama.block_count": -1 is out of range`},
		{"layers that the file lacks", llama, set("llama.block_count", uint32(4)), `model: tensor "blk.3.attn_norm.weight" is missing`},
		{"width 0", llama, set("llama.embedding_length", uint32(0)), "model: llama.embedding_length is 0; it must be 1 to 65536"},
		{"another width", llama, set("llama.embedding_length", uint32(96)),
			`model: tensor "token_embd.weight" has shape [48 64]; the hyperparameters require [48 96]`},
		{"inner width missing", llama, without("llama.feed_forward_length"), "model: llama.feed_forward_length is missing"},

		{"no heads", llama, set("llama.attention.head_count", uint32(0)), "model: llama.attention.head_count is 0; it must be 1 to 4096"},
		{"2^32-1 heads", llama, set("llama.attention.head_count", uint32(math.MaxUint32)),
			"model: llama.attention.head_count is 4294967295; it must be 1 to 4096"},
		{"no heads of keys", llama, set("llama.attention.head_count_kv", uint32(0)), "model: llama.attention.head_count_kv is 0; it must be 1 to 4096"},
		{"more heads of keys than heads", llama, set("llama.attention.head_count_kv", uint32(8)),
			"model: llama.attention.head_count_kv is 8; it must divide head_count (4)"},
		{"heads of keys that do not divide", llama, set("llama.attention.head_count_kv", uint32(3)),
			"model: llama.attention.head_count_kv is 3; it must divide head_count (4)"},
		{"head size 0", llama, set("llama.attention.key_length", uint32(0)), "model: llama.attention.key_length is 0; it must be 1 to 4096"},
		{"values of another size", llama, set("llama.attention.value_length", uint32(16)),
			`model: tensor "blk.0.attn_v.weight" has shape [64 64]; the hyperparameters require [32 64]`},
		{"heads a key for each layer", llama, setValue("llama.attention.head_count", gguf.ArrayOf([]uint32{4, 4, 4})),
			`key "llama.attention.head_count": want an integer, found [3]uint32`},

		{"chunks of no token", llama4, set("llama4.attention.chunk_size", uint32(0)), "model: llama4.attention.chunk_size is 0; it must be 1 to 16777216"},
		{"a window that is no chunk", llama4, set("llama4.attention.sliding_window", uint32(7)),
			"model: llama4.attention.sliding_window is 7; it must be 0 or the size of chunks (50)"},
		{"all layers shared", gemma4, set("gemma4.attention.shared_kv_layers", uint32(8)), "model: gemma4.attention.shared_kv_layers is 8; it must be 0 to 7"},
		{"no layer whose keys could be read", gemma4, set("gemma4.attention.shared_kv_layers", uint32(6)),
			"model: gemma4.attention.shared_kv_layers is 6; layer 3 has no layer of its kind before layer 2, whose keys it could read"},
		{"a shared layer with more heads", gemma4, setValue("gemma4.attention.head_count_kv", gguf.ArrayOf([]uint32{2, 2, 2, 1, 2, 4, 2, 1})),
			"model: layer 5 has 4 heads of 32 values, and layer 4, whose keys it reads, 2 of 32; the two must be equal"},
		{"keys and values of two sizes", gemma4, set("gemma4.attention.value_length_swa", uint32(16)),
			"model: gemma4 has heads of 64 and 32 values for keys and of 64 and 16 for values; the two must be equal"},
		{"inputs beyond measure", gemma4, set("gemma4.embedding_length_per_layer_input", uint32(4097)),
			"model: gemma4.embedding_length_per_layer_input is 4097; it must be 0 to 4096"},
		{"two streams", gemma3n, set("gemma3n.altup.num_inputs", uint32(2)), "model: gemma3n has 2 streams of which number 0 is active; only 4 and 0 are supported"},
		{"a quantile that is NaN", gemma3n, setValue("gemma3n.activation_sparsity_scale", gguf.ArrayOf([]float32{nan, 0, 0, 0, 0, 0, 0, 0})),
			"model: value 0 of gemma3n.activation_sparsity_scale is NaN; it must be at most 14"},
		{"too few quantiles", gemma3n, setValue("gemma3n.activation_sparsity_scale", gguf.ArrayOf([]float32{1})),
			"model: gemma3n.activation_sparsity_scale has 1 values; there are 8 layers"},
		{"context 0", llama, set("llama.context_length", uint32(0)), "model: llama.context_length is 0; it must be 1 to 16777216"},
		{"context 2^31", llama, set("llama.context_length", uint32(1<<31)), "model: llama.context_length is 2147483648; it must be 1 to 16777216"},
		{"context 2^63", llama, set("llama.context_length", uint64(1<<63)), `key "llama.context_length": 9223372036854775808 is out of range`},
		{"epsilon NaN", llama, set("llama.attention.layer_norm_rms_epsilon", nan), "model: llama.attention.layer_norm_rms_epsilon is NaN; it must be finite"},
		{"epsilon negative", llama, set("llama.attention.layer_norm_rms_epsilon", float32(-1)),
			"model: llama.attention.layer_norm_rms_epsilon is -1; it must be 0 to 1"},
		{"epsilon too large", llama, set("llama.attention.layer_norm_rms_epsilon", 1e300),
			"model: llama.attention.layer_norm_rms_epsilon is 1e+300; it must be 0 to 1"},

		{"rope base NaN", llama, set("llama.rope.freq_base", nan), "model: llama.rope.freq_base is NaN; it must be finite"},
		{"rope base infinite", llama, set("llama.rope.freq_base", inf), "model: llama.rope.freq_base is +Inf; it must be finite"},
		{"rope base 0", llama, set("llama.rope.freq_base", float32(0)), "model: rope base 0 is not a positive number"},
		{"rope base of another kind", llama, set("llama.rope.freq_base", uint32(10000)), `key "llama.rope.freq_base": want a float, found uint32`},
		{"rope base of windows", gemma3, set("gemma3.rope.freq_base_swa", nan), "model: gemma3.rope.freq_base_swa is NaN; it must be finite"},
		{"odd rope dimensions", llama, set("llama.rope.dimension_count", uint32(31)), "model: rope dimension count 31 is not a positive even number"},
		{"rope dimensions beyond the head", llama, set("llama.rope.dimension_count", uint32(34)),
			"model: llama.rope.dimension_count is 34; it must be 1 to 32"},
		{"unknown rope scaling", llama, set("llama.rope.scaling.type", "ntk"),
			`model: rope scaling "ntk" is not supported; linear, yarn, llama3 and longrope are`},
		{"long rope without factors", llama, set("llama.rope.scaling.type", "longrope"),
			"model: longrope scaling needs the original context length, factors and no negative attention factor, not 4096, 0 and 1"},
		{"rope scaling by 0", llama, both(set("llama.rope.scaling.type", "linear"), set("llama.rope.scaling.factor", float32(0))),
			"model: rope scaling factor 0 is not a positive number"},
		{"rope factors of another length", llama, setTensor("rope_freqs.weight", tensor.F32, 15),
			`model: tensor "rope_freqs.weight" has shape [15]; the hyperparameters require [16]`},
		{"rope factors of 0", llama, setTensor("rope_freqs.weight", tensor.F32, 16), "model: rope factor 0 is 0, not a positive number"},

		{"half of the long rope's factors", phi3, withoutTensor("rope_factors_short.weight"), `model: tensor "rope_factors_short.weight" is missing`},
		{"long rope of another type", phi3, set("phi3.rope.scaling.type", "yarn"),
			`model: phi3.rope.scaling.type is "yarn" and the file has tensor "rope_factors_long.weight"; the type must be longrope`},
		{"long rope without its first context", phi3, without("phi3.rope.scaling.original_context_length"),
			"model: phi3.rope.scaling.original_context_length is missing"},
		{"long rope's factors for whole heads", phi3, set("phi3.rope.dimension_count", uint32(32)),
			`model: tensor "rope_factors_long.weight" has shape [12]; the hyperparameters require [16]`},
		{"attention factor NaN", phi3, set("phi3.rope.scaling.attn_factor", nan), "model: phi3.rope.scaling.attn_factor is NaN; it must be finite"},

		{"fused projections for other heads", phi3, set("phi3.attention.head_count_kv", uint32(4)),
			`model: tensor "blk.0.attn_qkv.weight" has shape [256 64]; the hyperparameters require [384 64]`},
		{"fused projections of a type without a kernel", phi3, setTensor("blk.0.attn_qkv.weight", tensor.I32, 256, 64),
			`weight: blk.0.attn_qkv.weight: type I32 has no kernel; use a file of another type, such as Q8_0`},
		{"fused gate, half of it missing", phi3, setTensor("blk.1.ffn_up.weight", tensor.F32, 64, 64),
			`model: tensor "blk.1.ffn_up.weight" has shape [64 64]; the hyperparameters require [128 64]`},
		{"fused bias of another length", gpt2, setTensor("blk.0.attn_qkv.bias", tensor.F32, 255),
			`model: tensor "blk.0.attn_qkv.bias" has shape [255]; the hyperparameters require [256]`},
		{"no bias of queries", modeltest.Spec{Arch: "qwen2"}, withoutTensor("blk.2.attn_q.bias"), `model: tensor "blk.2.attn_q.bias" is missing`},
		{"no fused bias", gpt2, withoutTensor("blk.0.attn_qkv.bias"), `model: tensor "blk.0.attn_qkv.bias" is missing`},
		{"no bias of a norm", gpt2, withoutTensor("blk.0.ffn_norm.bias"), `model: tensor "blk.0.ffn_norm.bias" is missing`},
		{"no positions", gpt2, withoutTensor("position_embd.weight"), `model: tensor "position_embd.weight" is missing`},
		{"fewer positions than the context", gpt2, set("gpt2.context_length", uint32(5000)),
			`model: tensor "position_embd.weight" has shape [4096 64]; the hyperparameters require [5000 64]`},
		{"epsilon of LayerNorm", gpt2, set("gpt2.attention.layer_norm_epsilon", float32(-1)),
			"model: gpt2.attention.layer_norm_epsilon is -1; it must be 0 to 1"},
		{"no norm of queries", modeltest.Spec{Arch: "qwen3"}, withoutTensor("blk.0.attn_q_norm.weight"),
			`model: tensor "blk.0.attn_q_norm.weight" is missing`},
		{"norm of one head where all are normed", modeltest.Spec{Arch: "olmo2"}, setTensor("blk.0.attn_k_norm.weight", tensor.F32, 32),
			`model: tensor "blk.0.attn_k_norm.weight" has shape [32]; the hyperparameters require [64]`},
		{"negative soft cap", gemma2, set("gemma2.attn_logit_softcapping", float32(-1)),
			"model: gemma2.attn_logit_softcapping is -1; it must be 0 to 1e+06"},
		{"soft cap of logits infinite", gemma2, set("gemma2.final_logit_softcapping", inf), "model: gemma2.final_logit_softcapping is +Inf; it must be finite"},
		{"windows for other layers", gemma2, setValue("gemma2.attention.sliding_window_pattern", gguf.ArrayOf([]bool{true, false})),
			"model: gemma2.attention.sliding_window_pattern is [2]bool; it must be a number, or a bool or 0 or 1 for each of 3 layers"},
		{"windows by numbers", gemma2, setValue("gemma2.attention.sliding_window_pattern", gguf.ArrayOf([]uint32{1, 0, 2})),
			"model: gemma2.attention.sliding_window_pattern is [3]uint32; it must be a number, or a bool or 0 or 1 for each of 3 layers"},
		{"a reranker without a head", modeltest.Spec{Arch: "qwen3"}, set("qwen3.pooling_type", uint32(4)),
			`model: qwen3.pooling_type is 4 (rank), and the file has neither tensor "cls.weight" nor "cls.output.weight"`},

		{"more experts used than there are", qwen, set("qwen3moe.expert_used_count", uint32(7)),
			"model: qwen3moe.expert_used_count is 7; it must be at most expert_count (6)"},
		{"three experts of SparseMixer", modeltest.Spec{Arch: "phimoe"}, set("phimoe.expert_used_count", uint32(3)), "model: phimoe.expert_used_count is 3; it must be 2"},
		{"SparseMixer beyond measure", modeltest.Spec{Arch: "phimoe"}, set("phimoe.router_jitter_noise", float32(2)), "model: phimoe.router_jitter_noise is 2; it must be 0 to 1"},
		{"blocks without experts", blockFFN, set("blockffn.expert_count", uint32(0)), "model: blockffn.expert_count is 0 or missing"},
		{"blocks of no size", blockFFN, without("blockffn.expert_feed_forward_length"), "model: blockffn.expert_feed_forward_length is missing"},
		{"blocks without the norm of gates", blockFFN, withoutTensor("blk.1.ffn_gate_inp_norm.weight"), `model: tensor "blk.1.ffn_gate_inp_norm.weight" is missing`},
		{"gates of blocks", blockFFN, setTensor("blk.0.ffn_gate_inp.weight", tensor.F32, 9, 64), `model: tensor "blk.0.ffn_gate_inp.weight" has shape [9 64]; the hyperparameters require [10 64]`},
		{"no experts used", qwen, set("qwen3moe.expert_used_count", uint32(0)), "model: qwen3moe.expert_used_count is 0; it must be 1 to 4096"},
		{"experts used missing", qwen, without("qwen3moe.expert_used_count"), "model: qwen3moe.expert_used_count is missing"},
		{"a mixture without experts", qwen, without("qwen3moe.expert_count"), "model: qwen3moe.expert_count is 0 or missing"},
		{"too many experts", qwen, set("qwen3moe.expert_count", uint32(5000)), "model: qwen3moe.expert_count is 5000; it must be 0 to 4096"},
		{"another number of experts", qwen, set("qwen3moe.expert_count", uint32(8)),
			`model: tensor "blk.0.ffn_gate_inp.weight" has shape [6 64]; the hyperparameters require [8 64]`},
		{"experts' width missing", qwen, without("qwen3moe.expert_feed_forward_length"), "model: qwen3moe.expert_feed_forward_length is missing"},
		{"window 0", gemma3, set("gemma3.attention.sliding_window", uint32(0)), "model: gemma3.attention.sliding_window is 0; it must be 1 to 16777216"},
		{"window missing", gemma3, without("gemma3.attention.sliding_window"), "model: gemma3.attention.sliding_window is missing"},

		{"more tokens than embeddings", llama, setValue("tokenizer.ggml.tokens", gguf.ArrayOf(make([]string, 49))),
			"model: the vocabulary has 49 tokens and the embedding table 48 rows; the two must be equal"},
		{"gpt-oss without experts", gptOSS, set("gpt-oss.expert_count", uint32(0)), "model: gpt-oss.expert_count is 0 or missing"},
		{"gpt-oss without a window", gptOSS, without("gpt-oss.attention.sliding_window"), "model: gpt-oss.attention.sliding_window is missing"},
		{"gpt-oss without sinks", gptOSS, withoutTensor("blk.1.attn_sinks.weight"), `model: tensor "blk.1.attn_sinks.weight" is missing`},
		{"gpt-oss without an expert's bias", gptOSS, withoutTensor("blk.0.ffn_up_exps.bias"), `model: tensor "blk.0.ffn_up_exps.bias" is missing`},
		{"experts' biases for one", gptOSS, setTensor("blk.0.ffn_up_exps.bias", tensor.F32, 64),
			`model: tensor "blk.0.ffn_up_exps.bias" has shape [64]; the hyperparameters require [6 64]`},

		{"no latent", deepseek, without("deepseek2.attention.kv_lora_rank"), "model: deepseek2.attention.kv_lora_rank is missing"},
		{"a latent of another size", deepseek, set("deepseek2.attention.kv_lora_rank", uint32(48)),
			`model: tensor "blk.0.attn_kv_a_mqa.weight" has shape [48 64]; the hyperparameters require [64 64]`},
		{"a rotation wider than keys", deepseek, set("deepseek2.attention.key_length_mla", uint32(15)),
			"model: deepseek2.rope.dimension_count is 16; it must be at most the 15 values of a key"},
		{"an odd rotation", deepseek, set("deepseek2.rope.dimension_count", uint32(15)), "model: rope dimension count 15 is not a positive even number"},
		{"gating by something else", deepseek, set("deepseek2.expert_gating_func", uint32(4)),
			"model: deepseek2.expert_gating_func is 4; 1 (softmax) and 2 (sigmoid) are supported"},
		{"groups that do not come out", deepseek, both(set("deepseek2.expert_group_count", uint32(4)), set("deepseek2.expert_group_used_count", uint32(2))),
			"model: 2 experts of a row from 2 of 4 groups; 6 experts must divide into the groups, and the used groups must hold the row's experts"},
		{"more experts than open groups have", deepseek, both(set("deepseek2.expert_group_count", uint32(6)), set("deepseek2.expert_group_used_count", uint32(1))),
			"model: 2 experts of a row from 1 of 6 groups; 6 experts must divide into the groups, and the used groups must hold the row's experts"},
		{"predicted layers", deepseek, set("deepseek2.nextn_predict_layers", uint32(1)), `model: tensor "blk.2.nextn.enorm.weight" is missing`},
		{"attention's temperature by position", deepseek, set("deepseek2.attention.temperature_scale", float32(20)),
			"model: deepseek2.attention.temperature_scale is 20; it must be 0 to 10"},
		{"groups of experts by another rule", modeltest.Spec{Arch: "mistral4"}, set("mistral4.expert_group_count", uint32(2)),
			"model: mistral4.expert_group_count is 2; only 1 is supported"},
		{"weights of experts negative", deepseek, set("deepseek2.expert_weights_scale", float32(-1)), "model: deepseek2.expert_weights_scale is -1; it must be 0 to 10000"},
		{"no shared expert", deepseek, withoutTensor("blk.1.ffn_up_shexp.weight"), `model: tensor "blk.1.ffn_up_shexp.weight" is missing`},
		{"keys of the latent gone", deepseek, withoutTensor("blk.0.attn_k_b.weight"), `model: tensor "blk.0.attn_k_b.weight" is missing`},

		{"a delta net whose heads of keys do not divide", modeltest.Spec{Arch: "qwen35"}, set("qwen35.ssm.group_count", uint32(3)),
			"model: qwen35.ssm.group_count is 3; it must divide ssm.time_step_rank (4)"},
		{"a delta net of another width", modeltest.Spec{Arch: "qwen35"}, set("qwen35.ssm.inner_size", uint32(96)),
			"model: qwen35.ssm.inner_size is 96; it must be time_step_rank (4) times state_size (32)"},
		{"a delta net of huge rows", modeltest.Spec{Arch: "qwen35"}, both(set("qwen35.ssm.state_size", uint32(1024)), both(set("qwen35.ssm.group_count", uint32(64)), both(set("qwen35.ssm.time_step_rank", uint32(64)), set("qwen35.ssm.inner_size", uint32(65536))))),
			"model: a row's input of a recurrence would have 196736 values, by qwen35.ssm.time_step_rank, group_count and state_size; 131072 are supported"},
		{"recurrent layers for others", modeltest.Spec{Arch: "qwen35"}, setValue("qwen35.attention.recurrent_layers", gguf.ArrayOf([]bool{true})),
			"model: qwen35.attention.recurrent_layers is [1]bool; it must be a bool or 0 or 1 for each of 3 layers"},
		{"a gate of another width", modeltest.Spec{Arch: "qwen35"}, setTensor("blk.2.attn_q.weight", tensor.F32, 128, 64),
			`model: tensor "blk.2.attn_q.weight" has shape [128 64]; the hyperparameters require [256 64]`},
		{"no taps", modeltest.Spec{Arch: "kimi-linear", Experts: 6, ExpertsPerToken: 2}, set("kimi-linear.ssm.conv_kernel", uint32(1)),
			"model: kimi-linear.ssm.conv_kernel is 1; it must be 2 to 64"},
		{"clamps that are negative", modeltest.Spec{Arch: "step35"}, setValue("step35.swiglu_clamp_exp", gguf.ArrayOf([]float32{0, -1, 0})),
			"model: value 1 of step35.swiglu_clamp_exp is -1; it must be 0 or more"},

		{"an encoder that sees what is before alone", bert, set("bert.attention.causal", true),
			"model: bert.attention.causal is true; an encoder's tokens see each other"},
		{"fewer positions than context", bert, setTensor("position_embd.weight", tensor.F32, 64, 64),
			`model: tensor "position_embd.weight" has shape [64 64]; the hyperparameters require [128 64]`},
		{"token types of another width", bert, setTensor("token_types.weight", tensor.F32, 2, 32),
			`model: tensor "token_types.weight" has shape [2 32]; the hyperparameters require [2 64]`},
		{"no norm behind the embeddings", bert, withoutTensor("token_embd_norm.bias"), `model: tensor "token_embd_norm.bias" is missing`},
		{"no bias of queries", bert, withoutTensor("blk.0.attn_q.bias"), `model: tensor "blk.0.attn_q.bias" is missing`},
		{"a pooling of its own", bert, set("bert.pooling_type", uint32(9)), "model: bert.pooling_type is 9; it must be 0 to 4"},
		{"two ways to norm", bert, set("bert.attention.layer_norm_epsilon", float32(2)), "model: bert.attention.layer_norm_epsilon is 2; it must be 0 to 1"},

		{"an activation that is not known", modern, set("modern-bert.hidden_activation", "relu"),
			`model: modern-bert.hidden_activation is "relu"; gelu, gelu_pytorch_tanh, gelu_new, silu and swish are supported`},
		{"windows for other encoder layers", modern, setValue("modern-bert.attention.sliding_window_pattern", gguf.ArrayOf([]bool{true})),
			"model: modern-bert.attention.sliding_window_pattern is [1]bool; it must be a number, or a bool or 0 or 1 for each of 3 layers"},
		{"a head of labels that it lacks", modern, setValue("modern-bert.classifier.output_labels", gguf.ArrayOf([]string{"a", "b"})),
			`model: tensor "cls.output.weight" has shape [1 64]; the hyperparameters require [2 64]`},
		{"a head that pools by something else", modern, set("modern-bert.classifier_pooling", "most"),
			`model: modern-bert.classifier_pooling is "most"; mean, cls and last are supported`},
		{"a reranker without its head", bert, set("bert.pooling_type", uint32(4)),
			`model: bert.pooling_type is 4 (rank), and the file has neither tensor "cls.weight" nor "cls.output.weight"`},
		{"a projection of another size", modeltest.Spec{Arch: "gemma-embedding"}, set("gemma-embedding.dense_2_feat_out", uint32(64)),
			"model: gemma-embedding.dense_2_feat_out is 64; the tensor has 128"},
		{"projections that do not follow", modeltest.Spec{Arch: "gemma-embedding"}, setTensor("dense_3.weight", tensor.F32, 64, 64),
			`model: tensor "dense_3.weight" has shape [64 64]; the hyperparameters require [64 128]`},
		{"mixtures without experts", modeltest.Spec{Arch: "nomic-bert-moe"}, without("nomic-bert-moe.expert_count"),
			"model: nomic-bert-moe.expert_count is missing; layer 1 is a mixture"},
		{"an inner width of another size", modeltest.Spec{Arch: "jina-bert-v2"}, setTensor("blk.0.ffn_up.weight", tensor.F32, 96, 64),
			`model: tensor "blk.0.ffn_up.weight" has shape [96 64]; the hyperparameters require [64 64]`},
		{"biases by distance without bound", modeltest.Spec{Arch: "jina-bert-v2"}, set("jina-bert-v2.attention.max_alibi_bias", inf),
			"model: jina-bert-v2.attention.max_alibi_bias is +Inf; it must be finite"},

		{"no embeddings", llama, withoutTensor("token_embd.weight"), `model: tensor "token_embd.weight" is missing or not a matrix`},
		{"embeddings that are no matrix", llama, setTensor("token_embd.weight", tensor.F32, 48*64),
			`model: tensor "token_embd.weight" is missing or not a matrix`},
		{"no final norm", llama, withoutTensor("output_norm.weight"), `model: tensor "output_norm.weight" is missing`},
		{"no matrix", llama, withoutTensor("blk.1.attn_v.weight"), `model: tensor "blk.1.attn_v.weight" is missing`},
		{"a transposed matrix", llama, setTensor("blk.1.attn_q.weight", tensor.F32, 64, 128),
			`model: tensor "blk.1.attn_q.weight" has shape [64 128]; the hyperparameters require [128 64]`},
		{"a matrix as norm", llama, setTensor("blk.2.ffn_norm.weight", tensor.F32, 64, 1),
			`model: tensor "blk.2.ffn_norm.weight" has shape [64 1]; the hyperparameters require [64]`},
		{"a bias of another length", llama, setTensor("blk.0.attn_k.bias", tensor.F32, 32),
			`model: tensor "blk.0.attn_k.bias" has shape [32]; the hyperparameters require [64]`},
		{"type without a kernel", modeltest.Spec{Width: 256, FFN: 256}, setTensor("blk.0.ffn_up.weight", tensor.Q8_K, 256, 256),
			`weight: blk.0.ffn_up.weight: type Q8_K has no kernel; use a file of another type, such as Q8_0`},
		{"integers as weights", llama, setTensor("blk.0.ffn_up.weight", tensor.I32, 64, 64),
			`weight: blk.0.ffn_up.weight: type I32 has no kernel; use a file of another type, such as Q8_0`},
		{"type of a norm", modeltest.Spec{Width: 256, FFN: 256}, setTensor("blk.0.ffn_norm.weight", tensor.Q8_K, 256),
			`weight: blk.0.ffn_norm.weight: type Q8_K has no codec; use a file of another type, such as Q8_0`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := open(t, tt.spec, tt.change)
			if m != nil || err == nil {
				t.Fatalf("the file was opened, error %v; want %s", err, tt.want)
			}
			var load *model.LoadError
			var format *gguf.FormatError
			switch {
			case errors.As(err, &load) && err.Error() == tt.want:
			case errors.As(err, &format) && format.Msg == tt.want:
			default:
				t.Errorf("%T: %v; want %s", err, err, tt.want)
			}
		})
	}
}

// TestAccepted opens files that leave out settings, or spell them in other ways.
func TestAccepted(t *testing.T) {
	tests := []struct {
		name   string
		spec   modeltest.Spec
		change func(*parts)
		check  func(i *model.Info) bool
	}{
		{"heads of keys missing", modeltest.Spec{KVHeads: 4}, without("llama.attention.head_count_kv"),
			func(i *model.Info) bool { return i.Layers[2].KVHeads == 4 }},
		{"head sizes missing", modeltest.Spec{KeySize: 16}, both(without("llama.attention.key_length"), without("llama.attention.value_length"),
			without("llama.rope.dimension_count")), func(i *model.Info) bool { return i.Layers[0].KeySize == 16 }},
		{"hyperparameters as uint64", llama, set("llama.context_length", uint64(77)), func(i *model.Info) bool { return i.Context == 77 }},
		{"no token list", llama, without("tokenizer.ggml.tokens"), func(i *model.Info) bool { return i.Vocabulary == 48 }},
		{"scaling none", llama, both(set("llama.rope.scaling.type", "none"), set("llama.rope.scaling.factor", float32(0))),
			func(i *model.Info) bool { return true }},
		{"windows", modeltest.Spec{Arch: "gemma3", Layers: 7}, set("gemma3.attention.sliding_window", uint32(9)), func(i *model.Info) bool {
			return i.Layers[4].Keeps.Window == 9 && i.Layers[5].Keeps.Window == 0 && i.Layers[6].Keeps.Window == 9
		}},
		{"windows by a pattern", gemma2, setValue("gemma2.attention.sliding_window_pattern", gguf.ArrayOf([]bool{false, true, true})),
			func(i *model.Info) bool {
				return i.Layers[0].Keeps.Window == 0 && i.Layers[1].Keeps.Window == 80 && i.Layers[2].Keeps.Window == 80
			}},
		{"windows by a period", gemma2, set("gemma2.attention.sliding_window_pattern", uint32(3)), func(i *model.Info) bool {
			return i.Layers[0].Keeps.Window == 80 && i.Layers[1].Keeps.Window == 80 && i.Layers[2].Keeps.Window == 0
		}},
		{"window missing where it is known", gemma2, both(without("gemma2.attention.sliding_window"), without("gemma2.attn_logit_softcapping")),
			func(i *model.Info) bool { return i.Context == 4096 && i.Layers[0].Keeps.Window == 0 }},
		{"window of 0", phi3, set("phi3.attention.sliding_window", uint32(0)), func(i *model.Info) bool { return i.Layers[0].Keeps.Window == 0 }},
		{"short factors of a long rope", phi3, func(*parts) {}, func(i *model.Info) bool { return i.Context == 1024 }},
		{"three projections instead of a fused one", phi3, both(withoutTensor("blk.0.attn_qkv.weight"),
			setTensor("blk.0.attn_q.weight", tensor.F32, 128, 64), setTensor("blk.0.attn_k.weight", tensor.F32, 64, 64),
			setTensor("blk.0.attn_v.weight", tensor.F32, 64, 64)), func(i *model.Info) bool { return true }},
		{"biases", llama, setTensor("blk.0.attn_k.bias", tensor.F16, 64), func(i *model.Info) bool { return true }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := open(t, tt.spec, tt.change)
			if err != nil {
				t.Fatal(err)
			}
			if !tt.check(m.Info()) {
				t.Errorf("%+v", m.Info())
			}
		})
	}
}

// TestUnset opens each architecture with ids and a pooling of 2^32-1, which say that the file does not set them.
func TestUnset(t *testing.T) {
	const unset = uint32(math.MaxUint32)
	opened := 0
	for _, arch := range model.Names() {
		spec := modeltest.Spec{Arch: arch}
		if _, err := open(t, spec, func(*parts) {}); err != nil {
			continue // package synthetic does not know its tensors
		}
		opened++
		m, err := open(t, spec, both(set(arch+".pooling_type", unset), set(arch+".decoder_start_token_id", unset),
			set("tokenizer.ggml.bos_token_id", unset), set("tokenizer.ggml.padding_token_id", unset)))
		if err != nil {
			t.Errorf("%s: %v", arch, err)
		} else if p := m.Info().Pooling; p != model.PoolUnset {
			t.Errorf("%s: pooling %v", arch, p)
		}
	}
	if opened == 0 {
		t.Error("no architecture was opened")
	}
}

// TestLongRope opens a model of two sets of rotary factors for contexts about the one that the short ones are
// for: they differ in what they can hold and in their identity.
func TestLongRope(t *testing.T) {
	var infos []*model.Info
	var ids []string
	for _, tt := range []struct{ context, want int }{{0, 1024}, {1024, 1024}, {1025, 4096}, {4096, 4096}} {
		pool := par.New(1)
		t.Cleanup(pool.Close)
		m, err := model.Open(phi3.File(t), pool, model.Options{Context: tt.context})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Info().Context; got != tt.want {
			t.Errorf("opened for %d tokens the model has a context of %d; want %d", tt.context, got, tt.want)
		}
		infos, ids = append(infos, m.Info()), append(ids, identity(t, m))
	}
	if ids[0] != ids[1] || ids[1] == ids[2] || ids[2] != ids[3] || infos[1].SampleDigest == infos[2].SampleDigest {
		t.Error("identities do not tell the two sets of factors apart")
	}
}

func TestRegisterTwice(t *testing.T) {
	defer func() {
		if got := recover(); got != "model: architecture llama is registered twice" {
			t.Errorf("Register panicked with %v", got)
		}
	}()
	model.Register("llama", nil)
}
