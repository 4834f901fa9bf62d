// Package mixtures says what the folders of decoders have whose mixtures of experts stand behind leading plain layers and beside
// shared experts, as DeepSeek's do.
package mixtures

import (
	"grove/weights/hf/decoder"
	"grove/weights/hf/folder"
)

// Families are the classes of config.json.
var Families = map[string]func(b *folder.Builder){
	"BailingMoeForCausalLM":   of(bailing),
	"BailingMoeV2ForCausalLM": of(bailing2),
	"DeepseekForCausalLM":     of(deepSeek),
	"DeepseekV2ForCausalLM":   of(deepSeek2),
	"DeepseekV3ForCausalLM":   of(deepSeek2),
	"Dots1ForCausalLM":        of(dots1),
	"Glm4MoeForCausalLM":      of(glm4moe),
	"HunYuanMoEV1ForCausalLM": of(hunyuanMoE),
	"MiniMaxM2ForCausalLM":    of(miniMax),
	"Ernie4_5_MoeForCausalLM": of(ernieMoE),
	"ExaoneMoeForCausalLM":    of(exaoneMoE),
	"ExaoneMoEForCausalLM":    of(exaoneMoE),
	"MiMoV2FlashForCausalLM":  of(mimo2),
	"Step3p5ForCausalLM":      of(step35),
	"Step3TextForCausalLM":    of(step3),
}

// builder is a folder whose family is presented.
type builder struct{ *decoder.Builder }

// of returns the function of a family for any folder.
func of(family func(*builder)) func(*folder.Builder) {
	return func(b *folder.Builder) { family(&builder{&decoder.Builder{Builder: b}}) }
}
