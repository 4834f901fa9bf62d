// mixtures_family.go says what the folders of decoders have whose mixtures of experts stand behind leading plain layers and beside
// shared experts, as DeepSeek's do.

package hf

import ()

// MixturesFamilies are the classes of config.json.
var MixturesFamilies = map[string]func(b *FolderBuilder){
	"BailingMoeForCausalLM":   mixturesOf(bailing),
	"BailingMoeV2ForCausalLM": mixturesOf(bailing2),
	"DeepseekForCausalLM":     mixturesOf(deepSeek),
	"DeepseekV2ForCausalLM":   mixturesOf(deepSeek2),
	"DeepseekV3ForCausalLM":   mixturesOf(deepSeek2),
	"Dots1ForCausalLM":        mixturesOf(dots1),
	"Glm4MoeForCausalLM":      mixturesOf(glm4moe),
	"HunYuanMoEV1ForCausalLM": mixturesOf(hunyuanMoE),
	"MiniMaxM2ForCausalLM":    mixturesOf(miniMax),
	"Ernie4_5_MoeForCausalLM": mixturesOf(ernieMoE),
	"ExaoneMoeForCausalLM":    mixturesOf(exaoneMoE),
	"ExaoneMoEForCausalLM":    mixturesOf(exaoneMoE),
	"MiMoV2FlashForCausalLM":  mixturesOf(mimo2),
	"Step3p5ForCausalLM":      mixturesOf(step35),
	"Step3TextForCausalLM":    mixturesOf(step3),
}

// mixturesBuilder is a folder whose family is presented.
type mixturesBuilder struct{ *DecoderBuilder }

// mixturesOf returns the function of a family for any folder.
func mixturesOf(family func(*mixturesBuilder)) func(*FolderBuilder) {
	return func(b *FolderBuilder) { family(&mixturesBuilder{&DecoderBuilder{FolderBuilder: b}}) }
}
