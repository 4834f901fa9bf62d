package front_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"grove"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// filtered is the file of a random LLaDA with a filter of blocks of 8: its logits are 20 times the probability, and a bias.
func filtered(t *testing.T, bias float32, change func(kv []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View)) []byte {
	t.Helper()
	metadata, tensors, err := synthetic.Spec{Arch: "llada", Vocabulary: true, Vocab: 300, Context: 128}.Parts()
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, values []float32, shape ...int) {
		var b []byte
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		tensors = append(tensors, tensor.View{Name: name, Type: tensor.F32, Shape: shape, Data: b})
	}
	diagonal := func(slope float32) []float32 {
		m := make([]float32, 64)
		for i := range 8 {
			m[9*i] = slope
		}
		return m
	}
	add("diffusion.filter.0.weight", diagonal(1), 8, 8)
	add("diffusion.filter.0.bias", make([]float32, 8), 8)
	add("diffusion.filter.1.weight", diagonal(20), 8, 8)
	biases := make([]float32, 8)
	for i := range biases {
		biases[i] = bias
	}
	add("diffusion.filter.1.bias", biases, 8)
	metadata = append(metadata, gguf.KV{Key: "diffusion.filter.block_length", Value: gguf.Of(uint32(8))})
	if change != nil {
		metadata, tensors = change(metadata, tensors)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestFilter: a filter that accepts nothing gives static decoding in blocks of its length, one that accepts all fills a block in a pass, and one between takes what a threshold of
// the same probability takes.
func TestFilter(t *testing.T) {
	for _, c := range []struct {
		bias   float32
		like   grove.Diffusion
		passes int // 0: those of like
	}{
		{-100, grove.Diffusion{Policy: "static", Block: 8}, 24}, {100, grove.Diffusion{Policy: "threshold:p=0", Block: 8}, 3}, {2.5, grove.Diffusion{Policy: "threshold:p=0.0339", Block: 8}, 0},
	} {
		m, err := grove.OpenBytes(filtered(t, c.bias, nil), threaded(grove.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		r := grove.Request{Prompt: "text", MaxTokens: 24, IgnoreEnd: true, Diffusion: &c.like}
		want := fill(t, m, r)
		r.Diffusion = &grove.Diffusion{Policy: "learned"}
		if got := fill(t, m, r); got != want || c.passes > 0 && got.Passes != c.passes {
			t.Errorf("bias %v: %+v, want %+v", c.bias, got, want)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFilterRefused: filters that are none end the opening of the file, and a request that needs one that is not there is refused.
func TestFilterRefused(t *testing.T) {
	for want, change := range map[string]func(kv []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View){
		`tensor "diffusion.filter.1.bias" is missing`: func(kv []gguf.KV, ts []tensor.View) ([]gguf.KV, []tensor.View) { return kv, ts[:len(ts)-1] },
		`tensor "diffusion.filter.0.weight" has shape [8 8]; the hyperparameters require [8 9]`: func(kv []gguf.KV, ts []tensor.View) ([]gguf.KV, []tensor.View) {
			kv[len(kv)-1].Value = gguf.Of(uint32(9))
			return kv, ts
		},
		"diffusion.filter.block_length is 0 and the filter has 8": func(kv []gguf.KV, ts []tensor.View) ([]gguf.KV, []tensor.View) {
			kv[len(kv)-1].Value = gguf.Of(uint32(0))
			return kv, ts
		},
		"diffusion.filter.block_length is 4294967295 and": func(kv []gguf.KV, ts []tensor.View) ([]gguf.KV, []tensor.View) {
			kv[len(kv)-1].Value = gguf.Of(uint32(math.MaxUint32))
			return kv, ts
		},
		`key "diffusion.filter.block_length"`: func(kv []gguf.KV, ts []tensor.View) ([]gguf.KV, []tensor.View) {
			kv[len(kv)-1].Value = gguf.Of("8")
			return kv, ts
		},
		"diffusion.filter.0.weight: architecture": func(kv []gguf.KV, ts []tensor.View) ([]gguf.KV, []tensor.View) { return kv[:len(kv)-1], ts },
	} {
		if _, err := grove.OpenBytes(filtered(t, 0, change), threaded(grove.Options{})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	m, _ := randomModel(t, synthetic.Spec{Arch: "llada"}, grove.Options{}, nil)
	if _, err := m.Generate(t.Context(), grove.Request{Prompt: "text", Diffusion: &grove.Diffusion{Policy: "learned"}}); err == nil || !strings.Contains(err.Error(), "the model's file has none") {
		t.Errorf("no filter: error %v", err)
	}
}
