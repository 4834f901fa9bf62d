package heads

func init() { presented["fspad"] = fspad }

// fspad presents a head of FSPAD (Gui et al. 2024): EAGLE's with a gated block behind the first product, and a last product of twice the width, of which the first
// half is what logits are made of and the other one the next feature. A file may have one of both parts.
func fspad(b *builder) {
	root := "fc."
	samples := b.has("fc.mlp.")
	if samples {
		root = "fc.fc."
	}
	b.setWidth(b.rowsOf(root + "weight"))
	width := b.width
	if n := b.layerCount(); n != 1 && b.OK() {
		b.Fail("the head has %d layers; FSPAD's has 1", n)
	}
	b.attention()
	if !b.OK() {
		return
	}
	b.take("fc.weight", root+"weight", width, 2*width)
	b.takeIf("fc.bias", root+"bias", width)
	rows, _ := b.matrix("layers.0.mlp.down_proj.weight")
	l := layer{to: "blk.0.", from: "layers.0.", inputs: width, mlp: true, twice: rows == 2*width}
	_, l.norm = b.Weights.Tensor("layers.0.input_layernorm.weight")
	b.layer(l)
	if samples {
		b.feedForward(layer{to: "fc.", from: "fc."})
	}
	b.takeIf("output_norm.weight", "norm.weight", width)
	b.ends(b.rowsOf("lm_head.weight", "embed_tokens.weight"))
}
