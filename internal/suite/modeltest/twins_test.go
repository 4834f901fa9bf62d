package modeltest

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// twins are the architectures that no other program's logits and no oracle stand beside: each computes what another one does,
// bit for bit.
var twins = map[string]string{"ernie4_5-moe": "deepseek", "sdar": "qwen3", "sdar_moe": "qwen3moe", "t5encoder": "t5"}

// renamed returns a file's content as one of another architecture.
func renamed(f *gguf.File, from, to string, more ...gguf.KV) *changed {
	c := &changed{tensors: slices.Clone(f.Tensors)}
	for _, kv := range f.Metadata {
		if rest, ok := strings.CutPrefix(kv.Key, from+"."); ok {
			kv.Key = to + "." + rest
		}
		if kv.Key == "general.architecture" {
			kv.Value = gguf.Of(to)
		}
		if !slices.ContainsFunc(more, func(m gguf.KV) bool { return m.Key == kv.Key }) {
			c.metadata = append(c.metadata, kv)
		}
	}
	c.metadata = append(c.metadata, more...)
	return c
}

// TestErnieMoE compares ERNIE 4.5's mixture with DeepSeek's, whose weights are shares among the chosen. The random model of llama.cpp
// has a layer without a gate, which that program leaves out: here every layer behind the first has experts.
func TestErnieMoE(t *testing.T) {
	f, err := gguf.Open(filepath.Join(archsDir, "ernie4_5-moe-moe.gguf"))
	if err != nil {
		t.Skipf("%s is not here", archsDir)
	}
	defer f.Close()
	open := func(c *changed) *Runner { return New(t, c.file(t), Config{CacheType: tensor.F32}) }
	ernie := open(renamed(f, "ernie4_5-moe", "ernie4_5-moe", gguf.KV{Key: "ernie4_5-moe.interleave_moe_layer_step", Value: gguf.Of(uint32(1))}))
	twin := open(renamed(f, "ernie4_5-moe", "deepseek", gguf.KV{Key: "deepseek.expert_weights_norm", Value: gguf.Of(true)},
		gguf.KV{Key: "deepseek.expert_weights_scale", Value: gguf.Of(float32(1))}, gguf.KV{Key: "deepseek.expert_shared_count", Value: gguf.Of(uint32(0))}))
	ids := randomIDs(rand.New(rand.NewPCG(5, 6)), 40, ernie.Model.Info().Vocabulary)
	if err := Equal("two mixtures", ernie.Plain(ids), twin.Plain(ids)); err != nil {
		t.Error(err)
	}
}

// TestT5Encoder compares an encoder that is a file of its own with that of an encoder-decoder.
func TestT5Encoder(t *testing.T) {
	both := oracleSpecs["t5"].File(t)
	c := renamed(both, "t5", "t5encoder")
	c.tensors = slices.DeleteFunc(c.tensors, func(v tensor.View) bool { return strings.HasPrefix(v.Name, "dec.") || v.Name == "output.weight" })
	alone := New(t, c.file(t), Config{CacheType: tensor.F32})
	whole := New(t, both, Config{CacheType: tensor.F32})
	ids := randomIDs(rand.New(rand.NewPCG(5, 6)), 90, alone.Model.Info().Vocabulary)
	if err := Equal("two encoders", alone.Encode(ids), whole.encoder.Encode(ids)); err != nil {
		t.Error(err)
	}
}

// TestSDAR compares models of blocks with the Qwen 3 that they began as, over rows that see those before them alone.
func TestSDAR(t *testing.T) {
	for _, name := range []string{"sdar", "sdar_moe"} {
		blocks := Spec{Arch: name}.File(t)
		c := renamed(blocks, name, twins[name])
		c.metadata = slices.DeleteFunc(c.metadata, func(kv gguf.KV) bool { return strings.HasSuffix(kv.Key, ".attention.causal") })
		a, b := New(t, blocks, Config{CacheType: tensor.F32}), New(t, c.file(t), Config{CacheType: tensor.F32})
		ids := randomIDs(rand.New(rand.NewPCG(5, 6)), 90, a.Model.Info().Vocabulary)
		if err := Equal(name+" and "+twins[name], a.Plain(ids), b.Plain(ids)); err != nil {
			t.Error(err)
		}
	}
}
