package hf

// Gemma's norms multiply by one more than their weights; GGUF has the sum.
const gemmaNorm = 1

// gemmaEnds is [DecoderBuilder.RMSEnds] for Gemma, whose head is always the embedding table.
func (b *builder) gemmaEnds(prefix string, width int) {
	b.Ends(prefix, width, true, func() { b.Norm("output_norm.weight", prefix+"norm.weight", width, gemmaNorm) })
}

func gemma(b *builder) {
	b.GemmaActs()
	s := b.Decoder("gemma")
	b.RMSEps(1e-6)
	b.Rope(s.Size)
	b.gemmaEnds("model.", s.Width)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.Width, gemmaNorm)
		b.Norm(to("ffn_norm.weight"), from("post_attention_layernorm.weight"), s.Width, gemmaNorm)
		b.Attention(s, to, from)
		b.Gated(s, to, from)
	})
}

// gemmaScale refuses a scale of queries other than the one that readers of GGUF derive: from the head
// size, and in the largest model (known by its layers) from the width of the stream.
func (b *builder) gemmaScale(s Shape, largest int) {
	want := s.Size
	if s.Layers == largest {
		want = s.Width / s.Heads
	}
	if n := b.Config.CountOr("query_pre_attn_scalar", want, 1, MaxWidth); n != want {
		b.Config.Fail("query_pre_attn_scalar %d is not supported; a model of this shape has %d", n, want)
	}
}

// gemmaNorms adds the norms around the two blocks.
func (b *builder) gemmaNorms(width int, to, from func(string) string) {
	for _, n := range [][2]string{
		{"attn_norm", "input_layernorm"}, {"post_attention_norm", "post_attention_layernorm"},
		{"ffn_norm", "pre_feedforward_layernorm"}, {"post_ffw_norm", "post_feedforward_layernorm"},
	} {
		b.Norm(to(n[0]+".weight"), from(n[1]+".weight"), width, gemmaNorm)
	}
}

// windows adds the sliding window; see [FolderBuilder.Windows].
func (b *builder) windows(s Shape, full func(layer int) bool) { b.Windows(s.Layers, full) }

func gemma2(b *builder) {
	b.GemmaActs()
	s := b.Decoder("gemma2")
	b.RMSEps(1e-6)
	b.Rope(s.Size)
	b.gemmaScale(s, 46)
	b.windows(s, func(layer int) bool { return layer%2 == 1 })
	b.SetFloat(".attn_logit_softcapping", b.Config.FloatOr("attn_logit_softcapping", 50, 1e-3, 1e6))
	b.SetFloat(".final_logit_softcapping", b.Config.FloatOr("final_logit_softcapping", 30, 1e-3, 1e6))
	b.gemmaEnds("model.", s.Width)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.gemmaNorms(s.Width, to, from)
		b.Attention(s, to, from)
		b.Gated(s, to, from)
	})
}

// gemma3 takes the text part of models that read images too. Their folders leave out settings that have the values
// of the smallest model of the family.
func gemma3(b *builder) {
	b.GemmaActs()
	c := b.Config
	s := Shape{
		Layers: c.Count("num_hidden_layers", 1, MaxLayers), Width: c.Count("hidden_size", 1, MaxWidth),
		FFN:   c.Count("intermediate_size", 1, MaxWidth),
		Heads: c.CountOr("num_attention_heads", 8, 1, MaxHeads), KVHeads: c.CountOr("num_key_value_heads", 4, 1, MaxHeads),
		Size: c.CountOr("head_dim", 256, 1, MaxHeads), Context: c.CountOr("max_position_embeddings", 131072, 1, MaxContext),
	}
	b.DescribeDecoder("gemma3", s)
	b.RMSEps(1e-6)
	b.Gemma3Rope(s.Size)
	b.gemmaScale(s, 62)
	const period = 6
	if n := c.CountOr("sliding_window_pattern", period, 1, MaxLayers); n != period {
		c.Fail("sliding_window_pattern is %d; it must be %d", n, period)
	}
	b.windows(s, func(layer int) bool { return layer%period == period-1 })
	for _, key := range []string{"attn_logit_softcapping", "final_logit_softcapping"} {
		if c.Has(key) {
			c.Fail("%s is not supported", key)
		}
	}
	prefix := b.TextPrefix("vision_tower.", "multi_modal_projector.")
	b.gemmaEnds(prefix, s.Width)
	b.Layers(s.Layers, prefix+"layers.", func(to, from func(string) string) {
		b.gemmaNorms(s.Width, to, from)
		b.Attention(s, to, from)
		b.HeadNorms(s.Size, s.Size, to, from, gemmaNorm)
		b.Gated(s, to, from)
	})
}
