package heads

import (
	"strings"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// The halves of a pair of low-rank matrices, behind the name of the target's tensor without its end.
const lowA, lowB = ".lora_a.weight", ".lora_b.weight"

// m2r2 presents the low-rank matrices of M2R2 (2025), whose authors have published none: the layout is that of lab/train/net_m2r2.py.
func m2r2(b *builder) {
	c := b.Config
	b.setWidth(0)
	b.setVocabulary(0)
	if !c.Has("exit_layer") {
		b.Fail("config.json does not say exit_layer, the number of the target's layers that the matrices add to")
	}
	b.SetCount(".exit_layer", c.CountOr("exit_layer", 1, 1, maxLayers))
	rank := c.CountOr("r", 1, 1, maxRank)
	b.SetValue(".scale", gguf.Of(float32(c.CountOr("lora_alpha", rank, 1, 1<<20))/float32(rank)))
	for _, t := range b.Weights.Tensors {
		name, isA := strings.CutSuffix(t.Name, lowA)
		if !isA || !b.OK() {
			continue
		}
		_, in := b.matrix(t.Name)
		if in == 0 {
			b.Fail("%s: shape is %v; it must be a matrix", tensor.Label(t.Name), t.Shape)
			return
		}
		b.take(t.Name, t.Name, rank, in)
		b.take(name+lowB, name+lowB, b.rowsOf(name+lowB), rank)
	}
}

// maxRank bounds the rank of low-rank matrices.
const maxRank = 1024
