package hf

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/weights/tensor"
)

// recurrent is a folder of a class with recurrent layers.
func recurrent(t *testing.T, class string) *hftest.Folder {
	t.Helper()
	f, err := hftest.From(golden(t, "llama-tied"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Become(class); err != nil {
		t.Fatal(err)
	}
	return f
}

// floats returns the values of a tensor of a folder.
func floats(v tensor.View) []float32 {
	x := make([]float32, v.Elems())
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(v.Data[4*i:]))
	}
	return x
}

// TestHybrids compares tensors of folders with recurrent layers, value by value, with those that they were made of.
func TestHybrids(t *testing.T) {
	same := func(x float32, _ int) float32 { return x }
	times := func(k float32) func(float32, int) float32 { return func(x float32, _ int) float32 { return x * k } }
	rate := func(x float32, _ int) float32 { return -float32(math.Exp(float64(x))) }
	const conv = hftest.Inner + 2*hftest.Groups*hftest.State
	tests := []struct {
		class, to, from string
		shape           []int
		change          func(x float32, i int) float32
	}{
		{"MambaForCausalLM", "blk.1.ssm_a", "backbone.layers.1.mixer.A_log", []int{hftest.Inner, hftest.State}, rate},
		{"MambaForCausalLM", "blk.2.ssm_conv1d.weight", "backbone.layers.2.mixer.conv1d.weight", []int{hftest.Inner, hftest.Taps}, same},
		{"MambaForCausalLM", "blk.0.ssm_in.weight", "backbone.layers.0.mixer.in_proj.weight", []int{2 * hftest.Inner, hftest.Width}, same},
		{"MambaForCausalLM", "output_norm.weight", "backbone.norm_f.weight", []int{hftest.Width}, same},
		{"Mamba2ForCausalLM", "blk.1.ssm_a", "backbone.layers.1.mixer.A_log", []int{hftest.Heads, 1}, rate},
		{"Mamba2ForCausalLM", "blk.1.ssm_norm.weight", "backbone.layers.1.mixer.norm.weight", []int{hftest.Groups, hftest.Inner / hftest.Groups}, same},
		{"Mamba2ForCausalLM", "blk.1.ssm_dt.bias", "backbone.layers.1.mixer.dt_bias", []int{hftest.Heads}, same},
		{"JambaForCausalLM", "blk.1.attn_q.weight", "model.layers.1.self_attn.q_proj.weight", []int{32, hftest.Width}, same},
		{"JambaForCausalLM", "blk.2.ssm_dt_norm.weight", "model.layers.2.mamba.dt_layernorm.weight", []int{hftest.Heads}, same},
		{"FalconH1ForCausalLM", "token_embd.weight", "model.embed_tokens.weight", nil, times(4)},
		{"FalconH1ForCausalLM", "output.weight", "lm_head.weight", nil, times(0.5)},
		{"FalconH1ForCausalLM", "blk.1.attn_k.weight", "model.layers.1.self_attn.k_proj.weight", []int{16, hftest.Width}, times(1.5 * 0.25)},
		{"FalconH1ForCausalLM", "blk.1.attn_output.weight", "model.layers.1.self_attn.o_proj.weight", []int{hftest.Width, 32}, times(0.75)},
		{"FalconH1ForCausalLM", "blk.0.ffn_gate.weight", "model.layers.0.feed_forward.gate_proj.weight", []int{hftest.FFN, hftest.Width}, times(0.8)},
		{"FalconH1ForCausalLM", "blk.0.ffn_down.weight", "model.layers.0.feed_forward.down_proj.weight", []int{hftest.Width, hftest.FFN}, times(0.6)},
		{"FalconH1ForCausalLM", "blk.0.ssm_in.weight", "model.layers.0.mamba.in_proj.weight", []int{hftest.Inner + conv + hftest.Heads, hftest.Width}, func(x float32, i int) float32 {
			k, row := float32(1.1), i/hftest.Width
			for _, part := range []struct {
				end int
				k   float32
			}{{hftest.Inner + conv, 0.9}, {2*hftest.Inner + hftest.Groups*hftest.State, 0.7}, {2 * hftest.Inner, 1.25}, {hftest.Inner, 0.5}} {
				if row < part.end {
					k = part.k
				}
			}
			return x * (2 * k)
		}},
		{"GraniteMoeHybridForCausalLM", "blk.2.ssm_out.weight", "model.layers.2.mamba.out_proj.weight", []int{hftest.Width, hftest.Inner}, same},
		{"GraniteMoeHybridForCausalLM", "blk.1.ffn_down_exps.weight", "model.layers.1.block_sparse_moe.output_linear.weight", []int{hftest.Experts, hftest.Width, hftest.FFN}, same},
		{"NemotronHForCausalLM", "blk.1.exp_probs_b.bias", "backbone.layers.1.mixer.gate.e_score_correction_bias", []int{hftest.Experts}, same},
		{"NemotronHForCausalLM", "blk.3.ffn_latent_up.weight", "backbone.layers.3.mixer.fc2_latent_proj.weight", []int{hftest.Width, hftest.Latent}, same},
		{"NemotronHForCausalLM", "blk.2.attn_v.weight", "backbone.layers.2.mixer.v_proj.weight", []int{16, hftest.Width}, same},
	}
	for _, c := range tests {
		t.Run(c.class+"/"+c.to, func(t *testing.T) {
			folder := recurrent(t, c.class)
			f := open(t, write(t, folder))
			want, got := floats(folder.Tensors[c.from]), load(t, f, c.to)
			if v, _ := f.Tensor(c.to); c.shape != nil && !slices.Equal(v.Shape, c.shape) {
				t.Errorf("shape %v, want %v", v.Shape, c.shape)
			}
			for i, x := range want {
				if x = c.change(x, i); got[i] != x {
					t.Fatalf("value %d is %v, want %v", i, got[i], x)
				}
			}
		})
	}
}

// TestHybridStacks finds the experts of a layer, and the halves of what a folder has as one tensor.
func TestHybridStacks(t *testing.T) {
	jamba := recurrent(t, "JambaForCausalLM")
	got := load(t, open(t, write(t, jamba)), "blk.1.ffn_up_exps.weight")
	for e := range hftest.Experts {
		want := floats(jamba.Tensors[fmt.Sprintf("model.layers.1.feed_forward.experts.%d.up_proj.weight", e)])
		if n := len(want); !slices.Equal(got[e*n:(e+1)*n], want) {
			t.Errorf("expert %d of Jamba differs", e)
		}
	}
	granite := recurrent(t, "GraniteMoeHybridForCausalLM")
	f := open(t, write(t, granite))
	both := floats(granite.Tensors["model.layers.0.block_sparse_moe.input_linear.weight"])
	const half = hftest.FFN * hftest.Width
	for i, name := range []string{"blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight"} {
		got := load(t, f, name)
		for e := range hftest.Experts {
			if want := both[(2*e+i)*half:][:half]; !slices.Equal(got[e*half:(e+1)*half], want) {
				t.Errorf("%s: expert %d differs", name, e)
			}
		}
	}
	shared := floats(granite.Tensors["model.layers.0.shared_mlp.input_linear.weight"])
	if got := load(t, f, "blk.0.ffn_up_shexp.weight"); !slices.Equal(got, shared[len(shared)/2:]) {
		t.Error("Granite's shared block: the second half differs")
	}
}

// TestHybridSettings expects the numbers of layers and the settings of the recurrences.
func TestHybridSettings(t *testing.T) {
	for class, want := range map[string]map[string]any{
		"MambaForCausalLM":    {"mamba.ssm.time_step_rank": uint32(hftest.Heads), "mamba.ssm.inner_size": uint32(hftest.Inner), "mamba.context_length": uint32(1 << 20)},
		"Mamba2ForCausalLM":   {"mamba2.ssm.group_count": uint32(hftest.Groups), "mamba2.ssm.state_size": uint32(hftest.State)},
		"JambaForCausalLM":    {"jamba.attention.head_count_kv": []uint32{0, 1, 0}, "jamba.expert_count": uint32(hftest.Experts)},
		"FalconH1ForCausalLM": {"falcon-h1.rope.freq_base": float32(1e11), "falcon-h1.attention.head_count_kv": uint32(1)},
		"GraniteMoeHybridForCausalLM": {"granitehybrid.attention.head_count_kv": []uint32{0, 1, 0}, "granitehybrid.rope.scaling.finetuned": false,
			"granitehybrid.embedding_scale": float32(12), "granitehybrid.logit_scale": float32(3), "granitehybrid.attention.scale": float32(0.1)},
		"NemotronHForCausalLM": {"general.architecture": "nemotron_h_moe", "nemotron_h_moe.feed_forward_length": []uint32{0, hftest.FFN, 0, hftest.FFN},
			"nemotron_h_moe.attention.head_count_kv": []uint32{0, 0, 1, 0}, "nemotron_h_moe.moe_latent_size": uint32(hftest.Latent)},
	} {
		f := open(t, write(t, recurrent(t, class)))
		for key, value := range want {
			if v, _ := f.Lookup(key); fmt.Sprint(v.Any()) != fmt.Sprint(value) {
				t.Errorf("%s: %s is %v, want %v", class, key, v.Any(), value)
			}
		}
	}
}

// TestGraniteWithoutRecurrence: a folder whose layers all attend is a file of the architecture before.
func TestGraniteWithoutRecurrence(t *testing.T) {
	h := recurrent(t, "GraniteMoeHybridForCausalLM")
	h.Config["layer_types"] = []string{"attention", "attention", "attention"}
	h.Config["num_local_experts"] = 0
	h.Config["position_embedding_type"] = "rope"
	for l := range 3 {
		for name := range h.Tensors {
			if strings.HasPrefix(name, fmt.Sprintf("model.layers.%d.mamba.", l)) || strings.Contains(name, "block_sparse_moe") {
				delete(h.Tensors, name)
			}
			if part, ok := strings.CutPrefix(name, "model.layers.1.self_attn."); ok {
				h.Tensors[fmt.Sprintf("model.layers.%d.self_attn.%s", l, part)] = h.Tensors[name]
			}
		}
	}
	f := open(t, write(t, h))
	if arch, _, _ := f.String("general.architecture"); arch != "granite" {
		t.Errorf("architecture %q", arch)
	}
	if n, _, _ := f.Uint("granite.feed_forward_length"); n != hftest.Shared {
		t.Errorf("%d inner values", n)
	}
}

// TestHybridRefusals spoils a setting and expects the message that names it.
func TestHybridRefusals(t *testing.T) {
	for _, c := range []struct {
		class, key string
		value      any
		want       string
	}{
		{"MambaForCausalLM", "conv_kernel", 1, "conv_kernel is 1; it must be an integer from 2 to 64"},
		{"MambaForCausalLM", "state_size", 1 << 13, "state_size is 8192; it must be an integer from 1 to 4096"},
		{"Mamba2ForCausalLM", "num_heads", 3, "num_heads is 3 and n_groups 2; 3 heads of 16 values must make 64, and the groups divide the heads"},
		{"Mamba2ForCausalLM", "time_step_limit", []float64{0.001, 0.1}, "time_step_limit is [0.001,0.1]; only [0, Infinity] is supported"},
		{"Mamba2ForCausalLM", "rms_norm", false, "rms_norm must be true"},
		{"JambaForCausalLM", "sliding_window", 64, "sliding_window is not supported"},
		{"JambaForCausalLM", "attn_layer_offset", 0, "model.layers.0.self_attn.q_proj.weight"},
		{"FalconH1ForCausalLM", "mamba_rms_norm", true, "a norm before the gate is not supported"},
		{"FalconH1ForCausalLM", "ssm_multipliers", []float64{1, 2}, "ssm_multipliers has length 2; it must be 5"},
		{"GraniteMoeHybridForCausalLM", "layer_types", []string{"mamba", "attention"}, "layer_types has 2 entries, there are 3 layers"},
		{"GraniteMoeHybridForCausalLM", "layer_types", []string{"mamba", "attention", "full"}, `layer_types has "full" for layer 2; it must be mamba or attention`},
		{"GraniteMoeHybridForCausalLM", "position_embedding_type", "alibi", "position_embedding_type"},
		{"NemotronHForCausalLM", "hybrid_override_pattern", "ME*", "hybrid_override_pattern has 3 letters, there are 4 layers"},
		{"NemotronHForCausalLM", "hybrid_override_pattern", "ME*X", `hybrid_override_pattern has 'X' for layer 3; it must be M, *, - or E`},
		{"NemotronHForCausalLM", "n_shared_experts", 2, "n_shared_experts is 2; only 1 is supported"},
		{"NemotronHForCausalLM", "mlp_hidden_act", "silu", "mlp_hidden_act"},
	} {
		t.Run(c.class+"/"+c.key, func(t *testing.T) {
			h := recurrent(t, c.class)
			h.Config[c.key] = c.value
			f, err := Open(write(t, h))
			if err == nil {
				f.Close()
				t.Fatal("the folder is opened")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

// TestInfinity reads what Python writes for numbers that JSON does not have.
func TestInfinity(t *testing.T) {
	dir := write(t, recurrent(t, "Mamba2ForCausalLM"))
	path := filepath.Join(dir, ConfigName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = append([]byte(`{"time_step_limit": [0.0, Infinity], "note": "an Infinity \" of NaN", "other": NaN, `), text[1:]...)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
}
