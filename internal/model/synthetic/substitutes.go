package synthetic

import (
	"fmt"
	"math"
	"math/rand/v2"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Substitutes makes what stands for layers of a model of a width that rows substitute (LoRA-Drop, 2026): random matrices of a rank in F32, the second ones times spread. The scale is 2.
func Substitutes(width, rank int, seed uint64, spread float64, layers ...int) ([]gguf.KV, []tensor.View, error) {
	rng := rand.New(rand.NewPCG(seed, 3))
	var out []tensor.View
	add := func(name string, factor float64, shape ...int) error {
		v := tensor.View{Name: name, Type: tensor.F32, Shape: shape}
		values := make([]float32, v.Elems())
		for i := range values {
			values[i] = float32(rng.NormFloat64() * factor)
		}
		v.Data = make([]byte, v.Bytes())
		out = append(out, v)
		return tensor.Pack(v.Type, v.Data, values)
	}
	for _, l := range layers {
		if err := add(fmt.Sprintf("blk.%d.drop_a.weight", l), 1/math.Sqrt(float64(width)), rank, width); err != nil {
			return nil, nil, fmt.Errorf("synthetic: %w", err)
		}
		if err := add(fmt.Sprintf("blk.%d.drop_b.weight", l), spread, width, rank); err != nil {
			return nil, nil, fmt.Errorf("synthetic: %w", err)
		}
	}
	return []gguf.KV{
		{Key: "general.architecture", Value: gguf.Of("lora-drop")}, {Key: "general.name", Value: gguf.Of("random")},
		{Key: "lora-drop.embedding_length", Value: gguf.Of(uint32(width))}, {Key: "lora-drop.scale", Value: gguf.Of(float32(2))},
	}, out, nil
}
