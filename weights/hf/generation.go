package hf

import (
	"math"
	"path/filepath"
)

const generationName = "generation_config.json"

// sampling adds what generation_config.json recommends for the draw of tokens, under the keys that llama.cpp writes. The
// ranges of the values are checked where they are used.
func (b *builder) sampling() {
	c := b.optionalConfig(filepath.Join(b.dir, generationName))
	const most = math.MaxFloat32
	float := func(key, name string) {
		if c.has(key) {
			b.setFloat("general.sampling."+name, c.floatOr(key, 0, -most, most))
		}
	}
	if draws := c.boolOr("do_sample", true); draws {
		float("temperature", "temp")
	} else {
		b.setFloat("general.sampling.temp", 0) // the likeliest token each time
	}
	if c.has("top_k") {
		set(b, "general.sampling.top_k", int32(c.countOr("top_k", 0, math.MinInt32, math.MaxInt32)))
	}
	float("top_p", "top_p")
	float("min_p", "min_p")
	if c.floatOr("repetition_penalty", 1, -most, most) != 1 {
		float("repetition_penalty", "penalty_repeat")
		window := c.countOr("penalty_last_n", -1, math.MinInt32, math.MaxInt32) // a key of llama.cpp's converter; else the whole text
		set(b, "general.sampling.penalty_last_n", int32(window))
	}
}
