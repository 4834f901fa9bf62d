package oracle

import (
	"fmt"
	"math"
	"slices"
)

// Block returns the final states and the logits of a block of tokens behind a context, a feature of the target each (DFlash, DFlare, DSpark, 2026).
func (m *Module) Block(features [][]float64, ids []int) (states, logits [][]float64) {
	n, eps, embed := len(features), m.own.FloatOr("attention.layer_norm_rms_epsilon", 1e-5), m.target
	if m.own.Has("token_embd.weight") {
		embed = m.own
	}
	for _, id := range ids {
		states = append(states, embed.Tensor("token_embd.weight").Row(id))
	}
	for l := range m.own.Count("block_count") {
		var q, k, v [][]float64
		for i := range n + len(ids) {
			kind, h := "", m.context(l, features[min(i, n-1)], eps)
			if i >= n {
				h = RMSNorm(states[i-n], m.own.Tensor("blk.%d.attn_norm.weight", l), eps)
				q = append(q, m.heads(l, "attn_q", "", h, i, eps))
			} else if m.own.Has("fusion.weight") {
				kind = "_target"
			}
			k, v = append(k, m.heads(l, "attn_k", kind, h, i, eps)), append(v, m.own.Tensor("blk.%d.attn_v%s.weight", l, kind).Mul(h))
		}
		for i, x := range states {
			sees := len(k)
			if m.own.BoolOr("attention.causal", false) {
				sees = n + i + 1
			}
			heads, size, a := m.own.Count("attention.head_count"), m.own.Count("attention.key_length"), []float64(nil)
			for h := range heads {
				at := h * m.own.Count("attention.head_count_kv") / heads * size
				a = append(a, Attend(q[i][h*size:(h+1)*size], Part(k[:sees], at, size), Part(v[:sees], at, size), 1/math.Sqrt(float64(size)), nil)...)
			}
			x = Plus(x, m.own.Tensor("blk.%d.attn_output.weight", l).Mul(a))
			states[i] = Plus(x, m.own.GatedBlock(l, RMSNorm(x, m.own.Tensor("blk.%d.ffn_norm.weight", l), eps)))
		}
	}
	for i, x := range states {
		states[i] = RMSNorm(x, m.own.Tensor("output_norm.weight"), eps)
		logits = append(logits, m.head(states[i]))
	}
	return states, logits
}

// context returns what a layer's keys and values of a feature are made of.
func (m *Module) context(l int, feature []float64, eps float64) []float64 {
	name := "hidden_norm.weight"
	if !m.own.Has("%s", name) {
		name = fmt.Sprintf("blk.%d.hidden_norm.weight", l)
	}
	norm := m.own.Tensor("%s", name)
	if !m.own.Has("fusion.weight") {
		return RMSNorm(m.own.Tensor("fc.weight").Mul(feature), norm, eps)
	}
	sum := make([]float64, len(norm.V))
	for t, w := range Softmax(m.own.Tensor("fusion.weight").Row(l)) {
		sum = Plus(sum, Times(w, feature[t*len(sum):][:len(sum)]))
	}
	return RMSNorm(sum, norm, eps)
}

// heads returns the queries or keys of a row at a place, normed head by head and rotated.
func (m *Module) heads(l int, name, kind string, h []float64, place int, eps float64) []float64 {
	out, norm := m.own.Tensor("blk.%d.%s%s.weight", l, name, kind).Mul(h), m.own.Tensor("blk.%d.%s_norm.weight", l, name)
	for at := 0; at < len(out); at += norm.In {
		copy(out[at:], RMSNorm(out[at:at+norm.In], norm, eps))
		Rotate(out[at:at+norm.In], Yarn(norm.In, m.own.FloatOr("rope.freq_base", 10000), 1, 4096, 32, 1, true), place, 1, true)
	}
	return out
}

// Order returns what a token adds to the logits behind it, and the logit of the next draft being accepted, behind the state of the block's row.
func (m *Module) Order(id int, state []float64) (logits []float64, trust float64) {
	row, trusts := m.own.Tensor("markov_w1.weight").Row(id), m.own.Tensor("conf_proj.weight")
	return m.own.Tensor("markov_w2.weight").Mul(row), trusts.Mul(slices.Concat(state, row))[0] + m.own.Tensor("conf_proj.bias").V[0]
}
