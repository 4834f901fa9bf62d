package heads

import "strings"

// prompts is the name of the only tensor of PPD's file.
const prompts = "prompt_embeddings"

// ppd presents the learned vectors of parallel prompt decoding (Chen et al. 2024), which are published as an adapter of prompt tuning. Its settings
// may describe vectors that the published program trains and does not decode with; those are refused.
func ppd(b *builder) {
	c := b.Config
	n, width := b.matrix(prompts)
	if kind := c.TextOr("peft_type", "PROMPT_TUNING"); kind != "PROMPT_TUNING" {
		b.Fail("peft_type is %.40q in %s; vectors of parallel prompt decoding are of PROMPT_TUNING", kind, adapterConfig)
	}
	if said := c.CountOr("token_dim", width, 1, maxWidth); said != width && b.OK() {
		b.Fail("token_dim is %d in %s; the vectors have %d values", said, adapterConfig, width)
	}
	if said := c.CountOr("num_virtual_tokens", n, 1, maxHeads); said != n && b.OK() {
		b.Fail("num_virtual_tokens is %d in %s; the file has %d vectors", said, adapterConfig, n)
	}
	if each := c.CountOr("virtual_tokens_per_special_token", 1, 1, maxHeads); each != 1 && b.OK() {
		b.Fail("virtual_tokens_per_special_token is %d in %s; 1 is supported, a vector for each place", each, adapterConfig)
	}
	if exits := c.CountOr("num_exits", 1, 1, maxLayers); exits != 1 && b.OK() {
		b.Fail("num_exits is %d in %s; 1 is supported, the last layer", exits, adapterConfig)
	}
	for _, key := range []string{"use_custom_lm_head", "use_prefix_tuning"} {
		if c.BoolOr(key, false) {
			b.Fail("%s is true in %s; vectors that use the model's own head, without a prefix, are supported", key, adapterConfig)
		}
	}
	if sees := c.TextOr("vt_attention_type", "decoder"); strings.EqualFold(sees, "encoder") && n > 1 {
		b.Fail("vt_attention_type is %q in %s; vectors must see those before them (decoder, ensemble)", sees, adapterConfig)
	}
	if n > maxVectors {
		b.Fail("%s has %d vectors; 1 to %d are supported", prompts, n, maxVectors)
	}
	b.setWidth(width)
	if !b.OK() {
		return
	}
	b.SetCount(".block_count", n)
	b.setVocabulary(0)
	b.take("prompt.weight", prompts, n, width)
}

// maxVectors is the most vectors that a module of the family has.
const maxVectors = 16
