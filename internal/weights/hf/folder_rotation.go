package hf

import (
	"encoding/binary"
	"math"

	"grove/internal/weights/tensor"
)

// RopeConfig returns the rotary settings, which newer folders keep in one object.
func (b *FolderBuilder) RopeConfig() (*FolderConfig, float64) {
	c := b.Config.Sub(b.Config.First("rope_parameters", "rope_scaling"))
	theta := b.Config.FloatOr("rope_theta", 10000, 1, math.MaxFloat32)
	return c, c.FloatOr("rope_theta", theta, 1, math.MaxFloat32)
}

// Rope adds the rotary settings, of dims values a head. All rules for longer contexts that GGUF can tell
// of are known here, but for the one of phi3.
func (b *FolderBuilder) Rope(dims int) {
	c, _ := b.RopeConfig()
	b.RopeOf(c, dims)
}

// RopeOf is [FolderBuilder.Rope] by settings that the caller may have changed.
func (b *FolderBuilder) RopeOf(c *FolderConfig, dims int) {
	_, theta := b.RopeConfig()
	b.SetCount(".rope.dimension_count", dims)
	b.SetFloat(".rope.freq_base", theta)
	kind := c.TextOr(c.First("rope_type", "type"), "default")
	switch kind {
	case "default":
	case "linear":
		b.RopeFactor(c, kind)
	case "yarn":
		b.YaRN(c)
	case "llama3":
		b.Llama3(c, theta, dims)
	default:
		c.Fail("type is %.40q; it must be default, linear, yarn or llama3", kind)
	}
}

// RopeFactor adds the kind of scaling and its factor, and returns that.
func (b *FolderBuilder) RopeFactor(c *FolderConfig, kind string) float64 {
	FolderSet(b, ".rope.scaling.type", kind)
	if !c.Has("factor") {
		c.Fail("factor is missing")
	}
	factor := c.FloatOr("factor", 1, 1, 1<<20)
	b.SetFloat(".rope.scaling.factor", factor)
	return factor
}

// YaRN adds YaRN (Peng et al. 2023).
func (b *FolderBuilder) YaRN(c *FolderConfig) {
	factor := b.RopeFactor(c, "yarn")
	other := b.Config.CountOr("max_position_embeddings", 1, 1, folderMaxContext)
	b.SetCount(".rope.scaling.original_context_length", c.CountOr("original_max_position_embeddings", other, 1, folderMaxContext))
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

// Llama3 adds the rule of Llama 3.1: a factor for each frequency.
func (b *FolderBuilder) Llama3(c *FolderConfig, theta float64, dims int) {
	b.AddFloats("rope_freqs.weight", b.Llama3Factors(c, theta, dims))
}

// Llama3Factors returns the factors of Llama 3.1.
func (b *FolderBuilder) Llama3Factors(c *FolderConfig, theta float64, dims int) []float32 {
	factor := c.FloatOr("factor", 8, 1, 1<<20)
	low, high := c.FloatOr("low_freq_factor", 1, 1e-6, 1<<20), c.FloatOr("high_freq_factor", 4, 1e-6, 1<<20)
	original := float64(c.CountOr("original_max_position_embeddings", 8192, 1, folderMaxContext))
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
	return factors
}

// AddFloats adds a vector that is not in the folder.
func (b *FolderBuilder) AddFloats(to string, x []float32) {
	b.Add(to, tensor.F32, []int{len(x)}, func(dst []byte) {
		for i, v := range x {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
		}
	})
}

// AlphaRope adds the rotation of Hunyuan, of heads of size values, whose base grows by a factor alpha for long texts.
func (b *FolderBuilder) AlphaRope(size int) {
	c, theta := b.RopeConfig()
	if kind := c.TextOr(c.First("rope_type", "type"), "default"); kind != "dynamic" || !c.Has("alpha") {
		b.Rope(size)
		return
	}
	if size <= 2 {
		b.Fail("head_dim is %d; a rotation with alpha needs more than 2", size)
		return
	}
	b.SetCount(".rope.dimension_count", size)
	alpha := c.FloatOr("alpha", 1, 1, 1e6)
	b.SetFloat(".rope.freq_base", theta*math.Pow(alpha, float64(size)/float64(size-2)))
}
