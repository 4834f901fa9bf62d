package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("jina-bert-v2", openJinaBERTv2) }

// openJinaBERTv2 opens jina-embeddings-v2 (Günther et al. 2023) and jina-reranker-v1: BERT without positions, whose attention falls with
// the distance on both sides (ALiBi), with GELU as a gate. Models for code norm queries and keys, and norm the attention twice. The files have the
// gate as a tensor of its own, or in front of the matrix that it gates, or none. llama.cpp takes GELU by tanh.
func openJinaBERTv2(l *model.Loader) model.Model {
	s := begin(l)
	eps := float32(l.RangeOr("attention.layer_norm_epsilon", 1e-12, 0, 1))
	slopes := l.Slopes(s.Heads, float64(l.RangeOr("attention.max_alibi_bias", 8, 0, 1e3)))
	m := loadBERT(l, s, func(i int, layer *bertLayer) {
		layer.attn.attend.Slopes = slopes
		layer.attn.qNorm = normIf(l, i, "attn_q_norm", s.Heads*s.KeySize, eps)
		layer.attn.kNorm = normIf(l, i, "attn_k_norm", s.KVHeads*s.KeySize, eps)
		layer.again = normIf(l, i, "attn_norm_2", s.Width, eps)
		up := fmt.Sprintf("blk.%d.ffn_up.weight", i)
		switch {
		case l.Has(fmt.Sprintf("blk.%d.ffn_gate.weight", i)):
			layer.ffn = gelu(l.MLP(s, i))
		case l.Rows(up) == 2*s.FFN:
			layer.ffn = gelu(l.FusedMLP(s, i))
		default:
			layer.ffn = plain(l, s, i)
		}
	})
	l.Readouts(model.PoolFirst, model.Tanh)
	return m
}

// gelu is a feed-forward block with GELU by the normal distribution as its gate.
func gelu(m model.MLP) encoderBlock {
	return func(x *compute.Exec, h compute.Buf) compute.Buf {
		return x.FeedForward(m.GateUp, m.Down, compute.GeluErfGate, h)
	}
}
