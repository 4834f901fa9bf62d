package hf

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"grove/internal/weights/gguf"
)

// unbounded is the context of models that have no longest text.
const unbounded = 1 << 20

// backboneEnds adds the embedding table, the final norm and the head of models whose tensors are below backbone.
func (b *builder) backboneEnds(width int, tied bool) {
	const table = "backbone.embeddings.weight"
	b.VocabOf(table)
	b.Copy("token_embd.weight", table, b.Vocab, width)
	b.Norm("output_norm.weight", "backbone.norm_f.weight", width, 0)
	b.Head("lm_head.weight", width, tied)
}

// withoutHeads describes a model that does not attend.
func (b *builder) withoutHeads(arch string) Shape {
	s := Shape{Layers: b.Config.Count("num_hidden_layers", 1, MaxLayers), Width: b.Config.Count("hidden_size", 1, MaxWidth), Context: unbounded}
	b.DescribeDecoder(arch, s)
	b.Metadata = slices.DeleteFunc(b.Metadata, func(kv gguf.KV) bool { // no head has a size
		return strings.HasSuffix(kv.Key, ".attention.key_length") || strings.HasSuffix(kv.Key, ".attention.value_length")
	})
	b.Epsilon("layer_norm_epsilon", 1e-5)
	return s
}

func mamba(b *builder) { b.mamba(0) }

// mamba adds Mamba. With normEps, the inputs of the steps, B and C are normed, with that epsilon.
func (b *builder) mamba(normEps float64) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.withoutHeads("mamba")
	r := Recurrence{
		Inner: c.CountOr("expand", 2, 1, MaxWidth) * s.Width, Taps: c.CountOr("conv_kernel", 4, 2, 1<<6),
		State: c.CountOr("state_size", 16, 1, 1<<12), Rank: b.rank("time_step_rank", s.Width),
	}
	r.Inner = c.CountOr("intermediate_size", r.Inner, 1, MaxWidth)
	r.Describe(b.DecoderBuilder.FolderBuilder)
	FolderSet(b.DecoderBuilder.FolderBuilder, ".ssm.dt_b_c_rms", normEps > 0)
	if normEps > 0 {
		b.SetFloat(".ssm.dt_b_c_rms_epsilon", normEps)
	}
	b.backboneEnds(s.Width, true)
	b.Layers(s.Layers, "backbone.layers.", func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("norm.weight"), s.Width, 0)
		b.Mamba1(r, s.Width, to, from("mixer."))
	})
}

// rank returns the rank of the matrix that makes Mamba's steps, by default a sixteenth of the width.
func (b *builder) rank(key string, width int) int {
	if b.Config.Word(key) == "auto" {
		return (width + 15) / 16
	}
	return b.Config.CountOr(key, (width+15)/16, 1, MaxHeads)
}

func mamba2(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.withoutHeads("mamba2")
	if !c.BoolOr("rms_norm", true) {
		c.Fail("rms_norm must be true")
	}
	r := b.Mamba2Settings(c.CountOr("expand", 2, 1, MaxWidth)*s.Width,
		map[string]string{"taps": "conv_kernel", "state": "state_size", "heads": "num_heads", "groups": "n_groups", "size": "head_dim"})
	r.Describe(b.DecoderBuilder.FolderBuilder)
	b.backboneEnds(s.Width, false)
	b.Layers(s.Layers, "backbone.layers.", func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("norm.weight"), s.Width, 0)
		b.Mamba2(r, s.Width, to, from("mixer."), nil, 1)
	})
}

// jamba has layers that attend and layers with a mixture, each by a period and an offset.
func jamba(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.Decoder("jamba")
	b.RMSEps(1e-6)
	r := Recurrence{
		Inner: c.CountOr("mamba_expand", 2, 1, MaxWidth) * s.Width, Taps: c.CountOr("mamba_d_conv", 4, 2, 1<<6),
		State: c.CountOr("mamba_d_state", 16, 1, 1<<12), Rank: b.rank("mamba_dt_rank", s.Width),
	}
	r.Describe(b.DecoderBuilder.FolderBuilder)
	if c.Has("sliding_window") {
		c.Fail("sliding_window is not supported")
	}
	attends := b.periodic("attn_layer", 8, 4)
	routes := b.periodic("expert_layer", 2, 1)
	experts := c.CountOr("num_experts", 16, 1, MaxExperts)
	if experts > 1 {
		b.SetCount(".expert_count", experts)
		b.SetCount(".expert_used_count", c.CountOr("num_experts_per_tok", 2, 1, experts))
	}
	kvHeads := make([]int, s.Layers)
	b.Ends("model.", s.Width, false, func() { b.Norm("output_norm.weight", "model.final_layernorm.weight", s.Width, 0) })
	layer := -1
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		layer++
		b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.Width, 0)
		b.Norm(to("ffn_norm.weight"), from("pre_ff_layernorm.weight"), s.Width, 0)
		if attends(layer) {
			kvHeads[layer] = s.KVHeads
			b.Attention(s, to, from)
		} else {
			b.Mamba1(r, s.Width, to, from("mamba."))
			for _, n := range []struct {
				name string
				n    int
			}{{"dt", r.Rank}, {"b", r.State}, {"c", r.State}} {
				b.Norm(to("ssm_"+n.name+"_norm.weight"), from("mamba."+n.name+"_layernorm.weight"), n.n, 0)
			}
		}
		if experts > 1 && routes(layer) {
			b.Mixture(s, experts, s.FFN, to, from("feed_forward.router.weight"), func(e int, part string) string {
				return from(fmt.Sprintf("feed_forward.experts.%d.%s.weight", e, part))
			}, "gate_proj", "up_proj", "down_proj")
			return
		}
		b.feedForward(s, s.FFN, to, from)
	})
	b.SetLayers(".attention.head_count_kv", kvHeads)
}

// periodic returns which layers a setting of a period and an offset names.
func (b *builder) periodic(key string, period, offset int) func(layer int) bool {
	period, offset = b.Config.CountOr(key+"_period", period, 1, MaxLayers), b.Config.CountOr(key+"_offset", offset, 0, MaxLayers)
	return func(layer int) bool { return layer%period == offset }
}

// feedForward adds a gated block of the name that hybrid families give it.
func (b *builder) feedForward(s Shape, ffn int, to, from func(string) string) {
	b.Copy(to("ffn_gate.weight"), from("feed_forward.gate_proj.weight"), ffn, s.Width)
	b.Copy(to("ffn_up.weight"), from("feed_forward.up_proj.weight"), ffn, s.Width)
	b.Copy(to("ffn_down.weight"), from("feed_forward.down_proj.weight"), s.Width, ffn)
}

// falconH1 multiplies products by numbers of config.json, which GGUF has in the weights. Products are rounded to the folder's
// type.
func falconH1(b *builder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	s := b.Decoder("falcon-h1")
	b.RMSEps(1e-5)
	b.Rope(s.Size)
	inner := c.CountOr("mamba_d_ssm", c.CountOr("mamba_expand", 2, 1, MaxWidth)*s.Width, 1, MaxWidth)
	r := b.Mamba2Settings(inner, map[string]string{"taps": "mamba_d_conv", "state": "mamba_d_state", "heads": "mamba_n_heads", "groups": "mamba_n_groups", "size": "mamba_d_head"})
	r.Describe(b.DecoderBuilder.FolderBuilder)
	if c.BoolOr("mamba_rms_norm", false) && c.BoolOr("mamba_norm_before_gate", true) {
		c.Fail("mamba_norm_before_gate is true; a norm before the gate is not supported")
	}
	one := func(key string) float32 { return float32(c.FloatOr(key, 1, 0, 1e4)) }
	in, out, key := one("attention_in_multiplier"), one("attention_out_multiplier"), one("key_multiplier")
	mlp := []float32{1, 1}
	if c.Has("mlp_multipliers") {
		mlp = c.Floats("mlp_multipliers", 2)
	}
	b.falconEnds(s, one("embedding_multiplier"), one("lm_head_multiplier"))
	ssm := b.falconRows(r)
	ssmOut := one("ssm_out_multiplier")
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.Width, 0)
		b.Norm(to("ffn_norm"), from("pre_ff_layernorm.weight"), s.Width, 0)
		b.ScaledBoth(to("attn_q"), from("self_attn.q_proj"), in, 1, s.Heads*s.Size, s.Width)
		b.ScaledBoth(to("attn_k"), from("self_attn.k_proj"), in*key, key, s.KVHeads*s.Size, s.Width)
		b.ScaledBoth(to("attn_v"), from("self_attn.v_proj"), in, 1, s.KVHeads*s.Size, s.Width)
		b.ScaledBoth(to("attn_output"), from("self_attn.o_proj"), out, out, s.Width, s.Heads*s.Size)
		b.Mamba2(r, s.Width, to, from("mamba."), ssm, ssmOut)
		b.ScaledBoth(to("ffn_gate"), from("feed_forward.gate_proj"), mlp[0], mlp[0], s.FFN, s.Width)
		b.Both(to("ffn_up"), from("feed_forward.up_proj"), s.FFN, s.Width)
		b.ScaledBoth(to("ffn_down"), from("feed_forward.down_proj"), mlp[1], mlp[1], s.Width, s.FFN)
	})
}

// falconEnds adds the embedding table and the head, each times its number; a head that is the table is made of it.
func (b *builder) falconEnds(s Shape, embed, head float32) {
	const table = "model.embed_tokens.weight"
	b.VocabOf(table)
	b.Scaled("token_embd.weight", table, func(int) float32 { return embed }, b.Vocab, s.Width)
	b.Norm("output_norm.weight", "model.final_layernorm.weight", s.Width, 0)
	name := "lm_head.weight"
	if b.Config.BoolOr("tie_word_embeddings", false) {
		if b.Has(name) {
			b.Find(name, b.Vocab, s.Width)
		}
		name = table
	}
	b.Scaled("output.weight", name, func(int) float32 { return head }, b.Vocab, s.Width)
}

// falconRows returns the numbers by which the rows of the recurrence's first matrix are multiplied: those of z, x, B, C and
// the steps.
func (b *builder) falconRows(r Recurrence) func(row int) float32 {
	c := b.Config
	parts := []float32{1, 1, 1, 1, 1}
	if c.Has("ssm_multipliers") {
		parts = c.Floats("ssm_multipliers", 5)
	}
	all := float32(c.FloatOr("ssm_in_multiplier", 1, 0, 1e4))
	ends := []int{r.Inner, 2 * r.Inner, 2*r.Inner + r.Groups*r.State, 2*r.Inner + 2*r.Groups*r.State}
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
	c := b.Config
	c.Only("hidden_act", "silu")
	var kinds []string
	c.Value("layer_types", &kinds, "an array of kinds")
	experts := c.CountOr("num_local_experts", 0, 0, MaxExperts)
	arch := "granitehybrid"
	if !slices.Contains(kinds, "mamba") {
		if arch = "granite"; experts > 0 {
			arch = "granitemoe"
		}
	}
	s := b.graniteShape(arch, experts)
	if len(kinds) != s.Layers {
		c.Fail("layer_types has %d entries, there are %d layers", len(kinds), s.Layers)
		return
	}
	var r Recurrence
	if arch == "granitehybrid" {
		r = b.Mamba2Settings(c.CountOr("mamba_expand", 2, 1, MaxWidth)*s.Width,
			map[string]string{"taps": "mamba_d_conv", "state": "mamba_d_state", "heads": "mamba_n_heads", "groups": "mamba_n_groups", "size": "mamba_d_head"})
		r.Describe(b.DecoderBuilder.FolderBuilder)
	}
	c.Only("position_embedding_type", "nope", "rope")
	b.Rope(s.Size)
	FolderSet(b.DecoderBuilder.FolderBuilder, ".rope.scaling.finetuned", c.TextOr("position_embedding_type", "nope") == "rope")
	b.RMSEnds(s.Width, false)
	kvHeads := make([]int, s.Layers)
	layer := -1
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		layer++
		b.Norms(s.Width, to, from)
		switch kinds[layer] {
		case "attention":
			kvHeads[layer] = s.KVHeads
			b.TurnedAttention(s, to, from)
		case "mamba":
			b.Mamba2(r, s.Width, to, from("mamba."), nil, 1)
		default:
			c.Fail("layer_types has %.40q for layer %d; it must be mamba or attention", kinds[layer], layer)
		}
		b.graniteFeed(s, experts, to, from)
	})
	if arch == "granitehybrid" {
		b.SetLayers(".attention.head_count_kv", kvHeads)
	}
}

// graniteShape reads the shared settings and the four scales. Without experts the shared block is the only one.
func (b *builder) graniteShape(arch string, experts int) Shape {
	c := b.Config
	shared := c.CountOr("shared_intermediate_size", 0, 0, MaxWidth)
	if experts == 0 {
		c.Values["intermediate_size"] = c.Values["shared_intermediate_size"]
	}
	s := b.Decoder(arch)
	b.RMSEps(1e-6)
	if experts > 0 {
		b.Experts("num_local_experts")
		b.SetCount(".expert_shared_feed_forward_length", shared)
	}
	for _, n := range [][2]string{{"embedding_multiplier", ".embedding_scale"}, {"residual_multiplier", ".residual_scale"}, {"attention_multiplier", ".attention.scale"}, {"logits_scaling", ".logit_scale"}} {
		b.SetFloat(n[1], c.FloatOr(n[0], 1, 1e-6, 1e4))
	}
	return s
}

// graniteFeed adds the mixture and the shared block, each with the gate and the matrix that it gates in one tensor.
func (b *builder) graniteFeed(s Shape, experts int, to, from func(string) string) {
	suffix, shared := "", s.FFN
	if experts > 0 {
		b.Copy(to("ffn_gate_inp.weight"), from("block_sparse_moe.router.layer.weight"), experts, s.Width)
		b.Halves(to("ffn_gate_exps.weight"), to("ffn_up_exps.weight"), from("block_sparse_moe.input_linear.weight"), experts, s.FFN, s.Width)
		b.Copy(to("ffn_down_exps.weight"), from("block_sparse_moe.output_linear.weight"), experts, s.Width, s.FFN)
		suffix, shared = "_shexp", b.Config.CountOr("shared_intermediate_size", 0, 0, MaxWidth)
	}
	if shared == 0 {
		return
	}
	b.Halves(to("ffn_gate"+suffix+".weight"), to("ffn_up"+suffix+".weight"), from("shared_mlp.input_linear.weight"), 0, shared, s.Width)
	b.Copy(to("ffn_down"+suffix+".weight"), from("shared_mlp.output_linear.weight"), s.Width, shared)
}

// nemotronH has a block in each layer, of which a text or a list tells the kinds.
func nemotronH(b *builder) {
	c := b.Config
	kinds, experts, arch := b.nemotronKinds(), 0, "nemotron_h"
	if bytes.ContainsRune(kinds, 'E') { // folders without a mixture may count experts too
		experts, arch = c.Count("n_routed_experts", 1, MaxExperts), "nemotron_h_moe"
		c.Values["intermediate_size"] = c.Values["moe_intermediate_size"]
	}
	c.Only("mlp_hidden_act", "relu2")
	c.Only("mamba_hidden_act", "silu")
	if c.Has("attention_head_dim") && !c.Has("head_dim") {
		c.Values["head_dim"] = c.Values["attention_head_dim"]
	}
	s := b.Decoder(arch)
	b.Epsilon(c.First("layer_norm_epsilon", "norm_eps", "rms_norm_eps"), 1e-5)
	heads := c.Count("mamba_num_heads", 1, MaxHeads)
	r := b.Mamba2Settings(heads*c.Count("mamba_head_dim", 1, MaxHeads), map[string]string{"taps": "conv_kernel", "state": "ssm_state_size", "heads": "mamba_num_heads", "groups": "n_groups", "size": "mamba_head_dim"})
	r.Describe(b.DecoderBuilder.FolderBuilder)
	if len(kinds) != s.Layers {
		c.Fail("hybrid_override_pattern has %d letters, there are %d layers", len(kinds), s.Layers)
	}
	mix := b.nemotronMixture(experts)
	b.Ignored = func(name string) bool { return strings.HasPrefix(name, "mtp.") } // predict further tokens
	b.backboneEnds(s.Width, false)
	kvHeads, ffn := make([]int, s.Layers), make([]int, s.Layers)
	layer := -1
	b.Layers(s.Layers, "backbone.layers.", func(to, from func(string) string) {
		layer++
		b.Norm(to("attn_norm.weight"), from("norm.weight"), s.Width, 0)
		switch kinds[layer] {
		case 'M':
			b.Mamba2(r, s.Width, to, from("mixer."), nil, 1)
		case '*':
			kvHeads[layer] = s.KVHeads
			b.Attention(s, to, func(name string) string { return from("mixer." + strings.TrimPrefix(name, "self_attn.")) })
		case '-':
			ffn[layer] = s.FFN
			b.Both(to("ffn_up"), from("mixer.up_proj"), s.FFN, s.Width)
			b.Both(to("ffn_down"), from("mixer.down_proj"), s.Width, s.FFN)
		case 'E':
			ffn[layer] = s.FFN
			mix.layer(b, s, to, from)
		}
	})
	b.SetLayers(".attention.head_count_kv", kvHeads)
	b.SetLayers(".feed_forward_length", ffn)
}

// nemotronKinds returns a letter for each layer: M, a recurrence; *, attention; -, a feed-forward block; E, a mixture.
func (b *builder) nemotronKinds() []byte {
	c := b.Config
	kinds := []byte(c.TextOr("hybrid_override_pattern", ""))
	var names []string
	if len(kinds) == 0 && c.Value("layers_block_type", &names, "an array of kinds") {
		for _, name := range names {
			kind, ok := map[string]byte{"mamba": 'M', "attention": '*', "mlp": '-', "moe": 'E'}[name]
			if !ok {
				c.Fail("layers_block_type has %.40q; it must be mamba, attention, mlp or moe", name)
			}
			kinds = append(kinds, kind)
		}
	}
	for i, k := range kinds {
		if !strings.ContainsRune("M*-E", rune(k)) {
			c.Fail("hybrid_override_pattern has %q for layer %d; it must be M, *, - or E", k, i)
		}
	}
	return kinds
}

// nemotronMixture is the settings of Nemotron's mixtures.
type nemotronMixture struct{ experts, ffn, shared, latent int }

func (b *builder) nemotronMixture(experts int) nemotronMixture {
	c, m := b.Config, nemotronMixture{experts: experts}
	if experts == 0 {
		return m
	}
	b.Experts("n_routed_experts")
	m.ffn, m.shared = c.Count("moe_intermediate_size", 1, MaxWidth), c.Count("moe_shared_expert_intermediate_size", 1, MaxWidth)
	m.latent = c.CountOr("moe_latent_size", 0, 0, MaxWidth)
	b.SetCount(".expert_feed_forward_length", m.ffn)
	b.SetCount(".expert_shared_feed_forward_length", m.shared)
	if n := c.CountOr("n_shared_experts", 1, 0, MaxExperts); n != 1 {
		c.Fail("n_shared_experts is %d; only 1 is supported", n)
	}
	if m.latent > 0 {
		b.SetCount(".moe_latent_size", m.latent)
	}
	FolderSet(b.DecoderBuilder.FolderBuilder, ".expert_weights_norm", c.BoolOr("norm_topk_prob", true))
	b.SetFloat(".expert_weights_scale", c.FloatOr("routed_scaling_factor", 1, 0, 1e4))
	const sigmoid = 2
	b.SetCount(".expert_gating_func", sigmoid)
	if groups := c.CountOr("n_group", 1, 1, experts); groups > 1 {
		b.SetCount(".expert_group_count", groups)
		b.SetCount(".expert_group_used_count", c.Count("topk_group", 1, groups))
	}
	return m
}

// layer adds the mixture of a layer.
func (m nemotronMixture) layer(b *builder, s Shape, to, from func(string) string) {
	width := s.Width
	if m.latent > 0 {
		width = m.latent
		b.Copy(to("ffn_latent_down.weight"), from("mixer.fc1_latent_proj.weight"), width, s.Width)
		b.Copy(to("ffn_latent_up.weight"), from("mixer.fc2_latent_proj.weight"), s.Width, width)
	}
	b.Copy(to("ffn_gate_inp.weight"), from("mixer.gate.weight"), m.experts, s.Width)
	b.Norm(to("exp_probs_b.bias"), from("mixer.gate.e_score_correction_bias"), m.experts, 0)
	expert := func(part string) func(int) string {
		return func(e int) string { return from(fmt.Sprintf("mixer.experts.%d.%s.weight", e, part)) }
	}
	b.Stacked(to("ffn_up_exps.weight"), expert("up_proj"), m.experts, m.ffn, width)
	b.Stacked(to("ffn_down_exps.weight"), expert("down_proj"), m.experts, width, m.ffn)
	b.Copy(to("ffn_up_shexp.weight"), from("mixer.shared_experts.up_proj.weight"), m.shared, s.Width)
	b.Copy(to("ffn_down_shexp.weight"), from("mixer.shared_experts.down_proj.weight"), s.Width, m.shared)
}
