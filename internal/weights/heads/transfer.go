package heads

import (
	"fmt"
	"slices"

	"grove/internal/weights/gguf"
)

// transfer presents the matrices of Hidden Transfer (Wu et al. 2024), whose authors have published none: the layout is that of lab/train/net_transfer.py.
func transfer(b *builder) {
	n := 0
	for _, at := range b.numbered(`^transfer\.(\d+)\.weight$`) {
		n = max(n, at[0]+1)
	}
	b.setWidth(b.rowsOf("transfer.0.weight"))
	var layers []int32
	if !b.Config.Value("transfer_layers", &layers, "an array of whole numbers") && b.OK() {
		b.Fail("config.json does not say transfer_layers, the layer at which each row begins")
	}
	if (len(layers) != n || !slices.IsSorted(layers) || n > 0 && (layers[0] < 0 || layers[n-1] > maxLayers)) && b.OK() {
		b.Fail("transfer_layers is %.60s; of %d matrices it has a layer each, none below the one before", fmt.Sprint(layers), n)
	}
	if !b.OK() {
		return
	}
	b.SetCount(".block_count", n)
	b.SetValue(".layers", gguf.ArrayOf(layers))
	b.setVocabulary(0)
	for k := range n {
		b.take(fmt.Sprintf("blk.%d.transfer.weight", k), fmt.Sprintf("transfer.%d.weight", k), b.width, b.width)
	}
}
