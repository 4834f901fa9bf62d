package hf

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// carriedNames are the tensors of Gemma 3n, Gemma 4 and Llama 4 in folders, by their names in GGUF.
var carriedNames = map[string]string{
	"token_embd.weight": "embed_tokens.weight", "output_norm.weight": "norm.weight",
	"per_layer_token_embd.weight": "embed_tokens_per_layer.weight", "per_layer_model_proj.weight": "per_layer_model_projection.weight",
	"per_layer_proj_norm.weight": "per_layer_projection_norm.weight",
	"attn_norm.weight":           "input_layernorm.weight", "post_attention_norm.weight": "post_attention_layernorm.weight",
	"ffn_norm.weight": "pre_feedforward_layernorm.weight", "post_ffw_norm.weight": "post_feedforward_layernorm.weight",
	"pre_ffw_norm_2.weight": "pre_feedforward_layernorm_2.weight", "post_ffw_norm_1.weight": "post_feedforward_layernorm_1.weight",
	"post_ffw_norm_2.weight": "post_feedforward_layernorm_2.weight",
	"attn_q.weight":          "self_attn.q_proj.weight", "attn_k.weight": "self_attn.k_proj.weight", "attn_v.weight": "self_attn.v_proj.weight",
	"attn_output.weight": "self_attn.o_proj.weight", "attn_q_norm.weight": "self_attn.q_norm.weight", "attn_k_norm.weight": "self_attn.k_norm.weight",
	"ffn_gate.weight": "mlp.gate_proj.weight", "ffn_up.weight": "mlp.up_proj.weight", "ffn_down.weight": "mlp.down_proj.weight",
	"inp_gate.weight": "per_layer_input_gate.weight", "proj.weight": "per_layer_projection.weight", "post_norm.weight": "post_per_layer_input_norm.weight",
	"layer_output_scale.weight": "layer_scalar", "ffn_gate_inp.weight": "router.proj.weight", "ffn_gate_inp.scale": "router.scale",
	"ffn_down_exps.scale": "router.per_expert_scale", "ffn_gate_up_exps.weight": "experts.gate_up_proj", "ffn_down_exps.weight": "experts.down_proj",
	"altup_correct_scale.weight": "altup.correct_output_scale", "altup_router_norm.weight": "altup.router_norm.weight",
	"altup_router.weight": "altup.modality_router.weight", "altup_predict_coef.weight": "altup.prediction_coefs.weight",
	"altup_correct_coef.weight": "altup.correction_coefs.weight",
	"self_cond_pre_norm.weight": "self_conditioning.pre_norm.weight", "self_cond_gate.weight": "self_conditioning.gate_proj.weight",
	"self_cond_up.weight": "self_conditioning.up_proj.weight", "self_cond_down.weight": "self_conditioning.down_proj.weight",
	"laurel_l.weight": "laurel.linear_left.weight", "laurel_r.weight": "laurel.linear_right.weight", "laurel_post_norm.weight": "laurel.post_laurel_norm.weight",
}

// carriedFolder writes a model of random weights as a folder of a class, and returns both.
func carriedFolder(t *testing.T, spec synthetic.Spec, class string, config map[string]any) (string, *gguf.File) {
	t.Helper()
	f, want := carried(t, spec, class, config)
	return write(t, f), want
}

// carried makes the folder.
func carried(t *testing.T, spec synthetic.Spec, class string, config map[string]any) (*hftest.Folder, *gguf.File) {
	t.Helper()
	spec.Vocab, spec.Tied = 320, spec.Arch != "llama4"
	metadata, tensors, err := spec.Parts()
	if err != nil {
		t.Fatal(err)
	}
	want, err := gguf.New("wanted", metadata, tensors, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := bare(t, class)
	root := "model."
	if strings.HasSuffix(class, "ForConditionalGeneration") {
		root = "model.language_model."
		f.Tensors["model.vision_tower.x.weight"] = tensors[1]
		f.Tensors["model.embed_audio.x.weight"] = tensors[1]
	}
	if strings.HasSuffix(class, "ForBlockDiffusion") {
		root = "model.decoder."
		for _, name := range []string{"vision_tower.x.weight", "embed_vision.x.weight", "language_model.layers.1.mlp.up_proj.weight"} { // images, and what the decoder has too
			f.Tensors["model.encoder."+name] = tensors[1]
		}
	}
	if spec.Arch != "llama4" {
		f.Config["tie_word_embeddings"] = true
	}
	maps.Copy(f.Config, config)
	turned := map[string][2]tensor.View{}
	for _, v := range tensors {
		name, layer := v.Name, ""
		if rest, ok := strings.CutPrefix(v.Name, "blk."); ok {
			number, rest, _ := strings.Cut(rest, ".")
			name, layer = rest, "layers."+number+"."
		}
		to := root + layer + carriedNames[name]
		switch {
		case name == "output.weight":
			to = "lm_head.weight"
		case name == "rope_freqs.weight":
			continue
		case name == "enc_layer_output_scale.weight":
			to = "model.encoder.language_model." + layer + "layer_scalar"
		case strings.HasPrefix(name, "altup_proj"), strings.HasPrefix(name, "altup_unembd_proj"):
			stem := map[bool]string{true: "altup_projections.", false: "altup_unembed_projections."}[name == "altup_proj.weight"]
			for i := range 3 {
				n := len(v.Data) / 3
				f.Tensors[root+stem+strconv.Itoa(i)+".weight"] = tensor.View{Type: v.Type, Shape: v.Shape[1:], Data: v.Data[i*n : (i+1)*n]}
			}
			continue
		case spec.Arch == "llama4":
			if to = llama4Name(root+layer, name, to); to == "" { // a stack of experts
				pair := turned[layer]
				pair[map[bool]int{true: 1}[name == "ffn_up_exps.weight"]] = v
				if name == "ffn_down_exps.weight" {
					f.Tensors[root+layer+"feed_forward.experts.down_proj"] = turn(v)
					continue
				}
				if turned[layer] = pair; name == "ffn_up_exps.weight" {
					f.Tensors[root+layer+"feed_forward.experts.gate_up_proj"] = turn(pair[0], pair[1])
				}
				continue
			}
		}
		f.Tensors[to] = v
	}
	return f, want
}

func llama4Name(root, name, to string) string {
	switch {
	case strings.HasSuffix(name, "_exps.weight"):
		return ""
	case name == "ffn_norm.weight":
		return root + "post_attention_layernorm.weight"
	case name == "ffn_gate_inp.weight":
		return root + "feed_forward.router.weight"
	case strings.HasSuffix(name, "_shexp.weight"):
		return root + "feed_forward.shared_expert." + strings.TrimSuffix(strings.TrimPrefix(name, "ffn_"), "_shexp.weight") + "_proj.weight"
	}
	return strings.Replace(to, "mlp.", "feed_forward.", 1)
}

// turn returns stacks of matrices [out, in] as one of matrices [in, out of all], of float32.
func turn(stacks ...tensor.View) tensor.View {
	n, in, all := stacks[0].Shape[0], stacks[0].Shape[2], 0
	for _, s := range stacks {
		all += s.Shape[1]
	}
	v := tensor.View{Type: tensor.F32, Shape: []int{n, in, all}, Data: make([]byte, 4*n*in*all)}
	for e := range n {
		at := 0
		for _, s := range stacks {
			for o := range s.Shape[1] {
				for i := range in {
					copy(v.Data[4*((e*in+i)*all+at+o):][:4], s.Data[4*((e*s.Shape[1]+o)*in+i):])
				}
			}
			at += s.Shape[1]
		}
	}
	return v
}

// carriedCase is a class, and a model of it.
type carriedCase struct {
	class  string
	spec   synthetic.Spec
	config map[string]any
}

// carriedCases returns models of Gemma 3n, Gemma 4 and Llama 4.
func carriedCases() []carriedCase {
	kinds := func(n int) (kinds []string) {
		for i := range n {
			kinds = append(kinds, map[bool]string{true: "sliding_attention", false: "full_attention"}[i%4 != 3])
		}
		return kinds
	}
	gemma := func(own map[string]any) map[string]any {
		c := map[string]any{
			"num_hidden_layers": 8, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
			"max_position_embeddings": 4096, "sliding_window": 50, "num_kv_shared_layers": 3, "hidden_size_per_layer_input": 32, "final_logit_softcapping": 5,
			"rms_norm_eps": 1e-5, "layer_types": kinds(8), "hidden_activation": "gelu_pytorch_tanh", "hidden_act": nil, "rope_theta": nil,
		}
		maps.Copy(c, own)
		return c
	}
	four := gemma(map[string]any{
		"global_head_dim": 64, "attention_k_eq_v": true, "num_global_key_value_heads": 1, "use_double_wide_mlp": true,
		"enable_moe_block": true, "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 64,
		"rope_parameters": map[string]any{
			"full_attention":    map[string]any{"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 10000.0},
			"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": 1000.0},
		},
	})
	canvas := maps.Clone(four)
	maps.Copy(canvas, map[string]any{"num_kv_shared_layers": nil, "hidden_size_per_layer_input": nil, "attention_k_eq_v": nil, "enable_moe_block": nil, "use_bidirectional_attention": "vision"})
	share := func(sigmas float64) float64 { return 0.5 * (1 + math.Erf(sigmas/math.Sqrt2)) }
	var sparsity []float64
	for l := range 8 {
		sparsity = append(sparsity, []float64{share(1.2), share(0.5), 0}[l%3])
	}
	three := gemma(map[string]any{"rope_theta": 10000.0, "rope_local_base_freq": 1000.0, "activation_sparsity_pattern": sparsity, "vocab_size_per_layer_input": 320})
	llama := map[string]any{
		"num_hidden_layers": 4, "hidden_size": 64, "intermediate_size": 64, "intermediate_size_mlp": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
		"head_dim": 32, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "num_local_experts": 6, "num_experts_per_tok": 2, "interleave_moe_layer_step": 2,
		"attention_chunk_size": 50, "floor_scale": 16, "attn_scale": 0.5, "attn_temperature_tuning": 4, "no_rope_layers": []int{1, 1, 1, 0}, "rope_theta": 10000.0,
	}
	return []carriedCase{
		{"Gemma4ForConditionalGeneration", synthetic.Spec{Arch: "gemma4", Experts: 4, ExpertsPerToken: 2}, map[string]any{"text_config": four}},
		{"Gemma4ForCausalLM", synthetic.Spec{Arch: "gemma4", Experts: 4, ExpertsPerToken: 2}, four},
		{"DiffusionGemmaForBlockDiffusion", synthetic.Spec{Arch: "diffusion-gemma", Experts: 4, ExpertsPerToken: 2}, map[string]any{"text_config": canvas, "canvas_length": 24}},
		{"Gemma3nForConditionalGeneration", synthetic.Spec{Arch: "gemma3n"}, map[string]any{"text_config": three}},
		{"Gemma3nForCausalLM", synthetic.Spec{Arch: "gemma3n"}, three},
		{"Llama4ForCausalLM", synthetic.Spec{Arch: "llama4", Layers: 4}, llama},
	}
}

// TestCarried opens folders of Gemma 3n, Gemma 4 and Llama 4 and expects the tensors and the settings of the model that they were
// made of.
func TestCarried(t *testing.T) {
	for _, c := range carriedCases() {
		t.Run(c.class, func(t *testing.T) {
			dir, want := carriedFolder(t, c.spec, c.class, c.config)
			const passes = `{"max_denoising_steps": 8, "t_min": 0.25, "stability_threshold": 2, "sampler_config": {"entropy_bound": 3.0}}`
			if err := os.WriteFile(filepath.Join(dir, GenerationName), []byte(passes), 0o644); err != nil { // of DiffusionGemma
				t.Fatal(err)
			}
			got := open(t, dir)
			compareTensors(t, want, got)
			for _, kv := range want.Metadata {
				if strings.HasPrefix(kv.Key, "general.") {
					continue
				}
				v, ok := got.Lookup(kv.Key)
				if !ok && strings.HasSuffix(kv.Key, "feed_forward_length") && c.spec.Arch == "llama4" {
					continue
				}
				a, b := fmt.Sprint(v.Any()), fmt.Sprint(kv.Value.Any())
				if strings.HasSuffix(kv.Key, "feed_forward_length") && c.spec.Arch == "gemma3n" {
					b = fmt.Sprint(slices.Repeat([]uint32{64}, 8))
				}
				if !ok || a != b && !strings.HasSuffix(kv.Key, "activation_sparsity_scale") {
					t.Errorf("key %s is %s, want %s", kv.Key, a, b)
				}
			}
			if c.spec.Arch == "diffusion-gemma" {
				coldest, _, _ := got.Float("diffusion.eb_t_min")
				if stable, _, _ := got.Uint("diffusion.eb_stability_threshold"); coldest != 0.25 || stable != 2 {
					t.Errorf("a temperature of %v, %d stable passes", coldest, stable)
				}
			}
			if values, ok, _ := got.Floats("gemma3n.activation_sparsity_scale"); ok && (math.Abs(float64(values[0])-1.2) > 1e-5 || !math.IsInf(float64(values[2]), -1)) {
				t.Errorf("quantiles are %v, want 1.2, 0.5 and none", values)
			}
		})
	}
}

// TestCarriedShort: a second table that lacks the last tokens has the row of token 0 for them.
func TestCarriedShort(t *testing.T) {
	f := bare(t, "Gemma4ForCausalLM")
	f.Tensors["model.embed_tokens.weight"] = tensor.View{Type: tensor.F32, Shape: []int{4, 2}, Data: make([]byte, 32)}
	table := tensor.View{Type: tensor.F32, Shape: []int{3, 2}, Data: make([]byte, 24)}
	for i := range table.Data {
		table.Data[i] = byte(i + 1)
	}
	f.Tensors["model.embed_tokens_per_layer.weight"] = table
	f.Tensors["model.per_layer_model_projection.weight"] = tensor.View{Type: tensor.F32, Shape: []int{2, 2}, Data: make([]byte, 16)}
	f.Tensors["model.per_layer_projection_norm.weight"] = tensor.View{Type: tensor.F32, Shape: []int{2}, Data: make([]byte, 8)}
	dir := write(t, f)
	weights, err := OpenWeights(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Close()
	b := &builder{&DecoderBuilder{FolderBuilder: NewFolder(dir)}}
	b.Weights, b.Vocab, b.Config = weights, 4, &FolderConfig{Err: new(error)}
	b.LayerInputs("model.", 1, 2, 2)
	if err := b.FirstError(); err != nil {
		t.Fatal(err)
	}
	data, err := b.Load(0)
	if want := append(slices.Clone(table.Data), table.Data[:8]...); err != nil || !slices.Equal(data, want) {
		t.Errorf("the table is %v, want %v: %v", data, want, err)
	}
}

// TestCarriedRefused spoils one setting and expects the message that names it.
func TestCarriedRefused(t *testing.T) {
	base := map[string]any{
		"num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
		"max_position_embeddings": 128, "sliding_window": 50, "layer_types": []string{"sliding_attention", "full_attention"}, "num_kv_shared_layers": 0,
		"hidden_act": nil, "activation_sparsity_pattern": []float64{0, 0},
	}
	llama := map[string]any{"num_local_experts": 4, "num_experts_per_tok": 1, "hidden_act": "silu"}
	for _, c := range []struct {
		class, key string
		value      any
		want       string
	}{
		{"Gemma4ForCausalLM", "layer_types", []string{"full_attention"}, "layer_types has 1 entries, there are 2 layers"},
		{"Gemma4ForCausalLM", "layer_types", []string{"full_attention", "linear"}, `layer_types has "linear" for layer 1; it must be sliding_attention or full_attention`},
		{"Gemma4ForCausalLM", "attention_bias", true, "attention_bias is not supported"},
		{"Gemma4ForCausalLM", "num_kv_shared_layers", 2, "num_kv_shared_layers is 2; it must be an integer from 0 to 1"},
		{"Gemma4ForCausalLM", "rope_parameters", map[string]any{"full_attention": map[string]any{"rope_type": "yarn"}}, `rope_type is "yarn"; it must be default or proportional`},
		{"DiffusionGemmaForBlockDiffusion", "num_kv_shared_layers", 1, "num_kv_shared_layers is 1; it must be 0"},
		{"DiffusionGemmaForBlockDiffusion", "per_layer_config", map[string]any{"1": map[string]any{"head_dim": 64}}, "per_layer_config is not supported; global_head_dim and num_global_key_value_heads say"},
		{"DiffusionGemmaForBlockDiffusion", "use_bidirectional_attention", "all", `use_bidirectional_attention is "all"; it must be vision or missing`},
		{"DiffusionGemmaForBlockDiffusion", "tie_word_embeddings", false, "tie_word_embeddings is false; the text and the canvas must have the same weights"},
		{"DiffusionGemmaForBlockDiffusion", "canvas_length", 0, "canvas_length is 0; it must be an integer from 1 to 128"},
		{"DiffusionGemmaForBlockDiffusion", "canvas_length", 12, "model.decoder.embed_tokens.weight: the tensor is missing"},
		{"Gemma3nForCausalLM", "altup_num_inputs", 3, "altup_num_inputs 3 is not supported; it must be 4"},
		{"Gemma3nForCausalLM", "activation_sparsity_pattern", []float64{0, 1}, "activation_sparsity_pattern has 1 for layer 1; it must be from 0 to 1"},
		{"Gemma3nForCausalLM", "intermediate_size", []int{64, 0}, "intermediate_size has 0 for layer 1; it must be 1 to 1048576"},
		{"Llama4ForCausalLM", "use_qk_norm", false, "use_qk_norm is false; with 4 experts it must be true"},
		{"Llama4ForCausalLM", "no_rope_layers", []int{1, 0}, "no_rope_layers is [1 0]; every fourth layer must be without rotation"},
	} {
		t.Run(c.class+" "+c.key, func(t *testing.T) {
			f := bare(t, c.class)
			maps.Copy(f.Config, base)
			if strings.HasPrefix(c.class, "Diffusion") {
				maps.Copy(f.Config, map[string]any{"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 64, "tie_word_embeddings": true})
			}
			if strings.HasPrefix(c.class, "Llama4") {
				maps.Copy(f.Config, llama)
			}
			f.Config[c.key] = c.value
			f.Tensors["model.embed_tokens.weight"] = tensor.View{Type: tensor.F32, Shape: []int{4, 64}, Data: make([]byte, 1024)}
			if _, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}
