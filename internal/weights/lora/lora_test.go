package lora

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// file is a GGUF adapter on its way to bytes.
type file struct {
	metadata []gguf.KV
	tensors  []tensor.View
}

func adapterFile() *file {
	rng := rand.New(rand.NewPCG(1, 2))
	f := &file{metadata: []gguf.KV{
		{Key: "general.architecture", Value: gguf.Of("llama")}, {Key: "general.type", Value: gguf.Of("adapter")},
		{Key: "adapter.type", Value: gguf.Of("lora")}, {Key: "adapter.lora.alpha", Value: gguf.Of(float32(8))},
	}}
	f.add(rng, "blk.0.attn_q.weight", 64, 64, 4)
	return f
}

func (f *file) add(rng *rand.Rand, name string, out, in, rank int) {
	a, b, _ := factors(rng, out, in, rank, 1)
	va, vb := view(a, rank, in), view(b, out, rank)
	va.Name, vb.Name = name+".lora_a", name+".lora_b"
	f.tensors = append(f.tensors, va, vb)
}

func (f *file) set(key string, v gguf.Value) {
	f.drop(key)
	f.metadata = append(f.metadata, gguf.KV{Key: key, Value: v})
}

func (f *file) drop(key string) {
	f.metadata = slices.DeleteFunc(f.metadata, func(kv gguf.KV) bool { return kv.Key == key })
}

func (f *file) bytes(t testing.TB) []byte {
	var b bytes.Buffer
	if err := gguf.Write(&b, f.metadata, f.tensors); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func fromBytes(data []byte) (*Adapter, error) {
	f, err := gguf.Parse(data)
	if err != nil {
		return nil, err
	}
	return FromGGUF(f)
}

// TestGGUF reads adapters of GGUF, and expects those that are none, or that are for another base, to be refused by name.
func TestGGUF(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	tests := []struct {
		name   string
		change func(f *file)
		want   string // "": it fits; else part of the error
	}{
		{"plain", func(*file) {}, ""},
		{"without alpha", func(f *file) { f.drop("adapter.lora.alpha") }, ""},
		{"the embedding table", func(f *file) {
			a, b, _ := factors(rng, 64, 320, 4, 1)
			va, vb := transposed(view(a, 4, 320)), view(b, 64, 4)
			va.Name, vb.Name = "token_embd.weight.lora_a", "token_embd.weight.lora_b"
			f.tensors = append(f.tensors, va, vb)
		}, ""},
		{"a model", func(f *file) { f.set("general.type", gguf.Of("model")) }, "general.type is \"model\""},
		{"no type", func(f *file) { f.drop("adapter.type") }, "adapter.type is missing"},
		{"another type", func(f *file) { f.set("adapter.type", gguf.Of("control")) }, "adapter.type is \"control\""},
		{"another architecture", func(f *file) { f.set("general.architecture", gguf.Of("qwen2")) }, `made for architecture "qwen2"; the base is "llama"`},
		{"an endless alpha", func(f *file) { f.set("adapter.lora.alpha", gguf.Of(float32(math.Inf(1)))) }, "adapter.lora.alpha is +Inf"},
		{"half a pair", func(f *file) { f.tensors = f.tensors[:1] }, `"blk.0.attn_q.weight.lora_b" is missing`},
		{"the other half", func(f *file) { f.tensors = f.tensors[1:] }, "no part of a LoRA"},
		{"no pair", func(f *file) { f.tensors = nil }, "it has no tensors"},
		{"another tensor", func(f *file) { f.tensors[0].Name = "x" }, "no part of a LoRA"},
		{"another name", func(f *file) { f.add(rng, "blk.77.attn_q.weight", 64, 64, 4) }, "the base has no such tensor"},
		{"a vector", func(f *file) { f.add(rng, "output_norm.weight", 64, 64, 4) }, "adapters add to matrices"},
		{"another width", func(f *file) { f.add(rng, "blk.0.attn_k.weight", 32, 96, 4) }, "A has shape [4 96]"},
		{"ranks that differ", func(f *file) { f.tensors[1].Shape = []int{32, 8} }, "asks for [8 64]"},
		{"a rank beyond the bound", func(f *file) { f.add(rng, "blk.0.attn_k.weight", 32, 64, MaxRank+1) }, "rank is 1025"},
		{"a negative token", func(f *file) { f.set("adapter.alora.invocation_tokens", gguf.ArrayOf([]int32{1, -1})) }, "invocation_tokens"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := adapterFile()
			tt.change(f)
			a, err := fromBytes(f.bytes(t))
			if err == nil {
				err = a.Fit(golden(t, "llama-gqa"))
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v; want %q", err, tt.want)
			}
		})
	}
}

// TestDigest expects every change of an adapter to change its digest.
func TestDigest(t *testing.T) {
	digest := func(change func(f *file)) [32]byte {
		f := adapterFile()
		change(f)
		a, err := fromBytes(f.bytes(t))
		if err != nil {
			t.Fatal(err)
		}
		return a.Digest()
	}
	seen := map[[32]byte]int{}
	for i, change := range []func(f *file){
		func(*file) {},
		func(f *file) { f.set("adapter.lora.alpha", gguf.Of(float32(7))) },
		func(f *file) { f.tensors[0].Data[5]++ },
		func(f *file) { f.set("adapter.alora.invocation_tokens", gguf.ArrayOf([]int32{1})) },
		func(f *file) {
			f.tensors[0].Name, f.tensors[1].Name = "blk.1.attn_q.weight.lora_a", "blk.1.attn_q.weight.lora_b"
		},
	} {
		d := digest(change)
		if before, ok := seen[d]; ok {
			t.Errorf("changes %d and %d have one digest", before, i)
		}
		seen[d] = i
	}
}

// FuzzAdapter reads arbitrary files as adapters of GGUF for a small base, and arbitrary settings of PEFT. Nothing panics.
func FuzzAdapter(f *testing.F) {
	f.Add(adapterFile().bytes(f))
	f.Add([]byte(`{"peft_type":"LORA","r":8,"lora_alpha":16,"alpha_pattern":{"q.*":3}}`))
	base := golden(f, "llama-gqa")
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := parsePEFT(data); err == nil {
			_, _ = c.scale("base_model.model.layers.0.q_proj", 8)
		}
		a, err := fromBytes(data)
		if err != nil || a.Fit(base) != nil {
			return
		}
		for _, v := range base.Tensors {
			if _, _, err := Merged(base, v, []*Adapter{a}, []float64{1}); err != nil {
				t.Errorf("merging an adapter that fits: %v", err)
			}
		}
		a.Digest()
	})
}
