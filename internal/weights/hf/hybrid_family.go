// hybrid_family.go says what the folders of Phi-4-mini-flash have, whose layers are recurrences, attention and units that read a memory.

package hf

import (
	"encoding/json"
)

// HybridFamilies are the classes of config.json.
var HybridFamilies = map[string]func(b *FolderBuilder){"Phi4FlashForCausalLM": phi4Flash}

// phi4Flash is SambaY. Recurrences, units and attention have one name in these folders; the number of the layer says which it is.
func phi4Flash(b *FolderBuilder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	for _, key := range []string{"mlp_bias", "lm_head_bias", "mamba_proj_bias"} {
		if c.BoolOr(key, false) {
			c.Fail("%s is true; only false is supported", key)
		}
	}
	if n := c.CountOr("mb_per_layer", 2, 0, MaxLayers); n != 2 {
		c.Fail("mb_per_layer is %d; only 2 is supported", n)
	}
	d := &DecoderBuilder{FolderBuilder: b}
	s := d.Decoder("sambay")
	check(b, s)
	b.SetFloat(".attention.layer_norm_epsilon", c.FloatOr("layer_norm_eps", 1e-5, 0, 1))
	r := Recurrence{
		Inner: c.CountOr("mamba_expand", 2, 1, 1<<6) * s.Width, Taps: c.CountOr("mamba_d_conv", 4, 2, 1<<6),
		State: c.CountOr("mamba_d_state", 16, 1, 1<<12), Rank: (s.Width + 15) / 16,
	}
	if c.Word("mamba_dt_rank") != "auto" {
		r.Rank = c.CountOr("mamba_dt_rank", r.Rank, 1, MaxHeads)
	}
	r.Describe(b)
	window(b, s.Layers)
	d.Ends("model.", s.Width, true, func() { b.LayerNorm("output_norm", "model.final_layernorm", s.Width) })
	i := -1
	d.Layers(s.Layers, "model.layers.", func(to, from func(string) string) {
		i++
		b.LayerNorm(to("attn_norm"), from("input_layernorm"), s.Width)
		b.LayerNorm(to("ffn_norm"), from("post_attention_layernorm"), s.Width)
		b.Copy(to("ffn_up.weight"), from("mlp.fc1.weight"), 2*s.FFN, s.Width)
		b.Copy(to("ffn_down.weight"), from("mlp.fc2.weight"), s.Width, s.FFN)
		switch middle := s.Layers / 2; {
		case i%2 == 1:
			differential(b, s, to, from, i > middle+1)
		case i > middle:
			b.Copy(to("gmu_in.weight"), from("attn.in_proj.weight"), r.Inner, s.Width)
			b.Copy(to("gmu_out.weight"), from("attn.out_proj.weight"), s.Width, r.Inner)
		default:
			b.Mamba1(r, s.Width, to, from("attn."))
		}
	})
}

// check refuses numbers of layers and heads of which the parts cannot be made.
func check(b *FolderBuilder, s Shape) {
	switch c := b.Config; {
	case !b.OK():
	case s.Layers%4 != 0:
		c.Fail("num_hidden_layers is %d; it must be a multiple of 4", s.Layers)
	case s.Heads*s.Size != s.Width:
		c.Fail("num_attention_heads is %d; it must divide hidden_size (%d)", s.Heads, s.Width)
	case s.Heads%2 != 0 || s.KVHeads%2 != 0:
		c.Fail("num_attention_heads is %d and num_key_value_heads %d; heads come in pairs, so that both must be even", s.Heads, s.KVHeads)
	}
}

// differential adds attention of pairs of heads; shared: queries alone, by another name.
func differential(b *FolderBuilder, s Shape, to, from func(string) string, shared bool) {
	if shared {
		b.Both(to("attn_q"), from("attn.Wqkv"), s.Heads*s.Size, s.Width)
	} else {
		b.Both(to("attn_qkv"), from("attn.Wqkv"), (s.Heads+2*s.KVHeads)*s.Size, s.Width)
	}
	b.Both(to("attn_output"), from("attn.out_proj"), s.Width, s.Heads*s.Size)
	for _, t := range []string{"q1", "k1", "q2", "k2"} {
		b.Norm(to("attn_lambda_"+t+".weight"), from("attn.inner_cross_attn.lambda_"+t), s.Size, 0)
	}
	b.Norm(to("attn_sub_norm.weight"), from("attn.inner_cross_attn.subln.weight"), 2*s.Size, 0)
}

// window adds the window of the odd layers of the lower half: one number, or as the class writes it, a number or null for each layer. Kinds of
// layers that a folder lists must say the same.
func window(b *FolderBuilder, layers int) {
	c := b.Config
	slides := func(l int) bool { return l < layers/2 && l%2 == 1 }
	if text := c.Values["sliding_window"]; b.OK() && len(text) > 0 && text[0] == '[' {
		var all []json.RawMessage
		if c.Value("sliding_window", &all, "a number, or one for each layer"); len(all) != layers {
			c.Fail("sliding_window has %d entries, there are %d layers", len(all), layers)
			return
		}
		for l, one := range all {
			if none := string(one) == "null"; none == slides(l) || !none && string(one) != string(all[1]) {
				c.Fail("sliding_window has %.40s for layer %d; the odd layers of the lower half must have one number, and the others null", one, l)
				return
			}
		}
		c.Values["sliding_window"] = all[1]
	}
	b.SetCount(".attention.sliding_window", c.Count("sliding_window", 1, MaxContext))
	var kinds []string
	if c.Value("layer_types", &kinds, "an array of kinds") && len(kinds) != layers {
		c.Fail("layer_types has %d entries, there are %d layers", len(kinds), layers)
		return
	}
	for l, kind := range kinds {
		if (kind == "sliding_attention") != slides(l) {
			c.Fail("layer_types has %.40q for layer %d; the odd layers of the lower half must be sliding_attention, and no others", kind, l)
			return
		}
	}
}
