package heads

import (
	"fmt"
	"regexp"
	"strconv"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// substitutedLayer is the name of the first of a layer's two matrices, as the authors' code has it.
var substitutedLayer = regexp.MustCompile(`^((?:.*\.)?layers\.(\d+)\.)lora_adapter\.A\.weight$`)

// loraDrop presents the adapters of LoRA-Drop (2026), which stand for layers of rows. They draft nothing.
func loraDrop(b *builder) {
	c := b.Config
	b.setWidth(0)
	b.setVocabulary(0)
	rank := c.CountOr("lora_r", 8, 1, maxRank)
	b.SetValue(".scale", gguf.Of(float32(c.CountOr("lora_alpha", 2*rank, 1, 1<<20))/float32(rank)))
	for _, t := range b.Weights.Tensors {
		m := substitutedLayer.FindStringSubmatch(t.Name)
		if m == nil || !b.OK() {
			continue
		}
		n, err := strconv.Atoi(m[2])
		if err != nil || n < 1 || n > maxLayers || strconv.Itoa(n) != m[2] {
			b.Fail("%s: layer %.20s cannot be substituted; 1 to %d can", tensor.Label(t.Name), m[2], maxLayers)
			return
		}
		b.take(fmt.Sprintf("blk.%d.drop_a.weight", n), t.Name, rank, b.width)
		b.take(fmt.Sprintf("blk.%d.drop_b.weight", n), m[1]+"lora_adapter.B.weight", b.width, rank)
		b.drop(m[1]+"post_lora_layernorm.weight", "the authors' code does not use it")
	}
}
