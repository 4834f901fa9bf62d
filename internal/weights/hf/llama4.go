package hf

// llama4 takes the text part. Its heads rotate pairs of neighbours, as in GGUF, and its experts are stacked as [in, out].
func llama4(b *builder) {
	b.Config.Only("hidden_act", "silu")
	c := b.Config
	ffn := c.Count("intermediate_size", 1, MaxWidth) // of an expert
	c.Values["intermediate_size"] = c.Values[c.First("intermediate_size_mlp", "intermediate_size")]
	s := b.Decoder("llama4")
	b.RMSEps(1e-5)
	experts := b.Experts("num_local_experts")
	step := c.CountOr("interleave_moe_layer_step", 1, 1, MaxLayers)
	b.SetCount(".expert_feed_forward_length", ffn)
	b.SetCount(".interleave_moe_layer_step", step)
	b.Llama4Attention(s.Layers, experts)
	b.Rope(s.Size)
	prefix, head := b.TextPrefix(senses...), "lm_head.weight"
	if b.Has("language_model." + head) {
		head = "language_model." + head
	}
	if t, ok := b.Tensor(prefix + "embed_tokens.weight"); ok && len(t.Shape) == 2 {
		b.Vocab = t.Shape[0]
	}
	b.Copy("token_embd.weight", prefix+"embed_tokens.weight", b.Vocab, s.Width)
	b.Norm("output_norm.weight", prefix+"norm.weight", s.Width, 0)
	b.Head(head, s.Width, false)
	i := 0
	b.Layers(s.Layers, prefix+"layers.", func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		if i++; i%step != 0 {
			b.Copy(to("ffn_gate.weight"), from("feed_forward.gate_proj.weight"), s.FFN, s.Width)
			b.Copy(to("ffn_up.weight"), from("feed_forward.up_proj.weight"), s.FFN, s.Width)
			b.Copy(to("ffn_down.weight"), from("feed_forward.down_proj.weight"), s.Width, s.FFN)
			return
		}
		b.Copy(to("ffn_gate_inp.weight"), from("feed_forward.router.weight"), experts, s.Width)
		b.TurnedStack(to("ffn_gate_exps.weight"), from("feed_forward.experts.gate_up_proj"), experts, s.Width, 2*ffn, 0, ffn)
		b.TurnedStack(to("ffn_up_exps.weight"), from("feed_forward.experts.gate_up_proj"), experts, s.Width, 2*ffn, ffn, ffn)
		b.TurnedStack(to("ffn_down_exps.weight"), from("feed_forward.experts.down_proj"), experts, ffn, s.Width, 0, s.Width)
		b.SharedExpert(s, ffn, to, from("feed_forward.shared_expert."))
	})
}
