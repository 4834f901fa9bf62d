package hf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/weights/tensor"
)

// TestRefused expects settings and tensors at odds with sense, with each other, or with what grove knows to
// be refused by name.
func TestRefused(t *testing.T) {
	set := func(key string, v any) func(*hftest.Folder) {
		return func(f *hftest.Folder) { f.Config[key] = v }
	}
	drop := func(key string) func(*hftest.Folder) {
		return func(f *hftest.Folder) { delete(f.Config, key) }
	}
	scaling := func(pairs ...any) func(*hftest.Folder) {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return set("rope_scaling", m)
	}
	reshape := func(name string, typ tensor.Type, shape ...int) func(*hftest.Folder) {
		return func(f *hftest.Folder) {
			v := tensor.View{Type: typ, Shape: shape}
			v.Data = make([]byte, v.Bytes())
			f.Tensors[name] = v
		}
	}
	const q = "model.layers.1.self_attn.q_proj.weight"
	tests := []struct {
		name, model string
		change      func(*hftest.Folder)
		want        string
	}{
		{"no family", "llama-tied", drop("architectures"), "config.json: architectures names 0 classes; it must name 1"},
		{"CodeT5+ of 2 B", "llama-tied", set("architectures", []string{"CodeT5pEncoderDecoderModel"}),
			`config.json: class CodeT5pEncoderDecoderModel is not supported: it is CodeT5+ of 2 B parameters or more, a CodeGen some of whose layers read another one; which they are, its own code alone says`},
		{"two families", "llama-tied", set("architectures", []string{"A", "B"}), "config.json: architectures names 2 classes; it must name 1"},
		{"family of another kind", "llama-tied", set("architectures", 7), "config.json: architectures: want an array of names, found 7"},
		{"quantised elsewhere", "llama-tied", set("quantization_config", map[string]any{"quant_method": "gptq"}), `config.json: quantization_config.quant_method is "gptq"; it must be mxfp4 or missing`},
		{"width missing", "llama-tied", drop("hidden_size"), "config.json: hidden_size is missing"},
		{"width text", "llama-tied", set("hidden_size", "wide"), `config.json: hidden_size: want an integer, found "wide"`},
		{"width negative", "llama-tied", set("hidden_size", -64), "config.json: hidden_size is -64; it must be an integer from 1 to 1048576"},
		{"width a fraction", "llama-tied", set("hidden_size", 64.5), "config.json: hidden_size is 64.5; it must be an integer from 1 to 1048576"},
		{"layers 2^40", "llama-tied", set("num_hidden_layers", 1<<40), "config.json: num_hidden_layers is 1099511627776; it must be an integer from 1 to 1024"},
		{"a layer too many", "llama-tied", set("num_hidden_layers", 3), `model.layers.2.input_layernorm.weight: the tensor is missing`},
		{"a layer too few", "llama-tied", set("num_hidden_layers", 1), `model.layers.1.input_layernorm.weight: a model of this family has no such tensor`},
		{"heads 0", "llama-tied", set("num_attention_heads", 0), "config.json: num_attention_heads is 0; it must be an integer from 1 to 4096"},
		{"other heads", "llama-tied", set("num_attention_heads", 8), `model.layers.0.self_attn.q_proj.weight: shape is [64 64]; config.json asks for [128 64]`},
		{"odd heads", "llama-tied", func(f *hftest.Folder) {
			f.Config["head_dim"], f.Config["num_attention_heads"], f.Config["num_key_value_heads"] = 1, 64, 64
			reshape("model.layers.0.self_attn.k_proj.weight", tensor.F32, 64, 64)(f)
		}, `model.layers.0.self_attn.q_proj.weight: heads have 1 values; the number must be even`},
		{"context 0", "llama-tied", set("max_position_embeddings", 0), "config.json: max_position_embeddings is 0; it must be an integer from 1 to 16777216"},
		{"epsilon", "llama-tied", set("rms_norm_eps", 2), "config.json: rms_norm_eps is 2; it must be from 0 to 1"},
		{"activation", "llama-tied", set("hidden_act", "relu"), `config.json: hidden_act is "relu"; it must be one of ["silu"]`},
		{"rotation base", "llama-tied", set("rope_theta", 0), "config.json: rope_theta is 0; it must be from 1 to 3.4028234663852886e+38"},
		{"rotation kind", "llama-tied", scaling("rope_type", "dynamic", "factor", 2), `config.json: rope_scaling.type is "dynamic"; it must be default, linear, yarn or llama3`},
		{"rotation without a factor", "llama-tied", scaling("type", "linear"), "config.json: rope_scaling.factor is missing"},
		{"rotation that is a list", "llama-tied", set("rope_scaling", []int{1}), "config.json: rope_scaling: want an object, found [1]"},
		{"bands reversed", "llama-tied", scaling("rope_type", "llama3", "low_freq_factor", 4, "high_freq_factor", 1), "config.json: rope_scaling.low_freq_factor 4 is not below high_freq_factor 1"},
		{"YaRN of another strength", "llama-tied", scaling("type", "yarn", "factor", 4, "attention_factor", 3), "config.json: rope_scaling.attention_factor 3 is not supported; YaRN with factor 4 has 1.138629436111989"},
		{"YaRN with mscale", "llama-tied", scaling("type", "yarn", "factor", 4, "mscale", 1), "config.json: rope_scaling.mscale is not supported"},
		{"untied without a head", "llama-tied", set("tie_word_embeddings", false), `lm_head.weight: the tensor is missing`},
		{"integers", "llama-tied", reshape(q, tensor.I32, 64, 64), `model.layers.1.self_attn.q_proj.weight: type is I32; it must be F32, F16 or BF16`},
		{"biases where none are known", "llama-tied", reshape("model.layers.0.mlp.up_proj.bias", tensor.F32, 96), `model.layers.0.mlp.up_proj.bias: a model of this family has no such tensor`},
		{"window of Qwen", "qwen2", set("use_sliding_window", true), "config.json: use_sliding_window is not supported"},
		{"more experts used", "mixtral", set("num_experts_per_tok", 5), "config.json: num_experts_per_tok is 5; it must be an integer from 1 to 4"},
		{"experts missing", "mixtral", set("num_local_experts", 5), `model.layers.0.block_sparse_moe.gate.weight: shape is [4 64]; config.json asks for [5 64]`},
		{"experts of two types", "mixtral", reshape("model.layers.0.block_sparse_moe.experts.2.w1.weight", tensor.F16, 96, 64),
			`model.layers.0.block_sparse_moe.experts.2.w1.weight: type is F16; it must be that of expert 0 (F32)`},
		{"experts not weighed to one", "qwen3moe", set("norm_topk_prob", false), "config.json: norm_topk_prob must be true"},
		{"dense layers", "qwen3moe", set("mlp_only_layers", []int{0}), "config.json: layers without experts (mlp_only_layers, decoder_sparse_step) are not supported"},
		{"scale of queries", "gemma2", set("query_pre_attn_scalar", 5), "config.json: query_pre_attn_scalar 5 is not supported; a model of this shape has 16"},
		{"kinds of layers", "gemma2", set("layer_types", []string{"full_attention"}), "config.json: layer_types has 1 entries, there are 26 layers"},
		{"windows elsewhere", "gemma3", set("layer_types", []string{"sliding_attention", "full_attention", "", "", "", "", ""}),
			`config.json: layer_types has "full_attention" for layer 1; this family has "sliding_attention" there`},
		{"another pattern", "gemma3", set("sliding_window_pattern", 2), "config.json: sliding_window_pattern is 2; it must be 6"},
		{"capped Gemma 3", "gemma3", set("final_logit_softcapping", 30), "config.json: final_logit_softcapping is not supported"},
		{"long factors missing", "phi3", scaling("type", "longrope"), "config.json: rope_scaling.long_factor is missing"},
		{"long factors too few", "phi3", scaling("type", "longrope", "long_factor", []int{1}), "config.json: rope_scaling.long_factor has length 1; it must be 8"},
		{"rotation of Phi 3", "phi3", scaling("type", "linear"), `config.json: rope_scaling.type is "linear"; it must be default, longrope or su`},
		{"scores that are not scaled", "gpt2", set("scale_attn_weights", false), "config.json: scale_attn_weights must be true"},
		{"ids beyond the vocabulary", "llama-tied", set("eos_token_id", []int{1, 320}), "config.json: eos_token_id names token 320; the model has 320"},
		{"id -1", "llama-tied", set("eos_token_id", -1), "config.json: eos_token_id is -1; it must be an integer from 0 to 319"},
		{"four ends", "llama-tied", set("eos_token_id", []int{1, 2, 3}), "generation_config.json: eos_token_id, or that of config.json, names more than three tokens, which GGUF cannot"},
		{"a template that is a number", "llama-tied", func(f *hftest.Folder) { f.Names["chat_template"] = 7 },
			"tokenizer_config.json: chat_template: want a text or a list of names and templates, found 7"},
		{"a template without a name", "llama-tied", func(f *hftest.Folder) { f.Names["chat_template"] = []map[string]string{{"template": "x"}} },
			`tokenizer_config.json: chat_template: the name "" is empty or there twice`},
		{"tokenizer of another kind", "llama-tied", func(f *hftest.Folder) { f.Tokenizer["model"] = map[string]any{"type": "Magic"} },
			`tokenizer: tokenizer.json: model "Magic" is not supported; known: BPE, Unigram, WordPiece`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := folderOf(t, golden(t, tt.model), tt.change)
			f, err := Open(dir)
			if f != nil || err == nil {
				t.Fatalf("the folder was opened, error %v; want %s", err, tt.want)
			}
			if got := strings.ReplaceAll(err.Error(), dir, "DIR"); got != "hf: DIR/"+tt.want && got != "hf: DIR: "+tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestFiles covers files that are missing, broken or of other forms.
func TestFiles(t *testing.T) {
	tests := []struct {
		name, file, content, want string
	}{
		{"no config", "config.json", "", "hf: open DIR/config.json: no such file or directory"},
		{"config no object", "config.json", "[]", `hf: DIR/config.json: the file begins with "[]"; it must be a JSON object`},
		{"config null", "config.json", "null", `hf: DIR/config.json: the file begins with "null"; it must be a JSON object`},
		{"config empty", "config.json", " ", `hf: DIR/config.json: the file begins with ""; it must be a JSON object`},
		{"config without settings", "config.json", "{}", "hf: DIR/config.json: architectures names 0 classes; it must name 1"},
		{"config a pointer", "config.json", "version https://git-lfs.github.com/spec/v1\noid", `hf: DIR/config.json: the file begins with "version https://git-"; it must be a JSON object; it looks like a pointer of Git LFS: git lfs pull fetches the file`},
		{"config a web page", "config.json", "<!DOCTYPE html>", `hf: DIR/config.json: the file begins with "<!DOCTYPE html>"; it must be a JSON object; it looks like a web page: download the file itself`},
		{"config broken", "config.json", `{"a" 1}`, "hf: DIR/config.json: invalid character '1' after object key: the file is broken at byte 6; download it again"},
		{"config cut off", "config.json", `{"a":`, "hf: DIR/config.json: unexpected end of JSON input: the file is cut off at 5 bytes; download it again"},
		{"config deep", "config.json", `{"a":` + strings.Repeat("[", 1<<20), "hf: DIR/config.json: invalid character '[' exceeded max depth: the file is broken at byte 10005; download it again"},
		{"config too long", "config.json", strings.Repeat(" ", MaxJSON+1), "hf: read DIR/config.json: the file has more than 67108864 bytes"},
		{"no weights", "model.safetensors", "", "safetensors: open DIR/model.safetensors: no such file or directory"},
		{"broken weights", "model.safetensors", "x", "safetensors: DIR/model.safetensors: 1 bytes are too few for the header's length; the file is cut off: download it again (at byte 0)"},
		{"broken index", "model.safetensors.index.json", "{}", "safetensors: DIR/model.safetensors.index.json: weight_map is missing or empty (at byte 2)"},
		{"missing shard", "model.safetensors.index.json", `{"weight_map":{"a":"b"}}`,
			"safetensors: open DIR/b: no such file or directory: a shard that model.safetensors.index.json lists"},
		{"no tokenizer", "tokenizer.json", "", "hf: open DIR/tokenizer.json: no such file or directory"},
		{"tokenizer cut off", "tokenizer.json", `{"model":`, "hf: DIR: tokenizer: tokenizer.json: unexpected end of JSON input: the file is cut off at 9 bytes; download it again"},
		{"tokenizer of other kinds", "tokenizer.json", `{"model":{}, "added_tokens":"x"}`, "hf: DIR: tokenizer: tokenizer.json: added_tokens is of a wrong kind, string (at byte 31)"},
		{"broken names", "tokenizer_config.json", "7", `hf: DIR/tokenizer_config.json: the file begins with "7"; it must be a JSON object`},
		{"weights a pointer", "model.safetensors", "version https://git-lfs.github.com/spec/v1\noid", "safetensors: DIR/model.safetensors: header of 2336927755350992246 bytes is longer than 104857600; it looks like a pointer of Git LFS: git lfs pull fetches the file (at byte 0)"},
		{"temperature a text", "generation_config.json", `{"temperature":"hot"}`, `hf: DIR/generation_config.json: temperature: want a number, found "hot"`},
		{"temperature beyond numbers", "generation_config.json", `{"temperature":1e999}`, "hf: DIR/generation_config.json: temperature: want a number, found 1e999"},
		{"top-k a fraction", "generation_config.json", `{"top_k":1.5}`, "hf: DIR/generation_config.json: top_k is 1.5; it must be an integer from -2147483648 to 2147483647"},
		{"sampling a number", "generation_config.json", `{"do_sample":1}`, "hf: DIR/generation_config.json: do_sample: want true or false, found 1"},
		{"broken generation", "generation_config.json", "7", `hf: DIR/generation_config.json: the file begins with "7"; it must be a JSON object`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := folderOf(t, golden(t, "llama-tied"), func(*hftest.Folder) {})
			path := filepath.Join(dir, tt.file)
			if tt.content == "" {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(path, []byte(tt.content), 0o644); err != nil {
				t.Fatal(err)
			}
			f, err := Open(dir)
			if f != nil || err == nil {
				t.Fatalf("the folder was opened; want %s", tt.want)
			}
			if got := strings.ReplaceAll(err.Error(), dir, "DIR"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	t.Run("older weights", func(t *testing.T) {
		dir := folderOf(t, golden(t, "llama-tied"), func(*hftest.Folder) {})
		if err := os.Rename(filepath.Join(dir, "model.safetensors"), filepath.Join(dir, "pytorch_model.bin")); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.HasSuffix(err.Error(), "pytorch_model.bin is not supported; weights must be in safetensors files") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := os.WriteFile(path, []byte("GGUF"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.HasSuffix(err.Error(), " is a file; a model of Hugging Face is a folder with config.json") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a folder that is none", func(t *testing.T) {
		if _, err := OpenModel(t.TempDir()); err == nil || !strings.HasSuffix(err.Error(), " is a folder without config.json") {
			t.Errorf("got %v", err)
		}
	})
}

// FuzzConfig: any config.json opens or is refused; nothing panics.
func FuzzConfig(f *testing.F) {
	f.Add(`{"architectures":["LlamaForCausalLM"],"hidden_size":64,"num_hidden_layers":1,"num_attention_heads":4,"intermediate_size":96,"max_position_embeddings":8}`)
	for class := range byClass {
		f.Add(`{"architectures":["` + class + `"],"hidden_size":64,"num_hidden_layers":1,"num_attention_heads":4,"intermediate_size":96,"max_position_embeddings":8,` +
			`"num_local_experts":2,"num_experts_per_tok":1,"num_experts":2,"moe_intermediate_size":8,"norm_topk_prob":true,"sliding_window":4,` +
			`"rope_scaling":{"type":"yarn","factor":2},"n_layer":1,"n_embd":64,"n_head":2,"n_positions":8,"eos_token_id":[1,2]}`)
	}
	dir := f.TempDir()
	vector := tensor.View{Type: tensor.F32, Shape: []int{64}, Data: make([]byte, 256)}
	matrix := tensor.View{Type: tensor.F32, Shape: []int{8, 64}, Data: make([]byte, 2048)}
	tensors := map[string]tensor.View{"model.norm.weight": vector, "model.embed_tokens.weight": matrix, "lm_head.weight": matrix}
	names := []string{"model.norm.weight", "model.embed_tokens.weight", "lm_head.weight"}
	if err := hftest.WriteTensors(filepath.Join(dir, "model.safetensors"), tensors, names); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(filepath.Join(dir, ConfigName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if m, err := Open(dir); err == nil {
			m.Close()
		}
	})
}
