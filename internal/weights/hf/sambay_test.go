package hf

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// sambaNames are the tensors of a layer in folders of Phi-4-mini-flash, by their names in GGUF.
var sambaNames = strings.NewReplacer("attn_norm", "input_layernorm", "ffn_norm", "post_attention_layernorm", "ffn_up", "mlp.fc1", "ffn_down", "mlp.fc2",
	"gmu_in", "attn.in_proj", "gmu_out", "attn.out_proj", "attn_sub_norm", "attn.inner_cross_attn.subln", "attn_qkv", "attn.Wqkv", "attn_q.", "attn.Wqkv.",
	"attn_output", "attn.out_proj", "ssm_in", "attn.in_proj", "ssm_conv1d", "attn.conv1d", "ssm_x", "attn.x_proj", "ssm_dt", "attn.dt_proj", "ssm_d", "attn.D",
	"ssm_a", "attn.A_log", "ssm_out", "attn.out_proj")

// sambaFolder takes a model of random weights apart, as its publisher has it. It returns the folder and the model that the folder has to give.
func sambaFolder(t *testing.T, spec synthetic.Spec) (*hftest.Folder, *gguf.File) {
	t.Helper()
	spec.Arch, spec.Vocab, spec.Tied = "sambay", 320, true
	spec.Heads, spec.KeySize, spec.Scan.Rank = 8, 8, 4
	metadata, tensors, err := spec.Parts()
	if err != nil {
		t.Fatal(err)
	}
	f := bare(t, "Phi4FlashForCausalLM")
	for i, v := range tensors {
		name := strings.Replace(v.Name, "output_norm", "model.final_layernorm", 1)
		if rest, ok := strings.CutPrefix(v.Name, "blk."); ok {
			name = "model.layers." + sambaNames.Replace(rest)
		}
		switch {
		case name == "token_embd.weight":
			name = "model.embed_tokens.weight"
		case strings.Contains(name, "attn_lambda"):
			name = strings.TrimSuffix(strings.Replace(name, "attn_lambda", "attn.inner_cross_attn.lambda", 1), ".weight")
		case strings.HasSuffix(name, "conv1d.weight"):
			v.Shape = []int{v.Shape[0], 1, v.Shape[1]}
		case strings.HasSuffix(name, "A_log"):
			logs, rates := slices.Clone(v.Data), slices.Clone(v.Data)
			for at := 0; at < len(logs); at += 4 {
				x := float32(math.Log(-float64(math.Float32frombits(binary.LittleEndian.Uint32(v.Data[at:])))))
				binary.LittleEndian.PutUint32(logs[at:], math.Float32bits(x))
				binary.LittleEndian.PutUint32(rates[at:], math.Float32bits(Decay(0, x)))
			}
			v.Data, tensors[i].Data = logs, rates
		}
		v.Name = ""
		f.Tensors[name] = v
	}
	want, err := gguf.New("wanted", metadata, tensors, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, v := range map[string]any{
		"model_type": "phi4flash", "hidden_act": "silu", "num_hidden_layers": spec.WithDefaults().Layers, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 8,
		"num_key_value_heads": 4, "max_position_embeddings": 4096, "layer_norm_eps": 1e-5, "sliding_window": 50, "mb_per_layer": 2, "mlp_bias": false,
		"lm_head_bias": false, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": "auto", "mamba_conv_bias": true, "mamba_proj_bias": false,
		"tie_word_embeddings": true, "rope_theta": 10000.0,
	} {
		f.Config[key] = v
	}
	delete(f.Config, "head_dim")
	return f, want
}

// TestSambaY opens folders, with every form in which they tell the window, and expects the tensors, byte for byte, and the settings of the model
// that they were made of.
func TestSambaY(t *testing.T) {
	windows, kinds := make([]any, 8), slices.Repeat([]string{"full_attention"}, 8)
	for _, l := range []int{1, 3} {
		windows[l], kinds[l] = 50, "sliding_attention"
	}
	for name, change := range map[string]map[string]any{
		"one window": {}, "windows of layers": {"sliding_window": windows}, "kinds of layers": {"layer_types": kinds}, "rank": {"mamba_dt_rank": 4},
	} {
		t.Run(name, func(t *testing.T) {
			f, want := sambaFolder(t, synthetic.Spec{})
			for key, v := range change {
				f.Config[key] = v
			}
			got := open(t, write(t, f))
			compareTensors(t, want, got)
			for _, kv := range want.Metadata {
				if !strings.HasPrefix(kv.Key, "sambay.") || strings.HasPrefix(kv.Key, "sambay.rope.") || strings.HasSuffix(kv.Key, "_rms_epsilon") {
					continue // of what SambaY does not have
				}
				if v, ok := got.Lookup(kv.Key); !ok || fmt.Sprint(v.Any()) != fmt.Sprint(kv.Value.Any()) {
					t.Errorf("key %s is %v, want %v", kv.Key, v.Any(), kv.Value.Any())
				}
			}
		})
	}
	t.Run("half floats, 12 layers, no bias of the convolution", func(t *testing.T) {
		f, want := sambaFolder(t, synthetic.Spec{Type: tensor.BF16, Layers: 12})
		want.Tensors = slices.DeleteFunc(want.Tensors, func(v tensor.View) bool { return strings.HasSuffix(v.Name, "conv1d.bias") })
		for name := range f.Tensors {
			if strings.HasSuffix(name, "conv1d.bias") {
				delete(f.Tensors, name)
			}
		}
		f.Config["mamba_conv_bias"] = false
		compareTensors(t, want, open(t, write(t, f)))
	})
}

// TestSambaYRefused spoils one setting or tensor and expects the message that names it.
func TestSambaYRefused(t *testing.T) {
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{"num_hidden_layers", 6, "num_hidden_layers is 6; it must be a multiple of 4"},
		{"num_attention_heads", 6, "num_attention_heads is 6; it must divide hidden_size (64)"},
		{"num_key_value_heads", 1, "num_attention_heads is 8 and num_key_value_heads 1; heads come in pairs, so that both must be even"},
		{"mb_per_layer", 4, "mb_per_layer is 4; only 2 is supported"},
		{"mlp_bias", true, "mlp_bias is true; only false is supported"},
		{"hidden_act", "gelu", "hidden_act"},
		{"mamba_d_conv", 1, "mamba_d_conv is 1; it must be an integer from 2 to 64"},
		{"mamba_expand", 3, "model.layers.0.attn.in_proj.weight: shape is [256 64]"},
		{"sliding_window", nil, "sliding_window is missing"},
		{"sliding_window", []any{nil, 50}, "sliding_window has 2 entries, there are 8 layers"},
		{"sliding_window", []any{nil, 50, nil, 50, nil, 50, nil, nil}, "sliding_window has 50 for layer 5; the odd layers of the lower half must have one number, and the others null"},
		{"sliding_window", []any{nil, 50, nil, 51, nil, nil, nil, nil}, "sliding_window has 51 for layer 3"},
		{"sliding_window", []any{nil, "x", nil, "x", nil, nil, nil, nil}, "sliding_window"},
		{"layer_types", []string{"full_attention"}, "layer_types has 1 entries, there are 8 layers"},
		{"layer_types", slices.Repeat([]string{"sliding_attention"}, 8), `layer_types has "sliding_attention" for layer 0`},
	} {
		t.Run(c.key, func(t *testing.T) {
			f, _ := sambaFolder(t, synthetic.Spec{})
			f.Config[c.key] = c.value
			if got, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v\nwant %s", got, err, c.want)
			}
		})
	}
	f, _ := sambaFolder(t, synthetic.Spec{})
	f.Tensors["model.layers.7.attn.Wqkv.bias"] = f.Tensors["model.layers.5.attn.Wqkv.bias"]
	if _, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), "model.layers.7.attn.Wqkv.bias: shape is [128]") {
		t.Errorf("keys of a layer that has none: %v", err)
	}
}
