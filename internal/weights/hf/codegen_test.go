package hf

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"grove/internal/hftest"
)

// codeGen2Sizes are those of the model of [codeGen2Folder].
const codeGen2Width, codeGen2Heads, codeGen2Parts = 64, 8, 4

// codeGen2Folder makes a small model.
func codeGen2Folder(t *testing.T) *hftest.Folder {
	t.Helper()
	const width, heads, vocab = codeGen2Width, codeGen2Heads, 320
	rng := rand.New(rand.NewPCG(5, 6))
	h := bare(t, "CodeGenForCausalLM")
	for key, v := range map[string]any{
		"n_layer": 1, "n_embd": width, "n_head": heads, "n_positions": 512, "rotary_dim": 4, "n_inner": nil, "layer_norm_epsilon": 1e-5,
		"activation_function": "gelu_new",
	} {
		h.Config[key] = v
	}
	put := func(name string, shape ...int) { h.Tensors[name] = random(rng, shape...) }
	put("transformer.wte.weight", vocab, width)
	put("lm_head.weight", vocab, width)
	put("lm_head.bias", vocab)
	for _, norm := range []string{"transformer.ln_f", "transformer.h.0.ln_1"} {
		put(norm+".weight", width)
		put(norm+".bias", width)
	}
	put("transformer.h.0.attn.qkv_proj.weight", 3*width, width)
	put("transformer.h.0.attn.out_proj.weight", width, width)
	put("transformer.h.0.mlp.fc_in.weight", 4*width, width)
	put("transformer.h.0.mlp.fc_in.bias", 4*width)
	put("transformer.h.0.mlp.fc_out.weight", width, 4*width)
	put("transformer.h.0.mlp.fc_out.bias", width)
	return h
}

// TestCodeGen2 makes a small model and expects its queries, keys and values from the published code: the rows of one matrix are cut into four
// parts, and each part into queries, values and keys.
func TestCodeGen2(t *testing.T) {
	const width, parts = codeGen2Width, codeGen2Parts
	h := codeGen2Folder(t)
	fused := h.Tensors["transformer.h.0.attn.qkv_proj.weight"].Data
	f := open(t, write(t, h))
	for which, name := range []string{"attn_q", "attn_v", "attn_k"} {
		got := load(t, f, fmt.Sprintf("blk.0.%s.weight", name))
		for i := range got {
			row, local := i/width, width/parts
			from := (row/local*3*local+which*local+row%local)*width + i%width
			if want := math.Float32frombits(binary.LittleEndian.Uint32(fused[4*from:])); got[i] != want {
				t.Fatalf("%s: value %d is %v, want %v", name, i, got[i], want)
			}
		}
	}
	if n, _, _ := f.Uint("codegen2.rope.dimension_count"); n != 4 || len(f.Tensors) != 15 {
		t.Errorf("%d values of a head rotate; %d tensors", n, len(f.Tensors))
	}
}
