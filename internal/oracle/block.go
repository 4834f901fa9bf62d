package oracle

import (
	"fmt"
	"math"
	"slices"

	"grove/weights/gguf"
)

// Block is a module that drafts a block of tokens in one pass (DFlash, DFlare, DSpark, 2026).
type Block struct{ of, target *Model }

// NewBlock makes the oracle of a module's file and its target's.
func NewBlock(file, target *gguf.File) *Block {
	open := func(f *gguf.File) *Model {
		arch, _, _ := f.String("general.architecture")
		return &Model{file: f, arch: arch, tensors: map[string]weights{}}
	}
	return &Block{open(file), open(target)}
}

// lent returns a tensor of the module, or the target's where it has none.
func (b *Block) lent(name string) weights {
	if b.of.has("%s", name) {
		return b.of.tensor("%s", name)
	}
	return b.target.tensor("%s", name)
}

// Forward returns the final states and the logits of a block of tokens behind a context, a feature of the target each.
func (b *Block) Forward(features [][]float64, ids []int) (states, logits [][]float64) {
	m, eps := b.of, b.of.floatOr("attention.layer_norm_rms_epsilon", 1e-5)
	for _, id := range ids {
		states = append(states, b.lent("token_embd.weight").row(id))
	}
	for l := range m.count("block_count") {
		var k, v [][]float64
		for i, f := range features {
			g := b.context(l, f, eps)
			k = append(k, b.heads(l, "attn_k", b.contextName(l, "attn_k"), g, i, eps))
			v = append(v, m.tensor("%s", b.contextName(l, "attn_v")).mul(g))
		}
		var q [][]float64
		for i, x := range states {
			h := rmsNorm(x, m.tensor("blk.%d.attn_norm.weight", l), eps)
			name := func(t string) string { return fmt.Sprintf("blk.%d.%s.weight", l, t) }
			q = append(q, b.heads(l, "attn_q", name("attn_q"), h, len(features)+i, eps))
			k = append(k, b.heads(l, "attn_k", name("attn_k"), h, len(features)+i, eps))
			v = append(v, m.tensor("%s", name("attn_v")).mul(h))
		}
		for i := range states {
			sees := len(k)
			if m.boolOr("attention.causal", false) {
				sees = len(features) + i + 1
			}
			x := plus(states[i], b.attend(l, q[i], k[:sees], v[:sees]))
			states[i] = plus(x, m.gatedBlock(l, rmsNorm(x, m.tensor("blk.%d.ffn_norm.weight", l), eps)))
		}
	}
	for i, x := range states {
		states[i] = rmsNorm(x, m.tensor("output_norm.weight"), eps)
		logits = append(logits, b.lent("output.weight").mul(states[i]))
	}
	return states, logits
}

// Order returns what a token adds to the logits behind it, and the logit of the draft that follows being accepted, behind the state of the block's row.
func (b *Block) Order(id int, state []float64) (logits []float64, trust float64) {
	row := b.of.tensor("markov_w1.weight").row(id)
	return b.of.tensor("markov_w2.weight").mul(row), dot(b.of.tensor("conf_proj.weight").v, slices.Concat(state, row)) + b.of.tensor("conf_proj.bias").v[0]
}

// contextName names the projection of the context.
func (b *Block) contextName(l int, name string) string {
	name = fmt.Sprintf("blk.%d.%s", l, name)
	if b.of.has("%s_target.weight", name) {
		name += "_target"
	}
	return name + ".weight"
}

// context returns what a layer's keys and values of a feature are made of.
func (b *Block) context(l int, feature []float64, eps float64) []float64 {
	m, norm := b.of, b.of.tensor("hidden_norm.weight")
	if !m.has("fusion.weight") {
		return rmsNorm(m.tensor("fc.weight").mul(feature), norm, eps)
	}
	sum := make([]float64, len(norm.v))
	for t, w := range softmax(m.tensor("fusion.weight").row(l)) {
		sum = plus(sum, times(w, feature[t*len(sum):][:len(sum)]))
	}
	return rmsNorm(sum, norm, eps)
}

// heads returns the queries or keys of a row at a place, normed head by head and rotated.
func (b *Block) heads(l int, kind, name string, h []float64, place int, eps float64) []float64 {
	m := b.of
	out, norm := m.tensor("%s", name).mul(h), m.tensor("blk.%d.%s_norm.weight", l, kind)
	freq := yarn(norm.in, m.floatOr("rope.freq_base", 10000), 1, 4096, 32, 1, true)
	for at := 0; at < len(out); at += norm.in {
		copy(out[at:], rmsNorm(out[at:at+norm.in], norm, eps))
		rotate(out[at:at+norm.in], freq, place, 1, true)
	}
	return out
}

// attend returns the additions of a row's attention.
func (b *Block) attend(l int, q []float64, k, v [][]float64) (out []float64) {
	m := b.of
	heads, group, size := m.count("attention.head_count"), m.count("attention.head_count")/m.count("attention.head_count_kv"), m.count("attention.key_length")
	for h := range heads {
		at := h / group * size
		out = append(out, attend(q[h*size:(h+1)*size], part(k, at, size), part(v, at, size), 1/math.Sqrt(float64(size)), nil)...)
	}
	return m.tensor("blk.%d.attn_output.weight", l).mul(out)
}
