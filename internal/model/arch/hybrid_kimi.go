package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("kimi-linear", openKimiLinear) }

// openKimiLinear opens Kimi Linear (Kimi Team 2025): a layer without heads of keys is Kimi delta attention, the others are latent attention
// without rotation. Behind the leading layers come DeepSeek-V3's mixtures, with shared experts.
func openKimiLinear(l *model.Loader) model.Model {
	base, layers := l.LayerHyperparameters()
	s := l.LatentOf(base)
	d := loadKimiDelta(l, base)
	l.Refuse("nextn_predict_layers")
	dense := l.CountOr("leading_dense_block_count", 0, 0, s.Layers)
	ffn := l.Count("expert_feed_forward_length", 1, 1<<18)
	shared := l.CountOr("expert_shared_count", 1, 0, 1<<8) * ffn
	if s.Experts == 0 {
		l.Fail("%s.expert_count is 0 or missing", l.Info().Arch)
	}
	router := l.Router(base)
	router.Norm = true
	return hybridOpenDecoder(l, base, func(i int) []sublayer {
		mixer, feed := sub(l, base, i, "attn_norm"), sub(l, base, i, "ffn_norm")
		if layers[i].KVHeads > 0 {
			a := l.LatentAttention(s, i, nil, 1)
			mixer.blocks = []hybridBlock{&a}
		} else {
			mixer.blocks = []hybridBlock{d.load(l, i)}
		}
		if i < dense {
			feed.blocks = []hybridBlock{&gatedMLP{l.MLP(layers[i], i)}}
			return []sublayer{mixer, feed}
		}
		experts := l.Experts(base, i, ffn)
		experts.Choice = router
		experts.Choice.Bias = l.Vector(fmt.Sprintf("blk.%d.exp_probs_b.bias", i), s.Experts)
		feed.blocks = []hybridBlock{&hybridMixture{experts}}
		if shared > 0 {
			feed.blocks = append(feed.blocks, &gatedMLP{l.SharedMLP(base, i, shared)})
		}
		return []sublayer{mixer, feed}
	})
}

// kimiNet is the hyperparameters of Kimi delta attention.
type kimiNet struct {
	width, heads, size, taps int
	eps                      float32
}

// loadKimiDelta reads the hyperparameters.
func loadKimiDelta(l *model.Loader, s model.Hyperparameters) kimiNet {
	d := kimiNet{width: s.Width, heads: s.Heads, size: l.Count("kda.head_dim", 1, maxState), taps: l.Count("ssm.conv_kernel", 2, maxTaps), eps: s.Eps}
	if record := d.heads * (4*d.size + 1); l.OK() && (s.Heads == 0 || record > maxRecord) {
		l.Fail("a row's input of a recurrence would have %d values, by %s.kda.head_dim and attention.head_count; it must have 1 to %d", record, l.Info().Arch, maxRecord)
	}
	return d
}

// kimiDelta is Kimi delta attention (Kimi Team 2025, section 3): queries, keys and values each pass a short convolution, queries and keys get unit
// length, and every value of a key has a decay of its own, made by a product of low rank. What it gives is normed head by
// head and gated by a sigmoid, also of low rank.
type kimiDelta struct {
	kimiNet
	layer       int
	in          []compute.Projection // queries, keys, values; decays and gates at low rank; strengths
	convs       [3]*compute.Conv
	decay, gate compute.Projection
	dtBias, a   compute.Vector // by value of a key
	delta       *compute.Delta
	norm        compute.Vector
	out         compute.Projection
}

// load loads the block of a layer.
func (d kimiNet) load(l *model.Loader, layer int) *kimiDelta {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", layer, t) }
	inner := d.heads * d.size
	m := &kimiDelta{
		kimiNet: d, layer: layer,
		in: []compute.Projection{
			l.Projection(name("attn_q"), inner, d.width), l.Projection(name("attn_k"), inner, d.width), l.Projection(name("attn_v"), inner, d.width),
			l.Projection(name("ssm_f_a"), d.size, d.width), l.Projection(name("ssm_g_a"), d.size, d.width), l.Projection(name("ssm_beta"), d.heads, d.width),
		},
		decay: l.Projection(name("ssm_f_b"), inner, d.size), gate: l.Projection(name("ssm_g_b"), inner, d.size),
		dtBias: l.Vector(name("ssm_dt.bias"), inner), norm: l.Vector(name("ssm_norm.weight"), d.size), out: l.Projection(name("attn_output"), d.width, inner),
	}
	a := l.Table(name("ssm_a"), d.heads, 1)
	var convs [3]compute.Vector
	for i, t := range []string{"q", "k", "v"} {
		convs[i] = l.Table(name("ssm_conv1d_"+t+".weight"), inner, d.taps)
	}
	if !l.OK() {
		return m
	}
	for _, v := range a.F {
		for range d.size {
			m.a.F = append(m.a.F, v)
		}
	}
	for i, w := range convs {
		m.convs[i] = compute.NewConv(w, compute.Vector{}, inner, d.taps, true)
	}
	m.delta = compute.NewDelta(d.heads, d.heads, d.size, d.size, true, false)
	keeps(l, layer, m.convs[0].Keeps(), m.convs[1].Keeps(), m.convs[2].Keeps(), m.delta.Keeps())
	return m
}

// Forward implements [hybridBlock].
func (m *kimiDelta) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	p := x.Linears(m.in, h)
	q, k, v, f, g, beta := p[0], p[1], p[2], p[3], p[4], p[5]
	q, k, v = x.Recur(m.layer, 0, m.convs[0], q), x.Recur(m.layer, 1, m.convs[1], k), x.Recur(m.layer, 2, m.convs[2], v)
	q, k = x.UnitHeads(q, m.heads, m.eps), x.UnitHeads(k, m.heads, m.eps)
	q = x.Scale(q, unitScale(m.size))
	decay := x.MulVector(x.Softplus(x.Linear(m.decay, f), m.dtBias), m.a)
	gate := x.Sigmoid(x.Linear(m.gate, g))
	o := x.Recur(m.layer, 3, m.delta, x.Join(q, k, v, decay, x.Sigmoid(beta)))
	return x.Linear(m.out, x.Mul(x.NormHeads(o, m.heads, m.norm, m.eps), gate))
}
