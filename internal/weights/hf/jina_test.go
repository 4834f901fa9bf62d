package hf

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// jinaModel returns a random model of jina-embeddings 2: its layers have the gate before the matrix that it gates, and norm queries, keys and the
// attention once more in models for code alone.
func jinaModel(t *testing.T, code bool) *gguf.File {
	t.Helper()
	f := randomModel(t, synthetic.Spec{Arch: "jina-bert-v2", Context: 64, Heads: 4, KVHeads: 4, KeySize: 16})
	find := func(name string) tensor.View {
		v, ok := f.Tensor(name)
		if !ok {
			t.Fatalf("the model has no %s", name)
		}
		v.Data = slices.Clone(v.Data)
		return v
	}
	for _, kind := range []string{".weight", ".bias"} {
		for _, layer := range []string{"blk.1.", "blk.2."} {
			v := find("blk.0.attn_norm_2" + kind)
			v.Name = layer + "attn_norm_2" + kind
			slices.Reverse(v.Data[:4])
			f.Tensors = append(f.Tensors, v)
		}
	}
	gate, plain := find("blk.1.ffn_gate.weight"), find("blk.2.ffn_up.weight")
	var kept []tensor.View
	for _, v := range f.Tensors {
		switch {
		case v.Name == "blk.1.ffn_up.weight", v.Name == "blk.2.ffn_up.weight":
			first := gate
			if v.Name == "blk.2.ffn_up.weight" {
				first = plain
				first.Data = bytes.Repeat(plain.Data[:16], len(plain.Data)/16)
			}
			v.Shape, v.Data = []int{2 * v.Shape[0], v.Shape[1]}, append(slices.Clone(first.Data), v.Data...)
		case strings.HasSuffix(v.Name, "ffn_gate.weight"), v.Name == "blk.2.ffn_up.bias", strings.HasPrefix(v.Name, "cls."),
			!code && (strings.Contains(v.Name, "attn_q_norm") || strings.Contains(v.Name, "attn_k_norm") || strings.Contains(v.Name, "attn_norm_2")):
			continue
		}
		kept = append(kept, v)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, f.Metadata, kept); err != nil {
		t.Fatal(err)
	}
	whole, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// jinaFolder takes a model apart, with a prefix before all names.
func jinaFolder(t *testing.T, class, prefix string, want *gguf.File, code bool) *hftest.Folder {
	t.Helper()
	f := bare(t, class)
	clear(f.Config)
	for key, v := range map[string]any{
		"architectures": []string{class}, "num_hidden_layers": 3, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4, "vocab_size": 320,
		"max_position_embeddings": 64, "position_embedding_type": "alibi", "feed_forward_type": "geglu", "hidden_act": "gelu", "layer_norm_eps": 1e-12,
		"type_vocab_size": 2, "emb_pooler": "mean",
	} {
		f.Config[key] = v
	}
	names := []string{"ffn_up", "mlp.gated_layers", "ffn_down", "mlp.wo", "layer_output_norm", "mlp.layernorm"}
	if code {
		names = []string{"attn_q_norm", "attention.self.layer_norm_q", "attn_k_norm", "attention.self.layer_norm_k", "attn_norm_2", "layer_norm_1",
			"ffn_up", "mlp.up_gated_layer", "ffn_down", "mlp.down_layer", "layer_output_norm", "layer_norm_2"}
	}
	rename := strings.NewReplacer(append(names, bertNames...)...)
	for _, v := range want.Tensors {
		v.Data = slices.Clone(v.Data)
		if half := len(v.Data) / 2; code && strings.HasSuffix(v.Name, "ffn_up.weight") { // the gate behind what it gates
			v.Data = append(slices.Clone(v.Data[half:]), v.Data[:half]...)
		}
		f.Tensors[prefix+rename.Replace(v.Name)] = v
	}
	return f
}

// TestJinaBERT takes models for languages and for code apart, and expects them whole again.
func TestJinaBERT(t *testing.T) {
	small := tensor.View{Type: tensor.F32, Shape: []int{1, 1}, Data: make([]byte, 4)}
	t.Run("JinaBertModel", func(t *testing.T) {
		want := jinaModel(t, false)
		f := jinaFolder(t, "JinaBertModel", "", want, false)
		f.Tensors["pooler.dense.weight"] = small // is left out
		if n := opened(t, f, want, ""); n("pooling_type") != 1 || n("context_length") != 64 {
			t.Errorf("pooling %d, context %d", n("pooling_type"), n("context_length"))
		}
		if n := opened(t, f, want, `{"pooling_mode_cls_token": true}`); n("pooling_type") != 2 {
			t.Errorf("pooling %d, though the folder says by the first token", n("pooling_type"))
		}
	})
	t.Run("JinaBertForMaskedLM", func(t *testing.T) {
		want := jinaModel(t, true)
		f := jinaFolder(t, "JinaBertForMaskedLM", "bert.", want, true)
		f.Tensors["cls.predictions.bias"] = small
		opened(t, f, want, `{"pooling_mode_mean_tokens": true}`)
	})
	t.Run("a head", func(t *testing.T) { // of a class that is not supported
		f := jinaFolder(t, "JinaBertModel", "", jinaModel(t, false), false)
		f.Tensors["classifier.weight"] = small
		if _, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), "classifier.weight") {
			t.Errorf("got %v", err)
		}
	})
	for key, value := range map[string]any{"position_embedding_type": "absolute", "feed_forward_type": "original", "hidden_act": "relu", "emb_pooler": "max"} {
		t.Run(key, func(t *testing.T) {
			f := jinaFolder(t, "JinaBertModel", "", jinaModel(t, false), false)
			if f.Config[key] = value; key == "feed_forward_type" {
				delete(f.Config, key) // without a gate
			}
			if _, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// jinaV3 takes a model that rotates apart. Where it adapts, its matrices have adapters of two tasks beside them.
func jinaV3(t *testing.T, class string, adapts bool) (*hftest.Folder, *gguf.File) {
	t.Helper()
	f, want := encoder(t, class, "jina-bert-v3", map[string]any{
		"max_position_embeddings": 66, "pad_token_id": 1, "position_embedding_type": "rotary", "rotary_emb_base": 2000.0, "hidden_act": "gelu", "type_vocab_size": 2,
		"layer_norm_eps": 1e-12, "lora_adaptations": []string{"retrieval.query", "text-matching"}, "lora_rank": 4, "truncate_dim": nil,
	}, "token_embd.weight", "embeddings.word_embeddings.weight", "token_types.weight", "embeddings.token_type_embeddings.weight", "token_embd_norm", "emb_ln",
		"blk.", "encoder.layers.", "attn_qkv", "mixer.Wqkv", "attn_output_norm", "norm1", "attn_output", "mixer.out_proj", "layer_output_norm", "norm2",
		"ffn_up", "mlp.fc1", "ffn_down", "mlp.fc2")
	all := map[string]tensor.View{"roberta.pooler.dense.bias": {Type: tensor.F32, Shape: []int{1}, Data: make([]byte, 4)}}
	for name, v := range f.Tensors {
		name = "roberta." + name
		if module, ok := strings.CutSuffix(name, ".weight"); ok && adapts && len(v.Shape) == 2 {
			const rank = 4
			name = module + ".parametrizations.weight.original"
			for part, shape := range map[string][]int{"lora_A": {2, rank, v.Shape[1]}, "lora_B": {2, v.Shape[0], rank}} {
				a := tensor.View{Type: tensor.F32, Shape: shape}
				a.Data = bytes.Repeat([]byte{1}, int(a.Bytes()))
				all[module+".parametrizations.weight.0."+part] = a
			}
		}
		all[name] = v
	}
	f.Tensors = all
	return f, want
}

// TestJinaBERTv3 expects the model without adapters, whether the folder has them or not.
func TestJinaBERTv3(t *testing.T) {
	for _, tt := range []struct {
		class  string
		adapts bool
	}{{"XLMRobertaModel", true}, {"XLMRobertaLoRA", true}, {"XLMRobertaModel", false}} {
		t.Run(tt.class, func(t *testing.T) {
			f, want := jinaV3(t, tt.class, tt.adapts)
			if n := opened(t, f, want, ""); n("pooling_type") != 1 || n("context_length") != 64 || n("rope.dimension_count") != 16 {
				t.Errorf("pooling %d, context %d, %d values rotate", n("pooling_type"), n("context_length"), n("rope.dimension_count"))
			}
			got := open(t, write(t, f))
			if x, _, _ := got.Float("jina-bert-v3.rope.freq_base"); x != 2000 {
				t.Errorf("the base is %v", x)
			}
			if text, ok, _ := got.String("general.description"); ok != tt.adapts || ok && !strings.Contains(text, "without the adapters of its tasks: retrieval.query, text-matching") {
				t.Errorf("the description is %q", text)
			}
		})
	}
	for _, tt := range []struct {
		want   string
		change func(f *hftest.Folder)
	}{
		{"truncate_dim is not supported", func(f *hftest.Folder) { f.Config["truncate_dim"] = 32 }},
		{"rotary_emb_base is missing", func(f *hftest.Folder) { delete(f.Config, "rotary_emb_base") }},
		{"roberta.norm.parametrizations.weight.0.lora_A", func(f *hftest.Folder) {
			f.Tensors["roberta.norm.parametrizations.weight.0.lora_A"] = f.Tensors["roberta.emb_ln.weight"]
		}},
		{"roberta.encoder.layers.0.mixer.Wqkv.parametrizations.weight.1.lora_A", func(f *hftest.Folder) {
			f.Tensors["roberta.encoder.layers.0.mixer.Wqkv.parametrizations.weight.1.lora_A"] = f.Tensors["roberta.emb_ln.weight"]
		}},
	} {
		t.Run(tt.want, func(t *testing.T) {
			f, _ := jinaV3(t, "XLMRobertaModel", true)
			tt.change(f)
			if _, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
