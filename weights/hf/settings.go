package hf

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"grove/weights/gguf"
	"grove/weights/hf/folder"
	"grove/weights/tensor"
)

// Limits on settings: generous for any model, small enough that products of them stay in range.
const (
	maxLayers  = 1 << 10
	maxContext = 1 << 24
	maxWidth   = 1 << 20
	maxHeads   = 1 << 12
	maxExperts = 1 << 12
)

// nameOf returns the name of a model by its folder: the last part, or that of the repository in a cache
// whose folders end in models--OWNER--NAME/snapshots/REVISION.
func nameOf(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	if up := filepath.Dir(dir); filepath.Base(up) == "snapshots" {
		parts := strings.Split(filepath.Base(filepath.Dir(up)), "--")
		return strings.ToValidUTF8(parts[len(parts)-1], "?")
	}
	return strings.ToValidUTF8(filepath.Base(dir), "?")
}

// shape is the settings that decoders share.
type shape struct {
	layers, width, ffn   int
	heads, kvHeads, size int
	value                int // of a head's values; 0: size
	context              int
}

// decoder reads the shared settings and adds them.
func (b *builder) decoder(arch string) shape {
	s := b.shape()
	b.describe(arch, s)
	return s
}

// shape reads the shared settings.
func (b *builder) shape() shape {
	c := b.Config
	s := shape{
		layers:  c.Count("num_hidden_layers", 1, maxLayers),
		width:   c.Count("hidden_size", 1, maxWidth),
		ffn:     c.Count("intermediate_size", 1, maxWidth),
		heads:   c.Count("num_attention_heads", 1, maxHeads),
		context: c.Count("max_position_embeddings", 1, maxContext),
	}
	s.kvHeads = c.CountOr("num_key_value_heads", s.heads, 1, maxHeads)
	s.size = c.CountOr("head_dim", s.width/s.heads, 1, maxHeads)
	return s
}

// describe adds which model this is, and the shared settings.
func (b *builder) describe(arch string, s shape) {
	b.Arch = arch
	folder.Set(b.Builder, "general.architecture", arch)
	folder.Set(b.Builder, "general.type", "model")
	folder.Set(b.Builder, "general.name", nameOf(b.Dir))
	folder.Set(b.Builder, "general.quantization_version", uint32(2)) // of the block formats
	b.SetCount(".context_length", s.context)
	b.SetCount(".embedding_length", s.width)
	b.SetCount(".block_count", s.layers)
	b.SetCount(".feed_forward_length", s.ffn)
	b.SetCount(".attention.head_count", s.heads)
	b.SetCount(".attention.head_count_kv", s.kvHeads)
	b.SetCount(".attention.key_length", s.size)
	if s.value == 0 {
		s.value = s.size
	}
	b.SetCount(".attention.value_length", s.value)
}

// setCountOnce replaces a number that was added.
func (b *builder) setCountOnce(key string, n int) {
	b.Metadata = slices.DeleteFunc(b.Metadata, func(kv gguf.KV) bool { return kv.Key == b.Arch+key })
	b.SetCount(key, n)
}

// rmsEps adds the epsilon of RMSNorm.
func (b *builder) rmsEps(other float64) {
	b.SetFloat(".attention.layer_norm_rms_epsilon", b.Config.FloatOr("rms_norm_eps", other, 0, 1))
}

// experts adds the counts of a mixture and returns that of its experts.
func (b *builder) experts(key string) int {
	n := b.Config.Count(key, 1, maxExperts)
	b.SetCount(".expert_count", n)
	b.SetCount(".expert_used_count", b.Config.Count("num_experts_per_tok", 1, n))
	return n
}

// window returns the sliding window of a family, 0 for none.
func (b *builder) window() int { return b.Config.CountOr("sliding_window", 0, 0, maxContext) }

// withinWindow keeps the context of a family whose GGUF cannot tell of its sliding window inside it,
// where the window changes nothing.
func (b *builder) withinWindow() {
	c := b.Config
	n := b.window()
	if n > 0 && c.BoolOr("use_sliding_window", true) && n < c.Count("max_position_embeddings", 1, maxContext) {
		c.Values["max_position_embeddings"] = c.Values["sliding_window"]
	}
}

// ropeConfig returns the rotary settings, which newer folders keep in one object.
func (b *builder) ropeConfig() (*folder.Config, float64) {
	c := b.Config.Sub(b.Config.First("rope_parameters", "rope_scaling"))
	theta := b.Config.FloatOr("rope_theta", 10000, 1, math.MaxFloat32)
	return c, c.FloatOr("rope_theta", theta, 1, math.MaxFloat32)
}

// rope adds the rotary settings, of dims values a head. All rules for longer contexts that GGUF can tell
// of are known here, but for the one of phi3.
func (b *builder) rope(dims int) {
	c, _ := b.ropeConfig()
	b.ropeOf(c, dims)
}

// ropeOf is rope by settings that the caller may have changed.
func (b *builder) ropeOf(c *folder.Config, dims int) {
	_, theta := b.ropeConfig()
	b.SetCount(".rope.dimension_count", dims)
	b.SetFloat(".rope.freq_base", theta)
	kind := c.TextOr(c.First("rope_type", "type"), "default")
	switch kind {
	case "default":
	case "linear":
		b.ropeFactor(c, kind)
	case "yarn":
		b.yarn(c)
	case "llama3":
		b.llama3(c, theta, dims)
	default:
		c.Fail("type is %.40q; it must be default, linear, yarn or llama3", kind)
	}
}

// ropeFactor adds the kind of scaling and its factor, and returns that.
func (b *builder) ropeFactor(c *folder.Config, kind string) float64 {
	folder.Set(b.Builder, ".rope.scaling.type", kind)
	if !c.Has("factor") {
		c.Fail("factor is missing")
	}
	factor := c.FloatOr("factor", 1, 1, 1<<20)
	b.SetFloat(".rope.scaling.factor", factor)
	return factor
}

// yarn adds YaRN (Peng et al. 2023).
func (b *builder) yarn(c *folder.Config) {
	factor := b.ropeFactor(c, "yarn")
	other := b.Config.CountOr("max_position_embeddings", 1, 1, maxContext)
	b.SetCount(".rope.scaling.original_context_length", c.CountOr("original_max_position_embeddings", other, 1, maxContext))
	b.SetFloat(".rope.scaling.yarn_beta_fast", c.FloatOr("beta_fast", 32, 0, 1<<20))
	b.SetFloat(".rope.scaling.yarn_beta_slow", c.FloatOr("beta_slow", 1, 0, 1<<20))
	usual := 0.1*math.Log(factor) + 1
	if f := c.FloatOr("attention_factor", usual, 0, 1<<20); math.Abs(f-usual) > 1e-3 {
		c.Fail("attention_factor %v is not supported; YaRN with factor %v has %v", f, factor, usual)
	}
	for _, key := range []string{"mscale", "mscale_all_dim"} {
		if c.Has(key) {
			c.Fail("%s is not supported", key)
		}
	}
}

// llama3 adds the rule of Llama 3.1: a factor for each frequency.
func (b *builder) llama3(c *folder.Config, theta float64, dims int) {
	factor := c.FloatOr("factor", 8, 1, 1<<20)
	low, high := c.FloatOr("low_freq_factor", 1, 1e-6, 1<<20), c.FloatOr("high_freq_factor", 4, 1e-6, 1<<20)
	original := float64(c.CountOr("original_max_position_embeddings", 8192, 1, maxContext))
	if low >= high {
		c.Fail("low_freq_factor %v is not below high_freq_factor %v", low, high)
	}
	factors := make([]float32, dims/2)
	for i := range factors {
		wave := 2 * math.Pi * math.Pow(theta, float64(2*i)/float64(dims))
		switch smooth := (original/wave - low) / (high - low); {
		case wave < original/high:
			factors[i] = 1
		case wave > original/low:
			factors[i] = float32(factor)
		default:
			factors[i] = float32(1 / ((1-smooth)/factor + smooth))
		}
	}
	b.addFloats("rope_freqs.weight", factors)
}

// addFloats adds a vector that is not in the folder.
func (b *builder) addFloats(to string, x []float32) {
	b.Add(to, tensor.F32, []int{len(x)}, func(dst []byte) {
		for i, v := range x {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
		}
	})
}
