package hf

import (
	"math"
	"path/filepath"
)

// GenerationName is the name of the file of settings of sampling.
const GenerationName = "generation_config.json"

// Sampling adds what generation_config.json recommends for the draw of tokens, under the keys that llama.cpp writes. The
// ranges of the values are checked where they are used.
func (b *FolderBuilder) Sampling() {
	c := b.OptionalConfig(filepath.Join(b.Dir, GenerationName))
	const most = math.MaxFloat32
	float := func(key, name string) {
		if c.Has(key) {
			b.SetFloat("general.sampling."+name, c.FloatOr(key, 0, -most, most))
		}
	}
	if draws := c.BoolOr("do_sample", true); draws {
		float("temperature", "temp")
	} else {
		b.SetFloat("general.sampling.temp", 0) // the likeliest token each time
	}
	if c.Has("top_k") {
		FolderSet(b, "general.sampling.top_k", int32(c.CountOr("top_k", 0, math.MinInt32, math.MaxInt32)))
	}
	float("top_p", "top_p")
	float("min_p", "min_p")
	if c.FloatOr("repetition_penalty", 1, -most, most) != 1 {
		float("repetition_penalty", "penalty_repeat")
		window := c.CountOr("penalty_last_n", -1, math.MinInt32, math.MaxInt32) // a key of llama.cpp's converter; else the whole text
		FolderSet(b, "general.sampling.penalty_last_n", int32(window))
	}
}
