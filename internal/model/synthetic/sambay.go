package synthetic

func init() { families["sambay"] = (*builder).sambaY }

// sambaY adds layers of Mamba and of attention by turns, and behind the two of the middle, units and attention without keys.
func (b *builder) sambaY() {
	s := b.spec
	b.ends()
	b.bias("output_norm.bias", s.Width)
	for l := range s.Layers {
		name, middle := layerOf(l), s.Layers/2
		b.layerNorm(name("attn_norm"))
		b.layerNorm(name("ffn_norm"))
		switch {
		case l%2 == 1:
			b.differential(name, l > middle+1)
		case l > middle:
			b.matrix(name("gmu_in.weight"), s.Scan.Inner, s.Width)
			b.matrix(name("gmu_out.weight"), s.Width, s.Scan.Inner)
		default:
			b.mamba(name)
		}
		b.matrix(name("ffn_up.weight"), 2*s.FFN, s.Width)
		b.matrix(name("ffn_down.weight"), s.Width, s.FFN)
	}
	for key, n := range map[string]int{"inner_size": s.Scan.Inner, "state_size": s.Scan.State, "conv_kernel": s.Scan.Taps, "time_step_rank": s.Scan.Rank} {
		b.set("ssm."+key, uint32(n))
	}
	b.set("attention.layer_norm_epsilon", float32(1e-5))
}

// differential adds attention of pairs of heads; shared: without keys and values.
func (b *builder) differential(name func(string) string, shared bool) {
	s := b.spec
	if shared {
		b.linear(name("attn_q"), s.Heads*s.KeySize, s.Width)
	} else {
		b.linear(name("attn_qkv"), (s.Heads+2*s.KVHeads)*s.KeySize, s.Width)
	}
	b.linear(name("attn_output"), s.Width, s.Heads*s.KeySize)
	for _, t := range []string{"q1", "k1", "q2", "k2"} {
		b.spread(name("attn_lambda_"+t+".weight"), 0.3, s.KeySize)
	}
	b.vector(name("attn_sub_norm.weight"), 2*s.KeySize)
}
