package hf

import ()

// neoBERT reads NeoBERT. The folder has queries, keys and values head by head, and the inner values of a block are two thirds of those that its settings
// name, rounded up to a multiple of 8; other folders name those that there are.
func neoBERT(f *FolderBuilder) {
	b := &encodersBuilder{f}
	c := b.Config
	b.renamed(map[string]string{"max_length": "max_position_embeddings"})
	c.Only("hidden_act", "swiglu", "SwiGLU")
	b.must(map[string]any{"rope": true, "rms_norm": true})
	const table = "encoder.weight"
	p := b.below(table, "model.")
	s := b.describe("neo-bert")
	const multiple = 8
	inner := (2*s.ffn/3 + multiple - 1) / multiple * multiple
	if t, ok := b.Tensor(p + "transformer_encoder.0.ffn.w12.weight"); !ok || len(t.Shape) != 2 || t.Shape[0] != 2*s.ffn {
		s.ffn = inner
	}
	b.SetCountOnce(".feed_forward_length", s.ffn)
	b.SetFloat(".attention.layer_norm_rms_epsilon", c.FloatOr("norm_eps", 1e-6, 0, 1))
	b.SetCount(".rope.dimension_count", s.size)
	b.SetFloat(".rope.freq_base", 10000)
	b.Copy("token_embd.weight", p+table, b.Vocab, s.width)
	b.Norm("enc.output_norm.weight", p+"layer_norm.weight", s.width, 0)
	part := func(i int) int { // of queries, then keys, then values
		kind, at := i/s.width, i%s.width
		return (at/s.size*3+kind)*s.size + at%s.size
	}
	b.layers(s.layers, p+"transformer_encoder.", func(_ int, to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("attention_norm.weight"), s.width, 0)
		b.Norm(to("ffn_norm.weight"), from("ffn_norm.weight"), s.width, 0)
		b.Gathered(to("attn_qkv.weight"), from("qkv.weight"), 3*s.width, s.width, 3*s.width, part)
		b.Copy(to("attn_output.weight"), from("wo.weight"), s.width, s.width)
		b.Copy(to("ffn_up.weight"), from("ffn.w12.weight"), 2*s.ffn, s.width) // the gate is its first half
		b.Copy(to("ffn_down.weight"), from("ffn.w3.weight"), s.width, s.ffn)
	})
	ranks := b.Has("classifier.weight")
	if ranks {
		b.classifier("dense", "classifier", s.width)
	}
	b.leaveOut("decoder.")
	b.encodes(ranks)
	if !ranks && !b.pooled() {
		b.SetCount(".pooling_type", 2) // by the first token, as its publishers say
	}
}
