package heads

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/hftest"
	"grove/internal/par"
	"grove/internal/weights/gguf"
	"grove/internal/weights/quantize"
	"grove/internal/weights/tensor"
)

// key returns the value of a key as text, "" where it is missing.
func key(f *gguf.File, name string) string { return keysIn(f)[name] }

// same reports whether two tensors of a file have the same bytes.
func same(t *testing.T, f *gguf.File, one, two string) bool {
	all := tensorsIn(t, f)
	return all[one] != "" && all[one] == all[two]
}

// vector adds vectors of the width.
func vector(names ...string) func(*head) {
	return func(h *head) {
		for _, name := range names {
			h.Tensors[name] = zeros("F32", 4, 64)
		}
	}
}

// all makes several changes.
func all(changes ...func(*head)) func(*head) {
	return func(h *head) {
		for _, change := range changes {
			change(h)
		}
	}
}

// TestVariants opens heads that differ from the usual ones of their layouts.
func TestVariants(t *testing.T) {
	tests := []struct {
		name, layout string
		target       *gguf.File
		change       func(*head)
		check        func(f *gguf.File) bool
		note         string // a part of one of the notes
	}{
		{"blocks that are one module, of which the file has one copy", "medusa-old", nil, func(h *head) {
			for k := range 3 {
				h.Tensors[fmt.Sprintf("%d.2.weight", k)] = h.Tensors[fmt.Sprintf("%d.1.weight", k)]
				delete(h.Tensors, fmt.Sprintf("%d.1.weight", k))
			}
		}, func(f *gguf.File) bool {
			return key(f, "medusa.residual_count") == "2" && same(t, f, "blk.2.res.0.weight", "blk.2.res.1.weight") && same(t, f, "blk.2.res.0.bias", "blk.2.res.1.bias")
		}, "2.1.linear is not in the file: it is 2.0.linear again, as one repeated module"},
		{"Hydra++ of which the file has one copy", "hydra++", nil, without("hydra_mlp.0.5.linear.weight", "hydra_mlp.0.5.linear.bias", "hydra_mlp.1.5.linear.weight", "hydra_mlp.1.5.linear.bias"),
			func(f *gguf.File) bool {
				return key(f, "hydra.residual_count") == "2" && same(t, f, "blk.1.res.0.weight", "blk.1.res.1.weight")
			}, "hydra_mlp.1.5.linear is not in the file"},
		{"heads that lend the output matrix", "medusa-old", nil, all(without("0.1.weight", "1.1.weight", "2.1.weight", "medusa_num_layers"), set("vocab_size", 99)),
			func(f *gguf.File) bool {
				_, ok := f.Tensor("blk.0.output.weight")
				return !ok && key(f, "medusa.block_count") == "3" && key(f, "heads.target.vocabulary") == "99"
			}, ""},
		{"no config.json", "medusa-old", nil, func(h *head) { h.Config = nil },
			func(f *gguf.File) bool {
				return key(f, "medusa.block_count") == "3" && key(f, "medusa.context_length") == "4096" && key(f, "heads.target.name") == ""
			}, ""},
		{"more heads than config.json says", "medusa-old", nil, nil, func(f *gguf.File) bool { return key(f, "medusa.block_count") == "3" },
			"config.json says medusa_num_heads 2; the file has 3 heads, and all are taken"},
		{"Hydra++ whose layer is the target's", "hydra++", target(t, 64, 80, 4), without("num_attention_heads", "num_key_value_heads", "rope_theta"),
			func(f *gguf.File) bool {
				return key(f, "hydra.attention.head_count") == "4" && key(f, "hydra.attention.head_count_kv") == "2" && key(f, "hydra.rope.freq_base") == "5000"
			}, ""},
		{"Chimera whose layer is the target's", "chimera", target(t, 64, 80, 4), without("num_attention_heads", "num_key_value_heads", "rope_theta"),
			func(f *gguf.File) bool {
				return key(f, "chimera.attention.head_count") == "4" && key(f, "chimera.attention.head_count_kv") == "2" && key(f, "chimera.rope.freq_base") == "5000"
			}, ""},
		{"pairs side by side", "eagle", nil, set("rope_pairs", true), func(f *gguf.File) bool { return key(f, "eagle.rope.neox") == "false" }, ""},
		{"pairs side by side, of speculators", "eagle3-speculators", nil, set("rope_pairs", true), func(f *gguf.File) bool { return key(f, "eagle3.rope.neox") == "false" }, ""},
		{"a table that the target has", "eagle", nil, nil, func(f *gguf.File) bool { _, ok := f.Tensor("token_embd.weight"); return !ok },
			"embed_tokens.weight [80 64] is left out: the target lends its own table"},
		{"a table that was trained", "eagle3-speculators", nil, all(with("embed_tokens.weight", zeros("F32", 4, 80, 64)), set("embed_requires_grad", true)), nil, "embed_requires_grad"},
		{"EAGLE with more", "eagle", nil, all(set("num_hidden_layers", nil), vector("layers.0.input_layernorm.weight", "norm.weight", "layers.0.self_attn.q_proj.bias"),
			with("lm_head.weight", zeros("F16", 2, 80, 64))), func(f *gguf.File) bool {
			var there []bool
			for _, name := range []string{"blk.0.attn_norm.weight", "output_norm.weight", "blk.0.attn_q.bias", "output.weight"} {
				_, ok := f.Tensor(name)
				there = append(there, ok)
			}
			return !slices.Contains(there, false)
		}, ""},
		{"EAGLE-3 of the whole vocabulary", "eagle3", nil, all(without("d2t", "t2d"), set("draft_vocab_size", 80), with("lm_head.weight", zeros("F16", 2, 80, 64))),
			func(f *gguf.File) bool {
				return key(f, "eagle3.draft_vocabulary") == "" && key(f, "heads.target.vocabulary") == "80"
			}, ""},
		{"EAGLE-3 that lends the output matrix", "eagle3", nil, without("d2t", "t2d", "lm_head.weight", "draft_vocab_size"), func(f *gguf.File) bool { _, ok := f.Tensor("output.weight"); return !ok }, ""},
		{"offsets of 32 bits without a mask", "eagle3", nil, func(h *head) {
			d2t := hftest.Raw{Type: "I32", Shape: []int{24}}
			for i, id := range hftest.SmallHead.DraftTokens() {
				d2t.Data = binary.LittleEndian.AppendUint32(d2t.Data, uint32(id-i))
			}
			h.Tensors["d2t"] = d2t
			delete(h.Tensors, "t2d")
		}, func(f *gguf.File) bool { return key(f, "eagle3.draft_vocabulary") == draft }, ""},
		{"norms of queries and keys", "eagle3", nil, func(h *head) {
			h.Tensors["midlayer.self_attn.q_norm.weight"], h.Tensors["midlayer.self_attn.k_norm.weight"] = zeros("F32", 4, 16), zeros("F32", 4, 16)
		}, func(f *gguf.File) bool { _, ok := f.Tensor("blk.0.attn_k_norm.weight"); return ok }, ""},
		{"EAGLE-3 of two layers", "eagle3-speculators", nil, func(h *head) {
			for name, t := range h.Tensors {
				if rest, ok := strings.CutPrefix(name, "layers.0."); ok && !strings.HasPrefix(rest, "hidden_norm") {
					if strings.Contains(rest, "q_proj") || strings.Contains(rest, "k_proj") || strings.Contains(rest, "v_proj") {
						t = zeros("BF16", 2, t.Shape[0], 64)
					}
					h.Tensors["layers.1."+rest] = t
				}
			}
			h.Config["transformer_layer_config"].(map[string]any)["num_hidden_layers"] = 2
		}, func(f *gguf.File) bool {
			v, ok := f.Tensor("blk.1.attn_q.weight")
			return ok && v.Shape[1] == 64 && key(f, "eagle3.block_count") == "2"
		}, ""},
		{"Falcon as it is published", "falcon", nil, without("lstm_pairs"), func(f *gguf.File) bool {
			_, ok := f.Tensor("lstm.0.hh.weight")
			return !ok && key(f, "falcon-draft.lstm_pairs") == "1" && key(f, "falcon-draft.block_size") == "3"
		}, "lstm.weight_hh_l1 [256 64] is left out: the LSTM reads one pair for each row"},
		{"Falcon with its own table and head, without biases", "falcon", nil, all(without("lstm.bias_ih_l0", "lstm.bias_hh_l0", "lstm.bias_ih_l1", "lstm.bias_hh_l1"),
			with("embed_tokens.weight", zeros("F16", 2, 80, 64)), with("lm_head.weight", zeros("F16", 2, 80, 64))),
			func(f *gguf.File) bool { _, ok := f.Tensor("output.weight"); return ok }, "embed_tokens.weight [80 64] is left out"},
		{"taps inside eagle_config", "eagle3", nil, set("eagle_config", map[string]any{"eagle_aux_hidden_state_layer_ids": []int{4, 1, 2}}), func(f *gguf.File) bool { return key(f, "eagle3.taps") == "[4 1 2]" }, ""},
		{"a rotation for longer texts", "eagle3", nil, set("rope_scaling", map[string]any{"rope_type": "llama3", "factor": 8}), func(f *gguf.File) bool { _, ok := f.Tensor("rope_freqs.weight"); return ok }, ""},
		{"an adapter that does not say its layer", "kangaroo", nil, without("exit_layer"), func(f *gguf.File) bool { return key(f, "kangaroo.exit_layer") == "2" }, "config.json does not say exit_layer"},
		{"FSPAD without feature sampling", "fspad", nil, func(h *head) {
			for name, t := range h.Tensors {
				if rest, ok := strings.CutPrefix(name, "fc.fc."); ok {
					h.Tensors["fc."+rest] = t
				}
				if strings.HasPrefix(name, "fc.mlp.") || strings.HasPrefix(name, "fc.fc.") || strings.HasPrefix(name, "fc.post") {
					delete(h.Tensors, name)
				}
			}
		}, func(f *gguf.File) bool {
			_, ok := f.Tensor("blk.0.ffn_down_logits.weight")
			return ok && key(f, "general.architecture") == "fspad"
		}, ""},
		{"FSPAD without partial alignment", "fspad", nil, with("layers.0.mlp.down_proj.weight", zeros("F32", 4, 64, 96)), func(f *gguf.File) bool {
			_, ok := f.Tensor("blk.0.ffn_down_logits.weight")
			return !ok && key(f, "general.architecture") == "fspad"
		}, ""},
		{"P-EAGLE by its names, with the target's embeddings", "peagle", nil, all(without("embed_tokens.weight", "speculators_model_type"), set("embed_requires_grad", false)),
			func(f *gguf.File) bool {
				_, ok := f.Tensor("token_embd.weight")
				return !ok && key(f, "general.architecture") == "peagle"
			}, ""},
		{"P-EAGLE that lacks its embeddings", "peagle", nil, all(without("embed_tokens.weight"), set("embed_requires_grad", true)), nil, "and the file lacks them"},
		{"P-EAGLE that would feed a normed state back", "peagle", nil, set("norm_output", true), nil, ""},
		{"P-EAGLE of the target's embeddings", "peagle", nil, set("embed_requires_grad", false), nil, "embed_tokens.weight [80 64] is left out: the target lends its own table"},
		{"P-EAGLE that does not say its drafts", "peagle", nil, set("speculators_config", map[string]any{}), func(f *gguf.File) bool { return key(f, "peagle.block_size") == "8" },
			"config.json does not say how many tokens a pass drafts (speculative_tokens): 8 are assumed"},
		{"a buffer of older code", "kangaroo", nil, with("layers.0.self_attn.rotary_emb.inv_freq", zeros("F32", 4, 8)), nil, ""},
		{"texts", "kangaroo", nil, func(h *head) {
			h.Text["loss"], h.Text["long"] = "1.5", strings.Repeat("x", maxText+1)
			for i := range 70 {
				h.Text[fmt.Sprintf("n%02d", i)] = "x"
			}
		}, func(f *gguf.File) bool {
			return key(f, "heads.metadata.loss") == "1.5" && key(f, "heads.metadata.long") == "" && key(f, "heads.metadata.n61") == "x" && key(f, "heads.metadata.n62") == ""
		}, "9 texts of the safetensors header are left out"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, _, notes, err := open(t, tt.layout, tt.target, tt.change)
			if err != nil {
				t.Fatal(err)
			}
			if tt.check != nil && !tt.check(f) {
				t.Errorf("keys %v", keysIn(f))
			}
			if !strings.Contains(strings.Join(notes, "\n"), tt.note) {
				t.Errorf("notes %q; want one with %q", notes, tt.note)
			}
		})
	}
}

// TestShards opens the shards of an index, and a file of another name as the only one of a folder and by its own name.
func TestShards(t *testing.T) {
	h, dir := hftest.NewHead("medusa-old", hftest.SmallHead), t.TempDir()
	first := &hftest.Head{Tensors: map[string]hftest.Raw{"0.0.linear.weight": h.Tensors["0.0.linear.weight"]}, Text: map[string]string{"a": "1"}}
	want := &hftest.Head{Tensors: h.Tensors, Text: h.Text}
	whole := filepath.Join(t.TempDir(), "medusa_lm_head.safetensors")
	if err := want.WriteFile(whole); err != nil {
		t.Fatal(err)
	}
	rest := hftest.NewHead("medusa-old", hftest.SmallHead)
	delete(rest.Tensors, "0.0.linear.weight")
	index := `{"weight_map":{"0.0.linear.weight":"1.safetensors","0.1.weight":"2.safetensors"}}`
	for _, err := range []error{
		first.WriteFile(filepath.Join(dir, "1.safetensors")), rest.WriteFile(filepath.Join(dir, "2.safetensors")),
		os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), []byte(index), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var tensors []map[string]string
	for _, path := range []string{dir, whole, filepath.Dir(whole)} {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		tensors = append(tensors, tensorsIn(t, f))
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(tensors[0], tensors[1]) + cmp.Diff(tensors[1], tensors[2]); diff != "" || len(tensors[0]) != 9 {
		t.Errorf("%d tensors; differences:\n%s", len(tensors[0]), diff)
	}
}

// TestTypes gives the matrices of a head another type: those whose rows are whole blocks get it, the others F16, vectors stay.
func TestTypes(t *testing.T) {
	f, _, _, err := open(t, "eagle3", nil, func(h *head) {
		h.Config["intermediate_size"] = 40
		h.Tensors["midlayer.mlp.gate_proj.weight"], h.Tensors["midlayer.mlp.up_proj.weight"] = zeros("F32", 4, 40, 64), zeros("F32", 4, 40, 64)
		h.Tensors["midlayer.mlp.down_proj.weight"] = zeros("F32", 4, 64, 40)
	})
	if err != nil {
		t.Fatal(err)
	}
	pool := par.New(1)
	defer pool.Close()
	small, err := quantize.InMemory(f, "Q8_0", pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range small.Tensors {
		want := tensor.Q8_0
		if len(v.Shape) == 1 {
			want = tensor.F32
		} else if v.Name == "blk.0.ffn_down.weight" {
			want = tensor.F16
		}
		if v.Type != want {
			t.Errorf("%s: type %v, want %v", v.Name, v.Type, want)
		}
	}
	if err := Finite(small); err != nil {
		t.Error(err)
	}
}

// TestFitsFiles expects files of GGUF whose keys are no head's, which anyone may write, to be refused.
func TestFitsFiles(t *testing.T) {
	tests := []struct {
		name, key string
		value     gguf.Value
		want      string
	}{
		{"descending tokens", "eagle3.draft_vocabulary", gguf.ArrayOf([]int32{5, 4}), "heads: the 2 numbers of the head's vocabulary do not ascend from 0 or more"},
		{"a token twice", "eagle3.draft_vocabulary", gguf.ArrayOf([]int32{4, 4}), "heads: the 2 numbers of the head's vocabulary do not ascend from 0 or more"},
		{"a token below 0", "eagle3.draft_vocabulary", gguf.ArrayOf([]int32{-1, 4}), "heads: the 2 numbers of the head's vocabulary do not ascend from 0 or more"},
		{"taps of text", "eagle3.taps", gguf.ArrayOf([]string{"1"}), `heads: gguf: key "eagle3.taps": want an array of integers, found [1]string`},
		{"a tap below 0", "eagle3.taps", gguf.ArrayOf([]int32{-1}), "heads: the head reads the state before layer -1; its target has 6 layers, so that 0 to 6 can be read"},
		{"a vocabulary of text", "heads.target.vocabulary", gguf.Of("many"), `heads: gguf: key "heads.target.vocabulary": want an integer, found string`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := craft(t, []gguf.KV{{Key: "general.architecture", Value: gguf.Of("eagle3")}, {Key: "eagle3.embedding_length", Value: gguf.Of(uint32(64))}, {Key: tt.key, Value: tt.value}})
			if err := Fits(f, target(t, 64, 80, 6)); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s…", err, tt.want)
			}
		})
	}
}

// FuzzHeads: any settings and any header of a safetensors file are refused or make a head whose tensors have their bytes.
func FuzzHeads(f *testing.F) {
	entry := func(name, shape, offsets string) string {
		return `"` + name + `":{"dtype":"F32","shape":[` + shape + `],"data_offsets":[` + offsets + `]}`
	}
	f.Add(`{}`, `{`+entry("0.0.linear.weight", "1,1", "0,4")+`,`+entry("0.0.linear.bias", "1", "4,8")+`,`+entry("0.1.weight", "2,1", "8,16")+`}`, 16)
	f.Add(`{"hydra_num_layers":1}`, `{`+entry("hydra_mlp.0.0.linear.weight", "1,2", "0,8")+`}`, 8)
	f.Add(`{"num_attention_heads":1,"head_dim":2}`, `{`+entry("fc.weight", "2,4", "0,32")+`,`+entry("layers.0.self_attn.q_proj.weight", "2,2", "32,48")+`}`, 48)
	f.Add(`{"num_attention_heads":1,"head_dim":2,"eagle_config":{"aux_hidden_state_layer_ids":[0,1,2]}}`,
		`{`+entry("fc.weight", "2,6", "0,48")+`,"d2t":{"dtype":"I64","shape":[1],"data_offsets":[48,56]},`+entry("midlayer.hidden_norm.weight", "2", "56,64")+`}`, 64)
	f.Add(`{"exit_layer":1,"num_attention_heads":1}`, `{`+entry("layers.0.self_attn.o_proj.weight", "2,2", "0,16")+`}`, 16)
	f.Add(`{"num_attention_heads":1}`, `{`+entry("trimlp.1.weight", "2,6", "0,48")+`,`+entry("chimera_head.0.mix.weight", "2,4", "48,80")+`}`, 80)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, config, header string, n int) {
		for name, text := range map[string]string{"config.json": config, "model.safetensors": headed(header, n&0xffff)} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		m, err := OpenFor(dir, nil, func(string) {})
		if err != nil {
			return
		}
		defer m.Close()
		for _, v := range m.Tensors {
			if v, err := m.Load(v); err != nil || len(v.Data) != v.Bytes() {
				t.Fatalf("%s: %v", v.Name, err)
			}
		}
	})
}
