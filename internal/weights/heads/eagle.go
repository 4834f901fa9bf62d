package heads

import (
	"fmt"
	"slices"

	"grove/internal/weights/gguf"
	"grove/internal/weights/hf"
)

// eagle presents a head of EAGLE-1 and EAGLE-2 (Li et al. 2024), which have the same weights: decoder layers that read a product of a token's
// embedding and a state, in this order. The first layer has no norm before its attention.
func eagle(b *builder) {
	b.setWidth(b.rowsOf("fc.weight"))
	layers, width := b.layerCount(), b.width
	b.attention()
	if !b.OK() {
		return
	}
	b.take("fc.weight", "fc.weight", width, 2*width)
	b.takeIf("fc.bias", "fc.bias", width)
	b.decoder(layers)
	b.ends(b.rowsOf("lm_head.weight", "embed_tokens.weight"))
}

// decoder adds so many decoder layers, and the norm behind them if there is one.
func (b *builder) decoder(layers int) {
	for i := range layers {
		l := layer{to: fmt.Sprintf("blk.%d.", i), from: fmt.Sprintf("layers.%d.", i), inputs: b.width, mlp: true}
		_, l.norm = b.Weights.Tensor(l.from + "input_layernorm.weight")
		l.norm = l.norm || i > 0
		b.layer(l)
	}
	b.takeIf("output_norm.weight", "norm.weight", b.width)
}

// layerCount adds the number of layers, which config.json says, else the tensors' names.
func (b *builder) layerCount() int {
	n := 1
	for _, at := range b.numbered(`^layers\.(\d+)\.`) {
		n = max(n, at[0]+1)
	}
	n = b.Config.CountOr("num_hidden_layers", n, 1, maxHeads)
	b.SetCount(".block_count", n)
	return n
}

// ends adds the output matrix, if the head has its own, of the target's vocabulary of n tokens, and leaves the table of embeddings out.
func (b *builder) ends(n int) {
	b.setVocabulary(n)
	b.takeIf("output.weight", "lm_head.weight", n, b.width)
	b.table(n)
}

// table leaves out a head's copy of the target's table of embeddings, or adds the head's own.
func (b *builder) table(rows int) {
	const name = "embed_tokens.weight"
	if t, ok := b.Weights.Tensor(name); ok && rows > 0 && !slices.Equal(t.Shape, []int{rows, b.width}) {
		b.Fail("%s: shape is %v; the vocabulary of %d and the width of %d ask for [%d %d]", name, t.Shape, rows, b.width, rows, b.width)
	}
	if b.ownTable {
		b.take("token_embd.weight", name, rows, b.width)
		return
	}
	why := "the target lends its own table"
	if b.top.BoolOr("embed_requires_grad", false) {
		why += ", though config.json says that this one was trained apart (embed_requires_grad): drafts may be worse"
	}
	b.drop(name, why)
}

// eagle3 presents a head of EAGLE-3 (Li et al. 2025), as its authors or as the speculators library write it: a layer whose attention reads a
// token's embedding and a product of three states of the target, in this order.
func eagle3(b *builder) {
	root := "layers.0."
	if b.has("midlayer.") {
		root = "midlayer."
	}
	if b.top.Has("transformer_layer_config") {
		b.Config = b.top.Sub("transformer_layer_config")
	}
	b.eagle3Settings()
	rows, cols := b.matrix("fc.weight")
	b.setWidth(rows)
	width := b.width
	if wide := b.top.CountOr("target_hidden_size", width, 1, maxWidth); wide != width && b.OK() {
		b.Fail("target_hidden_size is %d in config.json, and the head is %d wide; heads of another width than their target are not supported", wide, width)
	}
	if rows > 0 && cols != 3*width {
		b.Fail("fc.weight: shape is [%d %d]; a head of width %d that reads three states of its width has [%d %d]", rows, cols, width, width, 3*width)
	}
	layers := b.layerCount()
	b.attention()
	if !b.OK() {
		return
	}
	b.take("fc.weight", "fc.weight", width, 3*width)
	b.takeIf("fc.bias", "fc.bias", width)
	b.take("blk.0.embd_norm.weight", root+"input_layernorm.weight", width)
	b.take("blk.0.attn_norm.weight", root+"hidden_norm.weight", width)
	b.layer(layer{to: "blk.0.", from: root, inputs: 2 * width, mlp: true})
	for i := 1; i < layers; i++ {
		b.layer(layer{to: fmt.Sprintf("blk.%d.", i), from: fmt.Sprintf("layers.%d.", i), inputs: width, norm: true, mlp: true})
	}
	b.take("output_norm.weight", "norm.weight", width)
	b.draftEnds()
}

// eagle3Settings adds the settings of EAGLE-3 alone, and refuses those that change what the layer computes.
func (b *builder) eagle3Settings() {
	for _, key := range []string{"norm_before_fc", "fc_norm", "norm_output"} {
		if b.top.BoolOr(key, false) && (b.Arch != "peagle" || key != "norm_output") { // P-EAGLE's rows feed nothing back
			b.Fail("%s is true in config.json; EAGLE-3 heads with it are not supported", key)
		}
	}
	var types []string
	if b.Config.Value("layer_types", &types, "an array of text"); slices.Contains(types, "sliding_attention") {
		b.Fail("layer_types has sliding_attention in config.json; windows of EAGLE-3's and P-EAGLE's layers are not supported")
	}
	const plain, long = "aux_hidden_state_layer_ids", "eagle_aux_hidden_state_layer_ids"
	c := b.top
	if sub := c.Sub("eagle_config"); !c.Has(plain) && !c.Has(long) {
		c = sub
	}
	var taps []int32
	if key := c.First(long, plain); c.Value(key, &taps, "an array of numbers of layers") {
		sorted := slices.Clone(taps)
		slices.Sort(sorted)
		if len(taps) != 3 || sorted[0] < 0 || sorted[2] > maxLayers || len(slices.Compact(sorted)) != 3 {
			c.Fail("%s is %.60s; EAGLE-3 reads the states before 3 layers, each from 0 to %d, no two the same", key, fmt.Sprint(taps), maxLayers)
		}
		b.SetValue(".taps", gguf.ArrayOf(taps))
	}
	if b.top.Has("norm_before_residual") {
		hf.FolderSet(b.FolderBuilder, ".norm_before_residual", b.top.BoolOr("norm_before_residual", false))
	}
}

// maxLayers is more than any target has.
const maxLayers = 1 << 12
