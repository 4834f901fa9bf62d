package hf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// step3 is the text part of Step-3, whose queries are made of a short row.
func step3(b *mixturesBuilder) {
	c := b.Config
	c.Only("hidden_act", "silu")
	for key, other := range map[string]string{"max_position_embeddings": "max_seq_len", "num_key_value_heads": "num_attention_groups", "num_experts_per_tok": "moe_top_k"} {
		if !c.Has(key) && c.Has(other) {
			c.Values[key] = c.Values[other]
		}
	}
	s := b.Decoder("step3")
	b.RMSEps(1e-5)
	b.Rope(s.Size)
	rank := c.Count("share_q_dim", 1, MaxWidth)
	b.SetCount(".attention.q_lora_rank", rank)
	experts := b.Experts("moe_num_experts")
	ffn, shared := c.Count("moe_intermediate_size", 1, MaxWidth), c.Count("share_expert_dim", 1, MaxWidth)
	b.SetCount(".expert_feed_forward_length", ffn)
	b.SetCount(".expert_shared_feed_forward_length", shared)
	FolderSet(b.DecoderBuilder.FolderBuilder, ".expert_weights_norm", c.BoolOr("norm_expert_weight", false))
	routes := b.step3Layers()
	b.RMSEnds(s.Width, false)
	l := 0
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Copy(to("attn_q_a.weight"), from("self_attn.q_proj.weight"), rank, s.Width)
		b.Norm(to("attn_q_a_norm.weight"), from("self_attn.inter_norm.weight"), rank, 0)
		b.Copy(to("attn_q_b.weight"), from("self_attn.wq.weight"), s.Heads*s.Size, rank)
		b.Copy(to("attn_k.weight"), from("self_attn.k_proj.weight"), s.KVHeads*s.Size, s.Width)
		b.Copy(to("attn_v.weight"), from("self_attn.v_proj.weight"), s.KVHeads*s.Size, s.Width)
		b.Copy(to("attn_output.weight"), from("self_attn.o_proj.weight"), s.Width, s.Heads*s.Size)
		if slices.Contains(routes, l) {
			b.step3Experts(s, experts, ffn, to, from)
			b.SharedExpert(s, shared, to, from("share_expert."))
		} else {
			b.Gated(s, to, from)
		}
		l++
	})
}

// step3Layers returns the layers with a mixture: a list, or a text with commas.
func (b *mixturesBuilder) step3Layers() (layers []int) {
	c := b.Config
	if raw := c.Values["moe_layers_enum"]; len(raw) > 0 && raw[0] == '[' {
		c.Value("moe_layers_enum", &layers, "an array of layers")
		return layers
	}
	text := c.TextOr("moe_layers_enum", "")
	if text == "" {
		c.Fail("moe_layers_enum is missing")
		return nil
	}
	for _, part := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 {
			c.Fail("moe_layers_enum is %s; it must be numbers of layers with commas", strconv.Quote(fmt.Sprintf("%.40s", text)))
			return nil
		}
		layers = append(layers, n)
	}
	return layers
}

// step3Experts adds a router and the stacks of its experts.
func (b *mixturesBuilder) step3Experts(s Shape, experts, ffn int, to, from func(string) string) {
	b.Copy(to("ffn_gate_inp.weight"), from("moe.gate.weight"), experts, s.Width)
	b.Copy(to("ffn_gate_exps.weight"), from("moe.gate_proj.weight"), experts, ffn, s.Width)
	b.Copy(to("ffn_up_exps.weight"), from("moe.up_proj.weight"), experts, ffn, s.Width)
	b.Copy(to("ffn_down_exps.weight"), from("moe.down_proj.weight"), experts, s.Width, ffn)
}
