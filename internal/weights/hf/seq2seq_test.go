package hf

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// t5GemmaNames are the parts of names of tensors, in GGUF and in folders.
var t5GemmaNames = strings.NewReplacer("enc.token_embd", "model.encoder.embed_tokens", "token_embd", "model.decoder.embed_tokens", "enc.", "model.encoder.", "dec.", "model.decoder.",
	"blk.", "layers.", "output_norm", "norm", "post_cross_attn_norm", "post_cross_attn_layernorm", "cross_attn_norm", "pre_cross_attn_layernorm",
	"post_attn_norm", "post_self_attn_layernorm", "attn_norm", "pre_self_attn_layernorm", "ffn_norm", "pre_feedforward_layernorm", "post_ffw_norm", "post_feedforward_layernorm",
	"cross_attn_", "cross_attn.PROJ_", "attn_", "self_attn.PROJ_", "ffn_gate", "mlp.gate_proj", "ffn_up", "mlp.up_proj", "ffn_down", "mlp.down_proj")

func t5Folder(gated bool) func(string) string {
	return func(name string) string { return hftest.T5Name(name, gated) }
}

func embeddingFolder(name string) string {
	if part, ok := strings.CutPrefix(name, "dense_2."); ok {
		return "proj." + part
	}
	return hftest.T5Name(name, true)
}

func t5GemmaFolder(name string) string {
	name = t5GemmaNames.Replace(name)
	for _, part := range []string{"q", "k", "v", "o"} {
		name = strings.Replace(name, "PROJ_"+part+".", part+"_proj.", 1)
	}
	return name
}

// TestSeq2Seq writes folders of random encoder-decoders in the published names, and expects the tensors and settings of the
// files that they were made of.
func TestSeq2Seq(t *testing.T) {
	gemma := func(layers, width, window int) map[string]any {
		return map[string]any{
			"num_hidden_layers": layers, "hidden_size": width, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
			"max_position_embeddings": 4096, "sliding_window": window, "query_pre_attn_scalar": 25, "rms_norm_eps": 1e-5, "hidden_activation": "gelu_pytorch_tanh",
			"attn_logit_softcapping": 3.0, "final_logit_softcapping": 5.0, "rope_theta": 10000.0, "vocab_size": 320,
		}
	}
	t5 := map[string]any{"num_layers": 3, "d_model": 64, "d_ff": 64, "num_heads": 4, "d_kv": 32, "n_positions": 4096, "relative_attention_num_buckets": 8,
		"layer_norm_epsilon": 1e-5, "feed_forward_proj": "gated-gelu", "decoder_start_token_id": 0, "tie_word_embeddings": false}
	plain := map[string]any{"feed_forward_proj": "relu", "tie_word_embeddings": true}
	for _, c := range []struct {
		class  string
		spec   synthetic.Spec
		config []map[string]any
		name   func(string) string
		less   float32 // of norms
	}{
		{"T5ForConditionalGeneration", synthetic.Spec{Arch: "t5", KVHeads: 4}, []map[string]any{t5}, t5Folder(true), 0},
		{"T5ForConditionalGeneration", synthetic.Spec{Arch: "t5", KVHeads: 4, Tied: true}, []map[string]any{t5, plain}, t5Folder(false), 0},
		{"UMT5ForConditionalGeneration", synthetic.Spec{Arch: "t5", KVHeads: 4}, []map[string]any{t5}, t5Folder(true), 0},
		{"T5EncoderModel", synthetic.Spec{Arch: "t5encoder", KVHeads: 4}, []map[string]any{t5}, t5Folder(true), 0},
		{"CodeT5pEmbeddingModel", synthetic.Spec{Arch: "t5encoder", KVHeads: 4}, []map[string]any{t5, {"embed_dim": 24}}, embeddingFolder, 0},
		{"T5GemmaForConditionalGeneration", synthetic.Spec{Arch: "t5gemma", Window: 30},
			[]map[string]any{{"encoder": gemma(4, 128, 20), "decoder": gemma(3, 64, 30), "tie_word_embeddings": true, "decoder_start_token_id": 2}}, t5GemmaFolder, 1},
	} {
		t.Run(fmt.Sprint(c.class, c.spec.Tied), func(t *testing.T) {
			c.spec.Vocab = 320
			if c.spec.Tied || c.less > 0 {
				c.spec.Tied = true
			}
			want, tensors, err := c.spec.Parts()
			if err != nil {
				t.Fatal(err)
			}
			if c.class == "CodeT5pEmbeddingModel" {
				w := make([]byte, 4*24*64)
				for i := range len(w) / 4 {
					binary.LittleEndian.PutUint32(w[4*i:], math.Float32bits(float32(i)))
				}
				tensors = append(tensors, tensor.View{Name: "dense_2.weight", Type: tensor.F32, Shape: []int{24, 64}, Data: w},
					tensor.View{Name: "dense_2.bias", Type: tensor.F32, Shape: []int{24}, Data: w[:4*24]})
				want = append(want, gguf.KV{Key: "t5encoder.pooling_type", Value: gguf.Of(uint32(2))})
			}
			h := bare(t, c.class)
			for key := range h.Config {
				if !slices.Contains([]string{"architectures", "eos_token_id", "bos_token_id"}, key) {
					delete(h.Config, key)
				}
			}
			for _, part := range c.config {
				for key, v := range part {
					h.Config[key] = v
				}
			}
			for _, v := range tensors {
				name := c.name(v.Name)
				if c.less > 0 && strings.Contains(v.Name, "norm") {
					v.Data = slices.Clone(v.Data)
					for i := 0; i < len(v.Data); i += 4 {
						x := math.Float32frombits(binary.LittleEndian.Uint32(v.Data[i:])) - c.less
						binary.LittleEndian.PutUint32(v.Data[i:], math.Float32bits(x))
					}
				}
				v.Name = ""
				h.Tensors[name] = v
			}
			f := open(t, write(t, h))
			if len(f.Tensors) != len(tensors) {
				t.Errorf("%d tensors, want %d", len(f.Tensors), len(tensors))
			}
			for _, v := range tensors {
				x := make([]float32, v.Elems())
				if err := tensor.Unpack(v.Type, x, v.Data); err != nil {
					t.Fatal(err)
				}
				got := load(t, f, v.Name)
				if !slices.EqualFunc(got, x, func(a, b float32) bool { return math.Abs(float64(a-b)) <= float64(c.less)*1e-6 }) {
					t.Errorf("tensor %s differs", v.Name)
				}
			}
			for _, kv := range want {
				if !strings.HasPrefix(kv.Key, c.spec.Arch+".") || strings.HasPrefix(kv.Key, c.spec.Arch+".rope.") {
					continue
				}
				v, ok := f.Lookup(kv.Key)
				if wanted, is := kv.Value.Any().(float32); is && ok {
					if got, _, _ := f.Float(kv.Key); math.Abs(got-float64(wanted)) > 1e-6 {
						t.Errorf("%s is %v, want %v", kv.Key, got, wanted)
					}
				} else if !ok || fmt.Sprint(v.Any()) != fmt.Sprint(kv.Value.Any()) {
					if kv.Key != "t5encoder.decoder_start_token_id" {
						t.Errorf("%s is %v, want %v", kv.Key, v.Any(), kv.Value.Any())
					}
				}
			}
		})
	}
}
