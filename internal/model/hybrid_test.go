package model_test

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"grove/internal/model/synthetic"
	"grove/internal/suite/modeltest"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// TestHybridRefusals spoils one thing of a file with recurrent layers and expects the message that names it.
func TestHybridRefusals(t *testing.T) {
	mamba, mamba2, jamba := modeltest.Spec{Arch: "mamba"}, modeltest.Spec{Arch: "mamba2"}, modeltest.Spec{Arch: "jamba"}
	falcon, granite := modeltest.Spec{Arch: "falcon-h1"}, modeltest.Spec{Arch: "granitehybrid", Experts: 4, ExpertsPerToken: 2}
	nemotron := modeltest.Spec{Arch: "nemotron_h_moe", Scan: synthetic.Scan{Narrow: 32}}
	samba := modeltest.Spec{Arch: "sambay"}
	tests := []struct {
		name   string
		spec   modeltest.Spec
		change func(*parts)
		want   string
	}{
		{"no channels", mamba, set("mamba.ssm.inner_size", uint32(0)), "model: mamba.ssm.inner_size is 0; it must be 1 to 65536"},
		{"channels missing", mamba, without("mamba.ssm.inner_size"), "model: mamba.ssm.inner_size is missing"},
		{"one tap", mamba, set("mamba.ssm.conv_kernel", uint32(1)), "model: mamba.ssm.conv_kernel is 1; it must be 2 to 64"},
		{"many taps", mamba, set("mamba.ssm.conv_kernel", uint32(65)), "model: mamba.ssm.conv_kernel is 65; it must be 2 to 64"},
		{"a large state", mamba, set("mamba.ssm.state_size", uint32(1025)), "model: mamba.ssm.state_size is 1025; it must be 1 to 1024"},
		{"a large record", mamba, set("mamba.ssm.inner_size", uint32(1<<16)),
			"model: a row's input of a recurrence would have 131104 values, by mamba.ssm.inner_size and state_size; 131072 are supported"},
		{"no steps", mamba, withoutTensor("blk.1.ssm_dt.bias"), `model: tensor "blk.1.ssm_dt.bias" is missing`},
		{"no decays", mamba, withoutTensor("blk.1.ssm_a"), `model: tensor "blk.1.ssm_a" is missing`},
		{"decays of another shape", mamba, setTensor("blk.1.ssm_a", tensor.F32, 128, 8), `model: tensor "blk.1.ssm_a" has shape [128 8]; the hyperparameters require [128 16]`},
		{"attention that has no place", mamba, setTensor("blk.0.attn_q.weight", tensor.F32, 64, 64), "blk.0.attn_q.weight"},
		{"norms that are not said", mamba, setTensor("blk.0.ssm_b_norm.weight", tensor.F32, 16), "blk.0.ssm_b_norm.weight"},

		{"heads that do not divide", mamba2, set("mamba2.ssm.time_step_rank", uint32(3)), "model: mamba2.ssm.time_step_rank is 3; it must divide ssm.inner_size (128)"},
		{"groups that do not divide", mamba2, set("mamba2.ssm.group_count", uint32(3)), "model: mamba2.ssm.group_count is 3; it must divide ssm.time_step_rank (4)"},
		{"groups beyond the record", mamba2, both(set("mamba2.ssm.group_count", uint32(4)), set("mamba2.ssm.inner_size", uint32(1<<16-4)), set("mamba2.ssm.state_size", uint32(1))),
			`model: tensor "blk.0.ssm_in.weight" has shape`},
		{"norms of other groups", mamba2, setTensor("blk.0.ssm_norm.weight", tensor.F32, 4, 32), `model: tensor "blk.0.ssm_norm.weight" has shape [4 32]; the hyperparameters require [2 64]`},

		{"heads of two layers", jamba, setValue("jamba.attention.head_count_kv", gguf.ArrayOf([]uint32{0, 2})), "model: jamba.attention.head_count_kv has 2 values; there are 3 layers"},
		{"heads where a recurrence is", jamba, setValue("jamba.attention.head_count_kv", gguf.ArrayOf([]uint32{0, 0, 0})), `model: tensor "blk.1.ssm_dt_norm.weight" is missing`},
		{"no norm of the steps' inputs", jamba, withoutTensor("blk.0.ssm_dt_norm.weight"), `model: tensor "blk.0.ssm_dt_norm.weight" is missing`},
		{"a layer without attention", falcon, setValue("falcon-h1.attention.head_count_kv", gguf.ArrayOf([]uint32{2, 0, 2})), "model: layer 1 has no heads; falcon-h1 attends in every layer"},
		{"a negative scale", granite, set("granitehybrid.residual_scale", float32(-1)), "model: granitehybrid.residual_scale is -1; it must be 0 to 10000"},
		{"experts by softmax", nemotron, set("nemotron_h_moe.expert_gating_func", uint32(1)), "model: nemotron_h_moe.expert_gating_func is 1; only 2 (sigmoid) is supported"},
		{"no shared expert", nemotron, without("nemotron_h_moe.expert_shared_feed_forward_length"), "model: nemotron_h_moe.expert_shared_feed_forward_length is missing"},
		{"no inner values of experts", nemotron, set("nemotron_h_moe.expert_feed_forward_length", uint32(0)), "model: nemotron_h_moe.expert_feed_forward_length is 0 for layer 1, which has experts"},
		{"another narrow row", nemotron, set("nemotron_h_moe.moe_latent_size", uint32(16)), `model: tensor "blk.1.ffn_latent_down.weight" has shape [32 64]; the hyperparameters require [16 64]`},
		{"experts of the stream's width", nemotron, without("nemotron_h_moe.moe_latent_size"), `model: tensor "blk.1.ffn_up_exps.weight" has shape [6 64 32]; the hyperparameters require [6 64 64]`},
	}
	tests = append(tests, []struct {
		name   string
		spec   modeltest.Spec
		change func(*parts)
		want   string
	}{
		{"layers that have no middle", samba, set("sambay.block_count", uint32(6)), "model: sambay.block_count is 6; it must be a multiple of 4"},
		{"heads without a pair", samba, both(set("sambay.attention.head_count", uint32(9)), set("sambay.attention.head_count_kv", uint32(3))),
			"model: sambay.attention.head_count is 9 and head_count_kv 3; heads come in pairs, so that both must be even"},
		{"keys without a pair", samba, set("sambay.attention.head_count_kv", uint32(1)), "head_count is 8 and head_count_kv 1; heads come in pairs"},
		{"heads that keys do not divide", samba, set("sambay.attention.head_count_kv", uint32(6)), "model: sambay.attention.head_count_kv is 6; it must divide head_count (8)"},
		{"short values", samba, set("sambay.attention.value_length", uint32(8)), "model: sambay.attention.value_length is 8; it must be key_length (16)"},
		{"large heads", samba, both(set("sambay.attention.key_length", uint32(2049)), set("sambay.attention.value_length", uint32(2049))),
			"model: sambay.attention.key_length is 2049; it must be at most 2048, as two heads make one of the cache"},
		{"experts", samba, both(set("sambay.expert_count", uint32(4)), set("sambay.expert_used_count", uint32(2))), "model: sambay.expert_count is 4; only 0 is supported"},
		{"no window", samba, without("sambay.attention.sliding_window"), "model: sambay.attention.sliding_window is missing"},
		{"windows by a pattern", samba, set("sambay.attention.sliding_window_pattern", uint32(2)), "model: sambay.attention.sliding_window_pattern is 2; only 0 is supported"},
		{"an epsilon below 0", samba, set("sambay.attention.layer_norm_epsilon", float32(-1)), "model: sambay.attention.layer_norm_epsilon is -1; it must be 0 to 1"},
		{"another memory", samba, set("sambay.ssm.inner_size", uint32(64)), `model: tensor "blk.0.ssm_in.weight" has shape [256 64]; the hyperparameters require [128 64]`},
		{"a unit of another memory", samba, setTensor("blk.6.gmu_in.weight", tensor.F32, 64, 64), `model: tensor "blk.6.gmu_in.weight" has shape [64 64]; the hyperparameters require [128 64]`},
		{"a unit of another width", samba, setTensor("blk.6.gmu_out.weight", tensor.F32, 128, 64), `model: tensor "blk.6.gmu_out.weight" has shape [128 64]; the hyperparameters require [64 128]`},
		{"keys in an upper layer", samba, setTensor("blk.7.attn_qkv.weight", tensor.F32, 256, 64), "blk.7.attn_qkv.weight"},
		{"a norm of one head", samba, setTensor("blk.3.attn_sub_norm.weight", tensor.F32, 16), `model: tensor "blk.3.attn_sub_norm.weight" has shape [16]; the hyperparameters require [32]`},
		{"a part that is not finite", samba, loud("blk.5.attn_lambda_q1.weight", "blk.5.attn_lambda_k1.weight"),
			"model: blk.5: the part of the second softmax, by attn_lambda_q1, k1, q2 and k2, is +Inf; it must be finite"},
		{"parts that are not finite", samba, loud("blk.1.attn_lambda_q1.weight", "blk.1.attn_lambda_k1.weight", "blk.1.attn_lambda_q2.weight", "blk.1.attn_lambda_k2.weight"),
			"k1, q2 and k2, is NaN; it must be finite"},
	}...)
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			_, err := open(t, c.spec, c.change)
			if err == nil {
				t.Fatal("the file is opened")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want %q", err, c.want)
			}
		})
	}
}

// loud makes all values of tensors 100.
func loud(names ...string) func(*parts) {
	return func(p *parts) {
		for _, v := range p.tensors {
			for at := 0; slices.Contains(names, v.Name) && at < len(v.Data); at += 4 {
				binary.LittleEndian.PutUint32(v.Data[at:], math.Float32bits(100))
			}
		}
	}
}

// TestMixtures counts the layers with experts, which the costs of steps are made of.
func TestMixtures(t *testing.T) {
	for _, c := range []struct {
		spec modeltest.Spec
		want int
	}{
		{modeltest.Spec{Arch: "jamba", Layers: 6, Experts: 4, ExpertsPerToken: 2}, 3},
		{modeltest.Spec{Arch: "nemotron_h_moe", Layers: 6}, 2},
		{modeltest.Spec{Arch: "qwen3moe"}, 3},
		{modeltest.Spec{Arch: "granitehybrid"}, 0},
	} {
		m, err := open(t, c.spec, func(*parts) {})
		if err != nil {
			t.Fatal(err)
		}
		if info := m.Info(); info.Mixtures != c.want {
			t.Errorf("%s: %d layers with experts, want %d", c.spec.Arch, info.Mixtures, c.want)
		}
	}
}
