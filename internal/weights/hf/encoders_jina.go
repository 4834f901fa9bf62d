package hf

import (
	"fmt"
	"strings"
)

// jinaBERT reads jina-embeddings 2, for languages and for code. In GGUF the gate is the first half of what it shares with the matrix
// that it gates: as in the folders of languages (gated_layers); those for code (up_gated_layer) have it as the second half.
func jinaBERT(f *FolderBuilder) {
	b := &encodersBuilder{f}
	c := b.Config
	c.Only("hidden_act", "gelu")
	for _, n := range [][2]string{{"position_embedding_type", "alibi"}, {"feed_forward_type", "geglu"}} {
		if got := c.TextOr(n[0], ""); got != n[1] {
			c.Fail("%s is %.40q; it must be %s", n[0], got, n[1])
		}
	}
	const table = "embeddings.word_embeddings.weight"
	p := b.below(table, "bert.")
	s := b.describe("jina-bert-v2")
	b.SetFloat(".attention.layer_norm_epsilon", c.FloatOr("layer_norm_eps", 1e-12, 0, 1))
	b.Copy("token_embd.weight", p+table, b.Vocab, s.width)
	b.CopyIf("token_types.weight", p+"embeddings.token_type_embeddings.weight", c.CountOr("type_vocab_size", 2, 1, 1<<10), s.width)
	b.LayerNorm("token_embd_norm", p+"embeddings.LayerNorm", s.width)
	b.layers(s.layers, p+"encoder.layer.", func(_ int, to, from func(string) string) {
		for _, n := range [][2]string{{"attn_q", "attention.self.query"}, {"attn_k", "attention.self.key"}, {"attn_v", "attention.self.value"}, {"attn_output", "attention.output.dense"}} {
			b.Both(to(n[0]), from(n[1]), s.width, s.width)
		}
		b.LayerNorm(to("attn_output_norm"), from("attention.output.LayerNorm"), s.width)
		up := from("mlp.up_gated_layer.weight")
		if !b.Has(up) {
			b.Copy(to("ffn_up.weight"), from("mlp.gated_layers.weight"), 2*s.ffn, s.width)
			b.Both(to("ffn_down"), from("mlp.wo"), s.width, s.ffn)
			b.LayerNorm(to("layer_output_norm"), from("mlp.layernorm"), s.width)
			return
		}
		b.LayerNorm(to("attn_q_norm"), from("attention.self.layer_norm_q"), s.width)
		b.LayerNorm(to("attn_k_norm"), from("attention.self.layer_norm_k"), s.width)
		b.LayerNorm(to("attn_norm_2"), from("layer_norm_1"), s.width)
		b.Gathered(to("ffn_up.weight"), up, 2*s.ffn, s.width, 2*s.ffn, func(i int) int { return (i + s.ffn) % (2 * s.ffn) })
		b.Both(to("ffn_down"), from("mlp.down_layer"), s.width, s.ffn)
		b.LayerNorm(to("layer_output_norm"), from("layer_norm_2"), s.width)
	})
	b.leaveOut("cls.", p+"pooler.", p+"embeddings.position_ids")
	b.encodes(false)
	b.pooler()
}

// pooler adds how the model pools, where sentence-transformers do not say it and its own settings do.
func (b *encodersBuilder) pooler() {
	if b.Config.Has("emb_pooler") && !b.pooled() {
		b.Config.Only("emb_pooler", "mean")
		b.SetCount(".pooling_type", 1)
	}
}

// original ends the name of a weight that has adapters beside it.
const original = ".parametrizations.weight.original"

// jinaBERTv3 reads jina-embeddings 3: XLM-RoBERTa that rotates, with a low-rank adapter for each task beside its matrices. The model is read as it embeds
// where no task is named: without them, which its description says.
func (b *encodersBuilder) jinaBERTv3() {
	c := b.Config
	c.Only("hidden_act", "gelu")
	if c.Has("truncate_dim") {
		c.Fail("truncate_dim is not supported; the whole embedding is computed")
	}
	if !c.Has("rotary_emb_base") {
		c.Fail("rotary_emb_base is missing")
	}
	offset := 1 + c.CountOr("pad_token_id", 1, 0, encodersMaxContext-2)
	c.Values["max_position_embeddings"] = fmt.Append(nil, c.Count("max_position_embeddings", offset+1, encodersMaxContext)-offset)
	const words = "embeddings.word_embeddings"
	p := ""
	if b.Has("roberta."+words+".weight") || b.Has("roberta."+words+original) {
		p = "roberta."
	}
	weight := func(name string) string {
		if b.Has(name + original) {
			return name + original
		}
		return name + ".weight"
	}
	linear := func(to, from string, out, in int) {
		b.Copy(to+".weight", weight(from), out, in)
		b.CopyIf(to+".bias", from+".bias", out)
	}
	s := b.describe("jina-bert-v3")
	b.SetFloat(".attention.layer_norm_epsilon", c.FloatOr("layer_norm_eps", 1e-5, 0, 1))
	b.SetCount(".rope.dimension_count", s.size)
	b.SetFloat(".rope.freq_base", c.FloatOr("rotary_emb_base", 10000, 1, 1e12))
	b.Copy("token_embd.weight", weight(p+words), b.Vocab, s.width)
	if types := weight(p + "embeddings.token_type_embeddings"); b.Has(types) {
		b.Copy("token_types.weight", types, c.CountOr("type_vocab_size", 1, 1, 1<<10), s.width)
	}
	b.LayerNorm("token_embd_norm", p+"emb_ln", s.width)
	b.layers(s.layers, p+"encoder.layers.", func(_ int, to, from func(string) string) {
		linear(to("attn_qkv"), from("mixer.Wqkv"), 3*s.width, s.width)
		linear(to("attn_output"), from("mixer.out_proj"), s.width, s.width)
		b.LayerNorm(to("attn_output_norm"), from("norm1"), s.width)
		linear(to("ffn_up"), from("mlp.fc1"), s.ffn, s.width)
		linear(to("ffn_down"), from("mlp.fc2"), s.width, s.ffn)
		b.LayerNorm(to("layer_output_norm"), from("norm2"), s.width)
	})
	b.Ignored = func(name string) bool {
		module, part, adapts := strings.Cut(name, ".parametrizations.weight.0.")
		return strings.HasPrefix(name, p+"pooler.") || adapts && (part == "lora_A" || part == "lora_B") && b.Has(module+original)
	}
	var tasks []string
	if c.Value("lora_adaptations", &tasks, "an array of names"); len(tasks) > 0 && b.Has(p+words+original) {
		FolderSet(b.FolderBuilder, "general.description", "The model without the adapters of its tasks: "+strings.Join(tasks, ", "))
	}
	b.encodes(false)
	b.pooler()
	if !b.pooled() {
		b.SetCount(".pooling_type", 1) // as its publishers pool
	}
}
