package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/model"
)

// Nemotron 3 (NVIDIA 2025), with mixtures for feed-forward blocks, is files of another name. Its layers are those of
// [openNemotronH].
func init() { model.Register("nemotron_h_moe", openNemotronH) }

// plainMixture is experts without gates, with the square of ReLU between their matrices, and a shared expert that every row
// runs. Routers weigh by sigmoids, with a bias for the choice. The routed experts may read and write a narrower row
// (Nemotron 3 2025), which one matrix makes and another turns back.
type plainMixture struct {
	hparams model.Hyperparameters
	ffn     []int // inner values of an expert, by layer
	shared  int   // inner values of the shared expert
	latent  int   // the width that routed experts read; 0: the stream's
	choice  compute.Router

	router, up, down, latentDown, latentUp compute.Projection
	common                                 squaredMLP
}

// loadPlainMixture reads the settings of all layers.
func loadPlainMixture(l *model.Loader, s model.Hyperparameters) plainMixture {
	const sigmoid = 2
	if f := l.CountOr("expert_gating_func", sigmoid, 0, 1<<16); f != sigmoid && f != 0 {
		l.Fail("%s.expert_gating_func is %d; only 2 (sigmoid) is supported", l.Info().Arch, f)
	}
	m := plainMixture{
		hparams: s, ffn: l.LayerCounts("expert_feed_forward_length", 0, 1<<18), shared: l.Count("expert_shared_feed_forward_length", 1, 1<<18),
		latent: l.CountOr("moe_latent_size", 0, 0, 1<<16), choice: l.Router(s),
	}
	m.choice.Sigmoid = true
	return m
}

// layer loads the mixture of a layer.
func (m plainMixture) layer(l *model.Loader, i int) *plainMixture {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", i, t) }
	s, width := m.hparams, m.hparams.Width
	if m.latent > 0 {
		width = m.latent
		m.latentDown, m.latentUp = l.Projection(name("ffn_latent_down"), width, s.Width), l.Projection(name("ffn_latent_up"), s.Width, width)
	}
	if m.ffn[i] == 0 {
		l.Fail("%s.expert_feed_forward_length is 0 for layer %d, which has experts", l.Info().Arch, i)
	}
	m.router = l.Projection(name("ffn_gate_inp"), s.Experts, s.Width)
	m.choice.Bias = l.Vector(name("exp_probs_b.bias"), s.Experts)
	m.up = compute.Projection{Matrix: l.Stack(name("ffn_up_exps.weight"), s.Experts, m.ffn[i], width)}
	m.down = compute.Projection{Matrix: l.Stack(name("ffn_down_exps.weight"), s.Experts, width, m.ffn[i])}
	m.common.Up, m.common.Down = l.Projection(name("ffn_up_shexp"), m.shared, s.Width), l.Projection(name("ffn_down_shexp"), s.Width, m.shared)
	l.NoteMixture(s, i, m.up.Matrix.Bytes()+m.down.Matrix.Bytes())
	return &m
}

// Forward implements [hybridBlock].
func (m *plainMixture) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	r := x.Route(x.Linear(m.router, h), &m.choice)
	in := h
	if m.latent > 0 {
		in = x.Linear(m.latentDown, h)
	}
	inner := x.ReluSquared(x.LinearExperts(m.up, x.Experts(in, r), r))
	mixed := x.MixExperts(x.LinearExperts(m.down, inner, r), r)
	if m.latent > 0 {
		mixed = x.Linear(m.latentUp, mixed)
	}
	return x.Add(mixed, m.common.Forward(x, h))
}
