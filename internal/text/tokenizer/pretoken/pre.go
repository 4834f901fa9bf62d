package pretoken

import (
	"fmt"
	"strings"
)

// Pre is a pre-tokenizer: a way of cutting text into words before merging, with its names in tokenizer.ggml.pre.
type Pre struct {
	Names  []string
	Cuts   string // names of cutters: each cuts the pieces of the one before
	Whole  bool   // a word that is a token is that token, whatever the merges say
	AddBOS bool   // a begin token is added unless the file says otherwise
}

// pres are the known pre-tokenizers. llama.cpp's engine has one class of letters beyond ASCII; where that changes a pattern
// (tekken, gpt-4o, kimi-k2), the pattern here is that of the published model.
var pres = []Pre{
	{
		Names: []string{
			"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de", "jina-v2-code", "roberta-bpe", "modern-bert",
			"gigachat", "mellum", "a.x-4.0", "exaone4", "mpt", "olmo", "jais", "trillion", "granite-docling",
		},
		Cuts: "gpt2",
	},
	{
		Names: []string{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
		Cuts:  "llama3", Whole: true, AddBOS: true,
	},
	{Names: []string{"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"}, Cuts: "llama3"},
	{
		Names: []string{
			"qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez", "solar-open", "grok-2", "kormo", "f2llmv2",
			"bailingmoe", "bailingmoe2", "llada-moe",
		},
		Cuts: "qwen2",
	},
	{Names: []string{"qwen35"}, Cuts: "qwen35"},
	{Names: []string{"seed-coder"}, Cuts: "seed"},
	{Names: []string{"ufakzeka"}, Cuts: "ufakzeka"},
	{Names: []string{"tekken"}, Cuts: "tekken", Whole: true, AddBOS: true},
	{Names: []string{"gpt-4o", "o200k", "llama4", "kanana2", "talkie", "minimax-m2"}, Cuts: "o200k"},
	{Names: []string{"kimi-k2"}, Cuts: "kimi"},
	{
		Names: []string{"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"},
		Cuts:  `\p{N} gpt2`,
	},
	{Names: []string{"falcon"}, Cuts: "[\\p{P}$+<=>^~|`]+ gpt2 [0-9]{3}"},
	{Names: []string{"default"}, Cuts: `[\p{P}$+<=>^~|]+ gpt2 \p{N}+ [0-9]{3}`},
	{Names: []string{"deepseek-llm"}, Cuts: `[\r\n] deepseek-letters deepseek-punct \s+$ deepseek-cjk \p{N}+`},
	{Names: []string{"deepseek-coder"}, Cuts: `[\r\n] \s?\p{L}+ \s?\p{P}+ deepseek-cjk \p{N}`},
	{Names: []string{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}, Cuts: `\p{N}{1,3} deepseek3-cjk deepseek3`},
	{Names: []string{"minicpm5"}, Cuts: `\p{N}{1,3} numbers`, Whole: true},
	{Names: []string{"bloom", "gpt3-finnish", "poro-chat"}, Cuts: "bloom"},
	{Names: []string{"viking"}, Cuts: `bloom \p{N}`},
	{Names: []string{"laguna"}, Cuts: `[^\n]+|[\n]+ qwen2`},
}

// Stage cuts text into pieces, which the next stage cuts further, with a cutter or an expression.
type Stage struct {
	Cut Cutter
	Re  *Expression
}

// Stages returns the stages of the pre-tokenizer.
func (p Pre) Stages() []Stage {
	var stages []Stage
	for name := range strings.FieldsSeq(p.Cuts) {
		stages = append(stages, Stage{Cut: cutters[name]})
	}
	return stages
}

// Find returns the pre-tokenizer of a name. Errors: an unknown name.
func Find(name string) (Pre, error) {
	var known []string // the first names only: there are some eighty
	for _, p := range pres {
		for _, n := range p.Names {
			if n == name {
				return p, nil
			}
		}
		known = append(known, p.Names[0])
	}
	if name == "" {
		return Pre{}, fmt.Errorf("tokenizer: the file names no pre-tokenizer; known, each with others like it: %s", strings.Join(known, ", "))
	}
	return Pre{}, fmt.Errorf("tokenizer: pre-tokenizer %.40q is not supported; known, each with others like it: %s", name, strings.Join(known, ", "))
}

// Matching returns the name of a pre-tokenizer with the given cutters, and whether it keeps words that are tokens whole, as asked
// if there is such a one.
func Matching(cuts string, whole bool) (name string, takesWhole, ok bool) {
	for _, p := range pres {
		if p.Cuts == cuts && (!ok || p.Whole == whole && takesWhole != whole) {
			name, takesWhole, ok = p.Names[0], p.Whole, true
		}
	}
	return name, takesWhole, ok
}
