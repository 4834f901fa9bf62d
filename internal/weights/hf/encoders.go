// encoders.go says what the folders of encoders have: BERT and the models of its line, EmbeddingGemma, UniXcoder, the heads of those that rank, and the
// modules of sentence-transformers behind them.

package hf

import (
	"fmt"
	"slices"
	"strings"

	"grove/internal/weights/tensor"
)

// EncodersFamilies are the classes of config.json.
var EncodersFamilies = map[string]func(b *FolderBuilder){
	"BertModel": bert, "BertForMaskedLM": bert, "BertForSequenceClassification": bert, "CamembertModel": roberta, "RobertaModel": uniXcoder,
	"RobertaForSequenceClassification": roberta, "XLMRobertaModel": roberta, "XLMRobertaForSequenceClassification": roberta, "ModernBertModel": modernBERT,
	"ModernBertForMaskedLM": modernBERT, "ModernBertForSequenceClassification": modernBERT, "EuroBertModel": euroBERT, "Gemma3TextModel": encodersGemmaEmbedding,
	"NeoBERT": neoBERT, "NeoBERTLMHead": neoBERT, "NeoBERTForSequenceClassification": neoBERT, "NomicBertModel": nomicBERT,
	"JinaBertModel": jinaBERT, "JinaBertForMaskedLM": jinaBERT, "XLMRobertaLoRA": roberta,
}

// Limits of settings, as package hf has them.
const (
	encodersMaxContext = 1 << 24
	encodersMaxLayers  = 128
	encodersMaxWidth   = 1 << 16
	encodersMaxHeads   = 1 << 12
)

// encodersBuilder adds what encoders share.
type encodersBuilder struct{ *FolderBuilder }

// encodersShape is the settings that all have.
type encodersShape struct{ layers, width, ffn, heads, kvHeads, size, context int }

// describe reads the shared settings, and adds them and which model this is.
func (b *encodersBuilder) describe(arch string) encodersShape {
	c := b.Config
	s := encodersShape{
		layers: c.Count("num_hidden_layers", 1, encodersMaxLayers), width: c.Count("hidden_size", 1, encodersMaxWidth), ffn: c.Count("intermediate_size", 1, encodersMaxWidth),
		heads: c.Count("num_attention_heads", 1, encodersMaxHeads), context: c.Count("max_position_embeddings", 1, encodersMaxContext),
	}
	s.kvHeads = c.CountOr("num_key_value_heads", s.heads, 1, encodersMaxHeads)
	s.size = c.CountOr("head_dim", max(1, s.width/max(1, s.heads)), 1, encodersMaxHeads)
	b.Vocab = c.Count("vocab_size", 1, 1<<24)
	b.Describe(arch)
	for _, count := range []struct {
		key string
		n   int
	}{
		{".context_length", s.context}, {".embedding_length", s.width}, {".block_count", s.layers}, {".feed_forward_length", s.ffn}, {".attention.head_count", s.heads},
		{".attention.head_count_kv", s.kvHeads}, {".attention.key_length", s.size}, {".attention.value_length", s.size},
	} {
		b.SetCount(count.key, count.n)
	}
	return s
}

// layers calls layer for each layer, with functions that complete the names of its tensors: as GGUF and as the folder has them.
func (b *encodersBuilder) layers(n int, root string, layer func(i int, to, from func(string) string)) {
	for i := 0; i < n && b.OK(); i++ {
		layer(i, func(name string) string { return fmt.Sprintf("blk.%d.%s", i, name) }, func(name string) string { return fmt.Sprintf("%s%d.%s", root, i, name) })
	}
}

// below returns the prefix below which the folder has a tensor: the first of several, "" where it has it below none.
func (b *encodersBuilder) below(name string, prefixes ...string) string {
	for _, p := range prefixes {
		if b.Has(p + name) {
			return p
		}
	}
	return ""
}

// classifier adds the head of a class that ranks: a layer, where it has one, and the values.
func (b *encodersBuilder) classifier(dense, out string, width int) {
	if dense != "" {
		b.Both("cls", dense, width, width)
	}
	rows := 1
	if t, ok := b.Tensor(out + ".weight"); ok && len(t.Shape) == 2 {
		rows = t.Shape[0]
	}
	b.Both("cls.output", out, rows, width)
}

// leaveOut leaves out tensors whose names begin so.
func (b *encodersBuilder) leaveOut(prefixes ...string) {
	b.Ignored = func(name string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	}
}

func bert(b *FolderBuilder) { (&encodersBuilder{b}).bertLayers("bert", "bert.", 0) }

// roberta has positions from the id of the padding on, which no text has.
func roberta(f *FolderBuilder) { (&encodersBuilder{f}).robertaAs("bert") }

func (b *encodersBuilder) robertaAs(arch string) {
	c := b.Config
	if c.TextOr("position_embedding_type", "absolute") == "rotary" {
		b.jinaBERTv3()
	} else {
		b.bertLayers(arch, "roberta.", 1+c.CountOr("pad_token_id", 1, 0, encodersMaxContext-2))
	}
	FolderSet(b.FolderBuilder, "tokenizer.ggml.add_sep_token", true)
	b.SetCount("tokenizer.ggml.seperator_token_id", c.CountOr("eos_token_id", 2, 0, 1<<24))
}

func (b *encodersBuilder) bertLayers(arch, prefix string, offset int) {
	c := b.Config
	c.Only("hidden_act", "gelu", "gelu_new", "gelu_pytorch_tanh")
	c.Only("position_embedding_type", "absolute")
	positions := c.Count("max_position_embeddings", offset+1, encodersMaxContext)
	c.Values["max_position_embeddings"] = fmt.Append(nil, positions-offset)
	const table = "embeddings.word_embeddings.weight"
	p := b.below(table, prefix)
	s := b.describe(arch)
	b.SetFloat(".attention.layer_norm_epsilon", c.FloatOr("layer_norm_eps", 1e-12, 0, 1))
	b.Copy("token_embd.weight", p+table, b.Vocab, s.width)
	b.CopyIf("token_types.weight", p+"embeddings.token_type_embeddings.weight", c.CountOr("type_vocab_size", 2, 1, 1<<10), s.width)
	if t, ok := b.Find(p+"embeddings.position_embeddings.weight", positions, s.width); ok {
		skip := len(t.Data) / positions * offset
		t.Data = t.Data[skip:]
		b.Add("position_embd.weight", tensor.F32, []int{s.context, s.width}, func(dst []byte) { ToF32(dst, t, 0) })
	}
	b.LayerNorm("token_embd_norm", p+"embeddings.LayerNorm", s.width)
	b.layers(s.layers, p+"encoder.layer.", func(i int, to, from func(string) string) {
		for _, n := range [][2]string{{"attn_q", "attention.self.query"}, {"attn_k", "attention.self.key"}, {"attn_v", "attention.self.value"}, {"attn_output", "attention.output.dense"}} {
			b.Both(to(n[0]), from(n[1]), s.width, s.width)
		}
		b.LayerNorm(to("attn_output_norm"), from("attention.output.LayerNorm"), s.width)
		b.Both(to("ffn_up"), from("intermediate.dense"), s.ffn, s.width)
		b.Both(to("ffn_down"), from("output.dense"), s.width, s.ffn)
		b.LayerNorm(to("layer_output_norm"), from("output.LayerNorm"), s.width)
	})
	if arch == "unixcoder" {
		b.leaveOut(p+"pooler.", p+"embeddings.position_ids")
		return
	}
	ranks := true
	switch {
	case b.Has("classifier.out_proj.weight"):
		b.classifier("classifier.dense", "classifier.out_proj", s.width)
	case b.Has("classifier.weight"):
		b.classifier(p+"pooler.dense", "classifier", s.width)
	default:
		ranks = false
	}
	b.leaveOut("cls.", "lm_head.", p+"pooler.", p+"embeddings.position_ids")
	b.encodes(ranks)
}

func modernBERT(f *FolderBuilder) {
	b := &encodersBuilder{f}
	c := b.Config
	for _, key := range []string{"norm_bias", "attention_bias", "mlp_bias", "classifier_bias"} {
		if c.BoolOr(key, false) {
			c.Fail("%s is true; only false is supported", key)
		}
	}
	c.Only("classifier_activation", "gelu")
	const table = "embeddings.tok_embeddings.weight"
	p := b.below(table, "model.")
	s := b.describe("modern-bert")
	b.SetFloat(".attention.layer_norm_epsilon", c.FloatOr("norm_eps", 1e-5, 0, 1))
	FolderSet(b.FolderBuilder, ".hidden_activation", c.TextOr("hidden_activation", "gelu"))
	b.SetCount(".attention.sliding_window", c.CountOr("local_attention", 128, 0, encodersMaxContext))
	b.SetCount(".attention.sliding_window_pattern", c.CountOr("global_attn_every_n_layers", 3, 1, encodersMaxLayers))
	b.SetCount(".rope.dimension_count", s.size)
	for _, base := range []struct {
		to, from, kind string
		other          float64
	}{{".rope.freq_base", "global_rope_theta", "full_attention", 160000}, {".rope.freq_base_swa", "local_rope_theta", "sliding_attention", 10000}} {
		theta := c.Sub("rope_parameters").Sub(base.kind).FloatOr("rope_theta", c.FloatOr(base.from, base.other, 1, 1e12), 1, 1e12)
		b.SetFloat(base.to, theta)
	}
	b.Copy("token_embd.weight", p+table, b.Vocab, s.width)
	b.Norm("token_embd_norm.weight", p+"embeddings.norm.weight", s.width, 0)
	b.Norm("output_norm.weight", p+"final_norm.weight", s.width, 0)
	b.layers(s.layers, p+"layers.", func(i int, to, from func(string) string) {
		if i > 0 {
			b.Norm(to("attn_norm.weight"), from("attn_norm.weight"), s.width, 0)
		}
		b.Norm(to("ffn_norm.weight"), from("mlp_norm.weight"), s.width, 0)
		b.Copy(to("attn_qkv.weight"), from("attn.Wqkv.weight"), 3*s.width, s.width)
		b.Copy(to("attn_output.weight"), from("attn.Wo.weight"), s.width, s.width)
		b.Copy(to("ffn_up.weight"), from("mlp.Wi.weight"), 2*s.ffn, s.width)
		b.Copy(to("ffn_down.weight"), from("mlp.Wo.weight"), s.width, s.ffn)
	})
	ranks := b.Has("classifier.weight")
	if ranks {
		FolderSet(b.FolderBuilder, ".classifier_pooling", c.TextOr("classifier_pooling", "cls"))
		b.Norm("cls.norm.weight", "head.norm.weight", s.width, 0)
		b.classifier("head.dense", "classifier", s.width)
	}
	b.leaveOut("head.", "decoder.")
	b.encodes(ranks)
}

func euroBERT(f *FolderBuilder) {
	b := &encodersBuilder{f}
	c := b.Config
	b.Config.Only("hidden_act", "silu")
	p := b.below("embed_tokens.weight", "model.")
	s := b.describe("eurobert")
	b.SetFloat(".attention.layer_norm_rms_epsilon", c.FloatOr("rms_norm_eps", 1e-5, 0, 1))
	rope := c.Sub(c.First("rope_parameters", "rope_scaling"))
	if kind := rope.TextOr(rope.First("rope_type", "type"), "default"); kind != "default" {
		rope.Fail("type is %.40q; it must be default", kind)
	}
	b.SetCount(".rope.dimension_count", s.size)
	b.SetFloat(".rope.freq_base", rope.FloatOr("rope_theta", c.FloatOr("rope_theta", 250000, 1, 1e12), 1, 1e12))
	b.Copy("token_embd.weight", p+"embed_tokens.weight", b.Vocab, s.width)
	b.Norm("output_norm.weight", p+"norm.weight", s.width, 0)
	b.layers(s.layers, p+"layers.", func(_ int, to, from func(string) string) {
		b.Norm(to("attn_norm.weight"), from("input_layernorm.weight"), s.width, 0)
		b.Norm(to("ffn_norm.weight"), from("post_attention_layernorm.weight"), s.width, 0)
		b.decoderLayer(s, to, from)
	})
	b.leaveOut("lm_head.")
	b.encodes(false)
}
