package hf

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// blockFFNNames are the tensors of a layer in folders of BlockFFN, by their names in GGUF.
var blockFFNNames = map[string]string{
	"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight", "output.weight": "lm_head.weight",
	"attn_norm.weight": "input_layernorm.weight", "ffn_norm.weight": "post_attention_layernorm.weight",
	"attn_q.weight": "self_attn.q_proj.weight", "attn_k.weight": "self_attn.k_proj.weight", "attn_v.weight": "self_attn.v_proj.weight",
	"attn_output.weight": "self_attn.o_proj.weight", "ffn_gate_inp.weight": "mlp.router_proj.weight", "ffn_gate_inp_norm.weight": "mlp.router_norm.weight",
	"ffn_up_exps.weight": "mlp.up_proj", "ffn_down_exps.weight": "mlp.down_proj",
}

// blockFFNFolder makes a folder of random weights, with the matrices of blocks apart or beside each other, and the model that it was made of.
func blockFFNFolder(t *testing.T, kind string) (*hftest.Folder, *gguf.File) {
	t.Helper()
	const blocks, size, width, layers = 10, 64, 64, 3
	metadata, tensors, err := synthetic.Spec{Arch: "blockffn", Vocab: 320, Experts: blocks, FFN: size, Width: width, Layers: layers}.Parts()
	if err != nil {
		t.Fatal(err)
	}
	want, err := gguf.New("wanted", metadata, tensors, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := bare(t, "MiniCPMForCausalLM")
	for _, v := range tensors {
		name := v.Name
		if rest, ok := strings.CutPrefix(v.Name, "blk."); ok {
			number, rest, _ := strings.Cut(rest, ".")
			name = "model.layers." + number + "." + blockFFNNames[rest]
		} else {
			name = blockFFNNames[name]
		}
		switch {
		case kind == "block_linear" && strings.HasSuffix(name, "up_proj"):
			v.Shape = []int{blocks * size, width}
		case kind == "block_linear" && strings.HasSuffix(name, "down_proj"):
			beside := tensor.View{Type: v.Type, Shape: []int{width, blocks * size}, Data: make([]byte, len(v.Data))}
			for i := range v.Elems() {
				block, row, at := i/size/width, i/size%width, i%size
				copy(beside.Data[4*(row*blocks*size+block*size+at):][:4], v.Data[4*i:])
			}
			v = beside
		}
		f.Tensors[name] = v
	}
	f.Config = map[string]any{
		"architectures": []string{"MiniCPMForCausalLM"}, "hidden_act": "silu", "num_hidden_layers": layers, "hidden_size": width, "intermediate_size": 640,
		"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "tie_word_embeddings": false,
		"ffn_type": kind, "attention_type": "vanilla", "router_act": "relu", "norm_after_router": "rms", "num_experts": blocks, "expert_size": size,
		"scale_emb": 3, "scale_depth": 0.8 * math.Sqrt(layers), "dim_model_base": 128,
	}
	return f, want
}

// TestBlockFFN opens folders with both orders of matrices and expects the tensors and the settings of the model that they were made of.
func TestBlockFFN(t *testing.T) {
	for _, kind := range []string{"block", "block_linear"} {
		t.Run(kind, func(t *testing.T) {
			f, want := blockFFNFolder(t, kind)
			got := open(t, write(t, f))
			compareTensors(t, want, got)
			for _, kv := range want.Metadata {
				v, ok := got.Lookup(kv.Key)
				a, b := fmt.Sprint(v.Any()), fmt.Sprint(kv.Value.Any())
				if strings.HasSuffix(kv.Key, ".feed_forward_length") && !strings.Contains(kv.Key, "expert") {
					b = "640" // of all blocks together, which nothing reads
				}
				if !strings.HasPrefix(kv.Key, "general.") && (!ok || a != b) {
					t.Errorf("key %s is %s, want %s", kv.Key, a, b)
				}
			}
		})
	}
}

// TestBlockFFNRefused spoils one setting and expects the message that names it.
func TestBlockFFNRefused(t *testing.T) {
	for key, c := range map[string]struct{ value, want string }{
		"ffn_type":          {"moe", `ffn_type is "moe"; it must be one of ["block" "block_linear"]`},
		"attention_type":    {"mla", `attention_type is "mla"; it must be one of ["vanilla"]`},
		"router_act":        {"silu", `router_act is "silu"; it must be one of ["relu"]`},
		"norm_after_router": {"sum", `norm_after_router is "sum"; it must be rms`},
	} {
		f, _ := blockFFNFolder(t, "block")
		f.Config[key] = c.value
		if _, err := Open(write(t, f)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
}
