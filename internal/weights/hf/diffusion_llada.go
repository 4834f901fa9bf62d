package hf

import (
	"maps"
	"slices"
)

// lladaKeys are the names that config.json of LLaDA has for what others name as the second ones say.
var lladaKeys = map[string]string{
	"d_model": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads", "n_kv_heads": "num_key_value_heads",
	"mlp_hidden_size": "intermediate_size", "max_sequence_length": "max_position_embeddings", "weight_tying": "tie_word_embeddings",
}

// llada has Llama's layers by OLMo's names. Queries and keys change their order, as Llama's do.
func llada(b *diffusionBuilder) {
	c := b.Config
	for _, from := range slices.Sorted(maps.Keys(lladaKeys)) {
		if c.Has(from) {
			c.Values[lladaKeys[from]] = c.Values[from]
		}
	}
	c.Only(c.First("activation_type", "hidden_act"), "silu")
	c.Only("block_type", "llama")
	c.Only("layer_norm_type", "rms")
	for _, key := range []string{"alibi", "attention_layer_norm", "input_emb_norm", "scale_logits", "multi_query_attention", "include_bias", "include_qkv_bias", "bias_for_layer_norm"} {
		if c.BoolOr(key, false) {
			c.Fail("%s is true; it must be false", key)
		}
	}
	if !c.BoolOr("rope", true) {
		c.Fail("rope is false; it must be true")
	}
	const root = "model.transformer."
	s := b.Decoder("llada")
	b.RMSEps(1e-5)
	b.Rope(s.Size)
	b.VocabOf(root + "wte.weight")
	b.Copy("token_embd.weight", root+"wte.weight", b.Vocab, s.Width)
	b.Norm("output_norm.weight", root+"ln_f.weight", s.Width, 0)
	b.Head(root+"ff_out.weight", s.Width, false)
	b.Layers(s.Layers, root+"blocks.", func(to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("attn_norm.weight"), s.Width, 0)
		b.Norm(to("ffn_norm.weight"), from("ff_norm.weight"), s.Width, 0)
		b.Turned(to("attn_q"), from("q_proj"), s.Heads, s.Size, s.Width)
		b.Turned(to("attn_k"), from("k_proj"), s.KVHeads, s.Size, s.Width)
		for _, m := range []struct {
			to, from string
			out, in  int
		}{
			{"attn_v", "v_proj", s.KVHeads * s.Size, s.Width}, {"attn_output", "attn_out", s.Width, s.Heads * s.Size},
			{"ffn_gate", "ff_proj", s.FFN, s.Width}, {"ffn_up", "up_proj", s.FFN, s.Width}, {"ffn_down", "ff_out", s.Width, s.FFN},
		} {
			b.Copy(to(m.to+".weight"), from(m.from+".weight"), m.out, m.in)
		}
	})
	b.canvas(false, "<|mdm_mask|>", "<|mask|>")
}
