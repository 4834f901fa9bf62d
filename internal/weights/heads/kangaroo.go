package heads

// exitLayer is where Kangaroo's published adapters read the target: its state before this layer.
const exitLayer = 2

// kangaroo presents the adapter of Kangaroo (Liu et al. 2024): the attention of one layer and a norm, behind the first layers of the target.
// The published code is told the layer apart from the adapter.
func kangaroo(b *builder) {
	c := b.Config
	b.setWidth(b.rowsOf("layers.0.self_attn.o_proj.weight"))
	if n := b.layerCount(); n != 1 && b.OK() {
		b.Fail("the adapter has %d layers; Kangaroo's has 1", n)
	}
	key := c.First("exit_layer", "early_exit_layer")
	if !c.Has(key) {
		b.note("config.json does not say exit_layer: 2 is assumed, as the authors' adapters have it")
	}
	b.SetCount(".exit_layer", c.CountOr(key, exitLayer, 1, maxLayers))
	b.attention()
	if !b.OK() {
		return
	}
	b.layer(layer{to: "blk.0.", from: "layers.0.", inputs: b.width, norm: true})
	b.take("output_norm.weight", "norm.weight", b.width)
	b.setVocabulary(b.rowsOf("embed_tokens.weight"))
	b.table(b.vocab)
}
