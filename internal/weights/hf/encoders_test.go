package hf

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// encoder makes a folder of a class with the tensors of a random model, whose names are replaced by pairs.
func encoder(t *testing.T, class, arch string, config map[string]any, names ...string) (*hftest.Folder, *gguf.File) {
	t.Helper()
	return encoderOf(t, class, synthetic.Spec{Arch: arch}, config, names...)
}

func encoderOf(t *testing.T, class string, spec synthetic.Spec, config map[string]any, names ...string) (*hftest.Folder, *gguf.File) {
	t.Helper()
	f := bare(t, class)
	spec.Vocab, spec.Context, spec.Heads, spec.KVHeads, spec.KeySize = 320, 64, 4, 4, 16
	metadata, tensors, err := spec.Parts()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	want, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	clear(f.Config)
	for key, v := range config {
		f.Config[key] = v
	}
	for key, v := range map[string]any{
		"architectures": []string{class}, "num_hidden_layers": 3, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4, "vocab_size": 320,
	} {
		f.Config[key] = v
	}
	if f.Config["max_position_embeddings"] == nil {
		f.Config["max_position_embeddings"] = 64
	}
	rename := strings.NewReplacer(names...)
	for _, v := range want.Tensors {
		v.Data = slices.Clone(v.Data)
		f.Tensors[rename.Replace(v.Name)] = v
	}
	return f, want
}

var bertNames = []string{
	"token_embd.weight", "embeddings.word_embeddings.weight", "token_types.weight", "embeddings.token_type_embeddings.weight",
	"position_embd.weight", "embeddings.position_embeddings.weight", "token_embd_norm", "embeddings.LayerNorm", "blk.", "encoder.layer.",
	"attn_q", "attention.self.query", "attn_k", "attention.self.key", "attn_v", "attention.self.value", "attn_output_norm", "attention.output.LayerNorm",
	"attn_output", "attention.output.dense", "ffn_up", "intermediate.dense", "ffn_down", "output.dense", "layer_output_norm", "output.LayerNorm",
}

// opened opens a folder with a pooling, and compares its tensors with those of a file.
func opened(t *testing.T, f *hftest.Folder, want *gguf.File, pooling string) func(key string) int {
	t.Helper()
	dir := write(t, f)
	if pooling != "" {
		if err := pooled(dir, pooling); err != nil {
			t.Fatal(err)
		}
	}
	got := open(t, dir)
	if want != nil {
		compareTensors(t, want, got)
	}
	arch, _, _ := got.String("general.architecture")
	if causal, ok, err := got.Bool(arch + ".attention.causal"); causal || !ok || err != nil {
		t.Errorf("causal is %v, %v", causal, err)
	}
	return func(key string) int {
		n, _, _ := got.Uint(arch + "." + key)
		return n
	}
}

// TestEncoders takes random encoders apart and expects to find them whole again, as models with their pooling.
func TestEncoders(t *testing.T) {
	t.Run("BertModel", func(t *testing.T) {
		f, want := encoder(t, "BertModel", "bert", map[string]any{"hidden_act": "gelu", "layer_norm_eps": 1e-12}, bertNames...)
		f.Tensors["pooler.dense.weight"] = tensor.View{Type: tensor.F32, Shape: []int{1, 1}, Data: make([]byte, 4)} // is left out
		if n := opened(t, f, want, `{"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false, "word_embedding_dimension": 64}`); n("pooling_type") != 1 || n("context_length") != 64 {
			t.Errorf("pooling %d, context %d", n("pooling_type"), n("context_length"))
		}
	})
	t.Run("XLMRobertaForSequenceClassification", func(t *testing.T) {
		f, want := encoder(t, "XLMRobertaForSequenceClassification", "bert", map[string]any{"max_position_embeddings": 66, "pad_token_id": 1}, bertNames...)
		for name, v := range maps.Clone(f.Tensors) {
			delete(f.Tensors, name)
			if strings.Contains(name, "position_embeddings") { // two rows that no text reaches
				v.Shape, v.Data = []int{66, 64}, append(bytes.Repeat([]byte{7}, 2*64*4), v.Data...)
			}
			f.Tensors["roberta."+name] = v
		}
		square := func(rows int) tensor.View {
			return tensor.View{Type: tensor.F32, Shape: []int{rows, 64}, Data: make([]byte, rows*64*4)}
		}
		f.Tensors["classifier.dense.weight"], f.Tensors["classifier.out_proj.weight"] = square(64), square(1)
		if n := opened(t, f, nil, ""); n("pooling_type") != 4 || n("context_length") != 64 {
			t.Errorf("pooling %d, context %d", n("pooling_type"), n("context_length"))
		}
		got := open(t, write(t, f))
		for _, name := range []string{"position_embd.weight", "blk.2.ffn_down.bias"} {
			if w, _ := want.Tensor(name); !slices.Equal(load(t, got, name), load(t, want, w.Name)) {
				t.Errorf("%s differs", name)
			}
		}
	})
	modern := []string{
		"token_embd.weight", "embeddings.tok_embeddings.weight", "token_embd_norm", "embeddings.norm", "output_norm", "final_norm", "blk.", "layers.",
		"attn_norm", "attn_norm", "attn_qkv", "attn.Wqkv", "attn_output", "attn.Wo", "ffn_norm", "mlp_norm", "ffn_up", "mlp.Wi", "ffn_down", "mlp.Wo",
		"cls.norm", "head.norm", "cls.output", "classifier", "cls.weight", "head.dense.weight",
	}
	t.Run("ModernBertForSequenceClassification", func(t *testing.T) {
		f, want := encoder(t, "ModernBertForSequenceClassification", "modern-bert", map[string]any{
			"local_attention": 20, "global_rope_theta": 2000, "local_rope_theta": 500, "classifier_pooling": "mean"}, modern...)
		if n := opened(t, f, want, ""); n("pooling_type") != 4 || n("attention.sliding_window") != 20 || n("attention.sliding_window_pattern") != 3 {
			t.Errorf("pooling %d, windows of %d in all layers but one of %d", n("pooling_type"), n("attention.sliding_window"), n("attention.sliding_window_pattern"))
		}
		f.Config["norm_bias"] = true
		if _, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), "norm_bias is true; only false is supported") {
			t.Errorf("biases of norms: %v", err)
		}
	})
	t.Run("EuroBertModel", func(t *testing.T) {
		f, want := encoder(t, "EuroBertModel", "eurobert", map[string]any{"hidden_act": "silu", "rope_theta": 2000, "rms_norm_eps": 1e-5},
			"token_embd", "embed_tokens", "output_norm", "norm", "blk.", "layers.", "attn_norm", "input_layernorm", "ffn_norm", "post_attention_layernorm",
			"attn_q", "self_attn.q_proj", "attn_k", "self_attn.k_proj", "attn_v", "self_attn.v_proj", "attn_output", "self_attn.o_proj",
			"ffn_gate", "mlp.gate_proj", "ffn_up", "mlp.up_proj", "ffn_down", "mlp.down_proj")
		if n := opened(t, f, want, `{"pooling_mode_lasttoken": true}`); n("pooling_type") != 3 {
			t.Errorf("pooling %d", n("pooling_type"))
		}
		dir := write(t, f)
		if err := pooled(dir, `{"pooling_mode_max_tokens": true}`); err == nil || !strings.Contains(err.Error(), "pooling_mode_max_tokens is not supported") {
			t.Errorf("another pooling: %v", err)
		}
	})
}

// pooled gives a folder a pooling, and returns the error with which it opens.
func pooled(dir, pooling string) error {
	if err := os.Mkdir(filepath.Join(dir, "1_Pooling"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "1_Pooling", "config.json"), []byte(pooling), 0o644); err != nil {
		return err
	}
	f, err := Open(dir)
	if err == nil {
		return f.Close()
	}
	return err
}

// TestUniXcoder expects a folder whose vocabulary has the tokens of the modes to be a model that generates, with rows of positions that no text has cut off, and one
// that lacks a mode, or says how its states are pooled, to be an encoder.
func TestUniXcoder(t *testing.T) {
	modes := []string{"<encoder-only>", "<decoder-only>", "<encoder-decoder>"}
	folder := func(t *testing.T, modes ...string) (*hftest.Folder, *gguf.File) {
		f, want := encoder(t, "RobertaModel", "unixcoder", map[string]any{"hidden_act": "gelu", "layer_norm_eps": 1e-12, "max_position_embeddings": 66, "pad_token_id": 1}, bertNames...)
		v := f.Tensors["embeddings.position_embeddings.weight"]
		v.Shape, v.Data = []int{66, 64}, append(bytes.Repeat([]byte{7}, 2*64*4), v.Data...)
		f.Tensors["embeddings.position_embeddings.weight"] = v
		f.Tensors["pooler.dense.weight"] = tensor.View{Type: tensor.F32, Shape: []int{1, 1}, Data: make([]byte, 4)} // is left out
		model := f.Tokenizer["model"].(map[string]any)
		model["merges"] = []string{} // their pieces make room for the modes
		vocab := model["vocab"].(map[string]int)
		for i, mode := range modes {
			for text, id := range vocab {
				if id == 280+i {
					delete(vocab, text)
				}
			}
			vocab[mode] = 280 + i
		}
		return f, want
	}
	f, want := folder(t, modes...)
	got := open(t, write(t, f))
	if arch, _, _ := got.String("general.architecture"); arch != "unixcoder" {
		t.Errorf("opened as %q", arch)
	}
	compareTensors(t, want, got)
	for _, key := range []string{"unixcoder.attention.causal", "unixcoder.pooling_type"} {
		if _, ok := got.Lookup(key); ok {
			t.Errorf("it has %s", key)
		}
	}
	f, _ = folder(t, modes[:2]...)
	if n := opened(t, f, nil, ""); n("context_length") != 64 {
		t.Error("without a mode it is no encoder")
	}
	f, _ = folder(t, modes...)
	if n := opened(t, f, nil, `{"pooling_mode_mean_tokens": true}`); n("pooling_type") != 1 {
		t.Error("with a pooling it is no encoder")
	}
	f, _ = folder(t, modes...)
	f.Config["hidden_act"] = "gelu_new"
	if _, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), "hidden_act") {
		t.Errorf("another activation: %v", err)
	}
}
