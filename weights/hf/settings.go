package hf

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"strings"

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
	c := b.config
	s := shape{
		layers:  c.count("num_hidden_layers", 1, maxLayers),
		width:   c.count("hidden_size", 1, maxWidth),
		ffn:     c.count("intermediate_size", 1, maxWidth),
		heads:   c.count("num_attention_heads", 1, maxHeads),
		context: c.count("max_position_embeddings", 1, maxContext),
	}
	s.kvHeads = c.countOr("num_key_value_heads", s.heads, 1, maxHeads)
	s.size = c.countOr("head_dim", s.width/s.heads, 1, maxHeads)
	return s
}

// describe adds which model this is, and the shared settings.
func (b *builder) describe(arch string, s shape) {
	b.arch = arch
	set(b, "general.architecture", arch)
	set(b, "general.type", "model")
	set(b, "general.name", nameOf(b.dir))
	set(b, "general.quantization_version", uint32(2)) // of the block formats
	b.setCount(".context_length", s.context)
	b.setCount(".embedding_length", s.width)
	b.setCount(".block_count", s.layers)
	b.setCount(".feed_forward_length", s.ffn)
	b.setCount(".attention.head_count", s.heads)
	b.setCount(".attention.head_count_kv", s.kvHeads)
	b.setCount(".attention.key_length", s.size)
	if s.value == 0 {
		s.value = s.size
	}
	b.setCount(".attention.value_length", s.value)
}

// rmsEps adds the epsilon of RMSNorm.
func (b *builder) rmsEps(other float64) {
	b.setFloat(".attention.layer_norm_rms_epsilon", b.config.floatOr("rms_norm_eps", other, 0, 1))
}

// experts adds the counts of a mixture and returns that of its experts.
func (b *builder) experts(key string) int {
	n := b.config.count(key, 1, maxExperts)
	b.setCount(".expert_count", n)
	b.setCount(".expert_used_count", b.config.count("num_experts_per_tok", 1, n))
	return n
}

// window returns the sliding window of a family, 0 for none.
func (b *builder) window() int { return b.config.countOr("sliding_window", 0, 0, maxContext) }

// withinWindow keeps the context of a family whose GGUF cannot tell of its sliding window inside it,
// where the window changes nothing.
func (b *builder) withinWindow() {
	c := b.config
	n := b.window()
	if n > 0 && c.boolOr("use_sliding_window", true) && n < c.count("max_position_embeddings", 1, maxContext) {
		c.values["max_position_embeddings"] = c.values["sliding_window"]
	}
}

// ropeConfig returns the rotary settings, which newer folders keep in one object.
func (b *builder) ropeConfig() (*config, float64) {
	c := b.config.sub(b.config.first("rope_parameters", "rope_scaling"))
	theta := b.config.floatOr("rope_theta", 10000, 1, math.MaxFloat32)
	return c, c.floatOr("rope_theta", theta, 1, math.MaxFloat32)
}

// rope adds the rotary settings, of dims values a head. All rules for longer contexts that GGUF can tell
// of are known here, but for the one of phi3.
func (b *builder) rope(dims int) {
	c, _ := b.ropeConfig()
	b.ropeOf(c, dims)
}

// ropeOf is rope by settings that the caller may have changed.
func (b *builder) ropeOf(c *config, dims int) {
	_, theta := b.ropeConfig()
	b.setCount(".rope.dimension_count", dims)
	b.setFloat(".rope.freq_base", theta)
	kind := c.textOr(c.first("rope_type", "type"), "default")
	switch kind {
	case "default":
	case "linear":
		b.ropeFactor(c, kind)
	case "yarn":
		b.yarn(c)
	case "llama3":
		b.llama3(c, theta, dims)
	default:
		c.fail("type is %.40q; it must be default, linear, yarn or llama3", kind)
	}
}

// ropeFactor adds the kind of scaling and its factor, and returns that.
func (b *builder) ropeFactor(c *config, kind string) float64 {
	set(b, ".rope.scaling.type", kind)
	if !c.has("factor") {
		c.fail("factor is missing")
	}
	factor := c.floatOr("factor", 1, 1, 1<<20)
	b.setFloat(".rope.scaling.factor", factor)
	return factor
}

// yarn adds YaRN (Peng et al. 2023).
func (b *builder) yarn(c *config) {
	factor := b.ropeFactor(c, "yarn")
	other := b.config.countOr("max_position_embeddings", 1, 1, maxContext)
	b.setCount(".rope.scaling.original_context_length", c.countOr("original_max_position_embeddings", other, 1, maxContext))
	b.setFloat(".rope.scaling.yarn_beta_fast", c.floatOr("beta_fast", 32, 0, 1<<20))
	b.setFloat(".rope.scaling.yarn_beta_slow", c.floatOr("beta_slow", 1, 0, 1<<20))
	usual := 0.1*math.Log(factor) + 1
	if f := c.floatOr("attention_factor", usual, 0, 1<<20); math.Abs(f-usual) > 1e-3 {
		c.fail("attention_factor %v is not supported; YaRN with factor %v has %v", f, factor, usual)
	}
	for _, key := range []string{"mscale", "mscale_all_dim"} {
		if c.has(key) {
			c.fail("%s is not supported", key)
		}
	}
}

// llama3 adds the rule of Llama 3.1: a factor for each frequency.
func (b *builder) llama3(c *config, theta float64, dims int) {
	factor := c.floatOr("factor", 8, 1, 1<<20)
	low, high := c.floatOr("low_freq_factor", 1, 1e-6, 1<<20), c.floatOr("high_freq_factor", 4, 1e-6, 1<<20)
	original := float64(c.countOr("original_max_position_embeddings", 8192, 1, maxContext))
	if low >= high {
		c.fail("low_freq_factor %v is not below high_freq_factor %v", low, high)
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
	b.add(to, tensor.F32, []int{len(x)}, func(dst []byte) {
		for i, v := range x {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
		}
	})
}
