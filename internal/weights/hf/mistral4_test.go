package hf

import (
	"fmt"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// mistral4Names are the tensors of a layer in folders of Mistral Small 4, by their names in GGUF.
var mistral4Names = map[string]string{
	"token_embd.weight": "embed_tokens.weight", "output_norm.weight": "norm.weight",
	"attn_norm.weight": "input_layernorm.weight", "ffn_norm.weight": "post_attention_layernorm.weight",
	"attn_q_a.weight": "self_attn.q_a_proj.weight", "attn_q_a_norm.weight": "self_attn.q_a_layernorm.weight", "attn_q_b.weight": "self_attn.q_b_proj.weight",
	"attn_kv_a_mqa.weight": "self_attn.kv_a_proj_with_mqa.weight", "attn_kv_a_norm.weight": "self_attn.kv_a_layernorm.weight",
	"attn_output.weight": "self_attn.o_proj.weight", "ffn_gate_inp.weight": "mlp.gate.weight",
	"ffn_gate_up_exps.weight": "mlp.experts.gate_up_proj", "ffn_down_exps.weight": "mlp.experts.down_proj",
	"ffn_gate_shexp.weight": "mlp.shared_experts.gate_proj.weight", "ffn_up_shexp.weight": "mlp.shared_experts.up_proj.weight",
	"ffn_down_shexp.weight": "mlp.shared_experts.down_proj.weight",
}

// mistral4Folder makes a folder of random weights, and the model that it was made of.
func mistral4Folder(t *testing.T, root, head, images string) (*hftest.Folder, *gguf.File) {
	t.Helper()
	const heads, plain, value, rank = 4, 32, 24, 32
	spec := synthetic.Spec{Arch: "mistral4", Vocab: 320, KeySize: plain + 16, ValueSize: value, Latent: synthetic.Latent{QRank: 32, Shared: 1, Norm: true}}
	metadata, tensors, err := spec.Parts()
	if err != nil {
		t.Fatal(err)
	}
	want, err := gguf.New("wanted", metadata, tensors, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := bare(t, "Mistral3ForConditionalGeneration")
	f.Tensors[images] = tensors[1]
	up := map[string]tensor.View{} // the matrices that expand the latent, head by head: of keys, then of values
	for _, v := range tensors {
		name, layer := v.Name, ""
		if rest, ok := strings.CutPrefix(v.Name, "blk."); ok {
			number, rest, _ := strings.Cut(rest, ".")
			name, layer = rest, "layers."+number+"."
		}
		switch name {
		case "output.weight":
			f.Tensors[head] = v
		case "attn_k_b.weight", "attn_v_b.weight":
			to := root + layer + "self_attn.kv_b_proj.weight"
			if _, ok := up[to]; !ok {
				up[to] = tensor.View{Type: tensor.F32, Shape: []int{heads * (plain + value), rank}, Data: make([]byte, 4*heads*(plain+value)*rank)}
			}
			for i := range v.Elems() {
				row, col := i/rank/value*(plain+value)+plain+i/rank%value, i%rank
				if name == "attn_k_b.weight" {
					row, col = i/plain/rank*(plain+value)+i%plain, i/plain%rank
				}
				copy(up[to].Data[4*(row*rank+col):][:4], v.Data[4*i:])
			}
			f.Tensors[to] = up[to]
		default:
			f.Tensors[root+layer+mistral4Names[name]] = v
		}
	}
	f.Config["text_config"] = map[string]any{
		"model_type": "mistral4", "hidden_act": "silu", "num_hidden_layers": 3, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": heads,
		"num_key_value_heads": heads, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "kv_lora_rank": rank, "q_lora_rank": 32, "qk_rope_head_dim": 16,
		"qk_nope_head_dim": plain, "v_head_dim": value, "n_routed_experts": 6, "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 64,
		"first_k_dense_replace": 0, "routed_scaling_factor": 1.5, "n_group": 1, "topk_group": 1, "rope_interleave": true,
		"rope_parameters": map[string]any{
			"type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16, "max_position_embeddings": 4096, "beta_fast": 32.0,
			"beta_slow": 1.0, "mscale": 0.707, "mscale_all_dim": 0.707, "llama_4_scaling_beta": 0.5, "partial_rotary_factor": 0.33,
		},
	}
	return f, want
}

// TestMistral4 opens folders with both kinds of names and expects the tensors and the settings of the model that they were made of.
func TestMistral4(t *testing.T) {
	t.Run("model first", func(t *testing.T) {
		testMistral4(t, "model.language_model.", "lm_head.weight", "model.vision_tower.x.weight")
	})
	t.Run("part first", func(t *testing.T) {
		testMistral4(t, "language_model.model.", "language_model.lm_head.weight", "vision_tower.x.weight")
	})
}

func testMistral4(t *testing.T, root, head, images string) {
	f, want := mistral4Folder(t, root, head, images)
	got := open(t, write(t, f))
	compareTensors(t, want, got)
	for _, kv := range want.Metadata {
		v, ok := got.Lookup(kv.Key)
		a, b := fmt.Sprint(v.Any()), fmt.Sprint(kv.Value.Any())
		if strings.HasSuffix(kv.Key, "original_context_length") { // folders have one number for this and for the temperature
			b = "16"
		}
		if !strings.HasPrefix(kv.Key, "general.") && (!ok || a != b) {
			t.Errorf("key %s is %s, want %s", kv.Key, a, b)
		}
	}
}

// TestMistral4Refused spoils one setting and expects the message that names it.
func TestMistral4Refused(t *testing.T) {
	for _, c := range []struct {
		key   string
		value any
		rope  bool
		want  string
	}{
		{"rope_interleave", false, false, "rope_interleave is false; it must be true"},
		{"n_group", 2, false, "n_group is 2; it must be 1"},
		{"llama_4_scaling_beta", nil, true, "llama_4_scaling_beta is 0 or missing"},
		{"mscale_all_dim", 0, true, "mscale_all_dim is 0 or missing"},
		{"mscale", 1, true, "mscale is 1 and mscale_all_dim 0.707; the two must be equal"},
		{"original_max_position_embeddings", nil, true, "original_max_position_embeddings is missing"},
	} {
		t.Run(c.key, func(t *testing.T) {
			f, _ := mistral4Folder(t, "language_model.model.", "lm_head.weight", "vision_tower.x.weight")
			config := f.Config["text_config"].(map[string]any)
			if c.rope {
				config = config["rope_parameters"].(map[string]any)
			}
			config[c.key] = c.value
			if _, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}
