package hf

import (
	"slices"
	"strings"
	"testing"

	"grove/internal/weights/tensor"
)

// TestNeoBERT takes a random model apart: the folder has queries, keys and values head by head.
func TestNeoBERT(t *testing.T) {
	for _, c := range []struct {
		name, root string
		inner      int // what the settings name
	}{{"two thirds", "", 96}, {"all", "model.", 64}} {
		t.Run(c.name, func(t *testing.T) {
			f, want := encoder(t, "NeoBERT", "neo-bert", map[string]any{"max_length": 64, "norm_eps": 1e-5},
				"cls.output", "classifier", "cls.", "dense.", "token_embd", c.root+"encoder", "enc.output_norm", c.root+"layer_norm", "blk.", c.root+"transformer_encoder.",
				"attn_norm", "attention_norm", "attn_qkv", "qkv", "attn_output", "wo", "ffn_up", "ffn.w12", "ffn_down", "ffn.w3")
			f.Config["intermediate_size"] = c.inner
			delete(f.Config, "max_position_embeddings")
			const heads, size, row = 4, 16, 4 * 64
			for name, v := range f.Tensors {
				if !strings.HasSuffix(name, "qkv.weight") {
					continue
				}
				var data []byte
				for h := range heads {
					for which := range 3 {
						data = append(data, v.Data[(which*heads+h)*size*row:][:size*row]...)
					}
				}
				v.Data = data
				f.Tensors[name] = v
			}
			f.Tensors["decoder.weight"] = tensor.View{Type: tensor.F32, Shape: []int{1}, Data: make([]byte, 4)} // is left out
			n := opened(t, f, want, "")
			if n("pooling_type") != 4 || n("feed_forward_length") != 64 || n("context_length") != 64 {
				t.Errorf("pooling %d, %d inner values, context %d", n("pooling_type"), n("feed_forward_length"), n("context_length"))
			}
			for _, name := range []string{"classifier.weight", "classifier.bias", "dense.weight", "dense.bias"} {
				delete(f.Tensors, name)
			}
			if n := opened(t, f, nil, ""); n("pooling_type") != 2 {
				t.Errorf("pooling %d", n("pooling_type"))
			}
			f.Config["rms_norm"] = false
			if _, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), "rms_norm is false; it must be true") {
				t.Errorf("another norm: %v", err)
			}
			if !slices.Contains(Classes(), "NeoBERTForSequenceClassification") {
				t.Error("the class that ranks is missing")
			}
		})
	}
}
