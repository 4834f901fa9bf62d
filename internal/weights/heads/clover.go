package heads

import (
	"fmt"

	"grove/internal/weights/gguf"
)

// cloverBase is the base of the rotation in the layers of the published heads: their code has no other, whatever config.json says.
const cloverBase = 10000

// clover presents a recurrent head of Clover-2 (Xiao et al. 2024): two cells that join a state and a token, decoder layers between them, and what
// the target's head reads. The tensors' names say how many layers there are: published settings say 1 of two.
func clover(b *builder) {
	b.setWidth(b.rowsOf("clover_head_mlp.weight"))
	layers := 1
	for _, at := range b.numbered(`^layers\.(\d+)\.`) {
		layers = max(layers, at[0]+1)
	}
	b.SetCount(".block_count", layers)
	b.attention()
	if !b.OK() {
		return
	}
	if _, base := b.RopeConfig(); base != cloverBase {
		b.note(fmt.Sprintf("rope_theta %v of config.json is not used: the published code's layers rotate by %d", base, cloverBase))
		b.rotate(cloverBase)
	}
	b.cloverCell("mix.", "clover_head_mlp_rnn.")
	b.cloverCell("cell.", "clover_head_mlp_rnn2.")
	for i := range layers {
		b.layer(layer{to: fmt.Sprintf("blk.%d.", i), from: fmt.Sprintf("layers.%d.", i), inputs: b.width, norm: true, mlp: true})
	}
	b.take("output_norm.weight", "clover_norm.weight", b.width)
	b.take("head_norm.weight", "clover_head_norm.weight", b.width)
	b.both("first", "clover_head_mlp", b.width, b.width)
	b.both("next", "clover_head_mlp2", b.width, 2*b.width)
	b.setVocabulary(b.rowsOf("clover_embed_tokens.weight", "lm_head.weight"))
	b.takeIf("token_embd.weight", "clover_embed_tokens.weight", b.vocab, b.width)
	b.drop("lm_head.weight", "the target lends its own")
}

// cloverCell adds a cell.
func (b *builder) cloverCell(to, from string) {
	b.take(to+"attn_norm.weight", from+"input_layernorm.weight", b.width)
	for _, m := range []string{"q", "k", "v"} {
		b.both(to+"attn_"+m, from+m, b.width, b.width)
	}
}

// both adds a matrix and its bias, which may be missing.
func (b *builder) both(to, from string, out, in int) {
	b.take(to+".weight", from+".weight", out, in)
	b.takeIf(to+".bias", from+".bias", out)
}

// rotate changes the base of the rotation.
func (b *builder) rotate(base float32) {
	for i, kv := range b.Metadata {
		if kv.Key == b.Arch+".rope.freq_base" {
			b.Metadata[i].Value = gguf.Of(base)
		}
	}
}
