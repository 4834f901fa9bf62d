package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/model"
)

func init() {
	model.Register("nomic-bert", openNomicBERT)
	model.Register("nomic-bert-moe", openNomicBERTMoE)
	model.Register("jina-bert-v3", openJinaBERTv3)
}

// openNomicBERT opens nomic-embed-text 1 (Nussbaum et al. 2024): BERT whose heads rotate by halves, with SiLU as a gate.
func openNomicBERT(l *model.Loader) model.Model {
	return openRotated(l, func(s model.Hyperparameters, i int) encoderBlock {
		mlp := l.MLP(s, i)
		return mlp.Silu
	})
}

// openJinaBERTv3 opens jina-embeddings-v3 (Sturua et al. 2024), whose adapters are merged into the file or are not there: XLM-RoBERTa whose heads
// rotate by halves. llama.cpp takes GELU by tanh.
func openJinaBERTv3(l *model.Loader) model.Model {
	return openRotated(l, func(s model.Hyperparameters, i int) encoderBlock { return plain(l, s, i) })
}

// openNomicBERTMoE opens nomic-embed-text 2 (Nussbaum and Duderstadt 2025): in one layer of some, mixtures of blocks without a gate. The weights
// of a row's experts are those of the softmax over all. llama.cpp takes GELU by tanh.
func openNomicBERTMoE(l *model.Loader) model.Model {
	every := l.CountOr("moe_every_n_layers", 0, 0, 1<<16)
	return openRotated(l, func(s model.Hyperparameters, i int) encoderBlock {
		if every == 0 || i%every != 1 {
			return plain(l, s, i)
		}
		if s.Experts == 0 {
			l.Fail("%s.expert_count is missing; layer %d is a mixture", l.Info().Arch, i)
			return nil
		}
		return encoderLoadMixture(l, s, i).forward
	})
}

// openRotated opens BERT whose heads rotate by halves.
func openRotated(l *model.Loader, ffn func(s model.Hyperparameters, i int) encoderBlock) model.Model {
	s := begin(l)
	rope := l.Rope(s, true)
	m := loadBERT(l, s, func(i int, layer *bertLayer) { layer.attn.rope, layer.ffn = rope, ffn(s, i) })
	l.Readouts(model.PoolFirst, model.Tanh)
	return m
}

// plain loads a feed-forward block without a gate, with GELU by the normal distribution.
func plain(l *model.Loader, s model.Hyperparameters, i int) encoderBlock {
	mlp := l.PlainMLP(s, i)
	return func(x *compute.Exec, h compute.Buf) compute.Buf { return mlp.Forward(x, h, (*compute.Exec).GeluErf) }
}

// encoderMixture is a mixture of feed-forward blocks without gates.
type encoderMixture struct {
	router   compute.Projection
	choice   compute.Router
	up, down compute.Projection
	bias     compute.Vector // added behind the mixture; empty in files of llama.cpp, which leaves it out
}

func encoderLoadMixture(l *model.Loader, s model.Hyperparameters, i int) *encoderMixture {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", i, t) }
	m := &encoderMixture{
		router: l.Projection(name("ffn_gate_inp"), s.Experts, s.Width), choice: l.Router(s),
		up:   compute.Projection{Matrix: l.Stack(name("ffn_up_exps.weight"), s.Experts, s.FFN, s.Width)},
		down: compute.Projection{Matrix: l.Stack(name("ffn_down_exps.weight"), s.Experts, s.Width, s.FFN)},
		bias: l.VectorIf(name("ffn_exps.bias"), s.Width), // a name of grove's own
	}
	l.NoteMixture(s, i, m.up.Matrix.Bytes()+m.down.Matrix.Bytes())
	return m
}

func (m *encoderMixture) forward(x *compute.Exec, h compute.Buf) compute.Buf {
	r := x.Route(x.Linear(m.router, h), &m.choice)
	mid := x.GeluErf(x.LinearExperts(m.up, x.Experts(h, r), r))
	out := x.MixExperts(x.LinearExperts(m.down, mid, r), r)
	if m.bias.Len() > 0 {
		out = x.AddVector(out, m.bias)
	}
	return out
}
