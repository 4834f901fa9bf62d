package oracle

import "math"

// blockFFN is BlockFFN (Song et al. 2025; BlockMLP of its modeling_minicpm.py): MiniCPM's scales, and the sum over all blocks of the feed-forward block,
// each times its gate.
func (m *Model) blockFFN(ids []int) [][]float64 {
	eps := m.FloatOr("attention.layer_norm_rms_epsilon", 1e-5)
	embed, residual := m.FloatOr("embedding_scale", 12), m.FloatOr("residual_scale", 1)
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = Times(embed, m.Tensor("token_embd.weight").Row(id))
	}
	for l := range m.Count("block_count") {
		in := make([][]float64, len(x))
		for i := range x {
			in[i] = RMSNorm(x[i], m.Tensor("blk.%d.attn_norm.weight", l), eps)
		}
		for i, a := range m.windowed(l, in, eps) {
			x[i] = Plus(x[i], Times(residual, a))
			x[i] = Plus(x[i], Times(residual, m.blocks(l, RMSNorm(x[i], m.Tensor("blk.%d.ffn_norm.weight", l), eps), eps)))
		}
	}
	for i, row := range m.head(x, eps) {
		x[i] = Times(1/m.FloatOr("logit_scale", 1), row)
	}
	return x
}

func (m *Model) blocks(l int, h []float64, eps float64) []float64 {
	gates := m.Tensor("blk.%d.ffn_gate_inp.weight", l).Mul(h)
	for e, g := range gates {
		gates[e] = math.Max(0, g)
	}
	gates = RMSNorm(gates, m.Tensor("blk.%d.ffn_gate_inp_norm.weight", l), eps)
	up, down, ffn := m.Tensor("blk.%d.ffn_up_exps.weight", l), m.Tensor("blk.%d.ffn_down_exps.weight", l), m.Count("expert_feed_forward_length")
	out := make([]float64, len(h))
	for e, g := range gates {
		mid := up.rows(e*ffn, ffn).Mul(h)
		for i, v := range mid {
			mid[i] = g * v * sigmoid(v)
		}
		out = Plus(out, down.rows(e*len(h), len(h)).Mul(mid))
	}
	return out
}
