package hf

import (
	"strings"
)

// A family is folders whose tensors and settings one function presents.
type family struct {
	archs   string // of files of GGUF whose matrices folders of the family name as it does, with spaces between; "": files do not say enough
	classes string // of config.json, with spaces between; "": one of others has them
	present func(*builder)
}

// families are those of this package, and the architectures of others'. Files of Falcon H1 do not say by which numbers a folder's matrices
// were multiplied.
var families = []family{
	{"apertus", "ApertusForCausalLM", apertus},
	{"arcee", "ArceeForCausalLM", arcee},
	{"bailingmoe", "", of("BailingMoeForCausalLM")},
	{"bailingmoe2", "", of("BailingMoeV2ForCausalLM")},
	{"codegen2", "", of("CodeGenForCausalLM")},
	{"cohere2", "Cohere2ForCausalLM", cohere2},
	{"command-r", "CohereForCausalLM", commandR},
	{"deepseek", "", of("DeepseekForCausalLM")},
	{"deepseek2", "", of("DeepseekV3ForCausalLM")},
	{"diffusion-gemma", "DiffusionGemmaForBlockDiffusion DiffusionGemma4ModelForBlockDiffusion", diffusionGemma},
	{"dots1", "", of("Dots1ForCausalLM")},
	{"ernie4_5", "Ernie4_5ForCausalLM", ernie},
	{"exaone", "ExaoneForCausalLM", exaone},
	{"exaone4", "Exaone4ForCausalLM", exaone4},
	{"gemma", "GemmaForCausalLM", gemma},
	{"gemma2", "Gemma2ForCausalLM", gemma2},
	{"gemma3", "Gemma3ForCausalLM Gemma3ForConditionalGeneration", gemma3},
	{"gemma3n", "Gemma3nForCausalLM Gemma3nForConditionalGeneration", gemma3n},
	{"gemma4", "Gemma4ForCausalLM Gemma4ForConditionalGeneration", gemma4},
	{"glm4", "Glm4ForCausalLM", glm4},
	{"glm4moe", "", of("Glm4MoeForCausalLM")},
	{"gpt-oss", "GptOssForCausalLM", gptOSS},
	{"gpt2", "GPT2LMHeadModel", gpt2},
	{"gptneox", "GPTNeoXForCausalLM", gptNeoX},
	{"granite", "GraniteForCausalLM", granite},
	{"granite granitehybrid", "GraniteMoeHybridForCausalLM", graniteHybrid},
	{"granitemoe", "GraniteMoeForCausalLM GraniteMoeSharedForCausalLM", graniteMoE},
	{"hunyuan-dense", "HunYuanDenseV1ForCausalLM", hunyuan},
	{"hunyuan-moe", "", of("HunYuanMoEV1ForCausalLM")},
	{"internlm2", "InternLM2ForCausalLM", internLM2},
	{"jamba", "JambaForCausalLM", jamba},
	{"kimi-linear", "KimiLinearForCausalLM", kimiLinear},
	{"lfm2", "Lfm2ForCausalLM", lfm2},
	{"lfm2moe", "Lfm2MoeForCausalLM", lfm2moe},
	{"llama", "LlamaForCausalLM MistralForCausalLM", llama},
	{"llama4", "Llama4ForCausalLM Llama4ForConditionalGeneration", llama4},
	{"mamba", "MambaForCausalLM", mamba},
	{"mamba2", "Mamba2ForCausalLM", mamba2},
	{"minicpm", "MiniCPMForCausalLM", miniCPM},
	{"minimax-m2", "", of("MiniMaxM2ForCausalLM")},
	{"mistral3", "Ministral3ForCausalLM Mistral3ForConditionalGeneration Mistral4ForCausalLM", ministral},
	{"mistral4", "", func(b *builder) { Mistral4(b.DecoderBuilder) }},
	{"nemotron", "NemotronForCausalLM", nemotron},
	{"nemotron_h nemotron_h_moe", "NemotronHForCausalLM", nemotronH},
	{"olmo", "OlmoForCausalLM", olmo},
	{"olmo2", "Olmo2ForCausalLM Olmo3ForCausalLM", olmo2},
	{"olmoe", "OlmoeForCausalLM", olmoe},
	{"phi2", "PhiForCausalLM", phi},
	{"phi3", "Phi3ForCausalLM", phi3},
	{"phimoe", "PhiMoEForCausalLM PhimoeForCausalLM", phiMoE},
	{"qwen2", "Qwen2ForCausalLM", qwen2},
	{"qwen2moe", "Qwen2MoeForCausalLM", qwen2moe},
	{"qwen3", "Qwen3ForCausalLM", qwen3},
	{"qwen35", "Qwen3_5ForCausalLM Qwen3_5ForConditionalGeneration", qwen35},
	{"qwen35moe", "Qwen3_5MoeForCausalLM Qwen3_5MoeForConditionalGeneration", qwen35moe},
	{"qwen3moe", "Qwen3MoeForCausalLM", qwen3moe},
	{"qwen3next", "Qwen3NextForCausalLM", qwen3Next},
	{"qwen3vl", "Qwen3VLForConditionalGeneration", qwen3vl},
	{"qwen3vlmoe", "Qwen3VLMoeForConditionalGeneration", qwen3vlMoE},
	{"seed_oss", "SeedOssForCausalLM", seedOSS},
	{"smollm3", "SmolLM3ForCausalLM", smollm3},
	{"stablelm", "StableLmForCausalLM", stableLM},
	{"starcoder2", "Starcoder2ForCausalLM", starcoder2},
	{"step3", "", of("Step3TextForCausalLM")},
	{"", "BambaForCausalLM", bamba},
	{"", "FalconForCausalLM RWForCausalLM", falcon},
	{"", "FalconH1ForCausalLM", falconH1},
	{"", "FalconMambaForCausalLM", falconMamba},
	{"", "GPTBigCodeForCausalLM", gptBigCode},
	{"", "MiniCPM3ForCausalLM", miniCPM3},
	{"", "MixtralForCausalLM", mixtral},
}

// byClass are the families by the classes of config.json, byArch those by general.architecture.
var byClass, byArch = map[string]func(*builder){}, map[string][]func(*builder){}

func init() {
	for _, f := range families {
		for class := range strings.FieldsSeq(f.classes) {
			byClass[class] = f.present
		}
		for arch := range strings.FieldsSeq(f.archs) {
			byArch[arch] = append(byArch[arch], f.present)
		}
	}
}

// of returns the family of a class of another package.
func of(class string) func(*builder) {
	return func(b *builder) {
		for _, more := range others {
			if family := more[class]; family != nil {
				family(b.DecoderBuilder.FolderBuilder)
			}
		}
	}
}
