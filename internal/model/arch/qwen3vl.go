package arch

import "grove/internal/model"

// Qwen 3-VL, text only (Qwen team 2025): the layers of Qwen 3. Its heads rotate by the time, height and width of a
// token in turns, which are all the position in a text. What images add to the first layers is nothing for text.
func init() {
	model.Register("qwen3vl", openQwen3)
	model.Register("qwen3vlmoe", openQwen3MoE)
}
