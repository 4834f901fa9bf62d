package synthetic

import (
	"math"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Of Gemma 3n and 4, for each layer: three with a window and one without.
const (
	gemmaPeriod = 4
	gemmaInputs = 32 // values of a layer's inputs
)

// sharing returns the number of layers that read the keys of others, the last ones.
func (s Spec) sharing() int {
	if s.Layers <= gemmaPeriod || s.canvas() {
		return 0
	}
	return min(3, s.Layers-gemmaPeriod)
}

// layerInputs adds the inputs of each layer, and the gates that choose from them.
func (b *builder) layerInputs() {
	s := b.spec
	b.matrix("per_layer_token_embd.weight", s.Vocab, gemmaInputs*s.Layers)
	b.matrix("per_layer_model_proj.weight", gemmaInputs*s.Layers, s.Width)
	b.vector("per_layer_proj_norm.weight", gemmaInputs)
	for l := range s.Layers {
		name := layerOf(l)
		b.matrix(name("inp_gate.weight"), gemmaInputs, s.Width)
		b.matrix(name("proj.weight"), s.Width, gemmaInputs)
		b.vector(name("post_norm.weight"), s.Width)
	}
	b.set("attention.shared_kv_layers", uint32(s.sharing()))
	b.set("embedding_length_per_layer_input", uint32(gemmaInputs))
}

// slides sets which layers have a window, with the rotation of these and the soft cap.
func (b *builder) slides() {
	slides := make([]bool, b.spec.Layers)
	for l := range slides {
		slides[l] = l%gemmaPeriod != gemmaPeriod-1
	}
	b.set("attention.sliding_window_pattern", slides)
	b.set("final_logit_softcapping", float32(5))
	b.set("rope.freq_base_swa", float32(1000))
}

// canvas reports whether the model fills canvases that begin as random tokens.
func (s Spec) canvas() bool { return s.Arch == "diffusion-gemma" }

// SyntheticCanvas is the tokens of a canvas of the architecture diffusion-gemma.
const SyntheticCanvas = 24

// canvasInput adds the block through which a canvas reads what the pass before expected, and the settings of the passes.
func (b *builder) canvasInput() {
	s := b.spec
	b.vector("self_cond_pre_norm.weight", s.Width)
	b.matrix("self_cond_gate.weight", s.FFN, s.Width)
	b.matrix("self_cond_up.weight", s.FFN, s.Width)
	b.matrix("self_cond_down.weight", s.Width, s.FFN)
	b.set("attention.causal", false)
	b.metadata = append(b.metadata, gguf.KV{Key: "diffusion.canvas_length", Value: gguf.Of(uint32(SyntheticCanvas))},
		gguf.KV{Key: "diffusion.eb_max_steps", Value: gguf.Of(uint32(8))}, gguf.KV{Key: "diffusion.eb_entropy_bound", Value: gguf.Of(float32(3))})
}

// gemmaBlocks adds the attention, the feed-forward block and the norms of a layer.
func (b *builder) gemmaBlocks(l, kvHeads, size, ffn int, keys, values bool) {
	s := b.spec
	name := layerOf(l)
	for _, t := range []string{"attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"} {
		b.vector(name(t+".weight"), s.Width)
	}
	b.matrix(name("attn_q.weight"), s.Heads*size, s.Width)
	b.vector(name("attn_q_norm.weight"), size)
	if keys {
		b.matrix(name("attn_k.weight"), kvHeads*size, s.Width)
		b.vector(name("attn_k_norm.weight"), size)
	}
	if keys && values {
		b.matrix(name("attn_v.weight"), kvHeads*size, s.Width)
	}
	b.matrix(name("attn_output.weight"), s.Width, s.Heads*size)
	b.gated(name, "", ffn)
}

// gemma4 adds layers whose heads are twice as wide where there is no window, with the keys as values; shared layers have inner values
// twice as many.
func (b *builder) gemma4() {
	s := b.spec
	b.ends()
	var heads, inner []uint32
	for l := range s.Layers {
		kvHeads, size, ffn, slides := s.KVHeads, s.KeySize, s.FFN, l%gemmaPeriod != gemmaPeriod-1
		if !slides {
			kvHeads, size = 1, 2*s.KeySize
		}
		if l >= s.Layers-s.sharing() {
			ffn *= 2
		}
		heads, inner = append(heads, uint32(kvHeads)), append(inner, uint32(ffn))
		b.gemmaBlocks(l, kvHeads, size, ffn, l < s.Layers-s.sharing(), slides)
		name := layerOf(l)
		b.vector(name("layer_output_scale.weight"), 1)
		if s.canvas() {
			b.vector(name("enc_layer_output_scale.weight"), 1)
		}
		if s.Experts == 0 {
			continue
		}
		for _, t := range []string{"pre_ffw_norm_2.weight", "post_ffw_norm_1.weight", "post_ffw_norm_2.weight", "ffn_gate_inp.scale"} {
			b.vector(name(t), s.Width)
		}
		b.floats(name("ffn_gate_inp.weight"), tensor.F32, s.Experts, s.Width)
		b.matrix(name("ffn_gate_up_exps.weight"), s.Experts, 2*s.FFN, s.Width)
		b.matrix(name("ffn_down_exps.weight"), s.Experts, s.Width, s.FFN)
		b.vector(name("ffn_down_exps.scale"), s.Experts)
	}
	if s.canvas() {
		b.canvasInput()
	} else {
		b.layerInputs()
	}
	b.slides()
	b.set("attention.head_count_kv", heads)
	b.set("feed_forward_length", inner)
	b.set("attention.key_length_swa", uint32(s.KeySize))
	b.set("attention.value_length_swa", uint32(s.KeySize))
	factors := make([]float32, s.KeySize) // a quarter of the pairs rotates
	for i := range factors {
		if factors[i] = 1; i >= len(factors)/4 {
			factors[i] = 1e30
		}
	}
	b.add("rope_freqs.weight", tensor.F32, factors, len(factors))
}

func (b *builder) gemma3n() {
	s := b.spec
	const streams, rank = 4, 64
	b.ends()
	b.matrix("altup_proj.weight", streams-1, s.Width, s.Width)
	b.matrix("altup_unembd_proj.weight", streams-1, s.Width, s.Width)
	sparse := make([]float32, s.Layers)
	for l := range s.Layers {
		b.gemmaBlocks(l, s.KVHeads, s.KeySize, s.FFN, true, true) // files have the keys of shared layers too
		name := layerOf(l)
		for _, t := range []string{"altup_correct_scale", "altup_router_norm", "laurel_post_norm"} {
			b.vector(name(t+".weight"), s.Width)
		}
		b.floats(name("altup_router.weight"), tensor.F32, streams, s.Width)
		b.floats(name("altup_predict_coef.weight"), tensor.F32, streams*streams, streams)
		b.floats(name("altup_correct_coef.weight"), tensor.F32, streams, streams)
		b.matrix(name("laurel_l.weight"), rank, s.Width)
		b.matrix(name("laurel_r.weight"), s.Width, rank)
		sparse[l] = []float32{1.2, 0.5, float32(math.Inf(-1))}[l%3]
	}
	b.layerInputs()
	b.slides()
	b.set("activation_sparsity_scale", sparse)
}
