package hf

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

var nomicNames = []string{
	"token_embd.weight", "embeddings.word_embeddings.weight", "token_types.weight", "embeddings.token_type_embeddings.weight", "token_embd_norm", "emb_ln",
	"blk.", "encoder.layers.", "attn_qkv", "attn.Wqkv", "attn_output_norm", "norm1", "attn_output", "attn.out_proj", "layer_output_norm", "norm2",
}

// nomicConfig is the settings that both models of Nomic share, by the names of GPT-2.
func nomicConfig(more map[string]any) map[string]any {
	c := map[string]any{
		"n_embd": 64, "n_layer": 3, "n_head": 4, "n_inner": 64, "n_positions": 8192, "max_trained_positions": 64, "layer_norm_epsilon": 1e-12,
		"prenorm": false, "parallel_block": false, "use_rms_norm": nil, "causal": false, "rotary_emb_fraction": 1.0, "rotary_emb_base": 1000,
		"rotary_emb_interleaved": false, "rotary_emb_scale_base": nil, "rotary_scaling_factor": nil, "type_vocab_size": 2, "scale_attn_weights": true,
	}
	maps.Copy(c, more)
	return c
}

func TestNomic(t *testing.T) {
	t.Run("plain", func(t *testing.T) {
		f, want := encoder(t, "NomicBertModel", "nomic-bert", nomicConfig(map[string]any{"activation_function": "swiglu"}),
			append(nomicNames, "ffn_up", "mlp.fc11", "ffn_gate", "mlp.fc12", "ffn_down", "mlp.fc2")...)
		n := opened(t, f, want, `{"pooling_mode_mean_tokens": true}`)
		if n("pooling_type") != 1 || n("context_length") != 64 || n("rope.dimension_count") != 16 {
			t.Errorf("pooling %d, context %d, %d values rotate", n("pooling_type"), n("context_length"), n("rope.dimension_count"))
		}
		if x, _, _ := open(t, write(t, f)).Float("nomic-bert.rope.freq_base"); x != 1000 {
			t.Errorf("the base is %v", x)
		}
	})
	t.Run("mixture", func(t *testing.T) {
		f, want := nomicMixture(t)
		n := opened(t, f, want, `{"pooling_mode_mean_tokens": true}`)
		if n("moe_every_n_layers") != 2 || n("expert_count") != 6 || n("expert_used_count") != 2 {
			t.Errorf("%d of %d experts in one layer of %d", n("expert_used_count"), n("expert_count"), n("moe_every_n_layers"))
		}
		dir := write(t, f)
		if err := os.WriteFile(filepath.Join(dir, "sentence_bert_config.json"), []byte(`{"max_seq_length": 48}`), 0o644); err != nil {
			t.Fatal(err)
		}
		if n, _, _ := open(t, dir).Uint("nomic-bert-moe.context_length"); n != 48 {
			t.Errorf("the context is %d", n)
		}
	})
	for key, value := range map[string]any{
		"activation_function": "swiglu", "prenorm": true, "parallel_block": true, "use_rms_norm": true, "causal": true, "rotary_emb_fraction": 0.5,
		"rotary_emb_interleaved": true, "rotary_emb_scale_base": 512, "scale_attn_weights": false, "num_shared_experts": 1, "moe_normalize_expert_weights": true,
		"expert_choice_router": true, "ffn_div": 2,
	} {
		t.Run(key, func(t *testing.T) {
			f, _ := nomicMixture(t)
			f.Config[key] = value
			if _, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// nomicMixture takes a model with mixtures apart: the folder has all experts in one matrix, the second ones as [in, out].
func nomicMixture(t *testing.T) (*hftest.Folder, *gguf.File) {
	t.Helper()
	f, want := encoderOf(t, "NomicBertModel", synthetic.Spec{Arch: "nomic-bert-moe", ExpertsBias: true}, nomicConfig(map[string]any{
		"activation_function": "gelu", "moe_every_n_layers": 2, "num_experts": 6, "moe_top_k": 2, "num_shared_experts": 0,
		"moe_normalize_expert_weights": false, "expert_choice_router": false, "ffn_div": 1,
	}), append(nomicNames, "ffn_gate_inp", "mlp.router.layer", "ffn_up_exps.weight", "mlp.experts.mlp.w1", "ffn_down_exps.weight", "mlp.experts.mlp.w2",
		"ffn_exps", "mlp.experts", "ffn_up", "mlp.fc1", "ffn_down", "mlp.fc2")...)
	for name, v := range f.Tensors {
		if strings.HasSuffix(name, "experts.mlp.w2") {
			v = turn(v)
		}
		if len(v.Shape) == 3 {
			v.Shape = []int{v.Shape[0] * v.Shape[1], v.Shape[2]}
		}
		f.Tensors[name] = v
	}
	return f, want
}

// gemmaEmbedding takes EmbeddingGemma apart, with its layers behind the pooling in folders of their own.
func gemmaEmbedding(t *testing.T) (dir func() string, f *hftest.Folder, want *gguf.File) {
	t.Helper()
	f, want = encoderOf(t, "Gemma3TextModel", synthetic.Spec{Arch: "gemma-embedding"}, map[string]any{
		"hidden_activation": "gelu_pytorch_tanh", "use_bidirectional_attention": true, "query_pre_attn_scalar": 16, "head_dim": 16, "num_key_value_heads": 4,
		"sliding_window": 20, "_sliding_window_pattern": 6, "layer_types": []string{"sliding_attention", "sliding_attention", "sliding_attention"},
		"rope_theta": 2000, "rope_local_base_freq": 500, "rms_norm_eps": 1e-5, "attn_logit_softcapping": nil,
	}, "token_embd", "embed_tokens", "output_norm", "norm", "blk.", "layers.", "attn_norm", "input_layernorm", "post_attention_norm", "post_attention_layernorm",
		"attn_q_norm", "self_attn.q_norm", "attn_k_norm", "self_attn.k_norm", "ffn_norm", "pre_feedforward_layernorm", "post_ffw_norm", "post_feedforward_layernorm",
		"attn_q", "self_attn.q_proj", "attn_k", "self_attn.k_proj", "attn_v", "self_attn.v_proj", "attn_output", "self_attn.o_proj",
		"ffn_gate", "mlp.gate_proj", "ffn_up", "mlp.up_proj", "ffn_down", "mlp.down_proj")
	parts := map[string]tensor.View{}
	for name, v := range f.Tensors {
		if strings.HasPrefix(name, "dense_") {
			parts[name[len("dense_"):len("dense_")+1]+"_Dense"] = v
			delete(f.Tensors, name)
		} else if strings.HasSuffix(name, "norm.weight") {
			hftest.SubtractOne(v.Data)
		}
	}
	return func() string {
		dir := write(t, f)
		list := []string{`{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"}`, `{"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}`}
		for _, name := range []string{"2_Dense", "3_Dense"} {
			list = append(list, fmt.Sprintf(`{"path": %q, "type": "sentence_transformers.models.Dense"}`, name))
			v := parts[name]
			one := hftest.Folder{Tensors: map[string]tensor.View{"linear.weight": v}, Config: map[string]any{
				"in_features": v.Shape[1], "out_features": v.Shape[0], "bias": false, "activation_function": "torch.nn.modules.linear.Identity"}}
			sub := filepath.Join(dir, name)
			if err := os.Mkdir(sub, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := one.Write(sub); err != nil {
				t.Fatal(err)
			}
		}
		list = append(list, `{"path": "4_Normalize", "type": "sentence_transformers.models.Normalize"}`)
		overwrite(t, dir, "modules.json", "["+strings.Join(list, ",")+"]")
		return dir
	}, f, want
}

func overwrite(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestGemmaEmbedding expects the model whole, with the layers behind its pooling.
func TestGemmaEmbedding(t *testing.T) {
	make, f, want := gemmaEmbedding(t)
	dir := make()
	if err := pooled(dir, `{"pooling_mode_mean_tokens": true}`); err != nil {
		t.Fatal(err)
	}
	got := open(t, dir)
	compareTensors(t, want, got)
	for _, kv := range want.Metadata {
		v, ok := got.Lookup(kv.Key)
		if !strings.HasPrefix(kv.Key, "general.") && (!ok || fmt.Sprint(v.Any()) != fmt.Sprint(kv.Value.Any())) {
			t.Errorf("key %s is %v, want %v", kv.Key, v.Any(), kv.Value.Any())
		}
	}
	f.Config["use_bidirectional_attention"] = false
	if _, err := Open(make()); err == nil || !strings.Contains(err.Error(), "use_bidirectional_attention is false or missing") {
		t.Errorf("tokens that do not see each other: %v", err)
	}
}

// TestModules spoils the list of modules or a module and expects the message that names it.
func TestModules(t *testing.T) {
	const head = `[{"path": "", "type": "a.Transformer"}, {"path": "1_Pooling", "type": "a.Pooling"}, `
	for _, c := range []struct{ name, file, text, want string }{
		{"activation", "2_Dense/config.json", `{"in_features": 64, "out_features": 128, "bias": false, "activation_function": "torch.nn.modules.activation.Tanh"}`,
			`activation_function is "torch.nn.modules.activation.Tanh"; only torch.nn.modules.linear.Identity is supported`},
		{"no activation", "2_Dense/config.json", `{"in_features": 64, "out_features": 128, "bias": false}`, "Tanh"},
		{"tokens", "2_Dense/config.json", `{"module_input_name": "token_embeddings", "activation_function": "torch.nn.modules.linear.Identity"}`, "module_input_name"},
		{"size", "3_Dense/config.json", `{"in_features": 64, "out_features": 64, "bias": false, "activation_function": "torch.nn.modules.linear.Identity"}`, "shape"},
		{"bias", "3_Dense/config.json", `{"in_features": 128, "out_features": 64, "activation_function": "torch.nn.modules.linear.Identity"}`, "3_Dense/linear.bias"},
		{"kind", "modules.json", head + `{"path": "2_LayerNorm", "type": "sentence_transformers.models.LayerNorm"}]`, `module 2 is "LayerNorm"`},
		{"behind", "modules.json", head + `{"path": "2_N", "type": "N.Normalize"}, {"path": "2_Dense", "type": "a.Dense"}]`, "(Dense) behind Normalize"},
		{"outside", "modules.json", head + `{"path": "../2_Dense", "type": "a.Dense"}]`, "it must be a folder in this one"},
		{"three", "modules.json", head + `{"path": "2_Dense", "type": "a.Dense"}, {"path": "3_Dense", "type": "a.Dense"}, {"path": "3_Dense", "type": "a.Dense"}]`, "more than 2 modules"},
		{"form", "modules.json", `{}`, "modules.json"},
		{"missing", "modules.json", head + `{"path": "5_Dense", "type": "a.Dense"}]`, "5_Dense"},
	} {
		t.Run(c.name, func(t *testing.T) {
			make, _, _ := gemmaEmbedding(t)
			dir := make()
			overwrite(t, dir, filepath.FromSlash(c.file), c.text)
			if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}
