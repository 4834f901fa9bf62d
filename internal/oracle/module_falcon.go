package oracle

import (
	"math"
	"slices"
)

// Falcon returns the states and the logits of rows of pairs (Falcon, Gao et al. 2025). Those of the same block, a number that is not 0, see each other; all see the rows
// before them. A pair without a feature has the state that the row a block before it gave.
func (m *Module) Falcon(pairs []Pair, blocks []int) (states, logits [][]float64) {
	size, eps := m.own.Count("block_size"), m.own.FloatOr("attention.layer_norm_rms_epsilon", 1e-5)
	pairs = slices.Clone(pairs)
	for i := range pairs {
		if pairs[i].Feature == nil {
			states, _ = m.falcon(pairs[:i], blocks, eps)
			pairs[i].Feature = states[i-size]
		}
	}
	return m.falcon(pairs, blocks, eps)
}

// falcon is Falcon of pairs that all have features.
func (m *Module) falcon(pairs []Pair, blocks []int, eps float64) (x, logits [][]float64) {
	for i := range pairs {
		x = append(x, m.lstm(pairs[:i+1]))
	}
	heads, kvHeads, size := m.own.Count("attention.head_count"), m.own.Count("attention.head_count_kv"), m.own.Count("attention.key_length")
	freq := Yarn(size, m.own.FloatOr("rope.freq_base", 10000), 1, 4096, 32, 1, true) // stretched by 1: plain
	for l := range m.own.Count("block_count") {
		q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
		for i, h := range x {
			if m.own.Has("blk.%d.attn_norm.weight", l) {
				h = RMSNorm(h, m.own.Tensor("blk.%d.attn_norm.weight", l), eps)
			}
			q[i], k[i], v[i] = m.own.Queries(l, h)
			for _, heads := range [][]float64{q[i], k[i]} {
				for at := 0; at < len(heads); at += size {
					Rotate(heads[at:at+size], freq, i, 1, true)
				}
			}
		}
		for i := range x {
			end := i + 1
			for end < len(x) && blocks[i] != 0 && blocks[end] == blocks[i] {
				end++
			}
			var all []float64
			for h := range heads {
				at := h / (heads / kvHeads) * size
				all = append(all, Attend(q[i][h*size:(h+1)*size], Part(k[:end], at, size), Part(v[:end], at, size), 1/math.Sqrt(float64(size)), nil)...)
			}
			x[i] = Plus(x[i], m.own.Tensor("blk.%d.attn_output.weight", l).Mul(all))
			x[i] = Plus(x[i], m.own.GatedBlock(l, RMSNorm(x[i], m.own.Tensor("blk.%d.ffn_norm.weight", l), eps)))
		}
	}
	for _, h := range x {
		logits = append(logits, m.head(h))
	}
	return x, logits
}

// lstm returns what the LSTM makes of the last pairs, from zeros.
func (m *Module) lstm(pairs []Pair) (x []float64) {
	width := m.own.Count("embedding_length")
	var out, cell [2][]float64
	for l := range out {
		out[l], cell[l] = make([]float64, width), make([]float64, width)
	}
	for back := m.own.CountOr("lstm_pairs", 1) - 1; back >= 0; back-- {
		x = make([]float64, 2*width)
		if at := len(pairs) - 1 - back; at >= 0 {
			embedding := m.target.Tensor("token_embd.weight").Row(pairs[at].ID)
			if m.target.Gemma() {
				embedding = Times(math.Sqrt(float64(width)), embedding)
			}
			x = slices.Concat(embedding, pairs[at].Feature)
		}
		for l := range out {
			gates := Plus(m.own.Tensor("lstm.%d.ih.weight", l).Mul(x), m.own.Tensor("lstm.%d.ih.bias", l).V)
			gates = Plus(gates, m.own.Tensor("lstm.%d.hh.bias", l).V)
			if m.own.Has("lstm.%d.hh.weight", l) {
				gates = Plus(gates, m.own.Tensor("lstm.%d.hh.weight", l).Mul(out[l]))
			}
			for i := range width {
				cell[l][i] = moduleSigmoid(gates[width+i])*cell[l][i] + moduleSigmoid(gates[i])*math.Tanh(gates[2*width+i])
				out[l][i] = moduleSigmoid(gates[3*width+i]) * math.Tanh(cell[l][i])
			}
			x = slices.Clone(out[l])
		}
	}
	return x
}

func moduleSigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
