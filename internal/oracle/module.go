// module.go computes draft modules in plain float64, for comparison.

package oracle

import (
	"math"
	"slices"

	"grove/internal/weights/gguf"
)

// Module is a draft module's file, and that of the target that lends its embeddings and its head. One goroutine at a time may use it.
type Module struct {
	own, target *Model
	family      string
}

// NewModule makes the oracle of a module of a family eagle, fspad, eagle3, peagle, kangaroo, dflash, dflare or dspark.
func NewModule(f, target *gguf.File) *Module {
	family, _, _ := f.String("general.architecture")
	return &Module{Of(f), Of(target), family}
}

// Forward computes a path of pairs and returns the logits behind each. A pair without a feature reads what the row before it gave, or, of P-EAGLE (Hui et al. 2026),
// the learned one.
func (m *Module) Forward(pairs []Pair) [][]float64 {
	if m.family == "peagle" {
		logits, _ := m.forward(pairs)
		return logits
	}
	return Alone(pairs, m.forward)
}

// forward is EAGLE (Li et al. 2024), FSPAD (Gui et al. 2024), EAGLE-3 (Li et al. 2025) and Kangaroo (Liu et al. 2024).
func (m *Module) forward(pairs []Pair) (logits, gives [][]float64) {
	eps := m.own.FloatOr("attention.layer_norm_rms_epsilon", 1e-5)
	x, in := make([][]float64, len(pairs)), make([][]float64, len(pairs))
	for i, p := range pairs {
		x[i], in[i] = m.joined(p, eps)
	}
	read := slices.Clone(x) // by the head, if it is another product's
	for l := range m.own.CountOr("block_count", 1) {
		for i := range in {
			if l > 0 {
				in[i] = RMSNorm(x[i], m.own.Tensor("blk.%d.attn_norm.weight", l), eps)
			}
		}
		for i, a := range m.attention(l, in) {
			x[i] = Plus(x[i], a)
			if !m.own.Has("blk.%d.ffn_gate.weight", l) {
				continue
			}
			n := RMSNorm(x[i], m.own.Tensor("blk.%d.ffn_norm.weight", l), eps)
			if m.own.Has("blk.0.ffn_down_logits.weight") {
				inner := moduleGated(m.own.Tensor("blk.0.ffn_gate.weight").Mul(n), m.own.Tensor("blk.0.ffn_up.weight").Mul(n))
				read[i] = Plus(x[i], m.own.Tensor("blk.0.ffn_down_logits.weight").Mul(inner))
			}
			x[i] = Plus(x[i], m.own.GatedBlock(l, n))
		}
	}
	for i, h := range x {
		if m.own.Has("blk.0.ffn_down_logits.weight") {
			h = read[i]
		}
		if m.own.Has("output_norm.weight") {
			h = RMSNorm(h, m.own.Tensor("output_norm.weight"), eps)
		}
		logits = append(logits, m.head(h))
		if m.family == "eagle" || m.family == "fspad" && !m.own.Has("blk.0.ffn_down_logits.weight") {
			gives = append(gives, h)
		} else {
			gives = append(gives, x[i])
		}
	}
	return logits, gives
}

// joined returns the stream of a row before the first layer, and what its queries, keys and values are made of.
func (m *Module) joined(p Pair, eps float64) (x, in []float64) {
	if m.family == "kangaroo" {
		return p.Feature, RMSNorm(p.Feature, m.own.Tensor("blk.0.attn_norm.weight"), eps)
	}
	embedding := m.target.Tensor("token_embd.weight").Row(p.ID)
	if m.own.Has("token_embd.weight") {
		embedding = m.own.Tensor("token_embd.weight").Row(p.ID)
	} else if m.target.Gemma() {
		embedding = Times(math.Sqrt(float64(len(embedding))), embedding)
	}
	if m.family == "eagle" || m.family == "fspad" {
		x = m.own.Tensor("fc.weight").Mul(append(append([]float64{}, embedding...), p.Feature...))
		if m.own.Has("fc.bias") {
			x = Plus(x, m.own.Tensor("fc.bias").V)
		}
		if m.own.Has("fc.ffn_gate.weight") {
			up := m.own.Tensor("fc.ffn_up.weight").Mul(RMSNorm(x, m.own.Tensor("fc.ffn_norm.weight"), eps))
			x = Plus(x, m.own.Tensor("fc.ffn_down.weight").Mul(moduleGated(m.own.Tensor("fc.ffn_gate.weight").Mul(embedding), up)))
		}
		return x, x
	}
	if x = p.Feature; x == nil {
		x = m.own.Tensor("mask_hidden.weight").V
	}
	if len(x) > len(embedding) { // the target's
		x = m.own.Tensor("fc.weight").Mul(x)
	}
	return x, append(RMSNorm(embedding, m.own.Tensor("blk.0.embd_norm.weight"), eps), RMSNorm(x, m.own.Tensor("blk.0.attn_norm.weight"), eps)...)
}

// moduleGated multiplies values by SiLU of their gates.
func moduleGated(gate, x []float64) (out []float64) {
	for i, g := range gate {
		out = append(out, g/(1+math.Exp(-g))*x[i])
	}
	return out
}

// attention is that of a layer of the module, whose heads rotate by halves.
func (m *Module) attention(l int, in [][]float64) (out [][]float64) {
	heads, kvHeads, size := m.own.Count("attention.head_count"), m.own.Count("attention.head_count_kv"), m.own.Count("attention.key_length")
	freq := Yarn(size, m.own.FloatOr("rope.freq_base", 10000), 1, 4096, 32, 1, true) // stretched by 1: plain
	q, k, v := make([][]float64, len(in)), make([][]float64, len(in)), make([][]float64, len(in))
	for i := range in {
		q[i], k[i], v[i] = m.own.Queries(l, in[i])
		for _, x := range [][]float64{q[i], k[i]} {
			for at := 0; at < len(x); at += size {
				Rotate(x[at:at+size], freq, i, 1, true)
			}
		}
	}
	for i := range in {
		var all []float64
		for h := range heads {
			at := h / (heads / kvHeads) * size
			all = append(all, Attend(q[i][h*size:(h+1)*size], Part(k[:i+1], at, size), Part(v[:i+1], at, size), 1/math.Sqrt(float64(size)), nil)...)
		}
		out = append(out, m.own.Tensor("blk.%d.attn_output.weight", l).Mul(all))
	}
	return out
}

// head gives logits by the module's own output, or by the target's.
func (m *Module) head(h []float64) []float64 {
	if m.own.Has("output.weight") {
		return m.own.Tensor("output.weight").Mul(h)
	}
	name := "token_embd.weight"
	if m.target.Has("output.weight") {
		name = "output.weight"
	}
	logits := m.target.Tensor("%s", name).Mul(h)
	if limit := m.target.FloatOr("final_logit_softcapping", 0); limit > 0 {
		for i := range logits {
			logits[i] = limit * math.Tanh(logits[i]/limit)
		}
	}
	return logits
}
