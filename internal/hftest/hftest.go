// Package hftest writes models as Hugging Face would publish them, for tests: the inverse of package hf,
// made from its description alone.
package hftest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Folder is a model on its way to files; what is in it may be changed before it is written.
type Folder struct {
	Config    map[string]any
	Tensors   map[string]tensor.View
	Tokenizer map[string]any
	Names     map[string]any // tokenizer_config.json
	Shards    int            // 0: one file without an index
}

// classes are the names of families in config.json, by architecture.
var classes = map[string]string{
	"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "qwen3moe": "Qwen3MoeForCausalLM",
	"gemma": "GemmaForCausalLM", "gemma2": "Gemma2ForCausalLM", "gemma3": "Gemma3ForCausalLM", "phi3": "Phi3ForCausalLM",
	"olmo2": "Olmo2ForCausalLM", "starcoder2": "Starcoder2ForCausalLM", "gpt2": "GPT2LMHeadModel",
}

// From takes a model of float tensors apart.
func From(f *gguf.File) (*Folder, error) {
	m := source{f: f}
	m.arch = m.text("general.architecture")
	class, ok := classes[m.arch]
	other, known := families[m.arch]
	if known {
		class = other.class
	}
	if !ok && !known {
		return nil, fmt.Errorf("hftest: architecture %q is not known", m.arch)
	}
	if m.count("expert_count") > 0 && m.arch == "llama" {
		class = "MixtralForCausalLM"
	}
	out := &Folder{Config: m.config(class), Tensors: map[string]tensor.View{}}
	out.Tokenizer, out.Names = m.tokenizer()
	for _, t := range f.Tensors {
		if err := m.tensor(out.Tensors, t); err != nil {
			return nil, err
		}
	}
	if m.arch == "apertus" {
		m.numbers(out.Tensors)
	}
	return out, nil
}

// Vocabulary makes the tokenizer's files of a model's byte-level vocabulary.
func Vocabulary(f *gguf.File) (tokenizer, names map[string]any) { return source{f: f}.tokenizer() }

type source struct {
	f    *gguf.File
	arch string
}

func (m source) text(key string) string { s, _, _ := m.f.String(key); return s }

func (m source) count(key string) int { n, _, _ := m.f.Uint(m.arch + "." + key); return n }

func (m source) float(key string) float64 { x, _, _ := m.f.Float(m.arch + "." + key); return x }

// config makes config.json.
func (m source) config(class string) map[string]any {
	_, untied := m.f.Tensor("output.weight")
	c := map[string]any{
		"architectures": []string{class}, "hidden_act": "silu", "tie_word_embeddings": !untied,
		"max_position_embeddings": m.count("context_length"), "hidden_size": m.count("embedding_length"),
		"num_hidden_layers": m.count("block_count"), "intermediate_size": m.count("feed_forward_length"),
		"num_attention_heads": m.count("attention.head_count"), "num_key_value_heads": m.count("attention.head_count_kv"),
		"head_dim": m.size(), "rope_theta": m.float("rope.freq_base"), "rope_scaling": nil,
		"rms_norm_eps": m.float("attention.layer_norm_rms_epsilon"),
	}
	if c["rope_theta"] == 0.0 {
		c["rope_theta"] = 10000.0
	}
	if n := m.count("expert_count"); n > 0 {
		c["num_local_experts"], c["num_experts_per_tok"] = n, m.count("expert_used_count")
	}
	if n := m.count("attention.sliding_window"); n > 0 {
		c["sliding_window"] = n
	}
	if config := families[m.arch].config; config != nil {
		config(m, c)
	}
	switch m.arch {
	case "qwen3moe":
		c["num_experts"], c["moe_intermediate_size"], c["norm_topk_prob"] = c["num_local_experts"], m.count("expert_feed_forward_length"), true
		delete(c, "num_local_experts")
	case "gemma", "gemma2", "gemma3":
		delete(c, "hidden_act")
		c["hidden_activation"] = "gelu_pytorch_tanh"
		if m.arch == "gemma2" {
			c["attn_logit_softcapping"], c["final_logit_softcapping"] = m.float("attn_logit_softcapping"), m.float("final_logit_softcapping")
		}
	case "phi3":
		c["original_max_position_embeddings"] = m.count("rope.scaling.original_context_length")
	case "starcoder2":
		c["hidden_act"], c["norm_epsilon"] = "gelu_pytorch_tanh", m.float("attention.layer_norm_epsilon")
	case "gpt2":
		return map[string]any{
			"architectures": []string{class}, "activation_function": "gelu_new", "n_layer": m.count("block_count"),
			"n_embd": m.count("embedding_length"), "n_head": m.count("attention.head_count"), "n_positions": m.count("context_length"),
			"n_inner": m.count("feed_forward_length"), "layer_norm_epsilon": m.float("attention.layer_norm_epsilon"),
			"tie_word_embeddings": !untied,
		}
	}
	return c
}

// names are the parts of a layer as Hugging Face has them, for most families.
var names = map[string]string{
	"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
	"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
	"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
	"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "ffn_gate_inp": "mlp.gate",
	"ffn_gate_exps": "mlp.experts.%d.gate_proj", "ffn_up_exps": "mlp.experts.%d.up_proj", "ffn_down_exps": "mlp.experts.%d.down_proj",
}

// special are those in which a family differs.
var special = map[string]map[string]string{
	"llama": {
		"ffn_gate_inp": "block_sparse_moe.gate", "ffn_gate_exps": "block_sparse_moe.experts.%d.w1",
		"ffn_up_exps": "block_sparse_moe.experts.%d.w3", "ffn_down_exps": "block_sparse_moe.experts.%d.w2",
	},
	"gemma2": gemmaNorms, "gemma3": gemmaNorms,
	"olmo2":      {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"},
	"phi3":       {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"},
	"starcoder2": {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
	"gpt2": {
		"attn_norm": "ln_1", "ffn_norm": "ln_2", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj",
		"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj",
	},
}

var gemmaNorms = map[string]string{
	"post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
}

// biases are the numbers that join the choice of experts.
var biases = map[string]string{
	"glm4moe": "mlp.gate.e_score_correction_bias", "dots1": "mlp.gate.e_score_correction_bias", "deepseek2": "mlp.gate.e_score_correction_bias",
	"bailingmoe2": "mlp.gate.expert_bias", "minimax-m2": "block_sparse_moe.e_score_correction_bias",
}

// ends are the tensors outside the layers.
var ends = map[string]string{
	"token_embd.weight": "model.embed_tokens.weight", "output.weight": "lm_head.weight",
	"output_norm.weight": "model.norm.weight", "output_norm.bias": "model.norm.bias",
}

var gpt2Ends = map[string]string{
	"token_embd.weight": "wte.weight", "output.weight": "lm_head.weight", "position_embd.weight": "wpe.weight",
	"output_norm.weight": "ln_f.weight", "output_norm.bias": "ln_f.bias",
}

// tensor adds the tensors that t was made of.
func (m source) tensor(out map[string]tensor.View, t tensor.View) error {
	t.Data = slices.Clone(t.Data)
	if strings.HasPrefix(m.arch, "gemma") && strings.HasSuffix(t.Name, "_norm.weight") {
		SubtractOne(t.Data)
	}
	other := families[m.arch]
	root, table := "model.layers.", ends
	if other.root != "" {
		root = other.root
	}
	if other.ends != nil {
		table = other.ends
	}
	if m.arch == "gpt2" {
		root, table = "h.", gpt2Ends
	}
	var layer int
	if n, _ := fmt.Sscanf(t.Name, "blk.%d.", &layer); n == 0 {
		name, ok := table[t.Name]
		if !ok {
			return fmt.Errorf("hftest: tensor %q is not known", t.Name)
		}
		if m.arch == "nemotron" && t.Name == "output_norm.weight" {
			SubtractOne(t.Data)
		}
		out[name] = t
		return nil
	}
	part, kind, _ := strings.Cut(strings.TrimPrefix(t.Name, fmt.Sprintf("blk.%d.", layer)), ".")
	if other.split != nil && other.split(m, out, layer, part, kind, t) {
		return nil
	}
	name, ok := special[m.arch][part]
	if !ok {
		name, ok = other.names[part]
	}
	if !ok {
		name, ok = names[part]
	}
	if !ok && part != "exp_probs_b" {
		return fmt.Errorf("hftest: tensor %q is not known", t.Name)
	}
	name = fmt.Sprintf("%s%d.%s.%s", root, layer, name, kind)
	if bias, ok := biases[m.arch]; ok && part == "exp_probs_b" {
		name = fmt.Sprintf("%s%d.%s", root, layer, bias)
	}
	switch {
	case len(t.Shape) == 3:
		m.unstack(out, name, t)
		return nil
	case m.arch == "gpt2" && len(t.Shape) == 2:
		t = transpose(t)
	case (m.arch == "llama" || other.turn) && (part == "attn_q" || part == "attn_k"):
		turnBack(&t, m.size())
	}
	out[name] = t
	return nil
}

func (m source) unstack(out map[string]tensor.View, name string, t tensor.View) {
	size := len(t.Data) / t.Shape[0]
	for e := range t.Shape[0] {
		out[fmt.Sprintf(name, e)] = tensor.View{Type: t.Type, Shape: t.Shape[1:], Data: t.Data[e*size:][:size]}
	}
}

func transpose(t tensor.View) tensor.View {
	rows, cols := t.Shape[0], t.Shape[1]
	size := len(t.Data) / (rows * cols)
	data := make([]byte, 0, len(t.Data))
	for c := range cols {
		for r := range rows {
			data = append(data, t.Data[(r*cols+c)*size:][:size]...)
		}
	}
	return tensor.View{Type: t.Type, Shape: []int{cols, rows}, Data: data}
}

// turnBack gives each head the first values of its pairs, then the second ones.
func turnBack(t *tensor.View, size int) {
	row := len(t.Data) / t.Shape[0]
	var data []byte
	for head := 0; head < t.Shape[0]; head += size {
		for half := range 2 {
			for pair := range size / 2 {
				data = append(data, t.Data[(head+2*pair+half)*row:][:row]...)
			}
		}
	}
	t.Data = data
}

// tokenizer makes tokenizer.json and tokenizer_config.json of a byte-level vocabulary.
func (m source) tokenizer() (file, names map[string]any) {
	tokens, _, _ := m.f.Strings("tokenizer.ggml.tokens")
	types, _, _ := m.f.Ints("tokenizer.ggml.token_type")
	merges, _, _ := m.f.Strings("tokenizer.ggml.merges")
	vocab, added := map[string]int{}, []map[string]any{}
	for i, text := range tokens {
		if i < len(types) && types[i] != 1 {
			added = append(added, map[string]any{
				"id": i, "content": text, "special": types[i] == 3,
				"single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
			})
		} else {
			vocab[text] = i
		}
	}
	names = map[string]any{}
	for _, key := range []string{"bos", "eos"} {
		if id, ok, _ := m.f.Uint("tokenizer.ggml." + key + "_token_id"); ok && id < len(tokens) {
			names[key+"_token"] = tokens[id]
		}
	}
	var post any
	if bos, ok := names["bos_token"].(string); ok { // which the pre-tokenizer llama-bpe stands for in GGUF
		first := map[string]any{"SpecialToken": map[string]any{"id": bos, "type_id": 0}}
		text := map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}}
		id, _, _ := m.f.Uint("tokenizer.ggml.bos_token_id")
		post = map[string]any{
			"type": "TemplateProcessing", "single": []any{first, text}, "pair": []any{first, text},
			"special_tokens": map[string]any{bos: map[string]any{"id": bos, "ids": []int{id}, "tokens": []string{bos}}},
		}
	}
	const llama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	return map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": nil,
		"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{
			map[string]any{"type": "Split", "pattern": map[string]any{"Regex": llama3}, "behavior": "Isolated", "invert": false},
			map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
		}},
		"post_processor": post,
		"decoder":        map[string]any{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
		"model": map[string]any{
			"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": true, "vocab": vocab, "merges": merges,
		},
	}, names
}

// Write writes the folder's files to dir, which exists.
func (f *Folder) Write(dir string) error {
	for name, content := range map[string]any{
		"config.json": f.Config, "tokenizer.json": f.Tokenizer, "tokenizer_config.json": f.Names,
	} {
		if err := writeJSON(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	sorted := slices.Sorted(maps.Keys(f.Tensors))
	if f.Shards == 0 {
		return WriteTensors(filepath.Join(dir, "model.safetensors"), f.Tensors, sorted)
	}
	files := map[string]string{}
	for s := range f.Shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", s+1, f.Shards)
		var part []string
		for i := s; i < len(sorted); i += f.Shards {
			part = append(part, sorted[i])
			files[sorted[i]] = name
		}
		if err := WriteTensors(filepath.Join(dir, name), f.Tensors, part); err != nil {
			return err
		}
	}
	return writeJSON(filepath.Join(dir, "model.safetensors.index.json"), map[string]any{"metadata": map[string]any{}, "weight_map": files})
}

func writeJSON(path string, content any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// WriteTensors writes the named tensors as a safetensors file; I8 stands for bytes without a sign.
func WriteTensors(path string, tensors map[string]tensor.View, names []string) error {
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var data []byte
	for _, name := range names {
		t := tensors[name]
		dtype := t.Type.String()
		if t.Type == tensor.I8 {
			dtype = "U8"
		}
		header[name] = map[string]any{"dtype": dtype, "shape": t.Shape, "data_offsets": []int{len(data), len(data) + len(t.Data)}}
		data = append(data, t.Data...)
	}
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	return os.WriteFile(path, append(file, data...), 0o644)
}
