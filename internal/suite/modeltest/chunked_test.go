package modeltest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/internal/oracle"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// publishedChunk is the number of tokens of a chunk of the published Llama 4, whose files do not give it.
const publishedChunk = 8192

// TestPublishedChunk reads a text of more than one chunk with a small Llama 4 whose file gives no size of chunks, whole, in small steps, and
// decoded token by token across the border. The logits around the border have the bits of a file that gives the size, and in the long run
// they are compared with the oracle.
func TestPublishedChunk(t *testing.T) {
	spec := Spec{Arch: "llama4", Width: 32, Heads: 1, KVHeads: 1, KeySize: 16, FFN: 32, Layers: 4, Experts: 2, ExpertsPerToken: 1, Window: publishedChunk, Context: publishedChunk + 128}
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
	given := open(func(kvs []gguf.KV) []gguf.KV {
		for i := range kvs {
			if kvs[i].Key == length {
				kvs[i].Value = gguf.Of(uint32(publishedChunk))
			}
		}
		return kvs
	})
	file := open(func(kvs []gguf.KV) []gguf.KV {
		return slices.DeleteFunc(kvs, func(kv gguf.KV) bool { return kv.Key == length || strings.HasSuffix(kv.Key, ".chunk_size") })
	})
	c := Config{CacheType: tensor.F32, Threads: 2, Context: spec.Context}
	r := New(t, file, c)
	ids := randomIDs(rand.New(rand.NewPCG(8, 8)), publishedChunk+90, r.Model.Info().Vocabulary)
	const near = publishedChunk - 70
	whole := func(r *Runner) []Bits {
		s := r.NewSeq("")
		defer r.Close(s)
		return r.Prefill(s, ids, 256)[near:]
	}
	got := whole(r)
	if err := Equal("a size that is given and one that is not", got, whole(New(t, given, c))); err != nil {
		t.Error(err)
	}
	if long {
		o, err := oracle.New(given)
		if err != nil {
			t.Fatal(err)
		}
		plain := make([]int, len(ids))
		for i, id := range ids {
			plain[i] = int(id)
		}
		nearly(t, "the oracle", got, o.Forward(plain)[near:], 1e-4)
	}
	for _, chunk := range []int{1, 33} {
		s := r.NewSeq("")
		r.Prefill(s, ids[:near], 256)
		if err := Equal(fmt.Sprintf("steps of %d", chunk), r.Prefill(s, ids[near:], chunk), got); err != nil {
			t.Error(err)
		}
		r.Close(s)
	}
}
