package hf

import (
	"path/filepath"
	"strconv"
)

// nomicBERT reads nomic-embed-text 1 and, where some layers are mixtures, 2. Texts are as long as those that the model was trained with, for which its
// rotation is the plain one.
func nomicBERT(f *FolderBuilder) {
	b := &encodersBuilder{f}
	c := b.Config
	b.renamed(map[string]string{"n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads", "n_inner": "intermediate_size", "n_positions": "max_position_embeddings"})
	every := c.CountOr("moe_every_n_layers", 0, 0, encodersMaxLayers)
	arch, act := "nomic-bert", "swiglu"
	if every > 0 {
		arch, act = "nomic-bert-moe", "gelu"
	}
	if got := c.TextOr("activation_function", "gelu"); got != act {
		c.Fail("activation_function is %.40q; with moe_every_n_layers %d it must be %s", got, every, act)
	}
	b.must(map[string]any{
		"prenorm": false, "parallel_block": false, "use_rms_norm": false, "causal": false, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": false,
		"scale_attn_weights": true, "scale_attn_by_inverse_layer_idx": false, "num_shared_experts": 0.0, "moe_normalize_expert_weights": false,
		"expert_choice_router": false, "ffn_div": 1.0,
	})
	if c.Has("rotary_emb_scale_base") {
		c.Fail("rotary_emb_scale_base is not supported")
	}
	c.Values["max_position_embeddings"] = strconv.AppendInt(nil, int64(b.trained()), 10)
	s := b.describe(arch)
	b.SetFloat(".attention.layer_norm_epsilon", c.FloatOr("layer_norm_epsilon", 1e-12, 0, 1))
	b.SetCount(".rope.dimension_count", s.size)
	b.SetFloat(".rope.freq_base", c.FloatOr("rotary_emb_base", 10000, 1, 1e12))
	experts := 0
	if every > 0 {
		experts = c.Count("num_experts", 1, 1<<12)
		b.SetCount(".moe_every_n_layers", every)
		b.SetCount(".expert_count", experts)
		b.SetCount(".expert_used_count", c.Count("moe_top_k", 1, experts))
	}
	const table = "embeddings.word_embeddings.weight"
	p := b.below(table, "bert.")
	b.Copy("token_embd.weight", p+table, b.Vocab, s.width)
	b.CopyIf("token_types.weight", p+"embeddings.token_type_embeddings.weight", c.CountOr("type_vocab_size", 2, 0, 1<<10), s.width)
	b.LayerNorm("token_embd_norm", p+"emb_ln", s.width)
	b.layers(s.layers, p+"encoder.layers.", func(i int, to, from func(string) string) {
		b.Both(to("attn_qkv"), from("attn.Wqkv"), 3*s.width, s.width)
		b.Both(to("attn_output"), from("attn.out_proj"), s.width, s.width)
		b.LayerNorm(to("attn_output_norm"), from("norm1"), s.width)
		b.LayerNorm(to("layer_output_norm"), from("norm2"), s.width)
		switch {
		case every > 0 && i%every == 1:
			b.nomicExperts(s, experts, to, from)
		case every > 0:
			b.Both(to("ffn_up"), from("mlp.fc1"), s.ffn, s.width)
			b.Both(to("ffn_down"), from("mlp.fc2"), s.width, s.ffn)
		default:
			b.Both(to("ffn_up"), from("mlp.fc11"), s.ffn, s.width)
			b.Both(to("ffn_gate"), from("mlp.fc12"), s.ffn, s.width)
			b.Both(to("ffn_down"), from("mlp.fc2"), s.width, s.ffn)
		}
	})
	b.leaveOut("cls.", p+"pooler.")
	b.encodes(false)
}

// trained returns the length of the longest texts that the model was trained with.
func (b *encodersBuilder) trained() int {
	c := b.Config
	n := min(c.Count("max_position_embeddings", 1, encodersMaxContext), c.CountOr("max_trained_positions", 2048, 1, encodersMaxContext))
	sentences := b.OptionalConfig(filepath.Join(b.Dir, "sentence_bert_config.json"))
	return min(n, sentences.CountOr("max_seq_length", n, 1, encodersMaxContext))
}

// nomicExperts adds the mixture of a layer. The folder has the matrices of all experts one below the other, the second ones as [in, out]; one bias is
// added behind the mixture, which files of llama.cpp lack.
func (b *encodersBuilder) nomicExperts(s encodersShape, experts int, to, from func(string) string) {
	b.Copy(to("ffn_gate_inp.weight"), from("mlp.router.layer.weight"), experts, s.width)
	rows := []int{experts * s.ffn, s.width}
	b.GatheredAs(to("ffn_up_exps.weight"), from("mlp.experts.mlp.w1"), rows, []int{experts, s.ffn, s.width}, func(i int) int { return i })
	if t, ok := b.Find(from("mlp.experts.mlp.w2"), rows...); ok {
		t.Shape = []int{experts, s.ffn, s.width}
		b.TurnedStackOf(to("ffn_down_exps.weight"), t, 0, s.width)
	}
	b.CopyIf(to("ffn_exps.bias"), from("mlp.experts.bias"), s.width)
}
