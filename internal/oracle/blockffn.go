package oracle

import "math"

// blockFFN is BlockFFN (Song et al. 2025; BlockMLP of its modeling_minicpm.py): MiniCPM's scales, and the sum over all blocks of the feed-forward block,
// each times its gate.
func (m *Model) blockFFN(ids []int) [][]float64 {
	eps := m.floatOr("attention.layer_norm_rms_epsilon", 1e-5)
	embed, residual := m.floatOr("embedding_scale", 12), m.floatOr("residual_scale", 1)
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = times(embed, m.tensor("token_embd.weight").row(id))
	}
	for l := range m.count("block_count") {
		in := make([][]float64, len(x))
		for i := range x {
			in[i] = rmsNorm(x[i], m.tensor("blk.%d.attn_norm.weight", l), eps)
		}
		for i, a := range m.windowed(l, in, eps) {
			x[i] = plus(x[i], times(residual, a))
			x[i] = plus(x[i], times(residual, m.blocks(l, rmsNorm(x[i], m.tensor("blk.%d.ffn_norm.weight", l), eps), eps)))
		}
	}
	for i, row := range m.head(x, eps) {
		x[i] = times(1/m.floatOr("logit_scale", 1), row)
	}
	return x
}

func (m *Model) blocks(l int, h []float64, eps float64) []float64 {
	gates := m.tensor("blk.%d.ffn_gate_inp.weight", l).mul(h)
	for e, g := range gates {
		gates[e] = math.Max(0, g)
	}
	gates = rmsNorm(gates, m.tensor("blk.%d.ffn_gate_inp_norm.weight", l), eps)
	up, down, ffn := m.tensor("blk.%d.ffn_up_exps.weight", l), m.tensor("blk.%d.ffn_down_exps.weight", l), m.count("expert_feed_forward_length")
	out := make([]float64, len(h))
	for e, g := range gates {
		mid := up.rows(e*ffn, ffn).mul(h)
		for i, v := range mid {
			mid[i] = g * v * sigmoid(v)
		}
		out = plus(out, down.rows(e*len(h), len(h)).mul(mid))
	}
	return out
}
