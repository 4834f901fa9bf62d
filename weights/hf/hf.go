// Package hf reads models in the form in which Hugging Face publishes them, a folder of config.json,
// safetensors files and tokenizer.json, and presents them as GGUF: the metadata, the names and the
// layout of tensors are those that llama.cpp reads. Tensors that GGUF keeps as they are stay views of the
// mapped files; the others (rows in another order, experts stacked, norms in float32) are made when they
// are asked for.
package hf

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"grove/weights/gguf"
	"grove/weights/safetensors"
	"grove/weights/tensor"
)

// families are the models that can be presented, by the name that config.json gives their class.
var families = map[string]func(*builder){
	"LlamaForCausalLM":                 llama,
	"MistralForCausalLM":               llama,
	"MixtralForCausalLM":               mixtral,
	"Qwen2ForCausalLM":                 qwen2,
	"Qwen3ForCausalLM":                 qwen3,
	"Qwen3MoeForCausalLM":              qwen3moe,
	"GemmaForCausalLM":                 gemma,
	"Gemma2ForCausalLM":                gemma2,
	"Gemma3ForCausalLM":                gemma3,
	"Gemma3ForConditionalGeneration":   gemma3,
	"Phi3ForCausalLM":                  phi3,
	"Olmo2ForCausalLM":                 olmo2,
	"Starcoder2ForCausalLM":            starcoder2,
	"GPT2LMHeadModel":                  gpt2,
	"GptOssForCausalLM":                gptOSS,
	"ApertusForCausalLM":               apertus,
	"ArceeForCausalLM":                 arcee,
	"CohereForCausalLM":                commandR,
	"Cohere2ForCausalLM":               cohere2,
	"Ernie4_5ForCausalLM":              ernie,
	"Exaone4ForCausalLM":               exaone4,
	"Glm4ForCausalLM":                  glm4,
	"GPTNeoXForCausalLM":               gptNeoX,
	"GraniteForCausalLM":               granite,
	"GraniteMoeForCausalLM":            graniteMoE,
	"GraniteMoeSharedForCausalLM":      graniteMoE,
	"HunYuanDenseV1ForCausalLM":        hunyuan,
	"InternLM2ForCausalLM":             internLM2,
	"MiniCPMForCausalLM":               miniCPM,
	"NemotronForCausalLM":              nemotron,
	"OlmoForCausalLM":                  olmo,
	"OlmoeForCausalLM":                 olmoe,
	"PhiForCausalLM":                   phi,
	"Qwen2MoeForCausalLM":              qwen2moe,
	"SeedOssForCausalLM":               seedOSS,
	"SmolLM3ForCausalLM":               smollm3,
	"StableLmForCausalLM":              stableLM,
	"BailingMoeForCausalLM":            bailing,
	"BailingMoeV2ForCausalLM":          bailing2,
	"DeepseekForCausalLM":              deepSeek,
	"DeepseekV2ForCausalLM":            deepSeek2,
	"DeepseekV3ForCausalLM":            deepSeek2,
	"Dots1ForCausalLM":                 dots1,
	"ExaoneForCausalLM":                exaone,
	"Glm4MoeForCausalLM":               glm4moe,
	"HunYuanMoEV1ForCausalLM":          hunyuanMoE,
	"MiniMaxM2ForCausalLM":             miniMax,
	"Ministral3ForCausalLM":            ministral,
	"Mistral3ForConditionalGeneration": ministral,
	"Olmo3ForCausalLM":                 olmo2,
	"Qwen3VLForConditionalGeneration":  qwen3vl,
}

const configName = "config.json"

// Is reports whether path is a folder that [Open] is for.
func Is(path string) bool {
	info, err := os.Stat(filepath.Join(path, configName))
	return err == nil && !info.IsDir()
}

// OpenModel opens a model of either form: a folder as [Open] does, a file as [gguf.Open] does.
func OpenModel(path string) (*gguf.File, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil || !info.IsDir():
		return gguf.Open(path)
	case !Is(path):
		return nil, fmt.Errorf("hf: %s is a folder without %s", path, configName)
	}
	return Open(path)
}

// Open opens the folder of a model. The result must be closed. A family, a setting, a tensor or a quantisation that grove
// does not know is refused by name.
func Open(dir string) (*gguf.File, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("hf: %s is a file; a model of Hugging Face is a folder with %s", dir, configName)
	}
	b := &builder{dir: dir, used: map[string]bool{}}
	family, err := b.family()
	if err != nil {
		return nil, err
	}
	if b.weights, err = openWeights(dir); err != nil {
		return nil, err
	}
	family(b)
	b.leftOver()
	b.vocabulary()
	b.sampling()
	if err := b.firstError(); err != nil {
		b.weights.Close()
		return nil, err
	}
	return gguf.New(dir, b.metadata, b.tensors, source{b.weights, b.config.sum}, b.load)
}

// source is the weights, whose bytes config.json decides too where they are made.
type source struct {
	*safetensors.File
	config [sha256.Size]byte
}

// Stamp implements [gguf.Storage].
func (s source) Stamp() (stamp string, changed time.Time, err error) {
	stamp, changed, err = s.File.Stamp()
	return fmt.Sprintf("%x\n%s", s.config, stamp), changed, err
}

// family reads config.json and returns the function of its family.
func (b *builder) family() (func(*builder), error) {
	var err error
	if b.config, err = readConfig(filepath.Join(b.dir, configName)); err != nil {
		return nil, err
	}
	var classes []string
	b.config.value("architectures", &classes, "an array of names")
	if len(classes) != 1 && *b.config.err == nil {
		b.config.fail("architectures names %d classes; it must name 1", len(classes))
	}
	if method := b.config.sub("quantization_config").textOr("quant_method", ""); method != "" && method != "mxfp4" {
		b.config.fail("quantization_config.quant_method is %.40q; it must be mxfp4 or missing", method)
	}
	if *b.config.err != nil {
		return nil, *b.config.err
	}
	family, ok := families[classes[0]]
	if !ok {
		return nil, fmt.Errorf("hf: %s: class %.80q is not supported; the classes are %s",
			filepath.Join(b.dir, configName), classes[0], strings.Join(slices.Sorted(maps.Keys(families)), ", "))
	}
	if b.config.has("text_config") { // the text part of a model that reads images too
		b.config = b.config.sub("text_config")
	}
	return family, nil
}

// openWeights opens the tensors of a folder.
func openWeights(dir string) (*safetensors.File, error) {
	const single, index = "model.safetensors", "model.safetensors.index.json"
	f, err := safetensors.Open(filepath.Join(dir, index))
	if errors.Is(err, os.ErrNotExist) {
		if _, missing := os.Stat(filepath.Join(dir, index)); missing != nil {
			f, err = safetensors.Open(filepath.Join(dir, single))
		}
	}
	if !errors.Is(err, os.ErrNotExist) {
		return f, err
	}
	if shards, _ := filepath.Glob(filepath.Join(dir, "*.safetensors")); len(shards) > 0 {
		if _, missing := os.Stat(filepath.Join(dir, index)); missing != nil {
			return nil, fmt.Errorf("hf: %s: %s is missing, which lists the shards (%s and others); download it too", dir, index, filepath.Base(shards[0]))
		}
	}
	if old, _ := filepath.Glob(filepath.Join(dir, "pytorch_model*.bin")); len(old) > 0 {
		return nil, fmt.Errorf("hf: %s: %s is not supported; weights must be in safetensors files", dir, filepath.Base(old[0]))
	}
	return nil, err
}

// builder collects the metadata and tensors. It keeps the first error; the config keeps its own.
type builder struct {
	dir     string
	config  *config
	weights *safetensors.File

	arch     string
	metadata []gguf.KV
	tensors  []tensor.View
	made     []func() ([]byte, error) // for each tensor, nil where it is a view
	used     map[string]bool          // tensors of the folder that are presented
	ignored  func(name string) bool   // tensors of the folder that are left out
	vocab    int                      // rows of the embedding table
	sources  *[]Source                // of [Sources]: there is no folder, and whatever is asked for is there; nil: there is one
	err      error
}

func (b *builder) load(i int) ([]byte, error) { return b.made[i]() }

func (b *builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("hf: "+b.dir+": "+format, args...)
	}
}

func (b *builder) firstError() error {
	if *b.config.err != nil {
		return *b.config.err
	}
	return b.err
}

func (b *builder) ok() bool { return b.firstError() == nil }

// set adds a key; one that begins with a dot belongs to the architecture.
func set[T gguf.Basic](b *builder, key string, v T) { b.setValue(key, gguf.Of(v)) }

func (b *builder) setValue(key string, v gguf.Value) {
	if key[0] == '.' {
		key = b.arch + key
	}
	b.metadata = append(b.metadata, gguf.KV{Key: key, Value: v})
}

// setCount adds a number as GGUF spells hyper-parameters.
func (b *builder) setCount(key string, n int) { set(b, key, uint32(n)) }

func (b *builder) setFloat(key string, x float64) { set(b, key, float32(x)) }

// leftOver refuses tensors that are not presented: without them the model would be another one.
func (b *builder) leftOver() {
	for _, t := range b.weights.Tensors {
		if !b.used[t.Name] && !strings.HasSuffix(t.Name, ".rotary_emb.inv_freq") && (b.ignored == nil || !b.ignored(t.Name)) {
			b.fail("%s: a model of this family has no such tensor", tensor.Label(t.Name))
		}
	}
}
