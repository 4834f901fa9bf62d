package hftest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"grove/internal/weights/tensor"
)

// Sizes of the models of [Folder.Become].
const (
	Width, Inner, State, Taps, Heads, Groups = 32, 64, 8, 4, 4, 2 // of the stream; of recurrences
	FFN, Experts, Shared, Latent             = 48, 4, 24, 16
)

// Become makes the folder one of random weights of a class with recurrent layers, as its publisher would save it. The
// tokenizer stays, and so does the number of tokens.
func (f *Folder) Become(class string) error {
	make, ok := hybrids[class]
	if !ok {
		return fmt.Errorf("hftest: class %q is not known", class)
	}
	b := hybrid{rng: rand.New(rand.NewPCG(9, 10)), out: map[string]tensor.View{}, vocab: f.Tensors["model.embed_tokens.weight"].Shape[0]}
	f.Config = make(&b)
	f.Config["architectures"] = []string{class}
	f.Tensors = b.out
	return nil
}

var hybrids = map[string]func(b *hybrid) map[string]any{
	"MambaForCausalLM": (*hybrid).mamba, "Mamba2ForCausalLM": (*hybrid).mamba2, "JambaForCausalLM": (*hybrid).jamba,
	"FalconH1ForCausalLM": (*hybrid).falconH1, "GraniteMoeHybridForCausalLM": (*hybrid).granite, "NemotronHForCausalLM": (*hybrid).nemotron,
}

type hybrid struct {
	rng   *rand.Rand
	out   map[string]tensor.View
	vocab int
}

// put adds a tensor of values about mean.
func (b *hybrid) put(name string, mean, scale float64, shape ...int) {
	v := tensor.View{Type: tensor.F32, Shape: shape}
	for range v.Elems() {
		v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(float32(mean+scale*b.rng.NormFloat64())))
	}
	b.out[name] = v
}

func (b *hybrid) norm(name string, n int) { b.put(name+".weight", 1, 0.1, n) }

func (b *hybrid) matrix(name string, shape ...int) {
	b.put(name+".weight", 0, 1/math.Sqrt(float64(shape[len(shape)-1])), shape...)
}

func (b *hybrid) mixer1(root string) {
	b.matrix(root+"in_proj", 2*Inner, Width)
	b.put(root+"conv1d.weight", 0, 0.5, Inner, 1, Taps)
	b.put(root+"conv1d.bias", 0, 0.2, Inner)
	b.matrix(root+"x_proj", Heads+2*State, Inner)
	b.matrix(root+"dt_proj", Inner, Heads)
	b.put(root+"dt_proj.bias", 0, 0.5, Inner)
	b.put(root+"A_log", 0, 1.5, Inner, State)
	b.put(root+"D", 1, 0.2, Inner)
	b.matrix(root+"out_proj", Width, Inner)
}

func (b *hybrid) mixer2(root string, norm bool) {
	conv := Inner + 2*Groups*State
	b.matrix(root+"in_proj", Inner+conv+Heads, Width)
	b.put(root+"conv1d.weight", 0, 0.5, conv, 1, Taps)
	b.put(root+"conv1d.bias", 0, 0.2, conv)
	b.put(root+"dt_bias", 0, 0.5, Heads)
	b.put(root+"A_log", 0, 1.5, Heads)
	b.put(root+"D", 1, 0.2, Heads)
	if norm {
		b.norm(root+"norm", Inner)
	}
	b.matrix(root+"out_proj", Width, Inner)
}

// attention adds heads of 16 values: two of queries, one of keys.
func (b *hybrid) attention(root string) {
	b.matrix(root+"q_proj", 32, Width)
	b.matrix(root+"k_proj", 16, Width)
	b.matrix(root+"v_proj", 16, Width)
	b.matrix(root+"o_proj", Width, 32)
}

func (b *hybrid) gated(root string) {
	b.matrix(root+"gate_proj", FFN, Width)
	b.matrix(root+"up_proj", FFN, Width)
	b.matrix(root+"down_proj", Width, FFN)
}

// ends adds the tensors outside the layers.
func (b *hybrid) ends(table, norm string) {
	b.put(table+".weight", 0, 1, b.vocab, Width)
	b.norm(norm, Width)
	b.matrix("lm_head", b.vocab, Width)
}

// of returns the beginning of the names of layer l.
func of(root string, l int) string { return fmt.Sprintf("%s%d.", root, l) }

func (b *hybrid) mamba() map[string]any {
	b.ends("backbone.embeddings", "backbone.norm_f")
	for l := range 3 {
		b.norm(of("backbone.layers.", l)+"norm", Width)
		b.mixer1(of("backbone.layers.", l) + "mixer.")
	}
	return map[string]any{
		"hidden_size": Width, "intermediate_size": Inner, "state_size": State, "num_hidden_layers": 3, "conv_kernel": Taps, "expand": 2,
		"time_step_rank": Heads, "layer_norm_epsilon": 1e-5, "hidden_act": "silu", "use_bias": false, "use_conv_bias": true, "tie_word_embeddings": false,
	}
}

func (b *hybrid) mamba2() map[string]any {
	b.ends("backbone.embeddings", "backbone.norm_f")
	for l := range 3 {
		b.norm(of("backbone.layers.", l)+"norm", Width)
		b.mixer2(of("backbone.layers.", l)+"mixer.", true)
	}
	return map[string]any{
		"hidden_size": Width, "state_size": State, "num_hidden_layers": 3, "conv_kernel": Taps, "expand": 2, "num_heads": Heads, "head_dim": Inner / Heads,
		"n_groups": Groups, "layer_norm_epsilon": 1e-5, "hidden_act": "silu", "rms_norm": true, "tie_word_embeddings": false,
	}
}

// attends is the settings of heads that most classes share.
func attends(c map[string]any) map[string]any {
	for key, v := range map[string]any{
		"hidden_size": Width, "intermediate_size": FFN, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "hidden_act": "silu",
		"max_position_embeddings": 512, "tie_word_embeddings": false, "rms_norm_eps": 1e-5,
	} {
		c[key] = v
	}
	return c
}

// jamba has a recurrence, attention and a recurrence, and experts in the second layer.
func (b *hybrid) jamba() map[string]any {
	b.ends("model.embed_tokens", "model.final_layernorm")
	for l := range 3 {
		root := of("model.layers.", l)
		b.norm(root+"input_layernorm", Width)
		b.norm(root+"pre_ff_layernorm", Width)
		if l == 1 {
			b.attention(root + "self_attn.")
			b.matrix(root+"feed_forward.router", Experts, Width)
			for e := range Experts {
				b.gated(of(root+"feed_forward.experts.", e))
			}
			continue
		}
		b.mixer1(root + "mamba.")
		b.norm(root+"mamba.dt_layernorm", Heads)
		b.norm(root+"mamba.b_layernorm", State)
		b.norm(root+"mamba.c_layernorm", State)
		b.gated(root + "feed_forward.")
	}
	return attends(map[string]any{
		"num_hidden_layers": 3, "attn_layer_period": 3, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1,
		"num_experts": Experts, "num_experts_per_tok": 2, "mamba_d_state": State, "mamba_d_conv": Taps, "mamba_expand": 2, "mamba_dt_rank": Heads,
	})
}

func (b *hybrid) falconH1() map[string]any {
	b.ends("model.embed_tokens", "model.final_layernorm")
	for l := range 2 {
		root := of("model.layers.", l)
		b.norm(root+"input_layernorm", Width)
		b.norm(root+"pre_ff_layernorm", Width)
		b.attention(root + "self_attn.")
		b.mixer2(root+"mamba.", false)
		b.gated(root + "feed_forward.")
	}
	return attends(map[string]any{
		"num_hidden_layers": 2, "rope_theta": 1e11, "mamba_d_ssm": Inner, "mamba_n_heads": Heads, "mamba_d_head": Inner / Heads, "mamba_n_groups": Groups,
		"mamba_d_state": State, "mamba_d_conv": Taps, "mamba_rms_norm": false, "mamba_norm_before_gate": true, "embedding_multiplier": 4.0, "lm_head_multiplier": 0.5,
		"attention_in_multiplier": 1.5, "attention_out_multiplier": 0.75, "key_multiplier": 0.25, "ssm_in_multiplier": 2.0, "ssm_out_multiplier": 0.3,
		"mlp_multipliers": []float64{0.8, 0.6}, "ssm_multipliers": []float64{0.5, 1.25, 0.7, 0.9, 1.1},
	})
}

func (b *hybrid) granite() map[string]any {
	b.ends("model.embed_tokens", "model.norm")
	for l := range 3 {
		root := of("model.layers.", l)
		b.norm(root+"input_layernorm", Width)
		b.norm(root+"post_attention_layernorm", Width)
		if l == 1 {
			b.attention(root + "self_attn.")
		} else {
			b.mixer2(root+"mamba.", true)
		}
		b.matrix(root+"block_sparse_moe.router.layer", Experts, Width)
		b.matrix(root+"block_sparse_moe.input_linear", Experts, 2*FFN, Width)
		b.matrix(root+"block_sparse_moe.output_linear", Experts, Width, FFN)
		b.matrix(root+"shared_mlp.input_linear", 2*Shared, Width)
		b.matrix(root+"shared_mlp.output_linear", Width, Shared)
	}
	return attends(map[string]any{
		"num_hidden_layers": 3, "layer_types": []string{"mamba", "attention", "mamba"}, "num_local_experts": Experts, "num_experts_per_tok": 2,
		"shared_intermediate_size": Shared, "mamba_n_heads": Heads, "mamba_d_head": Inner / Heads, "mamba_n_groups": Groups, "mamba_d_state": State, "mamba_d_conv": Taps,
		"mamba_expand": 2, "position_embedding_type": "nope", "embedding_multiplier": 12.0, "residual_multiplier": 0.25, "attention_multiplier": 0.1, "logits_scaling": 3.0,
	})
}

// nemotron has a recurrence, experts that read narrow rows, attention, and experts.
func (b *hybrid) nemotron() map[string]any {
	b.ends("backbone.embeddings", "backbone.norm_f")
	const pattern = "ME*E"
	for l, kind := range pattern {
		root := of("backbone.layers.", l)
		b.norm(root+"norm", Width)
		switch kind {
		case 'M':
			b.mixer2(root+"mixer.", true)
		case '*':
			b.attention(root + "mixer.")
		default:
			b.matrix(root+"mixer.gate", Experts, Width)
			b.put(root+"mixer.gate.e_score_correction_bias", 0, 0.2, Experts)
			b.matrix(root+"mixer.fc1_latent_proj", Latent, Width)
			b.matrix(root+"mixer.fc2_latent_proj", Width, Latent)
			for e := range Experts {
				b.matrix(of(root+"mixer.experts.", e)+"up_proj", FFN, Latent)
				b.matrix(of(root+"mixer.experts.", e)+"down_proj", Latent, FFN)
			}
			b.matrix(root+"mixer.shared_experts.up_proj", Shared, Width)
			b.matrix(root+"mixer.shared_experts.down_proj", Width, Shared)
		}
	}
	c := attends(map[string]any{
		"num_hidden_layers": len(pattern), "hybrid_override_pattern": pattern, "mlp_hidden_act": "relu2", "mamba_hidden_act": "silu", "layer_norm_epsilon": 1e-5,
		"ssm_state_size": State, "mamba_num_heads": Heads, "mamba_head_dim": Inner / Heads, "n_groups": Groups, "conv_kernel": Taps, "expand": 2,
		"n_routed_experts": Experts, "num_experts_per_tok": 2, "moe_intermediate_size": FFN, "moe_shared_expert_intermediate_size": Shared, "n_shared_experts": 1,
		"moe_latent_size": Latent, "norm_topk_prob": true, "routed_scaling_factor": 2.5, "n_group": 1, "topk_group": 1,
	})
	delete(c, "hidden_act")
	return c
}
