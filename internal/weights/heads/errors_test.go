package heads

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

type head = hftest.Head

// zeros makes a tensor of a type whose elements take size bytes.
func zeros(typ string, size int, shape ...int) hftest.Raw {
	n := size
	for _, d := range shape {
		n *= d
	}
	return hftest.Raw{Type: typ, Shape: shape, Data: make([]byte, n)}
}

func set(key string, v any) func(*head) { return func(h *head) { h.Config[key] = v } }

func without(names ...string) func(*head) {
	return func(h *head) {
		for _, name := range names {
			delete(h.Tensors, name)
			delete(h.Config, name)
		}
	}
}

func with(name string, t hftest.Raw) func(*head) { return func(h *head) { h.Tensors[name] = t } }

// entry changes a number of d2t.
func entry(i int, offset int64) func(*head) {
	return func(h *head) { binary.LittleEndian.PutUint64(h.Tensors["d2t"].Data[8*i:], uint64(offset)) }
}

// both makes two changes.
func both(a, b func(*head)) func(*head) { return func(h *head) { a(h); b(h) } }

// TestRefused expects heads that contradict themselves or that grove cannot run to be refused by name.
func TestRefused(t *testing.T) {
	const q = "midlayer.self_attn.q_proj.weight"
	tests := []struct {
		name, layout string
		change       func(*head)
		want         string
	}{
		{"matrices missing", "medusa", without("medusa_head.1.0.linear.weight", "medusa_head.2.1.weight"), "tensors are missing: medusa_head.1.0.linear.weight, medusa_head.2.1.weight"},
		{"all of EAGLE-3 missing", "eagle3", without("fc.weight", q, "norm.weight"), "tensors are missing: fc.weight, midlayer.self_attn.q_proj.weight, norm.weight"},
		{"a norm missing", "kangaroo", without("norm.weight", "layers.0.input_layernorm.weight"), "tensors are missing: layers.0.input_layernorm.weight, norm.weight"},
		{"a residual missing", "hydra", without("hydra_mlp.1.0.res_connection.bias"), "tensors are missing: hydra_mlp.1.0.res_connection.bias"},
		{"leftover", "eagle", both(with("layers.0.mlp.router.weight", zeros("F32", 4, 2, 2)), with("a b", zeros("F32", 4, 2))),
			`eagle heads have no such tensors: "a b", layers.0.mlp.router.weight`},
		{"a model's tensor", "medusa-old", with("model.norm.weight", zeros("F32", 4, 64)), "medusa heads have no such tensors: model.norm.weight"},
		{"shapes apart", "medusa", with("medusa_head.1.0.linear.weight", zeros("F32", 4, 32, 32)),
			"medusa_head.1.0.linear.weight: shape is [32 32]; the other tensors and the settings ask for [64 64]"},
		{"hydra without columns for tokens", "hydra", with("hydra_mlp.1.0.linear.weight", zeros("F32", 4, 64, 128)),
			"hydra_mlp.1.0.linear.weight: shape is [64 128]; the other tensors and the settings ask for [64 192]"},
		{"fc of two states", "eagle", with("fc.weight", zeros("F32", 4, 64, 256)), "fc.weight: shape is [64 256]; the other tensors and the settings ask for [64 128]"},
		{"fc of two taps", "eagle3", with("fc.weight", zeros("F32", 4, 64, 128)), "fc.weight: shape is [64 128]; a head of width 64 that reads three states of its width has [64 192]"},
		{"integers", "eagle3", with(q, zeros("I8", 1, 64, 128)), q + ": type is I8; it must be F32, F16 or BF16"},
		{"no values", "kangaroo", both(with("layers.0.self_attn.o_proj.weight", zeros("F32", 4, 0, 64)), without("hidden_size")), "the width is 0 by the tensors' shapes and config.json; it must be from 1 to 1048576"},
		{"width of config.json", "eagle", set("hidden_size", 32), "hidden_size is 32 in config.json; the tensors have width 64"},
		{"feed-forward of config.json", "eagle3", set("intermediate_size", 95), "midlayer.mlp.gate_proj.weight: it has 96 rows; intermediate_size is 95 in config.json"},
		{"another target's width", "eagle3", set("target_hidden_size", 128), "target_hidden_size is 128 in config.json, and the head is 64 wide; heads of another width than their target are not supported"},
		{"heads that do not divide", "eagle", set("num_attention_heads", 3), "config.json: num_key_value_heads is 2; it must divide num_attention_heads (3)"},
		{"heads missing", "eagle", without("num_attention_heads"), "config.json: num_attention_heads is missing"},
		{"heads of Hydra++ missing", "hydra++", without("num_attention_heads"),
			"config.json does not say num_attention_heads, for the prefix layer; name the target, whose layer it has the shape of, or add the key"},
		{"Chimera of two of three pickles", "chimera", without("chimera_head.0.0.weight", "chimera_head.1.0.weight"),
			"no tensor chimera_head.0.0.weight or chimera_head.0.mix.weight: the heads are missing, which the authors keep in chimera_head.pt; take the tensors out of all three pickles at once"},
		{"Chimera of pairs", "chimera", both(with("trimlp.0.linear.weight", zeros("F32", 4, 128, 128)), with("trimlp.0.linear.bias", zeros("F32", 4, 128))),
			"trimlp.0.linear.weight: shape is [128 128]; the other tensors and the settings ask for [192 192]"},
		{"Chimera with a head of one state", "chimera", with("chimera_head.1.0.weight", zeros("F32", 4, 80, 64)),
			"chimera_head.1.0.weight: shape is [80 64]; the other tensors and the settings ask for [80 128]"},
		{"Chimera of both kinds of heads", "chimera", with("chimera_head.1.mix.weight", zeros("F32", 4, 64, 128)), "chimera heads have no such tensors: chimera_head.1.mix.weight"},
		{"heads of Chimera's layer missing", "chimera", without("num_attention_heads"),
			"config.json does not say num_attention_heads, for the prefix layer; name the target, whose layer it has the shape of, or add the key"},
		{"another activation", "eagle3", set("hidden_act", "relu"), `config.json: hidden_act is "relu"; it must be one of ["silu"]`},
		{"another Hydra", "hydra", set("hydra_head_arch", "cross-attn"), `config.json: hydra_head_arch is "cross-attn"; it must be one of ["mlp" "prefix-mlp"]`},
		{"Hydra that reads no tokens", "hydra", set("grounded_heads", false), "grounded_heads is false in config.json; grove's Hydra heads read the tokens before them"},
		{"Hydra of earlier states", "hydra", set("hidden_state_offset", 2), "hidden_state_offset is 2 in config.json; grove's Hydra heads read the state after the final norm, 0"},
		{"norm before fc", "eagle3-speculators", set("norm_before_fc", true), "norm_before_fc is true in config.json; EAGLE-3 heads with it are not supported"},
		{"normed output", "eagle3-speculators", set("norm_output", true), "norm_output is true in config.json; EAGLE-3 heads with it are not supported"},
		{"speculators of another kind", "eagle3-speculators", set("speculators_model_type", "eagle"), `speculators_model_type is "eagle" in config.json; eagle3, peagle, dflash, dflare and dspark are supported`},
		{"two taps", "eagle3-speculators", set("eagle_aux_hidden_state_layer_ids", []int{1, 2}),
			"config.json: eagle_aux_hidden_state_layer_ids is [1 2]; EAGLE-3 reads the states before 3 layers, each from 0 to 4096, no two the same"},
		{"a tap twice", "eagle3", set("eagle_config", map[string]any{"eagle_aux_hidden_state_layer_ids": []int{1, 1, 2}}),
			"config.json: eagle_config.eagle_aux_hidden_state_layer_ids is [1 1 2]; EAGLE-3 reads the states before 3 layers, each from 0 to 4096, no two the same"},
		{"FSPAD of two layers", "fspad", set("num_hidden_layers", 2), "the head has 2 layers; FSPAD's has 1"},
		{"feature sampling without a matrix", "fspad", without("fc.mlp.up_proj.weight", "fc.fc.weight"), "tensors are missing: fc.fc.weight, fc.mlp.up_proj.weight"},
		{"a last product of three widths", "fspad", with("layers.0.mlp.down_proj.weight", zeros("F32", 4, 192, 96)),
			"layers.0.mlp.down_proj.weight: shape is [192 96]; the other tensors and the settings ask for [64 96]"},
		{"windows", "peagle", func(h *head) {
			h.Config["transformer_layer_config"].(map[string]any)["layer_types"] = []string{"full_attention", "sliding_attention"}
		},
			"layer_types has sliding_attention in config.json; windows of EAGLE-3's and P-EAGLE's layers are not supported"},
		{"norms before fc", "peagle", set("fc_norm", true), "fc_norm is true in config.json; EAGLE-3 heads with it are not supported"},
		{"no mask token", "peagle", without("mask_token_id"), "config.json: mask_token_id is missing"},
		{"a mask token beyond", "peagle", set("mask_token_id", 80), "config.json: mask_token_id is 80; it must be an integer from 0 to 79"},
		{"no state of mask rows", "peagle", without("mask_hidden"), "tensors are missing: mask_hidden"},
		{"a state of mask rows of one place", "peagle", with("mask_hidden", zeros("F32", 4, 1, 1, 64)), "mask_hidden: shape is [1 1 64]; the other tensors and the settings ask for [1 1 192]"},
		{"no drafts", "peagle", set("speculators_config", map[string]any{"proposal_methods": []map[string]any{{"speculative_tokens": 0}}}),
			"config.json: speculators_config.speculative_tokens is 0; it must be from 2 to 64"},
		{"proposals of text", "peagle", set("speculators_config", map[string]any{"proposal_methods": "greedy"}),
			`config.json: speculators_config.proposal_methods: want an array of objects, found "greedy"`},
		{"fewer slots", "specblock", set("diffspec_draft_token_num", 3), "diffspec_draft_token_num is 3 in config.json; the head has queries for 4 slots"},
		{"more classes", "specblock", set("rank_classes", 5), "rank_classes is 5 in config.json; 4 are supported"},
		{"no product of neighbours", "specblock", without("shift_proj.0.weight"), "tensors are missing: shift_proj.0.weight"},
		{"a rank head of states alone", "specblock", with("rank_head.0.weight", zeros("F32", 4, 256, 64)), "rank_head.0.weight: shape is [256 64]; the other tensors and the settings ask for [256 79]"},
		{"no vocabulary", "specblock", without("d2t", "t2d"), "d2t is missing, which says for which tokens of the target the head's 24 are; it is published as vocab_mapping.pt: 'python3 lab/train/unpickle.py DIR/vocab_mapping.pt DIR/vocab_mapping.safetensors' takes it out of that"},
		{"exit layer 0", "kangaroo", set("exit_layer", 0), "config.json: exit_layer is 0; it must be an integer from 1 to 4096"},
		{"a first layer", "lora-drop", renamed("model.layers.1.lora_adapter.A.weight", "model.layers.0.lora_adapter.A.weight"), "model.layers.0.lora_adapter.A.weight: layer 0 cannot be substituted; 1 to 4096 can"},
		{"half of a layer", "lora-drop", without("model.layers.2.lora_adapter.B.weight"), "tensors are missing: model.layers.2.lora_adapter.B.weight"},
		{"no exit", "m2r2", without("exit_layer"), "config.json does not say exit_layer, the number of the target's layers that the matrices add to"},
		{"half a pair", "m2r2", without("blk.0.attn_q.lora_b.weight"), "tensors are missing: blk.0.attn_q.lora_b.weight"},
		{"another rank", "m2r2", set("r", 5), "blk.0.attn_q.lora_a.weight: shape is [4 64]; the other tensors and the settings ask for [5 64]"},
		{"two adapters", "kangaroo", set("num_hidden_layers", 2), "the adapter has 2 layers; Kangaroo's has 1"},
		{"head 64", "medusa-old", with("64.0.linear.bias", zeros("F32", 4, 64)), "64.0.linear.bias: number 64; at most 64 are supported, counted from 0"},
		{"head 00", "medusa", with("medusa_head.00.0.linear.bias", zeros("F32", 4, 64)), "medusa_head.00.0.linear.bias: number 00; at most 64 are supported, counted from 0"},
		{"head of 40 digits", "hydra", with("hydra_mlp."+strings.Repeat("9", 40)+".0.linear.bias", zeros("F32", 4, 64)),
			`hydra_mlp.` + strings.Repeat("9", 40) + `.0.linear.bias: number 99999999999999999999; at most 64 are supported, counted from 0`},
		{"Hydra without first blocks", "hydra", func(h *head) {
			for name := range h.Tensors {
				if strings.Contains(name, ".0.linear.") || strings.Contains(name, ".1.linear.") || strings.Contains(name, "res_") {
					delete(h.Tensors, name)
				}
			}
		}, "no tensor hydra_mlp.0.0.linear.weight or hydra_mlp.0.1.linear.weight: a head begins with one of them"},
		{"names of nothing", "medusa", func(h *head) { h.Tensors = map[string]hftest.Raw{"x": zeros("F32", 4, 1)} },
			"the tensors are of no drafting head that grove knows (1 tensors: x); it knows " + strings.Join(Families(), ", ")},
		{"Falcon without blocks", "falcon", without("k_mask"), "config.json: k_mask is missing"},
		{"Falcon of large blocks", "falcon", set("k_mask", 65), "config.json: k_mask is 65; it must be an integer from 1 to 64"},
		{"more pairs than a block", "falcon", set("lstm_pairs", 4), "config.json: lstm_pairs is 4; it must be an integer from 1 to 3"},
		{"an LSTM of states alone", "falcon", with("lstm.weight_ih_l0", zeros("F32", 4, 256, 64)), "lstm.weight_ih_l0: shape is [256 64]; the other tensors and the settings ask for [256 128]"},
		{"an LSTM that carries nothing on", "falcon", without("lstm.weight_hh_l0", "lstm.weight_hh_l1"), "tensors are missing: lstm.weight_hh_l0, lstm.weight_hh_l1"},
		{"an LSTM of both directions", "falcon", with("lstm.weight_ih_l0_reverse", zeros("F32", 4, 256, 128)), "falcon-draft heads have no such tensors: lstm.weight_ih_l0_reverse"},
		{"an LSTM of five layers", "falcon", func(h *head) {
			for i := 2; i < 5; i++ {
				for _, name := range []string{"weight_ih", "weight_hh"} {
					h.Tensors[fmt.Sprintf("lstm.%s_l%d", name, i)] = zeros("F32", 4, 256, 64)
				}
			}
		}, "falcon-draft heads have no such tensors: lstm.weight_hh_l4, lstm.weight_ih_l4"},
		{"vectors of a LoRA adapter", "ppd", set("peft_type", "LORA"), `peft_type is "LORA" in adapter_config.json; vectors of parallel prompt decoding are of PROMPT_TUNING`},
		{"vectors of another width", "ppd", set("token_dim", 32), "token_dim is 32 in adapter_config.json; the vectors have 64 values"},
		{"fewer vectors than it says", "ppd", set("num_virtual_tokens", 4), "num_virtual_tokens is 4 in adapter_config.json; the file has 3 vectors"},
		{"two vectors of a place", "ppd", set("virtual_tokens_per_special_token", 3), "virtual_tokens_per_special_token is 3 in adapter_config.json; 1 is supported, a vector for each place"},
		{"vectors of several exits", "ppd", set("num_exits", 2), "num_exits is 2 in adapter_config.json; 1 is supported, the last layer"},
		{"vectors with a head", "ppd", set("use_custom_lm_head", true), "use_custom_lm_head is true in adapter_config.json; vectors that use the model's own head, without a prefix, are supported"},
		{"vectors that see none", "ppd", set("vt_attention_type", "encoder"), `vt_attention_type is "encoder" in adapter_config.json; vectors must see those before them (decoder, ensemble)`},
		{"many vectors", "ppd", both(with("prompt_embeddings", zeros("F32", 4, 17, 64)), set("num_virtual_tokens", 17)), "prompt_embeddings has 17 vectors; 1 to 16 are supported"},
		{"a vector that is none", "ppd", with("prompt_embeddings", zeros("F32", 4, 192)), "token_dim is 64 in adapter_config.json; the vectors have 0 values"},
		{"rows that begin nowhere", "transfer", without("transfer_layers"), "config.json does not say transfer_layers, the layer at which each row begins"},
		{"a row that begins below the one before", "transfer", set("transfer_layers", []int{2, 1}), "transfer_layers is [2 1]; of 2 matrices it has a layer each, none below the one before"},
		{"a row without a layer", "transfer", set("transfer_layers", []int{2}), "transfer_layers is [2]; of 2 matrices it has a layer each, none below the one before"},
		{"a layer below 0", "transfer", set("transfer_layers", []int{-1, 2}), "transfer_layers is [-1 2]; of 2 matrices it has a layer each, none below the one before"},
		{"a matrix of another width", "transfer", with("transfer.1.weight", zeros("F32", 4, 32, 32)), "transfer.1.weight: shape is [32 32]; the other tensors and the settings ask for [64 64]"},
		{"config.json of another kind", "eagle", set("rope_theta", "wide"), `config.json: rope_theta: want a number, found "wide"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { expect(t, tt.layout, nil, tt.change, tt.want) })
	}
}

// expect opens a head that must be refused.
func expect(t *testing.T, layout string, target *gguf.File, change func(*head), want string) {
	t.Helper()
	_, dir, _, err := open(t, layout, target, change)
	if err == nil {
		t.Fatalf("the head was opened; want %s", want)
	}
	got := strings.ReplaceAll(err.Error(), dir, "DIR")
	if got != "heads: DIR: "+want && got != "hf: DIR/"+want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestDraftVocabulary expects offsets that make no vocabulary to be refused.
func TestDraftVocabulary(t *testing.T) {
	tests := []struct {
		name   string
		change func(*head)
		want   string
	}{
		{"beyond the target", entry(23, 80), "d2t: entry 23 is 80, which makes it token 103 of the target; its tokens are 0 to 79 (entries are what is added to their own number)"},
		{"below 0", entry(0, -1), "d2t: entry 0 is -1, which makes it token -1 of the target; its tokens are 0 to 79 (entries are what is added to their own number)"},
		{"beyond all integers", entry(1, math.MaxInt64), fmt.Sprintf("d2t: entry 1 is %d, which makes it token 33554433 of the target; its tokens are 0 to 79 (entries are what is added to their own number)", math.MaxInt64)},
		{"descending", entry(3, 0), "d2t: entries 2 and 3 stand for tokens 5 and 3 of the target; they must ascend"},
		{"twice", entry(3, 2), "d2t: entries 2 and 3 stand for tokens 5 and 5 of the target; they must ascend"},
		{"another mask", func(h *head) { h.Tensors["t2d"].Data[0] = 1 }, "t2d: token 0 of the target is true there; d2t says false"},
		{"a mask of numbers", with("t2d", zeros("I8", 1, 80)), "t2d: type is I8 and shape [80]; it must be a vector of BOOL"},
		{"offsets of floats", with("d2t", zeros("F32", 4, 24)), "d2t: type is F32 and shape [24]; it must be a vector of I64 or I32"},
		{"too few", func(h *head) { h.SetDraft(80, []int{1, 2, 3}) }, "lm_head.weight has 24 rows, d2t 3 numbers, and draft_vocab_size is 24; they must be one number"},
		{"another size", set("draft_vocab_size", 23), "lm_head.weight has 24 rows, d2t 24 numbers, and draft_vocab_size is 23; they must be one number"},
		{"no output matrix", without("lm_head.weight"), "lm_head.weight is missing: d2t names 24 tokens, of which no other matrix has the rows"},
		{"no offsets", without("d2t"), "d2t is missing: the head has 24 tokens, its target 80"},
		{"a table of another vocabulary", with("embed_tokens.weight", zeros("F32", 4, 81, 64)), "t2d: shape is [80]; embed_tokens.weight is for a vocabulary of 81"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { expect(t, "eagle3", nil, tt.change, tt.want) })
	}
}

// TestNoDrafter expects the families without a drafter to be refused by name, whatever else they look like.
func TestNoDrafter(t *testing.T) {
	names := func(all ...string) func(*head) {
		return func(h *head) {
			for _, name := range all {
				h.Tensors[name] = zeros("F32", 4, 2, 4)
			}
		}
	}
	tests := []struct {
		name, family, layout string
		change               func(*head)
	}{
		{"DFlash 2", "dflash2", "eagle", names("candidate_selector.hidden_projection.weight", "hidden_norm.weight")},
		{"DFlash 2 of speculators", "dflash2", "eagle3-speculators", set("speculators_model_type", "dflash2")},
		{"MTP of speculators", "mtp", "eagle", set("speculators_model_type", "mtp")},
		{"MTP", "mtp", "eagle", names("mtp.fc.weight")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, tt.layout, nil, tt.change, fmt.Sprintf("grove has no drafter for %s heads yet (this is one by its names: %s); those that it has are for %s", tt.family, refused[tt.family], strings.Join(Families(), ", ")))
		})
	}
}

// TestFiles expects files that are no heads, or are not there, to be refused, and pickles never to be read.
func TestFiles(t *testing.T) {
	model := func() []byte {
		return write(t, craft(t, []gguf.KV{{Key: "general.architecture", Value: gguf.Of("llama")}}))
	}
	mtp := write(t, craft(t, []gguf.KV{{Key: "general.architecture", Value: gguf.Of("mtp")}}))
	tests := []struct {
		name, path string // path is opened
		files      map[string]string
		want       string
	}{
		{"nothing", "", nil, "heads: DIR: file does not exist: the folder has no safetensors file; a head is one beside config.json"},
		{"no such path", "none", nil, "heads: stat DIR/none: no such file or directory"},
		{"a folder with a pickle", "", map[string]string{"config.json": "{}", "medusa_lm_head.pt": "PK\x03\x04"},
			"heads: DIR/medusa_lm_head.pt is a pickle of PyTorch, which can run programs and is never loaded; 'python3 lab/train/unpickle.py DIR/medusa_lm_head.pt DIR/model.safetensors' takes its tensors out of it"},
		{"a folder with Chimera's pickles", "", map[string]string{"chimera_head.pt": "PK\x03\x04", "fast_layer1.pt": "PK\x03\x04", "trimlp.pt": "PK\x03\x04"},
			"heads: DIR/chimera_head.pt is a pickle of PyTorch, which can run programs and is never loaded; 'python3 lab/train/unpickle.py DIR/chimera_head.pt DIR/fast_layer1.pt DIR/trimlp.pt DIR/model.safetensors' takes its tensors out of it"},
		{"a pickle", "pytorch_model.bin", map[string]string{"pytorch_model.bin": "anything"},
			"heads: DIR/pytorch_model.bin is a pickle of PyTorch, which can run programs and is never loaded; 'python3 lab/train/unpickle.py DIR/pytorch_model.bin DIR/model.safetensors' takes its tensors out of it"},
		{"a pickle by another name", "head.safetensors", map[string]string{"head.safetensors": "\x80\x02csys"},
			"heads: DIR/head.safetensors is a pickle of PyTorch, which can run programs and is never loaded; 'python3 lab/train/unpickle.py DIR/head.safetensors DIR/model.safetensors' takes its tensors out of it"},
		{"two files", "", map[string]string{"a.safetensors": "", "b.safetensors": ""},
			"heads: DIR: 2 files of safetensors (a.safetensors and others) and no model.safetensors.index.json, which lists them; name the file of the head"},
		{"a header longer than all", "x.safetensors", map[string]string{"x.safetensors": strings.Repeat("\xff", 16)},
			"safetensors: DIR/x.safetensors: header of 18446744073709551615 bytes is longer than 104857600 (at byte 0)"},
		{"an empty file", "x.safetensors", map[string]string{"x.safetensors": ""}, "safetensors: DIR/x.safetensors: the file is empty; download it again"},
		{"a tensor beyond the file", "x.safetensors", map[string]string{"x.safetensors": headed(`{"fc.weight":{"dtype":"F32","shape":[1099511627776,1099511627776],"data_offsets":[0,4]}}`, 4)},
			"safetensors: DIR/x.safetensors: fc.weight: shape [1099511627776 1099511627776] overflows the size (at byte 20)"},
		{"settings that are a list", "", map[string]string{"config.json": "[]", "model.safetensors": ""}, `hf: DIR/config.json: the file begins with "[]"; it must be a JSON object`},
		{"a model", "m.gguf", map[string]string{"m.gguf": string(model())}, `heads: DIR/m.gguf: architecture "llama" is no drafting head's; those are ` + strings.Join(Families(), ", ")},
		{"MTP in GGUF", "m.gguf", map[string]string{"m.gguf": string(mtp)},
			"heads: DIR/m.gguf: grove has no drafter for mtp heads yet (this is one by its names: multi-token prediction outside a model); those that it has are for " + strings.Join(Families(), ", ")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			f, err := Open(filepath.Join(dir, tt.path))
			if err == nil {
				f.Close()
				t.Fatalf("it was opened; want %s", tt.want)
			}
			if got := strings.ReplaceAll(err.Error(), dir, "DIR"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// headed returns a safetensors file of a header and n bytes.
func headed(header string, n int) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + strings.Repeat("\x00", n)
}

// craft makes a file of metadata and tensors in memory.
func craft(t *testing.T, metadata []gguf.KV, tensors ...tensor.View) *gguf.File {
	t.Helper()
	var b strings.Builder
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// target makes a target of a width, a vocabulary and a number of layers.
func target(t *testing.T, width, vocab, layers int) *gguf.File {
	t.Helper()
	table := tensor.View{Name: "token_embd.weight", Type: tensor.F32, Shape: []int{vocab, width}}
	table.Data = make([]byte, table.Bytes())
	return craft(t, []gguf.KV{
		{Key: "general.architecture", Value: gguf.Of("llama")}, {Key: "llama.embedding_length", Value: gguf.Of(uint32(width))},
		{Key: "llama.block_count", Value: gguf.Of(uint32(layers))}, {Key: "llama.attention.head_count", Value: gguf.Of(uint32(4))},
		{Key: "llama.attention.head_count_kv", Value: gguf.Of(uint32(2))}, {Key: "llama.rope.freq_base", Value: gguf.Of(float32(5000))},
	}, table)
}

// TestFits opens heads for targets that are theirs, and expects the others to be refused.
func TestFits(t *testing.T) {
	const named = "eagle_aux_hidden_state_layer_ids in config.json, or eagle3.taps in GGUF, must name them"
	tests := []struct {
		name, layout string
		target       *gguf.File
		change       func(*head)
		want         string // "": the head is for the target
	}{
		{"its own", "eagle3-speculators", target(t, 64, 80, 6), nil, ""},
		{"width", "medusa", target(t, 32, 80, 6), nil, "the medusa head is for states of 64 values; those of its target have 32"},
		{"vocabulary", "eagle", target(t, 64, 81, 6), nil, "the eagle head is for a vocabulary of 80 tokens; its target has 81"},
		{"a token beyond", "eagle3", target(t, 64, 40, 6), without("t2d", "vocab_size"), "the head drafts token 48; its target has the tokens 0 to 39"},
		{"a tap beyond", "eagle3-speculators", target(t, 64, 80, 4), nil, "the head reads the state before layer 5; its target has 4 layers, so that 0 to 4 can be read"},
		{"no taps and no layers", "eagle3", target(t, 64, 80, 2), nil, "the head does not say which states it reads, and the usual ones, before layers 2, 1 and -1 of its target's 2, are not three: " + named},
		{"usual taps, one twice", "eagle3", target(t, 64, 80, 4), nil, "the head does not say which states it reads, and the usual ones, before layers 2, 2 and 1 of its target's 4, are not three: " + named},
		{"usual taps, all the same", "eagle3", target(t, 64, 80, 5), nil, "the head does not say which states it reads, and the usual ones, before layers 2, 2 and 2 of its target's 5, are not three: " + named},
		{"usual taps, the last twice", "eagle3", target(t, 64, 80, 6), nil, "the head does not say which states it reads, and the usual ones, before layers 2, 3 and 3 of its target's 6, are not three: " + named},
		{"usual taps", "eagle3", target(t, 64, 80, 7), nil, ""},
		{"an exit at the end", "kangaroo", target(t, 64, 80, 2), nil, "the adapter reads the state before layer 2; its target has 2 layers, of which 1 to 1 can be it"},
		{"a row that begins behind the last layer", "transfer", target(t, 64, 80, 3), nil, "a row of the head begins at layer 3; its target has 3 layers, so that 0 to 2 can be it"},
		{"rows that begin at the target's layers", "transfer", target(t, 64, 80, 4), nil, ""},
		{"additions to all layers", "m2r2", target(t, 64, 80, 2), nil, "the matrices add to the first 2 layers; their target has 2, of which 1 to 1 can draft"},
		{"an exit before", "kangaroo", target(t, 64, 80, 3), nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want != "" {
				expect(t, tt.layout, tt.target, tt.change, tt.want)
			} else if _, _, _, err := open(t, tt.layout, tt.target, tt.change); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestChecksum holds a head that was converted for a target to models of the same shape.
func TestChecksum(t *testing.T) {
	norm := func(v float32, f *gguf.File) *gguf.File {
		view := tensor.View{Name: "output_norm.weight", Type: tensor.F32, Shape: []int{64}}
		view.Data = make([]byte, view.Bytes())
		if err := tensor.Pack(tensor.F32, view.Data, slices.Repeat([]float32{v}, 64)); err != nil {
			t.Fatal(err)
		}
		return craft(t, f.Metadata, append(slices.Clone(f.Tensors), view)...)
	}
	plain := target(t, 64, 80, 6)
	own := norm(1.5, plain)
	head, _, _, err := open(t, "medusa", own, nil)
	if err != nil {
		t.Fatal(err)
	}
	free, _, _, err := open(t, "medusa", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		head   *gguf.File
		target *gguf.File
		want   string
	}{
		{"its own", head, norm(1.5, plain), ""},
		{"another", head, norm(1.25, plain), `heads: the head was converted for a model whose final norm has the checksum "`},
		{"a target without a norm", head, plain, ""},
		{"a head that does not say it", free, own, ""},
	} {
		if err := Fits(c.head, c.target); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: error %v", c.name, err)
		}
	}
}

// TestSizeFits refuses a head that is larger than its target, with both sizes.
func TestSizeFits(t *testing.T) {
	small := target(t, 64, 80, 2)
	if err := SizeFits(small.Size(), small); err != nil {
		t.Error(err)
	}
	const want = "heads: the head file takes 2.5 MB, its target 0.0 MB; a head must be the smaller one: choose a smaller type, such as Q8_0"
	if err := SizeFits(2_500_000, small); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestFinite finds values that are no finite numbers in each type that files have.
func TestFinite(t *testing.T) {
	nan32, inf16 := func(b []byte) { binary.LittleEndian.PutUint32(b, math.Float32bits(float32(math.NaN()))) }, func(b []byte) { b[0], b[1] = 0x80, 0xff }
	tests := []struct {
		name, tensor string
		at           int // the byte
		put          func([]byte)
		want         string
	}{
		{"a vector", "layers.0.post_attention_layernorm.weight", 40, nan32, "heads: blk.0.ffn_norm.weight: row 0: element 10 is NaN; weights must be finite"},
		{"the last of a matrix", "layers.0.mlp.down_proj.weight", 2*64*96 - 2, inf16, "heads: blk.0.ffn_down.weight: row 63: element 95 is -Inf; weights must be finite"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, _, _, err := open(t, "eagle", nil, func(h *head) { tt.put(h.Tensors[tt.tensor].Data[tt.at:]) })
			if err != nil {
				t.Fatal(err)
			}
			if err := Finite(f); err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}
