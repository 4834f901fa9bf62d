package hf

import (
	"fmt"
	"strings"

	"grove/internal/weights/gguf"
)

func qwen3Next(b *builder) { b.qwenDelta("qwen3next", false, Delta.Next) }

func qwen35(b *builder) { b.qwenDelta("qwen35", true, Delta.Next35) }

func qwen35moe(b *builder) { b.qwenDelta("qwen35moe", true, Delta.Next35) }

// qwenDelta adds Qwen 3 Next and 3.5, whose folders have the weights of norms as distances from 1, but for that behind a delta net. What
// sees images is left out.
func (b *builder) qwenDelta(arch string, tiled bool, first func(d Delta, b *FolderBuilder, to, from func(string) string)) {
	c := b.Config
	c.Only("hidden_act", "silu")
	if !c.BoolOr("attn_output_gate", true) {
		c.Fail("attn_output_gate must be true")
	}
	if !c.Has("intermediate_size") && c.Has("moe_intermediate_size") {
		c.Values["intermediate_size"] = c.Values["moe_intermediate_size"]
	}
	s := b.Decoder(arch)
	b.RMSEps(1e-6)
	d := b.DeltaNet(s.Width, tiled)
	rotary, _ := b.RopeConfig()
	dims := int(rotary.FloatOr("partial_rotary_factor", c.FloatOr("partial_rotary_factor", 0.25, 0.01, 1), 0.01, 1) * float64(s.Size))
	b.Rope(dims)
	root := "model."
	if b.Has("model.language_model.embed_tokens.weight") {
		root = "model.language_model."
	}
	b.Ignored = func(name string) bool { return strings.HasPrefix(name, "model.visual.") }
	if tiled {
		b.sections(rotary, dims)
	}
	mix := b.qwenMixture(arch)
	attends := b.attendingLayers(s.Layers)
	further := b.qwenPredictors()
	b.SetCountOnce(".block_count", s.Layers+further)
	b.Ends(root, s.Width, false, func() { b.Norm("output_norm.weight", root+"norm.weight", s.Width, 1) })
	l := 0
	b.Layers(s.Layers, root+"layers.", func(to, from func(string) string) {
		if attends[l] {
			b.qwenAttention(s, to, from)
		} else {
			first(d, b.DecoderBuilder.FolderBuilder, to, from)
			d.Layer(b.DecoderBuilder.FolderBuilder, to, from)
		}
		mix.layer(b, s, to, from)
		l++
	})
	if further > 0 {
		b.qwenPredictor(s, mix)
	}
}

// sections adds how heads share their pairs among time, height and width, which makes no difference to text.
func (b *builder) sections(rotary *FolderConfig, dims int) {
	sections := []int32{11, 11, 10}
	rotary.Value("mrope_section", &sections, "an array of numbers")
	if len(sections) != 3 {
		rotary.Fail("mrope_section has %d numbers; it must have 3", len(sections))
		return
	}
	if sum := int(sections[0]) + int(sections[1]) + int(sections[2]); sum < dims/2 {
		rotary.Fail("mrope_section holds %d pairs; a head has %d", sum, dims/2)
	}
	b.SetValue(".rope.dimension_sections", gguf.ArrayOf(append(sections, 0)))
}

// attendingLayers reads which layers attend and adds them.
func (b *builder) attendingLayers(layers int) []bool {
	c := b.Config
	period := c.CountOr("full_attention_interval", 4, 1, MaxLayers)
	var kinds []string
	attends := make([]bool, layers)
	if c.Value("layer_types", &kinds, "an array of kinds") && len(kinds) != layers {
		c.Fail("layer_types has %d entries, there are %d layers", len(kinds), layers)
		return attends
	}
	for i := range attends {
		attends[i] = (i+1)%period == 0
		if kinds == nil {
			continue
		}
		switch kinds[i] {
		case "full_attention", "linear_attention":
		default:
			c.Fail("layer_types has %.40q for layer %d; it must be full_attention or linear_attention", kinds[i], i)
		}
		if (kinds[i] == "full_attention") != attends[i] {
			c.Fail("layer_types has %.40q for layer %d; by full_attention_interval (%d) it is another", kinds[i], i, period)
		}
	}
	b.SetCount(".full_attention_interval", period)
	return attends
}

// qwenAttention adds attention whose queries are followed by gates.
func (b *builder) qwenAttention(s Shape, to, from func(string) string) {
	b.Both(to("attn_q"), from("self_attn.q_proj"), 2*s.Heads*s.Size, s.Width)
	b.Both(to("attn_k"), from("self_attn.k_proj"), s.KVHeads*s.Size, s.Width)
	b.Both(to("attn_v"), from("self_attn.v_proj"), s.KVHeads*s.Size, s.Width)
	b.Both(to("attn_output"), from("self_attn.o_proj"), s.Width, s.Heads*s.Size)
	b.HeadNorms(s.Size, s.Size, to, from, 1)
}

// qwenMix is the settings of Qwen's mixtures.
type qwenMix struct{ experts, ffn, shared int }

func (b *builder) qwenMixture(arch string) (m qwenMix) {
	c := b.Config
	if arch == "qwen35" {
		return m
	}
	var dense []int
	if c.Value("mlp_only_layers", &dense, "an array of layers"); len(dense) > 0 || c.CountOr("decoder_sparse_step", 1, 0, MaxLayers) != 1 {
		c.Fail("layers without experts (mlp_only_layers, decoder_sparse_step) are not supported")
	}
	if !c.BoolOr("norm_topk_prob", true) {
		c.Fail("norm_topk_prob must be true")
	}
	m.experts = b.Experts("num_experts")
	m.ffn, m.shared = c.Count("moe_intermediate_size", 1, MaxWidth), c.Count("shared_expert_intermediate_size", 1, MaxWidth)
	b.SetCount(".expert_feed_forward_length", m.ffn)
	b.SetCount(".expert_shared_feed_forward_length", m.shared)
	return m
}

// layer adds the norms and the feed-forward block of a layer.
func (m qwenMix) layer(b *builder, s Shape, to, from func(string) string) {
	b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.Width, 1)
	b.Norm(to("post_attention_norm.weight"), from("post_attention_layernorm.weight"), s.Width, 1)
	if m.experts == 0 {
		b.Gated(s, to, from)
		return
	}
	b.EitherMixture(s, m.experts, m.ffn, to, from)
	b.SharedExpert(s, m.shared, to, from("mlp.shared_expert."))
	b.Values(to("ffn_gate_inp_shexp.weight"), from("mlp.shared_expert_gate.weight"), []int{1, s.Width}, []int{s.Width}, nil)
}

// qwenPredictors returns how many layers predict further tokens.
func (b *builder) qwenPredictors() int {
	n := b.Config.CountOr("mtp_num_hidden_layers", 1, 0, MaxLayers)
	if n == 0 || !b.Has("mtp.fc.weight") {
		return 0
	}
	if n > 1 {
		b.Config.Fail("mtp_num_hidden_layers is %d; 1 is supported", n)
	}
	b.SetCount(".nextn_predict_layers", 1)
	return 1
}

// qwenPredictor adds the layer that predicts a further token, behind the others.
func (b *builder) qwenPredictor(s Shape, mix qwenMix) {
	to := func(name string) string { return fmt.Sprintf("blk.%d.%s", s.Layers, name) }
	from := func(name string) string { return "mtp.layers.0." + name }
	b.Copy(to("nextn.eh_proj.weight"), "mtp.fc.weight", s.Width, 2*s.Width)
	b.Norm(to("nextn.enorm.weight"), "mtp.pre_fc_norm_embedding.weight", s.Width, 1)
	b.Norm(to("nextn.hnorm.weight"), "mtp.pre_fc_norm_hidden.weight", s.Width, 1)
	b.Norm(to("nextn.shared_head_norm.weight"), "mtp.norm.weight", s.Width, 1)
	b.qwenAttention(s, to, from)
	mix.layer(b, s, to, from)
}
