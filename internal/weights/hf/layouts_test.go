package hf

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// layout is how a family's folder differs from the names that most have.
type layout struct {
	class  string
	config map[string]any
	names  []string // pairs: in GGUF, in the folder; before the usual ones
	// split takes a tensor of a layer apart, and reports whether it did.
	split func(out map[string]tensor.View, layer int, part string, v tensor.View) bool
}

var usualNames = []string{
	"token_embd", "model.embed_tokens", "output_norm", "model.norm", "blk.", "model.layers.", "attn_norm", "input_layernorm", "ffn_norm", "post_attention_layernorm",
	"attn_q_norm", "self_attn.q_norm", "attn_k_norm", "self_attn.k_norm", "attn_q_a_norm", "self_attn.q_a_layernorm", "attn_kv_a_norm", "self_attn.kv_a_layernorm",
	"attn_q_a", "self_attn.q_a_proj", "attn_q_b", "self_attn.q_b_proj", "attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa", "attn_kv_b", "self_attn.kv_b_proj",
	"attn_q.", "self_attn.q_proj.", "attn_k.", "self_attn.k_proj.", "attn_v.", "self_attn.v_proj.", "attn_output.", "self_attn.o_proj.", "output.", "lm_head.",
	"ffn_gate_inp", "mlp.gate", "ffn_gate_shexp", "mlp.shared_experts.gate_proj", "ffn_up_shexp", "mlp.shared_experts.up_proj", "ffn_down_shexp", "mlp.shared_experts.down_proj",
	"ffn_gate.", "mlp.gate_proj.", "ffn_up.", "mlp.up_proj.", "ffn_down.", "mlp.down_proj.",
}

// folder takes a model apart.
func (l layout) folder(t *testing.T, want *gguf.File) *hftest.Folder {
	t.Helper()
	f := &hftest.Folder{Config: map[string]any{}, Tensors: map[string]tensor.View{}}
	f.Tokenizer, f.Names = hftest.Vocabulary(want)
	if tokens, _, _ := want.Strings("tokenizer.ggml.tokens"); len(tokens) == 0 {
		other := bare(t, l.class)
		f.Tokenizer, f.Names = other.Tokenizer, other.Names
	}
	f.Tokenizer["post_processor"] = nil
	arch, _, _ := want.String("general.architecture")
	count := func(key string) int { n, _, _ := want.Uint(arch + "." + key); return n }
	_, untied := want.Tensor("output.weight")
	for key, v := range map[string]any{
		"architectures": []string{l.class}, "num_hidden_layers": count("block_count"), "hidden_size": count("embedding_length"), "intermediate_size": count("feed_forward_length"),
		"num_attention_heads": count("attention.head_count"), "num_key_value_heads": count("attention.head_count_kv"), "max_position_embeddings": count("context_length"),
		"rms_norm_eps": 1e-5, "layer_norm_epsilon": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": !untied, "num_experts_per_tok": count("expert_used_count"),
		"moe_intermediate_size": count("expert_feed_forward_length"), "head_dim": count("attention.key_length"),
	} {
		f.Config[key] = v
	}
	if f.Config["head_dim"] == 0 {
		delete(f.Config, "head_dim")
	}
	maps.Copy(f.Config, l.config)
	rename := strings.NewReplacer(append(slices.Clone(l.names), usualNames...)...)
	for _, v := range want.Tensors {
		v.Data = slices.Clone(v.Data)
		var layer int
		if n, _ := fmt.Sscanf(v.Name, "blk.%d.", &layer); n == 1 && l.split != nil && l.split(f.Tensors, layer, strings.TrimPrefix(v.Name, fmt.Sprintf("blk.%d.", layer)), v) {
			continue
		}
		name := rename.Replace(v.Name)
		part, ok := map[string]string{"ffn_gate_exps": "gate_proj", "ffn_up_exps": "up_proj", "ffn_down_exps": "down_proj"}[strings.TrimSuffix(name[strings.LastIndex(name, ".ffn_")+1:], ".weight")]
		if !ok {
			f.Tensors[name] = v
			continue
		}
		size := len(v.Data) / v.Shape[0]
		for e := range v.Shape[0] {
			f.Tensors[fmt.Sprintf("model.layers.%d.mlp.experts.%d.%s.weight", layer, e, part)] = tensor.View{Type: v.Type, Shape: v.Shape[1:], Data: v.Data[e*size:][:size]}
		}
	}
	return f
}

// check opens the folder and expects the model whole: its tensors, and what the folder says of the architecture.
func (l layout) check(t *testing.T, want *gguf.File, f *hftest.Folder) {
	t.Helper()
	got := open(t, write(t, f))
	compareTensors(t, want, got)
	arch, _, _ := want.String("general.architecture")
	for _, kv := range got.Metadata {
		w, ok := want.Lookup(kv.Key)
		one := func(v gguf.Value) string { // of all layers, where each has the same
			text := fmt.Sprint(v.Any())
			if all := slices.Compact(strings.Fields(strings.Trim(text, "[]"))); len(all) == 1 {
				return all[0]
			}
			return text
		}
		a, b := one(kv.Value), one(w)
		if ok && strings.HasPrefix(kv.Key, arch+".") && a != b && b != "0" && b != "false" {
			t.Errorf("key %s is %s, want %s", kv.Key, a, b)
		}
	}
}

// archFile opens a random model of ../shared without some tensors.
func archFile(t *testing.T, name string, lacks ...string) *gguf.File {
	t.Helper()
	return without(t, beside(t, filepath.Join("../../../../shared/golden/archs", name+".gguf")), lacks...)
}

// randomModel makes a model of random weights.
func randomModel(t *testing.T, spec synthetic.Spec) *gguf.File {
	t.Helper()
	spec.Vocab = 320
	metadata, tensors, err := spec.Parts()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// falconLayout joins queries, keys and values: the queries of a head of keys, its key, its value.
func falconLayout(class string, heads, kv int, config map[string]any, norms ...string) layout {
	return layout{class: class, config: config, names: append(norms,
		"token_embd", "transformer.word_embeddings", "output_norm", "transformer.ln_f", "blk.", "transformer.h.", "attn_output", "self_attention.dense",
		"ffn_up", "mlp.dense_h_to_4h", "ffn_down", "mlp.dense_4h_to_h"),
		split: func(out map[string]tensor.View, layer int, part string, v tensor.View) bool {
			if part != "attn_qkv.weight" {
				return false
			}
			head := len(v.Data) / (heads + 2*kv)
			var data []byte
			for k := range kv {
				group := heads / kv
				data = append(data, v.Data[k*group*head:][:group*head]...)
				data = append(data, v.Data[(heads+k)*head:][:head]...)
				data = append(data, v.Data[(heads+kv+k)*head:][:head]...)
			}
			v.Data = data
			out[fmt.Sprintf("transformer.h.%d.self_attention.query_key_value.weight", layer)] = v
			return true
		}}
}

// TestFalcon covers both layouts of norms and the three numbers of heads of keys.
func TestFalcon(t *testing.T) {
	t.Run("FalconForCausalLM", func(t *testing.T) {
		want := archFile(t, "falcon-dense")
		l := falconLayout("FalconForCausalLM", 4, 2, map[string]any{
			"new_decoder_architecture": true, "num_kv_heads": 2, "ffn_hidden_size": 96, "activation": "gelu", "bias": false, "alibi": false, "parallel_attn": true,
		}, "attn_norm_2", "ln_attn", "attn_norm", "ln_mlp")
		f := l.folder(t, want)
		l.check(t, want, f)
		for key, value := range map[string]any{"alibi": true, "bias": true, "activation": "relu", "num_kv_heads": 3} {
			was := f.Config[key]
			f.Config[key] = value
			if _, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: %v", key, err)
			}
			f.Config[key] = was
		}
	})
	t.Run("RWForCausalLM", func(t *testing.T) { // a norm for both blocks, and one head of keys or one for each of queries
		for kv, multi := range map[int]bool{1: true, 4: false} {
			l := falconLayout("RWForCausalLM", 4, kv, map[string]any{"n_layer": 1, "n_head": 4, "multi_query": multi, "parallel_attn": true}, "attn_norm", "input_layernorm")
			f := bare(t, l.class)
			clear(f.Config)
			maps.Copy(f.Config, l.config)
			f.Config["architectures"], f.Config["hidden_size"] = []string{l.class}, 64
			rng := rand.New(rand.NewPCG(1, 2))
			put := func(name string, shape ...int) { f.Tensors["transformer."+name] = random(rng, shape...) }
			put("word_embeddings.weight", 320, 64)
			for _, norm := range []string{"ln_f", "h.0.input_layernorm"} {
				put(norm+".weight", 64)
				put(norm+".bias", 64)
			}
			qkv := random(rng, (4+2*kv)*16, 64)
			l.split(f.Tensors, 0, "attn_qkv.weight", qkv)
			put("h.0.self_attention.dense.weight", 64, 64)
			put("h.0.mlp.dense_h_to_4h.weight", 256, 64)
			put("h.0.mlp.dense_4h_to_h.weight", 64, 256)
			got := open(t, write(t, f))
			v, _ := got.Tensor("blk.0.attn_qkv.weight")
			if v, err := got.Load(v); err != nil || !bytes.Equal(v.Data, qkv.Data) {
				t.Errorf("%d heads of keys: queries, keys and values differ, %v", kv, err)
			}
			if n, _, _ := got.Uint("falcon.attention.head_count_kv"); n != kv {
				t.Errorf("%d heads of keys, want %d", n, kv)
			}
			f.Config["parallel_attn"] = false
			if _, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), "parallel_attn is false; it must be true") {
				t.Errorf("blocks one behind the other: %v", err)
			}
		}
	})
}

// TestGPTBigCode makes a model of one head of keys: the golden one has two, which no folder has.
func TestGPTBigCode(t *testing.T) {
	f := bare(t, "GPTBigCodeForCausalLM")
	clear(f.Config)
	maps.Copy(f.Config, map[string]any{
		"architectures": []string{"GPTBigCodeForCausalLM"}, "n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 48, "n_inner": 96, "multi_query": true,
		"activation_function": "gelu_pytorch_tanh", "layer_norm_epsilon": 1e-5, "scale_attn_weights": true,
	})
	rng := rand.New(rand.NewPCG(3, 4))
	want := map[string]tensor.View{}
	put := func(to, from string, shape ...int) {
		want[to] = random(rng, shape...)
		f.Tensors["transformer."+from] = want[to]
	}
	put("token_embd.weight", "wte.weight", 320, 64)
	put("position_embd.weight", "wpe.weight", 48, 64)
	norm := func(to, from string) {
		put(to+".weight", from+".weight", 64)
		put(to+".bias", from+".bias", 64)
	}
	norm("output_norm", "ln_f")
	for l := range 2 {
		to, from := fmt.Sprintf("blk.%d.", l), fmt.Sprintf("h.%d.", l)
		norm(to+"attn_norm", from+"ln_1")
		norm(to+"ffn_norm", from+"ln_2")
		for _, n := range []struct {
			to, from string
			out, in  int
		}{{"attn_qkv", "attn.c_attn", 96, 64}, {"attn_output", "attn.c_proj", 64, 64}, {"ffn_up", "mlp.c_fc", 96, 64}, {"ffn_down", "mlp.c_proj", 64, 96}} {
			put(to+n.to+".weight", from+n.from+".weight", n.out, n.in)
			put(to+n.to+".bias", from+n.from+".bias", n.out)
		}
	}
	f.Tensors["transformer.h.0.attn.bias"] = random(rng, 1, 1, 4, 4) // a mask
	got := open(t, write(t, f))
	if len(got.Tensors) != len(want) {
		t.Errorf("%d tensors, want %d", len(got.Tensors), len(want))
	}
	for name, w := range want {
		v, ok := got.Tensor(name)
		if v, err := got.Load(v); !ok || err != nil || !bytes.Equal(v.Data, w.Data) {
			t.Errorf("%s differs, %v", name, err)
		}
	}
	if n, _, _ := got.Uint("starcoder.attention.head_count_kv"); n != 1 {
		t.Errorf("%d heads of keys", n)
	}
	for key, value := range map[string]any{"multi_query": false, "scale_attn_weights": false, "activation_function": "relu"} {
		was := f.Config[key]
		f.Config[key] = value
		if _, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
		f.Config[key] = was
	}
}

// spoiled expects each setting, changed alone, to be refused by name.
func spoiled(t *testing.T, f *hftest.Folder, settings map[string]any) {
	t.Helper()
	for key, value := range settings {
		was, there := f.Config[key]
		f.Config[key] = value
		if _, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
		if delete(f.Config, key); there {
			f.Config[key] = was
		}
	}
}

func TestMiniCPM3(t *testing.T) {
	want := archFile(t, "minicpm3-dense")
	factors := func(name string) []float32 { return load(t, want, name) }
	l := layout{class: "MiniCPM3ForCausalLM", config: map[string]any{
		"hidden_act": "silu", "q_lora_rank": 512, "kv_lora_rank": 512, "qk_nope_head_dim": 0, "qk_rope_head_dim": 16, "v_head_dim": 16, "scale_emb": 12, "scale_depth": 1.4,
		"dim_model_base": 256, "rope_scaling": map[string]any{"rope_type": "longrope", "long_factor": factors("rope_factors_long.weight"),
			"short_factor": factors("rope_factors_short.weight"), "original_max_position_embeddings": 128},
	}}
	f := l.folder(t, want)
	delete(f.Tensors, "rope_factors_long.weight")
	delete(f.Tensors, "rope_factors_short.weight")
	l.check(t, want, f)
	spoiled(t, f, map[string]any{"scale_emb": 10, "scale_depth": 1, "dim_model_base": 128, "hidden_act": "gelu"})
}

func TestErnieMoE(t *testing.T) {
	want := archFile(t, "ernie4_5-moe-moe")
	l := layout{class: "Ernie4_5_MoeForCausalLM", config: map[string]any{
		"hidden_act": "silu", "moe_k": 2, "moe_num_experts": 4, "moe_layer_start_index": 1, "moe_layer_end_index": -1, "moe_layer_interval": 1, "moe_num_shared_experts": 0,
		"moe_intermediate_size": 96,
	}, split: func(out map[string]tensor.View, layer int, part string, v tensor.View) bool {
		if part == "exp_probs_b.bias" {
			v.Shape = []int{1, v.Shape[0]}
			out[fmt.Sprintf("model.layers.%d.mlp.moe_statics.e_score_correction_bias", layer)] = v
		}
		return part == "exp_probs_b.bias"
	}}
	for i, kv := range want.Metadata {
		if strings.HasSuffix(kv.Key, "interleave_moe_layer_step") { // the file's number is not that of its layers
			want.Metadata[i].Value = gguf.Of(uint32(1))
		}
	}
	f := l.folder(t, want)
	delete(f.Config, "num_experts_per_tok")
	f.Tensors["model.mtp_emb_norm.0.weight"] = tensor.View{Type: tensor.F32, Shape: []int{1}, Data: make([]byte, 4)} // is left out
	l.check(t, want, f)
	spoiled(t, f, map[string]any{"hidden_act": "gelu", "moe_layer_end_index": 1, "moe_gate": "other"})
}

func TestExaoneMoE(t *testing.T) {
	want := archFile(t, "exaone-moe-moe", "rope_freqs.weight")
	kinds := []string{"sliding_attention", "full_attention", "sliding_attention"}
	for _, bias := range []string{"mlp.e_score_correction_bias", "mlp.gate.e_score_correction_bias"} {
		l := layout{class: "ExaoneMoEForCausalLM", config: map[string]any{
			"hidden_act": "silu", "num_experts": 4, "num_shared_experts": 1, "first_k_dense_replace": 1, "norm_topk_prob": false, "routed_scaling_factor": 1.5, "scoring_func": "sigmoid",
			"sliding_window": 16, "layer_types": kinds, "n_group": 1, "topk_group": 1,
		}, names: []string{"exp_probs_b.bias", bias}}
		f := l.folder(t, want)
		got := open(t, write(t, f))
		compareTensors(t, want, got)
		if n, _, _ := got.Uint("exaone-moe.leading_dense_block_count"); n != 1 {
			t.Errorf("%d leading layers", n)
		}
		spoiled(t, f, map[string]any{"hidden_act": "gelu", "layer_types": kinds[:2], "topk_method": "greedy", "scoring_func": "tanh"})
		// a layer that predicts a further token
		rng := rand.New(rand.NewPCG(7, 8))
		f.Tensors["mtp.fc.weight"] = random(rng, 64, 128)
		for _, n := range []string{"pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"} {
			f.Tensors["mtp."+n+".weight"] = random(rng, 64)
		}
		for name, v := range maps.Clone(f.Tensors) {
			if rest, ok := strings.CutPrefix(name, "model.layers.0."); ok {
				f.Tensors["mtp.layers.0."+rest] = v
			}
		}
		f.Config["num_nextn_predict_layers"] = 1
		got = open(t, write(t, f))
		if n, _, _ := got.Uint("exaone-moe.block_count"); n != 4 {
			t.Errorf("%d layers with the predictor", n)
		}
		if a, b := load(t, got, "blk.3.ffn_up.weight"), load(t, got, "blk.0.ffn_up.weight"); !slices.Equal(a, b) {
			t.Error("the predictor's layer differs")
		}
		if a := load(t, got, "blk.3.nextn.eh_proj.weight"); !slices.Equal(a, floats(f.Tensors["mtp.fc.weight"])) {
			t.Error("the predictor's matrix differs")
		}
	}
}

// TestQwen3VLMoE covers experts as [out, in], which newer programs write, and settings that are refused.
func TestQwen3VLMoE(t *testing.T) {
	want := archFile(t, "qwen3vlmoe-moe", "cls.output.weight")
	experts := func(name string) tensor.View {
		v, _ := want.Tensor(name)
		return v
	}
	change := func(more func(f *hftest.Folder)) string {
		return folderOf(t, want, func(f *hftest.Folder) {
			f.Tokenizer["post_processor"] = nil
			f.Tensors["model.visual.merger.norm.weight"] = tensor.View{Type: tensor.F32, Shape: []int{1}, Data: make([]byte, 4)} // is left out
			more(f)
		})
	}
	both := map[string][]byte{}
	got := open(t, change(func(f *hftest.Folder) {
		for l := range 3 {
			gate, up, down := experts(fmt.Sprintf("blk.%d.ffn_gate_exps.weight", l)), experts(fmt.Sprintf("blk.%d.ffn_up_exps.weight", l)), experts(fmt.Sprintf("blk.%d.ffn_down_exps.weight", l))
			n, ffn, width := gate.Shape[0], gate.Shape[1], gate.Shape[2]
			var data []byte
			for e, size := 0, len(gate.Data)/n; e < n; e++ {
				data = append(append(data, gate.Data[e*size:][:size]...), up.Data[e*size:][:size]...)
			}
			root := fmt.Sprintf("model.language_model.layers.%d.mlp.experts.", l)
			f.Tensors[root+"gate_up_proj"] = tensor.View{Type: tensor.F32, Shape: []int{n, 2 * ffn, width}, Data: data}
			f.Tensors[root+"down_proj"] = tensor.View{Type: tensor.F32, Shape: down.Shape, Data: down.Data}
			both[fmt.Sprintf("blk.%d.ffn_gate_up_exps.weight", l)], both[down.Name] = data, down.Data
		}
	}))
	for name, data := range both {
		v, _ := got.Tensor(name)
		if v, err := got.Load(v); err != nil || !bytes.Equal(v.Data, data) {
			t.Errorf("%s differs, %v", name, err)
		}
	}
	for key, value := range map[string]any{"decoder_sparse_step": 2, "mlp_only_layers": []int{0}, "norm_topk_prob": false, "hidden_act": "relu"} {
		dir := change(func(f *hftest.Folder) { f.Config["text_config"].(map[string]any)[key] = value })
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
