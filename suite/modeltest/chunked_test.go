package modeltest

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/internal/oracle"
	"grove/weights/gguf"
	"grove/weights/tensor"
)

// publishedChunk is the number of tokens of a chunk of the published Llama 4, whose files do not give it.
const publishedChunk = 8192

// TestPublishedChunk reads a text of more than one chunk with a small Llama 4 whose file gives no size of chunks, and compares the logits
// around the border with the oracle: whole, in small steps, and decoded token by token across the border.
func TestPublishedChunk(t *testing.T) {
	spec := Spec{Arch: "llama4", Width: 32, Heads: 1, KVHeads: 1, Size: 16, FFN: 32, Layers: 4, Experts: 2, Used: 1, Window: publishedChunk, Context: publishedChunk + 128}
	metadata, tensors := spec.Parts(t)
	open := func(change func([]gguf.KV) []gguf.KV) *gguf.File {
		var b bytes.Buffer
		if err := gguf.Write(&b, change(slices.Clone(metadata)), tensors); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Parse(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	const length = "llama4.attention.temperature_length"
	o, err := oracle.New(open(func(kvs []gguf.KV) []gguf.KV {
		for i := range kvs {
			if kvs[i].Key == length {
				kvs[i].Value = gguf.Of(uint32(publishedChunk))
			}
		}
		return kvs
	}))
	if err != nil {
		t.Fatal(err)
	}
	file := open(func(kvs []gguf.KV) []gguf.KV {
		return slices.DeleteFunc(kvs, func(kv gguf.KV) bool { return kv.Key == length || strings.HasSuffix(kv.Key, ".chunk_size") })
	})
	r := New(t, file, Config{CacheType: tensor.F32, Threads: 2, Context: spec.Context})
	ids := randomIDs(rand.New(rand.NewPCG(8, 8)), publishedChunk+90, r.Model.Info().Vocabulary)
	plain := make([]int, len(ids))
	for i, id := range ids {
		plain[i] = int(id)
	}
	want := o.Forward(plain)

	s := r.NewSeq("")
	got := r.Prefill(s, ids, 256)
	r.Close(s)
	const near = publishedChunk - 70
	var worst, scale float64
	for i := near; i < len(ids); i++ {
		for v, x := range want[i] {
			worst, scale = max(worst, math.Abs(x-float64(got[i][v]))), max(scale, math.Abs(x))
		}
	}
	t.Logf("largest difference %.2g of largest value %.3g", worst, scale)
	if !(worst <= 1e-4*scale) {
		t.Errorf("logits around the border differ by %g; the largest is %g", worst, scale)
	}
	for _, chunk := range []int{1, 33} {
		s := r.NewSeq("")
		r.Prefill(s, ids[:near], 256)
		if err := Equal(fmt.Sprintf("steps of %d", chunk), r.Prefill(s, ids[near:], chunk), got[near:]); err != nil {
			t.Error(err)
		}
		r.Close(s)
	}
}
