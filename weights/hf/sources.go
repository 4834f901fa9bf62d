package hf

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"grove/weights/gguf"
	"grove/weights/hf/decoder"
	"grove/weights/hf/folder"
	"grove/weights/hf/mixtures"
)

// Source says where folders of a family keep what is a matrix of GGUF.
type Source = folder.Source

// TurnRow returns the row of a folder that is row i of GGUF; see [folder.TurnRow].
func TurnRow(i, size int) int { return folder.TurnRow(i, size) }

// byArch are the families of files of GGUF, by general.architecture. Those of Falcon H1 do not say by which numbers a folder's matrices were
// multiplied.
var byArch = map[string][]func(*builder){
	"llama": {llama}, "qwen2": {qwen2}, "qwen3": {qwen3}, "qwen3moe": {qwen3moe}, "gemma": {gemma}, "gemma2": {gemma2}, "gemma3": {gemma3},
	"phi3": {phi3}, "phimoe": {phiMoE}, "olmo2": {olmo2}, "starcoder2": {starcoder2}, "gpt2": {gpt2}, "apertus": {apertus}, "arcee": {arcee}, "command-r": {commandR},
	"cohere2": {cohere2}, "ernie4_5": {ernie}, "exaone4": {exaone4}, "glm4": {glm4}, "granite": {granite, graniteHybrid}, "hunyuan-dense": {hunyuan},
	"minicpm": {miniCPM}, "nemotron": {nemotron}, "olmo": {olmo}, "olmoe": {olmoe}, "phi2": {phi}, "qwen2moe": {qwen2moe}, "seed_oss": {seedOSS},
	"smollm3": {smollm3}, "stablelm": {stableLM}, "gemma3n": {gemma3n}, "gemma4": {gemma4}, "llama4": {llama4}, "gpt-oss": {gptOSS}, "gptneox": {gptNeoX},
	"granitemoe": {graniteMoE}, "internlm2": {internLM2}, "bailingmoe": {of("BailingMoeForCausalLM")}, "bailingmoe2": {of("BailingMoeV2ForCausalLM")}, "deepseek": {of("DeepseekForCausalLM")}, "deepseek2": {of("DeepseekV3ForCausalLM")},
	"dots1": {of("Dots1ForCausalLM")}, "exaone": {exaone}, "glm4moe": {of("Glm4MoeForCausalLM")}, "hunyuan-moe": {of("HunYuanMoEV1ForCausalLM")}, "minimax-m2": {of("MiniMaxM2ForCausalLM")}, "mistral3": {ministral},
	"mistral4": {func(b *builder) { mixtures.Mistral4(b.Builder) }}, "qwen3vl": {qwen3vl}, "qwen3vlmoe": {qwen3vlMoE}, "mamba": {mamba}, "mamba2": {mamba2}, "jamba": {jamba}, "granitehybrid": {graniteHybrid},
	"nemotron_h": {nemotronH}, "nemotron_h_moe": {nemotronH}, "kimi-linear": {kimiLinear}, "lfm2": {lfm2}, "lfm2moe": {lfm2moe}, "step3": {of("Step3TextForCausalLM")},
	"qwen3next": {qwen3Next}, "qwen35": {qwen35}, "qwen35moe": {qwen35moe},
	"codegen2": {of("CodeGenForCausalLM")},
}

// of returns the family of a class of another package.
func of(class string) func(*builder) {
	return func(b *builder) {
		for _, more := range others {
			if family := more[class]; family != nil {
				family(b.Builder.Builder)
			}
		}
	}
}

// Sources returns where the matrices of a model come from: of a folder, where it has them; of a file of GGUF, where a folder of its
// family would. An architecture without a family is refused by name.
func Sources(base *gguf.File) ([]Source, error) {
	if paths := base.Paths(); len(paths) == 1 && Is(paths[0]) {
		return sourcesOf(paths[0])
	}
	arch, _, err := base.String("general.architecture")
	if err != nil {
		return nil, err
	}
	families, ok := byArch[arch]
	if !ok {
		return nil, fmt.Errorf("hf: the names that folders of architecture %q use are not known of a GGUF file; they are for %s", arch, strings.Join(slices.Sorted(maps.Keys(byArch)), ", "))
	}
	count := func(key string) int { n, _, _ := base.Uint(arch + "." + key); return n }
	if arch == "llama" && count("expert_count") > 0 {
		families = []func(*builder){mixtral}
	}
	if n := count("expert_count") * count("block_count"); n < 0 || n > maxSources {
		return nil, fmt.Errorf("hf: architecture %q has %d experts in all layers; at most %d are supported", arch, n, maxSources)
	}
	var all []Source
	seen := map[[2]string]bool{} // families of one architecture share matrices
	for _, family := range families {
		b := &builder{&decoder.Builder{Builder: folder.Dry(base, arch)}}
		family(b)
		if err := b.FirstError(); err != nil {
			return nil, err
		}
		for _, s := range *b.Sources {
			if key := [2]string{s.To, s.From}; !seen[key] && fits(s, base) {
				seen[key] = true
				all = append(all, s)
			}
		}
	}
	return all, nil
}

// fits reports whether a file has the matrix, of as many rows and columns.
func fits(s Source, base *gguf.File) bool {
	t, ok := base.Tensor(s.To)
	if !ok || s.Problem != "" {
		return ok
	}
	n := len(t.Shape)
	return n >= 2 && n == 3 == s.Stack && t.Shape[n-2] == s.Rows && t.Shape[n-1] == s.Shape[1] || s.To == "token_embd.weight" || s.To == "output.weight"
}

// sourcesOf reads a folder's settings anew.
func sourcesOf(dir string) ([]Source, error) {
	b := &builder{&decoder.Builder{Builder: folder.New(dir)}}
	b.Sources = &[]Source{}
	family, err := b.family()
	if err != nil {
		return nil, err
	}
	if b.Weights, err = folder.OpenWeights(dir); err != nil {
		return nil, err
	}
	family(b)
	defer b.Storage().Close()
	return *b.Sources, b.FirstError()
}

// maxSources bounds the experts of all layers.
const maxSources = 1 << 17
