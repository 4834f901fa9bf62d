package hf

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"grove/weights/gguf"
	"grove/weights/hf/decoder"
	"grove/weights/hf/folder"
)

// Source says where folders of a family keep what is a matrix of GGUF.
type Source = folder.Source

// TurnRow returns the row of a folder that is row i of GGUF; see [folder.TurnRow].
func TurnRow(i, size int) int { return folder.TurnRow(i, size) }

// byArch are the families whose folders differ from GGUF by names and orders of rows alone, by general.architecture.
var byArch = map[string]func(*builder){
	"llama": llama, "qwen2": qwen2, "qwen3": qwen3, "qwen3moe": qwen3moe, "gemma": gemma, "gemma2": gemma2, "gemma3": gemma3,
	"phi3": phi3, "olmo2": olmo2, "starcoder2": starcoder2, "gpt2": gpt2,
	"apertus": apertus, "arcee": arcee, "command-r": commandR, "cohere2": cohere2, "ernie4_5": ernie, "exaone4": exaone4, "glm4": glm4,
	"granite": granite, "hunyuan-dense": hunyuan, "minicpm": miniCPM, "nemotron": nemotron, "olmo": olmo, "olmoe": olmoe, "phi2": phi,
	"qwen2moe": qwen2moe, "seed_oss": seedOSS, "smollm3": smollm3, "stablelm": stableLM,
}

// Sources returns where a folder would keep the matrices of a model. The names are those of the family's class for text.
// An architecture without a family is refused by name.
func Sources(base *gguf.File) ([]Source, error) {
	arch, _, err := base.String("general.architecture")
	if err != nil {
		return nil, err
	}
	family, ok := byArch[arch]
	if !ok {
		return nil, fmt.Errorf("hf: the names that folders of architecture %q use are not known; they are for %s", arch, strings.Join(slices.Sorted(maps.Keys(byArch)), ", "))
	}
	count := func(key string) int { n, _, _ := base.Uint(arch + "." + key); return n }
	if arch == "llama" && count("expert_count") > 0 {
		family = mixtral
	}
	if n := count("expert_count") * count("block_count"); n > maxSources {
		return nil, fmt.Errorf("hf: architecture %q has %d experts in all layers; at most %d are supported", arch, n, maxSources)
	}
	b := &builder{&decoder.Builder{Builder: folder.New(arch)}}
	b.Sources = &[]Source{}
	b.Config = &folder.Config{Path: arch + ": ", Values: map[string]json.RawMessage{}, Err: new(error)}
	setting := func(value any, keys ...string) {
		text, _ := json.Marshal(value) // numbers and truth values have no error
		for _, k := range keys {
			b.Config.Values[k] = text
		}
	}
	setting(count("block_count"), "num_hidden_layers", "n_layer")
	setting(count("embedding_length"), "hidden_size", "n_embd")
	setting(count("feed_forward_length"), "intermediate_size", "n_inner")
	setting(count("attention.head_count"), "num_attention_heads", "n_head")
	if n := count("attention.head_count_kv"); n > 0 {
		setting(n, "num_key_value_heads")
	}
	if n := count("attention.key_length"); n > 0 {
		setting(n, "head_dim")
	}
	setting(max(1, count("context_length")), "max_position_embeddings", "n_positions")
	setting(max(1, count("expert_count")), "num_experts", "num_local_experts")
	setting(max(1, count("expert_used_count")), "num_experts_per_tok")
	setting(max(1, count("expert_feed_forward_length")), "moe_intermediate_size")
	setting(max(1, count("attention.sliding_window")), "sliding_window")
	setting(true, "norm_topk_prob")
	setting(false, "use_sliding_window")
	_, untied := base.Tensor("output.weight")
	setting(!untied, "tie_word_embeddings")
	family(b)
	return *b.Sources, b.FirstError()
}

// maxSources bounds the experts of all layers.
const maxSources = 1 << 17
