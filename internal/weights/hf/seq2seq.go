// seq2seq.go says what the folders of encoder-decoders have, T5 and T5Gemma, and those of CodeGen, whose prompts can be read as a source is.

package hf

import (
	"fmt"
	"math"
)

// Seq2seqFamilies are the classes of config.json.
var Seq2seqFamilies = map[string]func(b *FolderBuilder){
	"CodeGenForCausalLM": codeGen2, "T5ForConditionalGeneration": t5, "UMT5ForConditionalGeneration": t5, "T5EncoderModel": t5Encoder,
	"CodeT5pEmbeddingModel":           codeT5Embedding,
	"T5GemmaForConditionalGeneration": t5Gemma,
}

// Refused are classes of their kind that are not supported, and why.
var Refused = map[string]string{
	"CodeT5pEncoderDecoderModel": "it is CodeT5+ of 2 B parameters or more, a CodeGen some of whose layers read another one; which they are, its own code alone says",
}

// Limits of settings, as package hf has them.
const (
	seq2seqMaxContext = 1 << 24
	seq2seqMaxLayers  = 1 << 10
	seq2seqMaxWidth   = 1 << 20
	seq2seqMaxHeads   = 1 << 12
)

// seq2seqGemmaNorm is what Gemma's norms add to their weights; GGUF has the sum.
const seq2seqGemmaNorm = 1

// seq2seqBuilder adds what these share.
type seq2seqBuilder struct{ *FolderBuilder }

// seq2seqShape is the settings that all have.
type seq2seqShape struct{ layers, width, ffn, heads, kvHeads, size, context int }

// describe adds which model this is, and the shared settings.
func (b *seq2seqBuilder) describe(arch string, s seq2seqShape) {
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
}

// gemmaShape reads the settings of a part of T5Gemma.
func (b *seq2seqBuilder) gemmaShape() seq2seqShape {
	c := b.Config
	s := seq2seqShape{
		layers: c.Count("num_hidden_layers", 1, seq2seqMaxLayers), width: c.Count("hidden_size", 1, seq2seqMaxWidth), ffn: c.Count("intermediate_size", 1, seq2seqMaxWidth),
		heads: c.Count("num_attention_heads", 1, seq2seqMaxHeads), context: c.Count("max_position_embeddings", 1, seq2seqMaxContext),
	}
	s.kvHeads = c.CountOr("num_key_value_heads", s.heads, 1, seq2seqMaxHeads)
	s.size = c.CountOr("head_dim", max(1, s.width/s.heads), 1, seq2seqMaxHeads)
	return s
}

// t5Shape reads the settings of T5, whose names are its own, and adds them.
func (b *seq2seqBuilder) t5Shape(arch string) seq2seqShape {
	c := b.Config
	s := seq2seqShape{
		layers: c.Count("num_layers", 1, seq2seqMaxLayers), width: c.Count("d_model", 1, seq2seqMaxWidth), ffn: c.Count("d_ff", 1, seq2seqMaxWidth),
		heads: c.Count("num_heads", 1, seq2seqMaxHeads), size: c.Count("d_kv", 1, seq2seqMaxHeads),
		context: c.CountOr("n_positions", 512, 1, seq2seqMaxContext), // of the texts that it was trained with: it has no positions
	}
	s.kvHeads = s.heads
	b.describe(arch, s)
	b.SetFloat(".attention.layer_norm_rms_epsilon", c.FloatOr("layer_norm_epsilon", 1e-6, 0, 1))
	b.SetCount(".attention.relative_buckets_count", c.CountOr("relative_attention_num_buckets", 32, 2, 1<<10))
	if n := c.CountOr("relative_attention_max_distance", 128, 1, seq2seqMaxContext); n != 128 {
		c.Fail("relative_attention_max_distance %d is not supported; T5 has 128", n)
	}
	c.Only("feed_forward_proj", "relu", "gated-gelu")
	return s
}

// t5Block adds the tensors of a layer.
func (b *seq2seqBuilder) t5Block(s seq2seqShape, part string, layer int, cross bool) {
	to := func(name string) string { return fmt.Sprintf("%s.blk.%d.%s.weight", part[:3], layer, name) }
	from := func(sub int, name string) string {
		return fmt.Sprintf("%s.block.%d.layer.%d.%s.weight", part, layer, sub, name)
	}
	attention := func(sub int, name, block string) {
		inner := s.heads * s.size
		b.Norm(to(name+"_norm"), from(sub, "layer_norm"), s.width, 0)
		b.Copy(to(name+"_q"), from(sub, block+".q"), inner, s.width)
		b.Copy(to(name+"_k"), from(sub, block+".k"), inner, s.width)
		b.Copy(to(name+"_v"), from(sub, block+".v"), inner, s.width)
		b.Copy(to(name+"_o"), from(sub, block+".o"), s.width, inner)
	}
	attention(0, "attn", "SelfAttention")
	if name := from(0, "SelfAttention.relative_attention_bias"); layer == 0 || b.Has(name) {
		b.Copy(to("attn_rel_b"), name, b.Config.CountOr("relative_attention_num_buckets", 32, 2, 1<<10), s.heads)
	}
	last := 1
	if cross {
		attention(1, "cross_attn", "EncDecAttention")
		last = 2
	}
	b.Norm(to("ffn_norm"), from(last, "layer_norm"), s.width, 0)
	up := "DenseReluDense.wi"
	if b.Config.TextOr("feed_forward_proj", "relu") == "gated-gelu" {
		b.Copy(to("ffn_gate"), from(last, "DenseReluDense.wi_0"), s.ffn, s.width)
		up += "_1"
	}
	b.Copy(to("ffn_up"), from(last, up), s.ffn, s.width)
	b.Copy(to("ffn_down"), from(last, "DenseReluDense.wo"), s.width, s.ffn)
}

// t5Part adds the layers of a part and its last norm.
func (b *seq2seqBuilder) t5Part(s seq2seqShape, part string, layers int) {
	for i := 0; i < layers && b.OK(); i++ {
		b.t5Block(s, part, i, part == "decoder")
	}
	b.Norm(part[:3]+".output_norm.weight", part+".final_layer_norm.weight", s.width, 0)
}

// t5Table adds the table that both parts share; folders have copies of it by other names.
func (b *seq2seqBuilder) t5Table(width int) {
	name := "shared.weight"
	for _, other := range []string{"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"} {
		if !b.Has(name) {
			name = other
		}
	}
	b.VocabOf(name)
	b.Copy("token_embd.weight", name, b.Vocab, width)
	for _, copied := range []string{"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"} {
		if copied != name && b.Has(copied) {
			b.Find(copied, b.Vocab, width)
		}
	}
}

// t5 is T5, Flan-T5, UMT5 and CodeT5+ of 220 and 770 M.
func t5(f *FolderBuilder) {
	b := &seq2seqBuilder{f}
	s := b.t5Shape("t5")
	layers := b.Config.CountOr("num_decoder_layers", s.layers, 1, seq2seqMaxLayers)
	b.SetCount(".decoder_block_count", layers)
	b.SetCount(".decoder_start_token_id", b.Config.CountOr("decoder_start_token_id", 0, 0, math.MaxInt32))
	b.t5Table(s.width)
	b.Head("lm_head.weight", s.width, true)
	b.t5Part(s, "encoder", s.layers)
	b.t5Part(s, "decoder", layers)
	if name := "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"; b.Has(name) { // old checkpoints have it, and nothing reads it
		b.Find(name, b.Config.CountOr("relative_attention_num_buckets", 32, 2, 1<<10), s.heads)
	}
}

// t5Encoder is the encoder alone.
func t5Encoder(f *FolderBuilder) {
	b := &seq2seqBuilder{f}
	s := b.t5Shape("t5encoder")
	b.t5Table(s.width)
	b.t5Part(s, "encoder", s.layers)
}

// codeT5Embedding is CodeT5+ of 110 M: the encoder, and a projection of the first token's state to a unit vector (Wang et al. 2023, section 3.2).
func codeT5Embedding(f *FolderBuilder) {
	t5Encoder(f)
	b := &seq2seqBuilder{f}
	const first = 2 // the pooling of the first token
	width, out := b.Config.Count("d_model", 1, seq2seqMaxWidth), b.Config.CountOr("embed_dim", 256, 1, seq2seqMaxWidth)
	b.SetCount(".pooling_type", first)
	b.Both("dense_2", "proj", out, width)
}

// t5Gemma is T5Gemma: the parts' settings are two objects.
func t5Gemma(f *FolderBuilder) {
	b := &seq2seqBuilder{f}
	whole := b.Config
	b.Config = whole.Sub("encoder")
	e := b.gemmaShape()
	b.GemmaActs()
	encoderWindow := b.Config.Count("sliding_window", 1, seq2seqMaxContext)
	encoderScale := b.Config.FloatOr("query_pre_attn_scalar", float64(e.size), 1, seq2seqMaxWidth)
	b.Config = whole.Sub("decoder")
	s := b.gemmaShape()
	b.describe("t5gemma", s)
	b.GemmaActs()
	b.RMSEps(1e-6)
	b.Rope(s.size)
	b.Windows(s.layers, func(layer int) bool { return layer%2 == 1 })
	b.SetFloat(".attention.scale", 1/math.Sqrt(b.Config.FloatOr("query_pre_attn_scalar", float64(s.size), 1, seq2seqMaxWidth)))
	for _, key := range []string{"attn_logit_softcapping", "final_logit_softcapping"} {
		b.SetFloat("."+key, b.Config.FloatOr(key, 0, 0, 1e6))
	}
	for _, count := range []struct {
		key string
		n   int
	}{
		{"block_count", e.layers}, {"embedding_length", e.width}, {"feed_forward_length", e.ffn}, {"attention.head_count", e.heads},
		{"attention.head_count_kv", e.kvHeads}, {"attention.key_length", e.size}, {"attention.sliding_window", encoderWindow},
	} {
		b.SetCount(".encoder."+count.key, count.n)
	}
	b.SetFloat(".encoder.attention.scale", 1/math.Sqrt(encoderScale))
	b.SetCount(".decoder_start_token_id", whole.CountOr("decoder_start_token_id", 2, 0, math.MaxInt32))
	b.VocabOf("model.decoder.embed_tokens.weight")
	b.Copy("token_embd.weight", "model.decoder.embed_tokens.weight", b.Vocab, s.width)
	b.Copy("enc.token_embd.weight", "model.encoder.embed_tokens.weight", b.Vocab, e.width)
	b.Config = whole
	b.Head("lm_head.out_proj.weight", s.width, true)
	b.t5GemmaPart(e, "encoder", e.width)
	b.t5GemmaPart(s, "decoder", e.width)
}

// t5GemmaPart adds the layers of a part; cross attention reads states of from values.
func (b *seq2seqBuilder) t5GemmaPart(s seq2seqShape, part string, from int) {
	for i := 0; i < s.layers && b.OK(); i++ {
		to := func(name string) string { return fmt.Sprintf("%s.blk.%d.%s.weight", part[:3], i, name) }
		of := func(name string) string { return fmt.Sprintf("model.%s.layers.%d.%s.weight", part, i, name) }
		norm := func(name, folder string) { b.Norm(to(name), of(folder), s.width, seq2seqGemmaNorm) }
		attention := func(name, folder string, from int) {
			b.Copy(to(name+"_q"), of(folder+".q_proj"), s.heads*s.size, s.width)
			b.Copy(to(name+"_k"), of(folder+".k_proj"), s.kvHeads*s.size, from)
			b.Copy(to(name+"_v"), of(folder+".v_proj"), s.kvHeads*s.size, from)
			b.Copy(to(name+"_o"), of(folder+".o_proj"), s.width, s.heads*s.size)
			norm(name+"_norm", "pre_"+folder+"_layernorm")
			norm("post_"+name+"_norm", "post_"+folder+"_layernorm")
		}
		attention("attn", "self_attn", s.width)
		if part == "decoder" {
			attention("cross_attn", "cross_attn", from)
		}
		norm("ffn_norm", "pre_feedforward_layernorm")
		norm("post_ffw_norm", "post_feedforward_layernorm")
		b.Copy(to("ffn_gate"), of("mlp.gate_proj"), s.ffn, s.width)
		b.Copy(to("ffn_up"), of("mlp.up_proj"), s.ffn, s.width)
		b.Copy(to("ffn_down"), of("mlp.down_proj"), s.width, s.ffn)
	}
	b.Norm(part[:3]+".output_norm.weight", "model."+part+".norm.weight", s.width, seq2seqGemmaNorm)
}

// codeGen2 is CodeGen 1 and 2. The rows of queries, values and keys are dealt to four parts, each of which has all three.
func codeGen2(f *FolderBuilder) {
	b := &seq2seqBuilder{f}
	const parts = 4
	c := b.Config
	c.Only("activation_function", "gelu_new")
	s := seq2seqShape{
		layers: c.Count("n_layer", 1, seq2seqMaxLayers), width: c.Count("n_embd", 1, seq2seqMaxWidth), heads: c.Count("n_head", 1, seq2seqMaxHeads),
		context: c.Count("n_positions", 1, seq2seqMaxContext),
	}
	s.kvHeads, s.size, s.ffn = s.heads, s.width/s.heads, c.CountOr("n_inner", 4*s.width, 1, seq2seqMaxWidth)
	if s.heads%parts != 0 {
		c.Fail("n_head %d is not supported; it must be a multiple of %d, into which the published code cuts the queries", s.heads, parts)
		return
	}
	if s.width%s.heads != 0 {
		c.Fail("n_embd %d is not a multiple of n_head %d", s.width, s.heads)
		return
	}
	b.describe("codegen2", s)
	b.SetFloat(".attention.layer_norm_epsilon", c.FloatOr("layer_norm_epsilon", 1e-5, 0, 1))
	b.SetCount(".rope.dimension_count", c.CountOr("rotary_dim", s.size, 2, s.size))
	b.SetFloat(".rope.freq_base", 10000)
	b.VocabOf("transformer.wte.weight")
	b.Copy("token_embd.weight", "transformer.wte.weight", b.Vocab, s.width)
	b.LayerNorm("output_norm", "transformer.ln_f", s.width)
	b.Copy("output.weight", "lm_head.weight", b.Vocab, s.width)
	b.Copy("output.bias", "lm_head.bias", b.Vocab)
	inner := s.heads * s.size
	for i := 0; i < s.layers && b.OK(); i++ {
		to := func(name string) string { return fmt.Sprintf("blk.%d.%s", i, name) }
		from := func(name string) string { return fmt.Sprintf("transformer.h.%d.%s", i, name) }
		b.LayerNorm(to("attn_norm"), from("ln_1"), s.width)
		for part, name := range []string{"attn_q", "attn_v", "attn_k"} {
			b.Gathered(to(name+".weight"), from("attn.qkv_proj.weight"), 3*inner, s.width, inner, func(row int) int {
				one := inner / parts
				return row/one*3*one + part*one + row%one
			})
		}
		b.Copy(to("attn_output.weight"), from("attn.out_proj.weight"), s.width, inner)
		b.Both(to("ffn_up"), from("mlp.fc_in"), s.ffn, s.width)
		b.Both(to("ffn_down"), from("mlp.fc_out"), s.width, s.ffn)
	}
}
