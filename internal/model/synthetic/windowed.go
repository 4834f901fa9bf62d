package synthetic

import "grove/internal/weights/tensor"

// windowedMixture adds Step 3.5 and MiMo-V2: layers with and without a window by turns, which have other numbers of heads, and
// mixtures behind a leading plain block.
func (b *builder) windowedMixture() {
	s := b.spec
	step := s.Arch == "step35"
	b.ends()
	heads, kvHeads, windowed, clamps := make([]uint32, s.Layers), make([]uint32, s.Layers), make([]bool, s.Layers), make([]float32, s.Layers)
	for l := range s.Layers {
		windowed[l], heads[l], kvHeads[l] = l%3 != 0, uint32(s.Heads), uint32(s.KVHeads)
		if windowed[l] && step {
			heads[l] += uint32(s.KVHeads)
		} else if windowed[l] {
			kvHeads[l] *= 2
		}
		if l == s.Layers-1 {
			clamps[l] = 0.5 // some lie beyond it
		}
		b.windowedLayer(layerOf(l), int(heads[l]), int(kvHeads[l]), l > 0, step, windowed[l])
	}
	b.set("attention.head_count", heads)
	b.set("attention.head_count_kv", kvHeads)
	b.set("attention.sliding_window_pattern", windowed)
	b.set("rope.freq_base", float32(500000))
	b.set("rope.freq_base_swa", float32(100))
	if !step {
		b.set("rope.dimension_count", uint32(s.KeySize/4*2))
		b.set("attention.value_scale", float32(0.707))
		return
	}
	factors := make([]float32, s.KeySize/2)
	for i := range factors {
		factors[i] = 1 + 0.5*b.rng.Float32()
	}
	b.add("rope_freqs.weight", tensor.F32, factors, len(factors))
	b.set("swiglu_clamp_exp", clamps)
	b.set("swiglu_clamp_shexp", clamps)
	b.set("expert_shared_feed_forward_length", uint32(s.FFN))
	b.set("expert_weights_norm", true)
	b.set("expert_weights_scale", float32(1.5))
}

func (b *builder) windowedLayer(name func(string) string, heads, kvHeads int, mixture, step, windowed bool) {
	s := b.spec
	b.vector(name("attn_norm.weight"), s.Width)
	b.matrix(name("attn_q.weight"), heads*s.KeySize, s.Width)
	b.matrix(name("attn_k.weight"), kvHeads*s.KeySize, s.Width)
	b.matrix(name("attn_v.weight"), kvHeads*s.ValueSize, s.Width)
	b.matrix(name("attn_output.weight"), s.Width, heads*s.ValueSize)
	switch {
	case step:
		b.vector(name("attn_q_norm.weight"), s.KeySize)
		b.vector(name("attn_k_norm.weight"), s.KeySize)
		b.matrix(name("attn_gate.weight"), heads, s.Width)
	case windowed:
		b.spread(name("attn_sinks.weight"), 2, heads)
	}
	b.vector(name("ffn_norm.weight"), s.Width)
	if !mixture {
		b.gated(name, "", s.FFN)
		return
	}
	b.floats(name("ffn_gate_inp.weight"), tensor.F32, s.Experts, s.Width)
	b.bias(name("exp_probs_b.bias"), s.Experts)
	b.experts(name, s.FFN)
	if step {
		b.gated(name, "_shexp", s.FFN)
	}
}

// step3 adds Step-3: one head of keys, queries made of a short row, and mixtures behind a leading plain block, with a plain block at the
// end.
func (b *builder) step3() {
	s := b.spec
	const rank = 32
	b.ends()
	for l := range s.Layers {
		name := layerOf(l)
		b.vector(name("attn_norm.weight"), s.Width)
		b.vector(name("ffn_norm.weight"), s.Width)
		b.matrix(name("attn_q_a.weight"), rank, s.Width)
		b.vector(name("attn_q_a_norm.weight"), rank)
		b.matrix(name("attn_q_b.weight"), s.Heads*s.KeySize, rank)
		b.matrix(name("attn_k.weight"), s.KVHeads*s.KeySize, s.Width)
		b.matrix(name("attn_v.weight"), s.KVHeads*s.KeySize, s.Width)
		b.matrix(name("attn_output.weight"), s.Width, s.Heads*s.KeySize)
		if l == 0 || l == s.Layers-1 {
			b.gated(name, "", s.FFN)
			continue
		}
		b.floats(name("ffn_gate_inp.weight"), tensor.F32, s.Experts, s.Width)
		b.experts(name, s.FFN)
		b.gated(name, "_shexp", s.FFN)
	}
	b.set("attention.q_lora_rank", uint32(rank))
	b.set("expert_shared_feed_forward_length", uint32(s.FFN))
}
