package modeltest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// TestStep3AsMQA compares factored attention with the multi-query attention whose matrix of queries is the product of the two factors. The norm between
// them does nothing where the first factor puts the values of its row into another order: that row is normed already. What the cache keeps of a token does
// not depend on the number of heads.
func TestStep3AsMQA(t *testing.T) {
	const width, heads, size = 64, 4, 32
	step := change(t, Spec{Arch: "step3", Layers: 2}) // both have a plain feed-forward block
	for i, kv := range step.metadata {
		if kv.Key == "step3.attention.q_lora_rank" {
			step.metadata[i].Value = gguf.Of(uint32(width))
		}
	}
	order := rand.New(rand.NewPCG(1, 2)).Perm(width)
	mqa := &changed{}
	for _, kv := range renamed(step.file(t), "step3", "qwen2").metadata {
		if !strings.Contains(kv.Key, "expert") && !strings.Contains(kv.Key, "q_lora") {
			mqa.metadata = append(mqa.metadata, kv)
		}
	}
	for i := range step.tensors {
		v := &step.tensors[i]
		switch {
		case strings.HasSuffix(v.Name, "attn_norm.weight"):
			*v = matrixOf(v.Name, []int{width}, func(int) float32 { return 1 })
		case strings.HasSuffix(v.Name, "attn_q_a_norm.weight"):
			*v = matrixOf(v.Name, []int{width}, func(int) float32 { return 1 })
			continue
		case strings.HasSuffix(v.Name, "attn_q_a.weight"):
			*v = matrixOf(v.Name, []int{width, width}, func(i int) float32 {
				if order[i/width] == i%width {
					return 1
				}
				return 0
			})
			continue
		case strings.HasSuffix(v.Name, "attn_q_b.weight"):
			rng := rand.New(rand.NewPCG(3, uint64(i)))
			*v = matrixOf(v.Name, []int{heads * size, width}, func(int) float32 { return float32(rng.NormFloat64()) / 8 })
			product := matrixOf(strings.Replace(v.Name, "attn_q_b", "attn_q", 1), v.Shape, func(i int) float32 {
				at := slices.Index(order, i%width)
				return math.Float32frombits(binary.LittleEndian.Uint32(v.Data[4*(i/width*width+at):]))
			})
			mqa.tensors = append(mqa.tensors, product)
			continue
		}
		mqa.tensors = append(mqa.tensors, *v)
	}
	for _, layer := range []string{"blk.0.", "blk.1."} {
		for name, n := range map[string]int{"attn_q.bias": heads * size, "attn_k.bias": size, "attn_v.bias": size} {
			mqa.tensors = append(mqa.tensors, matrixOf(layer+name, []int{n}, func(int) float32 { return 0 }))
		}
	}
	a, b := New(t, step.file(t), Config{CacheType: tensor.F32}), New(t, mqa.file(t), Config{CacheType: tensor.F32})
	ids := randomIDs(rand.New(rand.NewPCG(5, 6)), 40, a.Model.Info().Vocabulary)
	got, want := a.Reference(ids), b.Reference(ids)
	for i := range want {
		row := make([]float64, len(want[i]))
		for v, x := range want[i] {
			row[v] = float64(x)
		}
		if w := worst(got[i], row); !(w < 1e-3) { // the epsilon of the second norm makes 1.2e-4
			t.Fatalf("logits at %d differ by %.2g of the largest", i, w)
		}
	}
	for i, l := range a.Model.Info().Layers {
		if kept := l.KVHeads * (l.KeySize + l.ValueSize); kept != 2*size {
			t.Errorf("layer %d keeps %d values of a token, want %d for any number of heads", i, kept, 2*size)
		}
	}
}

// matrixOf makes a tensor of float32 values.
func matrixOf(name string, shape []int, value func(i int) float32) tensor.View {
	v := tensor.View{Name: name, Type: tensor.F32, Shape: shape}
	for i := range v.Elems() {
		v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(value(i)))
	}
	return v
}
