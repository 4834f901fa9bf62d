package synthetic

import (
	"math"
	"strings"

	"grove/internal/weights/tensor"
)

// Scan describes the recurrences of a hybrid model. The zero value of a field is a small default.
type Scan struct {
	Inner, State, Taps int     // channels, values of a channel's state, taps of the convolution
	Rank               int     // of the matrix that makes the steps; Mamba 2, delta nets: heads of values
	Groups             int     // Mamba 2; delta nets: heads of keys
	Normed             bool    // mamba: B, C and what the steps are made of are normed, as in Falcon Mamba
	NormEps            float64 // mamba: the epsilon of these norms; 0: that of the layers
	Period             int     // delta nets: the layers from one that attends to the next
	Narrow             int     // nemotron_h_moe: values of the row that experts read; 0: the stream's
}

// hybrids are the architectures with recurrences of Mamba, by what layer l has: m is Mamba, 2 is Mamba 2, a is attention, f is
// a feed-forward block behind a norm of its own, p is one without a gate in the place of what mixes rows.
var hybrids = map[string][]string{
	"mamba":          {"m"},
	"mamba2":         {"2"},
	"jamba":          {"mf", "af", "mf"},
	"falcon-h1":      {"2af"},
	"granitehybrid":  {"2f", "af", "2f"},
	"nemotron_h":     {"2", "a", "p"},
	"nemotron_h_moe": {"2", "p", "a"},
}

func init() {
	for arch := range hybrids {
		families[arch] = (*builder).hybrid
	}
}

// scanDefaults replaces the zero fields of the recurrences.
func (s *Spec) scanDefaults() {
	or := func(v *int, other int) {
		if *v == 0 {
			*v = other
		}
	}
	or(&s.Scan.Inner, 2*s.Width)
	if strings.HasPrefix(s.Arch, "qwen3") {
		or(&s.Scan.State, 32)
	}
	or(&s.Scan.State, 16)
	or(&s.Scan.Period, 3)
	or(&s.Scan.Taps, 4)
	or(&s.Scan.Rank, 4)
	or(&s.Scan.Groups, 2)
	if s.Arch == "nemotron_h_moe" {
		or(&s.Experts, 6)
		or(&s.ExpertsPerToken, 2)
	}
}

func (b *builder) hybrid() {
	s := b.spec
	b.ends()
	layers := hybrids[s.Arch]
	var heads, kvHeads, ffn []uint32
	for l := range s.Layers {
		h, kv, f := 0, 0, 0
		for _, part := range layers[l%len(layers)] {
			switch part {
			case 'm':
				b.mamba(layerOf(l))
			case '2':
				b.mamba2(layerOf(l))
			case 'a':
				h, kv = s.Heads, s.KVHeads
				b.plainAttention(layerOf(l))
			case 'f':
				f = s.FFN
				b.hybridFeed(l)
			case 'p':
				f = s.FFN
				b.ungated(layerOf(l))
			}
		}
		b.vector(layerOf(l)("attn_norm.weight"), s.Width)
		heads, kvHeads, ffn = append(heads, uint32(h)), append(kvHeads, uint32(kv)), append(ffn, uint32(f))
	}
	b.set("attention.head_count", heads)
	b.set("attention.head_count_kv", kvHeads)
	b.set("feed_forward_length", ffn)
	for key, n := range map[string]int{"inner_size": s.Scan.Inner, "state_size": s.Scan.State, "conv_kernel": s.Scan.Taps, "time_step_rank": s.Scan.Rank, "group_count": s.Scan.Groups} {
		b.set("ssm."+key, uint32(n))
	}
	b.hybridSettings()
}

// hybridSettings adds the settings of an architecture, with values that change results.
func (b *builder) hybridSettings() {
	s := b.spec
	switch s.Arch {
	case "mamba":
		b.set("ssm.dt_b_c_rms", s.Scan.Normed)
		if s.Scan.NormEps > 0 {
			b.set("ssm.dt_b_c_rms_epsilon", float32(s.Scan.NormEps))
		}
	case "granitehybrid":
		for key, v := range map[string]float32{"embedding_scale": 6, "residual_scale": 0.4, "attention.scale": 0.1, "logit_scale": 3} {
			b.set(key, v)
		}
		b.set("expert_shared_feed_forward_length", uint32(s.FFN))
	case "nemotron_h_moe":
		b.set("expert_shared_feed_forward_length", uint32(s.FFN))
		b.set("expert_weights_norm", true)
		b.set("expert_weights_scale", float32(2.5))
		if s.Scan.Narrow > 0 {
			b.set("moe_latent_size", uint32(s.Scan.Narrow))
		}
	}
}

// conv adds a convolution of n channels, and decays of a shape.
func (b *builder) conv(name func(string) string, n int, decays ...int) {
	b.spread(name("ssm_conv1d.weight"), 0.5, n, b.spec.Scan.Taps)
	b.bias(name("ssm_conv1d.bias"), n)
	a := make([]float32, decays[0]*decays[1])
	for i := range a {
		a[i] = -float32(math.Exp(b.rng.Float64()*5 - 4)) // from -1/50 to -2.7: some remember long
	}
	b.add(name("ssm_a"), tensor.F32, a, decays...)
}

func (b *builder) mamba(name func(string) string) {
	s, c := b.spec, b.spec.Scan
	b.matrix(name("ssm_in.weight"), 2*c.Inner, s.Width)
	b.conv(name, c.Inner, c.Inner, c.State)
	b.matrix(name("ssm_x.weight"), c.Rank+2*c.State, c.Inner)
	if s.Arch == "jamba" {
		b.vector(name("ssm_dt_norm.weight"), c.Rank)
		b.vector(name("ssm_b_norm.weight"), c.State)
		b.vector(name("ssm_c_norm.weight"), c.State)
	}
	b.floats(name("ssm_dt.weight"), tensor.F32, c.Inner, c.Rank)
	b.bias(name("ssm_dt.bias"), c.Inner)
	b.vector(name("ssm_d"), c.Inner)
	b.matrix(name("ssm_out.weight"), s.Width, c.Inner)
}

func (b *builder) mamba2(name func(string) string) {
	s, c := b.spec, b.spec.Scan
	conv := c.Inner + 2*c.Groups*c.State
	b.matrix(name("ssm_in.weight"), c.Inner+conv+c.Rank, s.Width)
	b.conv(name, conv, c.Rank, 1)
	b.bias(name("ssm_dt.bias"), c.Rank)
	b.spread(name("ssm_d"), 1, c.Rank, 1)
	b.spread(name("ssm_norm.weight"), 1, c.Groups, c.Inner/c.Groups)
	b.matrix(name("ssm_out.weight"), s.Width, c.Inner)
}

func (b *builder) plainAttention(name func(string) string) {
	s := b.spec
	b.matrix(name("attn_q.weight"), s.Heads*s.KeySize, s.Width)
	b.matrix(name("attn_k.weight"), s.KVHeads*s.KeySize, s.Width)
	b.matrix(name("attn_v.weight"), s.KVHeads*s.KeySize, s.Width)
	b.matrix(name("attn_output.weight"), s.Width, s.Heads*s.KeySize)
}

// hybridFeed adds the gated block of a layer, or its mixture: Jamba has one in every second layer, Granite in all, with a
// shared expert.
func (b *builder) hybridFeed(l int) {
	s, name := b.spec, layerOf(l)
	b.vector(name("ffn_norm.weight"), s.Width)
	if s.Experts == 0 || s.Arch == "jamba" && l%2 == 0 {
		b.gated(name, "", s.FFN)
		return
	}
	b.floats(name("ffn_gate_inp.weight"), tensor.F32, s.Experts, s.Width)
	b.experts(name, s.FFN)
	if s.Arch == "granitehybrid" {
		b.gated(name, "_shexp", s.FFN)
	}
}

// ungated adds a block with two matrices, or a mixture of such with a shared expert.
func (b *builder) ungated(name func(string) string) {
	s := b.spec
	if s.Experts == 0 {
		b.matrix(name("ffn_up.weight"), s.FFN, s.Width)
		b.matrix(name("ffn_down.weight"), s.Width, s.FFN)
		return
	}
	width := s.Width
	if n := s.Scan.Narrow; n > 0 {
		width = n
		b.matrix(name("ffn_latent_down.weight"), n, s.Width)
		b.matrix(name("ffn_latent_up.weight"), s.Width, n)
	}
	b.floats(name("ffn_gate_inp.weight"), tensor.F32, s.Experts, s.Width)
	b.bias(name("exp_probs_b.bias"), s.Experts)
	b.matrix(name("ffn_up_exps.weight"), s.Experts, s.FFN, width)
	b.matrix(name("ffn_down_exps.weight"), s.Experts, width, s.FFN)
	b.matrix(name("ffn_up_shexp.weight"), s.FFN, s.Width)
	b.matrix(name("ffn_down_shexp.weight"), s.Width, s.FFN)
}
