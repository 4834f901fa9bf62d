package synthetic

import (
	"fmt"
	"math"
	"math/rand/v2"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Adapter makes a LoRA of random factors of a type for the tensors of a file that a function picks, in llama.cpp's layout. Its alpha
// is twice its rank. An invocation is that of an activated LoRA; nil: none.
func Adapter(base *gguf.File, seed uint64, rank int, t tensor.Type, picks func(name string) bool, invocation []int32) ([]gguf.KV, []tensor.View, error) {
	arch, _, err := base.String("general.architecture")
	if err != nil {
		return nil, nil, err
	}
	metadata := []gguf.KV{
		{Key: "general.architecture", Value: gguf.Of(arch)}, {Key: "general.type", Value: gguf.Of("adapter")},
		{Key: "adapter.type", Value: gguf.Of("lora")}, {Key: "adapter.lora.alpha", Value: gguf.Of(float32(2 * rank))},
	}
	if invocation != nil {
		metadata = append(metadata, gguf.KV{Key: "adapter.alora.invocation_tokens", Value: gguf.ArrayOf(invocation)})
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	var tensors []tensor.View
	add := func(name string, spread float64, shape ...int) error {
		v := tensor.View{Name: name, Type: t, Shape: shape}
		values := make([]float32, v.Elems())
		for i := range values {
			values[i] = float32(rng.NormFloat64() * spread)
		}
		v.Data = make([]byte, v.Bytes())
		tensors = append(tensors, v)
		return tensor.Pack(t, v.Data, values)
	}
	for _, v := range base.Tensors {
		n := len(v.Shape)
		if n < 2 || !picks(v.Name) {
			continue
		}
		a, b := []int{rank, v.Shape[n-1]}, []int{v.Shape[n-2], rank}
		if v.Name == "token_embd.weight" {
			a, b = []int{v.Shape[0], rank}, []int{v.Shape[1], rank}
		}
		if n == 3 {
			a, b = append([]int{v.Shape[0]}, a...), append([]int{v.Shape[0]}, b...)
		}
		if err := add(v.Name+".lora_a", 0.3/math.Sqrt(float64(v.Shape[n-1])), a...); err != nil {
			return nil, nil, fmt.Errorf("synthetic: %w", err)
		}
		if err := add(v.Name+".lora_b", 0.3, b...); err != nil {
			return nil, nil, fmt.Errorf("synthetic: %w", err)
		}
	}
	return metadata, tensors, nil
}
