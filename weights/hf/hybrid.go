package hf

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"grove/weights/gguf"
)

func init() {
	maps.Copy(families, map[string]func(*builder){
		"MambaForCausalLM":            mamba,
		"Mamba2ForCausalLM":           mamba2,
		"JambaForCausalLM":            jamba,
		"FalconH1ForCausalLM":         falconH1,
		"GraniteMoeHybridForCausalLM": graniteHybrid,
		"NemotronHForCausalLM":        nemotronH,
	})
}

// unbounded is the context of models that have no longest text.
const unbounded = 1 << 20

// backboneEnds adds the embedding table, the final norm and the head of models whose tensors are below backbone.
func (b *builder) backboneEnds(width int, tied bool) {
	const table = "backbone.embeddings.weight"
	if t, _ := b.weights.Tensor(table); len(t.Shape) == 2 {
		b.vocab = t.Shape[0]
	}
	b.copy("token_embd.weight", table, b.vocab, width)
	b.norm("output_norm.weight", "backbone.norm_f.weight", width, 0)
	b.head("lm_head.weight", width, tied)
}

// epsilon adds the epsilon of RMSNorm, under the name that a family gives it.
func (b *builder) epsilon(key string, other float64) {
	b.setFloat(".attention.layer_norm_rms_epsilon", b.config.floatOr(key, other, 0, 1))
}

// withoutHeads describes a model that does not attend.
func (b *builder) withoutHeads(arch string) shape {
	s := shape{layers: b.config.count("num_hidden_layers", 1, maxLayers), width: b.config.count("hidden_size", 1, maxWidth), context: unbounded}
	b.describe(arch, s)
	b.metadata = slices.DeleteFunc(b.metadata, func(kv gguf.KV) bool { // no head has a size
		return strings.HasSuffix(kv.Key, ".attention.key_length") || strings.HasSuffix(kv.Key, ".attention.value_length")
	})
	b.epsilon("layer_norm_epsilon", 1e-5)
	return s
}

func mamba(b *builder) {
	c := b.config
	c.only("hidden_act", "silu")
	s := b.withoutHeads("mamba")
	r := recurrence{
		inner: c.countOr("expand", 2, 1, maxWidth) * s.width, taps: c.countOr("conv_kernel", 4, 2, maxTaps),
		state: c.countOr("state_size", 16, 1, maxState), rank: b.rank("time_step_rank", s.width),
	}
	r.inner = c.countOr("intermediate_size", r.inner, 1, maxWidth)
	r.describe(b)
	set(b, ".ssm.dt_b_c_rms", false)
	b.backboneEnds(s.width, true)
	b.layers(s.layers, "backbone.layers.", func(to, from func(string) string) {
		b.norm(to("attn_norm.weight"), from("norm.weight"), s.width, 0)
		b.mamba1(r, s.width, to, from("mixer."))
	})
}

// rank returns the rank of the matrix that makes Mamba's steps, by default a sixteenth of the width.
func (b *builder) rank(key string, width int) int {
	if b.config.word(key) == "auto" {
		return (width + 15) / 16
	}
	return b.config.countOr(key, (width+15)/16, 1, maxHeads)
}

func mamba2(b *builder) {
	c := b.config
	c.only("hidden_act", "silu")
	s := b.withoutHeads("mamba2")
	if !c.boolOr("rms_norm", true) {
		c.fail("rms_norm must be true")
	}
	r := b.mamba2Settings(c.countOr("expand", 2, 1, maxWidth)*s.width,
		map[string]string{"taps": "conv_kernel", "state": "state_size", "heads": "num_heads", "groups": "n_groups", "size": "head_dim"})
	r.describe(b)
	b.backboneEnds(s.width, false)
	b.layers(s.layers, "backbone.layers.", func(to, from func(string) string) {
		b.norm(to("attn_norm.weight"), from("norm.weight"), s.width, 0)
		b.mamba2(r, s.width, to, from("mixer."), nil, 1)
	})
}

// jamba has layers that attend and layers with a mixture, each by a period and an offset.
func jamba(b *builder) {
	c := b.config
	c.only("hidden_act", "silu")
	s := b.decoder("jamba")
	b.rmsEps(1e-6)
	r := recurrence{
		inner: c.countOr("mamba_expand", 2, 1, maxWidth) * s.width, taps: c.countOr("mamba_d_conv", 4, 2, maxTaps),
		state: c.countOr("mamba_d_state", 16, 1, maxState), rank: b.rank("mamba_dt_rank", s.width),
	}
	r.describe(b)
	if c.has("sliding_window") {
		c.fail("sliding_window is not supported")
	}
	attends := b.periodic("attn_layer", 8, 4)
	routes := b.periodic("expert_layer", 2, 1)
	experts := c.countOr("num_experts", 16, 1, maxExperts)
	if experts > 1 {
		b.setCount(".expert_count", experts)
		b.setCount(".expert_used_count", c.countOr("num_experts_per_tok", 2, 1, experts))
	}
	kvHeads := make([]int, s.layers)
	b.ends("model.", s.width, false, func() { b.norm("output_norm.weight", "model.final_layernorm.weight", s.width, 0) })
	layer := -1
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		layer++
		b.norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.width, 0)
		b.norm(to("ffn_norm.weight"), from("pre_ff_layernorm.weight"), s.width, 0)
		if attends(layer) {
			kvHeads[layer] = s.kvHeads
			b.attention(s, to, from)
		} else {
			b.mamba1(r, s.width, to, from("mamba."))
			for _, n := range []struct {
				name string
				n    int
			}{{"dt", r.rank}, {"b", r.state}, {"c", r.state}} {
				b.norm(to("ssm_"+n.name+"_norm.weight"), from("mamba."+n.name+"_layernorm.weight"), n.n, 0)
			}
		}
		if experts > 1 && routes(layer) {
			b.mixture(s, experts, s.ffn, to, from("feed_forward.router.weight"), func(e int, part string) string {
				return from(fmt.Sprintf("feed_forward.experts.%d.%s.weight", e, part))
			}, "gate_proj", "up_proj", "down_proj")
			return
		}
		b.feedForward(s, s.ffn, to, from)
	})
	b.setLayers(".attention.head_count_kv", kvHeads)
}

// periodic returns which layers a setting of a period and an offset names.
func (b *builder) periodic(key string, period, offset int) func(layer int) bool {
	period, offset = b.config.countOr(key+"_period", period, 1, maxLayers), b.config.countOr(key+"_offset", offset, 0, maxLayers)
	return func(layer int) bool { return layer%period == offset }
}

// feedForward adds a gated block of the name that hybrid families give it.
func (b *builder) feedForward(s shape, ffn int, to, from func(string) string) {
	b.copy(to("ffn_gate.weight"), from("feed_forward.gate_proj.weight"), ffn, s.width)
	b.copy(to("ffn_up.weight"), from("feed_forward.up_proj.weight"), ffn, s.width)
	b.copy(to("ffn_down.weight"), from("feed_forward.down_proj.weight"), s.width, ffn)
}

// falconH1 multiplies products by numbers of config.json, which GGUF has in the weights. Products are rounded to the folder's
// type.
func falconH1(b *builder) {
	c := b.config
	c.only("hidden_act", "silu")
	s := b.decoder("falcon-h1")
	b.rmsEps(1e-5)
	b.rope(s.size)
	inner := c.countOr("mamba_d_ssm", c.countOr("mamba_expand", 2, 1, maxWidth)*s.width, 1, maxWidth)
	r := b.mamba2Settings(inner, map[string]string{"taps": "mamba_d_conv", "state": "mamba_d_state", "heads": "mamba_n_heads", "groups": "mamba_n_groups", "size": "mamba_d_head"})
	r.describe(b)
	if c.boolOr("mamba_rms_norm", false) && c.boolOr("mamba_norm_before_gate", true) {
		c.fail("mamba_norm_before_gate is true; a norm before the gate is not supported")
	}
	one := func(key string) float32 { return float32(c.floatOr(key, 1, 0, 1e4)) }
	in, out, key := one("attention_in_multiplier"), one("attention_out_multiplier"), one("key_multiplier")
	mlp := []float32{1, 1}
	if c.has("mlp_multipliers") {
		mlp = c.floats("mlp_multipliers", 2)
	}
	b.falconEnds(s, one("embedding_multiplier"), one("lm_head_multiplier"))
	ssm := b.falconRows(r)
	ssmOut := one("ssm_out_multiplier")
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		b.norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.width, 0)
		b.norm(to("ffn_norm"), from("pre_ff_layernorm.weight"), s.width, 0)
		b.scaledBoth(to("attn_q"), from("self_attn.q_proj"), in, 1, s.heads*s.size, s.width)
		b.scaledBoth(to("attn_k"), from("self_attn.k_proj"), in*key, key, s.kvHeads*s.size, s.width)
		b.scaledBoth(to("attn_v"), from("self_attn.v_proj"), in, 1, s.kvHeads*s.size, s.width)
		b.scaledBoth(to("attn_output"), from("self_attn.o_proj"), out, out, s.width, s.heads*s.size)
		b.mamba2(r, s.width, to, from("mamba."), ssm, ssmOut)
		b.scaledBoth(to("ffn_gate"), from("feed_forward.gate_proj"), mlp[0], mlp[0], s.ffn, s.width)
		b.both(to("ffn_up"), from("feed_forward.up_proj"), s.ffn, s.width)
		b.scaledBoth(to("ffn_down"), from("feed_forward.down_proj"), mlp[1], mlp[1], s.width, s.ffn)
	})
}

// falconEnds adds the embedding table and the head, each times its number; a head that is the table is made of it.
func (b *builder) falconEnds(s shape, embed, head float32) {
	const table = "model.embed_tokens.weight"
	if t, _ := b.weights.Tensor(table); len(t.Shape) == 2 {
		b.vocab = t.Shape[0]
	}
	b.scaled("token_embd.weight", table, func(int) float32 { return embed }, b.vocab, s.width)
	b.norm("output_norm.weight", "model.final_layernorm.weight", s.width, 0)
	name := "lm_head.weight"
	if b.config.boolOr("tie_word_embeddings", false) {
		if b.has(name) {
			b.find(name, b.vocab, s.width)
		}
		name = table
	}
	b.scaled("output.weight", name, func(int) float32 { return head }, b.vocab, s.width)
}

// falconRows returns the numbers by which the rows of the recurrence's first matrix are multiplied: those of z, x, B, C and
// the steps.
func (b *builder) falconRows(r recurrence) func(row int) float32 {
	c := b.config
	parts := []float32{1, 1, 1, 1, 1}
	if c.has("ssm_multipliers") {
		parts = c.floats("ssm_multipliers", 5)
	}
	all := float32(c.floatOr("ssm_in_multiplier", 1, 0, 1e4))
	ends := []int{r.inner, 2 * r.inner, 2*r.inner + r.groups*r.state, 2*r.inner + 2*r.groups*r.state}
	return func(row int) float32 {
		i := 0
		for i < len(ends) && row >= ends[i] {
			i++
		}
		return all * parts[i]
	}
}

// graniteHybrid adds Granite 4. Where all layers attend, files say so by the name of the architecture before it.
func graniteHybrid(b *builder) {
	c := b.config
	c.only("hidden_act", "silu")
	var kinds []string
	c.value("layer_types", &kinds, "an array of kinds")
	experts := c.countOr("num_local_experts", 0, 0, maxExperts)
	arch := "granitehybrid"
	if !slices.Contains(kinds, "mamba") {
		if arch = "granite"; experts > 0 {
			arch = "granitemoe"
		}
	}
	s := b.graniteShape(arch, experts)
	if len(kinds) != s.layers {
		c.fail("layer_types has %d entries, there are %d layers", len(kinds), s.layers)
		return
	}
	var r recurrence
	if arch == "granitehybrid" {
		r = b.mamba2Settings(c.countOr("mamba_expand", 2, 1, maxWidth)*s.width,
			map[string]string{"taps": "mamba_d_conv", "state": "mamba_d_state", "heads": "mamba_n_heads", "groups": "mamba_n_groups", "size": "mamba_d_head"})
		r.describe(b)
	}
	c.only("position_embedding_type", "nope", "rope")
	b.rope(s.size)
	set(b, ".rope.scaling.finetuned", c.textOr("position_embedding_type", "nope") == "rope")
	b.rmsEnds(s.width, false)
	kvHeads := make([]int, s.layers)
	layer := -1
	b.layers(s.layers, layerRoot, func(to, from func(string) string) {
		layer++
		b.norms(s.width, to, from)
		switch kinds[layer] {
		case "attention":
			kvHeads[layer] = s.kvHeads
			b.turnedAttention(s, to, from)
		case "mamba":
			b.mamba2(r, s.width, to, from("mamba."), nil, 1)
		default:
			c.fail("layer_types has %.40q for layer %d; it must be mamba or attention", kinds[layer], layer)
		}
		b.graniteFeed(s, experts, to, from)
	})
	if arch == "granitehybrid" {
		b.setLayers(".attention.head_count_kv", kvHeads)
	}
}

// graniteShape reads the shared settings and the four scales. Without experts the shared block is the only one.
func (b *builder) graniteShape(arch string, experts int) shape {
	c := b.config
	shared := c.countOr("shared_intermediate_size", 0, 0, maxWidth)
	if experts == 0 {
		c.values["intermediate_size"] = c.values["shared_intermediate_size"]
	}
	s := b.decoder(arch)
	b.rmsEps(1e-6)
	if experts > 0 {
		b.experts("num_local_experts")
		b.setCount(".expert_shared_feed_forward_length", shared)
	}
	for key, to := range map[string]string{"embedding_multiplier": ".embedding_scale", "residual_multiplier": ".residual_scale", "attention_multiplier": ".attention.scale", "logits_scaling": ".logit_scale"} {
		b.setFloat(to, c.floatOr(key, 1, 1e-6, 1e4))
	}
	return s
}

// graniteFeed adds the mixture and the shared block, each with the gate and the matrix that it gates in one tensor.
func (b *builder) graniteFeed(s shape, experts int, to, from func(string) string) {
	suffix, shared := "", s.ffn
	if experts > 0 {
		b.copy(to("ffn_gate_inp.weight"), from("block_sparse_moe.router.layer.weight"), experts, s.width)
		b.halves(to("ffn_gate_exps.weight"), to("ffn_up_exps.weight"), from("block_sparse_moe.input_linear.weight"), experts, s.ffn, s.width)
		b.copy(to("ffn_down_exps.weight"), from("block_sparse_moe.output_linear.weight"), experts, s.width, s.ffn)
		suffix, shared = "_shexp", b.config.countOr("shared_intermediate_size", 0, 0, maxWidth)
	}
	if shared == 0 {
		return
	}
	b.halves(to("ffn_gate"+suffix+".weight"), to("ffn_up"+suffix+".weight"), from("shared_mlp.input_linear.weight"), 0, shared, s.width)
	b.copy(to("ffn_down"+suffix+".weight"), from("shared_mlp.output_linear.weight"), s.width, shared)
}

// nemotronH has a block in each layer, of which a text or a list tells the kinds.
func nemotronH(b *builder) {
	c := b.config
	kinds, experts, arch := b.nemotronKinds(), 0, "nemotron_h"
	if bytes.ContainsRune(kinds, 'E') { // folders without a mixture may count experts too
		experts, arch = c.count("n_routed_experts", 1, maxExperts), "nemotron_h_moe"
		c.values["intermediate_size"] = c.values["moe_intermediate_size"]
	}
	c.only("mlp_hidden_act", "relu2")
	c.only("mamba_hidden_act", "silu")
	if c.has("attention_head_dim") && !c.has("head_dim") {
		c.values["head_dim"] = c.values["attention_head_dim"]
	}
	s := b.decoder(arch)
	b.epsilon(c.first("layer_norm_epsilon", "norm_eps", "rms_norm_eps"), 1e-5)
	heads := c.count("mamba_num_heads", 1, maxHeads)
	r := b.mamba2Settings(heads*c.count("mamba_head_dim", 1, maxHeads), map[string]string{"taps": "conv_kernel", "state": "ssm_state_size", "heads": "mamba_num_heads", "groups": "n_groups", "size": "mamba_head_dim"})
	r.describe(b)
	if len(kinds) != s.layers {
		c.fail("hybrid_override_pattern has %d letters, there are %d layers", len(kinds), s.layers)
	}
	mix := b.nemotronMixture(experts)
	b.ignored = func(name string) bool { return strings.HasPrefix(name, "mtp.") } // predict further tokens
	b.backboneEnds(s.width, false)
	kvHeads, ffn := make([]int, s.layers), make([]int, s.layers)
	layer := -1
	b.layers(s.layers, "backbone.layers.", func(to, from func(string) string) {
		layer++
		b.norm(to("attn_norm.weight"), from("norm.weight"), s.width, 0)
		switch kinds[layer] {
		case 'M':
			b.mamba2(r, s.width, to, from("mixer."), nil, 1)
		case '*':
			kvHeads[layer] = s.kvHeads
			b.attention(s, to, func(name string) string { return from("mixer." + strings.TrimPrefix(name, "self_attn.")) })
		case '-':
			ffn[layer] = s.ffn
			b.both(to("ffn_up"), from("mixer.up_proj"), s.ffn, s.width)
			b.both(to("ffn_down"), from("mixer.down_proj"), s.width, s.ffn)
		case 'E':
			ffn[layer] = s.ffn
			mix.layer(b, s, to, from)
		}
	})
	b.setLayers(".attention.head_count_kv", kvHeads)
	b.setLayers(".feed_forward_length", ffn)
}

// nemotronKinds returns a letter for each layer: M, a recurrence; *, attention; -, a feed-forward block; E, a mixture.
func (b *builder) nemotronKinds() []byte {
	c := b.config
	kinds := []byte(c.textOr("hybrid_override_pattern", ""))
	var names []string
	if len(kinds) == 0 && c.value("layers_block_type", &names, "an array of kinds") {
		for _, name := range names {
			kind, ok := map[string]byte{"mamba": 'M', "attention": '*', "mlp": '-', "moe": 'E'}[name]
			if !ok {
				c.fail("layers_block_type has %.40q; it must be mamba, attention, mlp or moe", name)
			}
			kinds = append(kinds, kind)
		}
	}
	for i, k := range kinds {
		if !strings.ContainsRune("M*-E", rune(k)) {
			c.fail("hybrid_override_pattern has %q for layer %d; it must be M, *, - or E", k, i)
		}
	}
	return kinds
}

// nemotronMixture is the settings of Nemotron's mixtures.
type nemotronMixture struct{ experts, ffn, shared, latent int }

func (b *builder) nemotronMixture(experts int) nemotronMixture {
	c, m := b.config, nemotronMixture{experts: experts}
	if experts == 0 {
		return m
	}
	b.experts("n_routed_experts")
	m.ffn, m.shared = c.count("moe_intermediate_size", 1, maxWidth), c.count("moe_shared_expert_intermediate_size", 1, maxWidth)
	m.latent = c.countOr("moe_latent_size", 0, 0, maxWidth)
	b.setCount(".expert_feed_forward_length", m.ffn)
	b.setCount(".expert_shared_feed_forward_length", m.shared)
	if n := c.countOr("n_shared_experts", 1, 0, maxExperts); n != 1 {
		c.fail("n_shared_experts is %d; only 1 is supported", n)
	}
	if m.latent > 0 {
		b.setCount(".moe_latent_size", m.latent)
	}
	set(b, ".expert_weights_norm", c.boolOr("norm_topk_prob", true))
	b.setFloat(".expert_weights_scale", c.floatOr("routed_scaling_factor", 1, 0, 1e4))
	const sigmoid = 2
	b.setCount(".expert_gating_func", sigmoid)
	if groups := c.countOr("n_group", 1, 1, experts); groups > 1 {
		b.setCount(".expert_group_count", groups)
		b.setCount(".expert_group_used_count", c.count("topk_group", 1, groups))
	}
	return m
}

// layer adds the mixture of a layer.
func (m nemotronMixture) layer(b *builder, s shape, to, from func(string) string) {
	width := s.width
	if m.latent > 0 {
		width = m.latent
		b.copy(to("ffn_latent_down.weight"), from("mixer.fc1_latent_proj.weight"), width, s.width)
		b.copy(to("ffn_latent_up.weight"), from("mixer.fc2_latent_proj.weight"), s.width, width)
	}
	b.copy(to("ffn_gate_inp.weight"), from("mixer.gate.weight"), m.experts, s.width)
	b.norm(to("exp_probs_b.bias"), from("mixer.gate.e_score_correction_bias"), m.experts, 0)
	expert := func(part string) func(int) string {
		return func(e int) string { return from(fmt.Sprintf("mixer.experts.%d.%s.weight", e, part)) }
	}
	b.stacked(to("ffn_up_exps.weight"), expert("up_proj"), m.experts, m.ffn, width)
	b.stacked(to("ffn_down_exps.weight"), expert("down_proj"), m.experts, width, m.ffn)
	b.copy(to("ffn_up_shexp.weight"), from("mixer.shared_experts.up_proj.weight"), m.shared, s.width)
	b.copy(to("ffn_down_shexp.weight"), from("mixer.shared_experts.down_proj.weight"), s.width, m.shared)
}
