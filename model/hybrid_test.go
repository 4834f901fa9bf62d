package model_test

import (
	"strings"
	"testing"

	"grove/model/synthetic"
	"grove/suite/modeltest"
	"grove/weights/gguf"
	"grove/weights/tensor"
)

// TestHybridRefusals spoils one thing of a file with recurrent layers and expects the message that names it.
func TestHybridRefusals(t *testing.T) {
	mamba, mamba2, jamba := modeltest.Spec{Arch: "mamba"}, modeltest.Spec{Arch: "mamba2"}, modeltest.Spec{Arch: "jamba"}
	falcon, granite := modeltest.Spec{Arch: "falcon-h1"}, modeltest.Spec{Arch: "granitehybrid", Experts: 4, Used: 2}
	nemotron := modeltest.Spec{Arch: "nemotron_h_moe", Scan: synthetic.Scan{Narrow: 32}}
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

// TestMixtures counts the layers with experts, which the costs of steps are made of.
func TestMixtures(t *testing.T) {
	for _, c := range []struct {
		spec modeltest.Spec
		want int
	}{
		{modeltest.Spec{Arch: "jamba", Layers: 6, Experts: 4, Used: 2}, 3},
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
