package oracle

import (
	"fmt"
	"math"

	"grove/weights/gguf"
)

// Heads computes the heads of a file, a draft module of the families medusa, hydra and clover, in float64. One goroutine at a time may use it.
type Heads struct {
	*Model
	target *Model
}

// NewHeads makes the oracle of a file of heads and of its target, a model of Llama's kind that lends its embeddings and its head.
func NewHeads(heads, target *gguf.File) (*Heads, error) {
	family, _, err := heads.String("general.architecture")
	if err != nil {
		return nil, err
	}
	if family != "medusa" && family != "hydra" && family != "clover" {
		return nil, fmt.Errorf("oracle: %q is no family of heads", family)
	}
	of := func(f *gguf.File, arch string) *Model {
		return &Model{file: f, arch: arch, tensors: map[string]weights{}}
	}
	return &Heads{of(heads, family), of(target, "llama")}, nil
}

func (h *Heads) eps() float64 { return h.floatOr("attention.layer_norm_rms_epsilon", 1e-5) }

// named returns the product with a matrix, plus the bias where there is one.
func (m *Model) named(name string, x []float64) []float64 {
	y := m.tensor("%s.weight", name).mul(x)
	if m.has("%s.bias", name) {
		y = plus(y, m.tensor("%s.bias", name).v)
	}
	return y
}

// gates is SiLU of each value.
func gates(x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v * sigmoid(v)
	}
	return y
}

// embed returns the embedding of a token.
func (h *Heads) embed(id int) []float64 {
	if h.has("token_embd.weight") {
		return h.tensor("token_embd.weight").row(id)
	}
	return h.target.tensor("token_embd.weight").row(id)
}

// logits returns the logits of what a head makes, by an output of its own or by the target's.
func (h *Heads) logits(own string, x []float64) []float64 {
	switch {
	case h.has("%s.weight", own):
		return h.named(own, x)
	case h.target.has("output.weight"):
		return h.target.tensor("output.weight").mul(x)
	}
	return h.target.tensor("token_embd.weight").mul(x)
}

// Head returns the logits of head k of Medusa or Hydra, which reads a state and, of Hydra, k+1 tokens.
func (h *Heads) Head(k int, state []float64, ids []int) []float64 {
	name, x := func(t string) string { return fmt.Sprintf("blk.%d.%s", k, t) }, state
	if h.arch == "hydra" {
		read := append([]float64(nil), state...)
		for _, id := range ids {
			read = append(read, h.embed(id)...)
		}
		x = plus(h.named(name("skip"), read), gates(h.named(name("in"), read)))
	}
	for j := 0; h.has("%s.weight", name(fmt.Sprint("res.", j))); j++ {
		x = plus(x, gates(h.named(name(fmt.Sprint("res.", j)), x)))
	}
	return h.logits(name("output"), x)
}

// Read returns what Hydra++'s heads read, or the first states of Clover's, behind each state of a text; ids[i] is the token behind state i.
func (h *Heads) Read(states [][]float64, ids []int) [][]float64 {
	if h.arch == "hydra" {
		x := h.layer("prefix.", states)
		for i := range x {
			x[i] = rmsNorm(x[i], h.tensor("prefix.output_norm.weight"), h.eps())
		}
		return x
	}
	x := make([][]float64, len(states))
	for i, id := range ids {
		x[i] = h.cell("mix.", states[i], h.embed(id))
	}
	for l := range h.count("block_count") {
		x = h.layer(fmt.Sprintf("blk.%d.", l), x)
	}
	for i := range x {
		x[i] = rmsNorm(x[i], h.tensor("output_norm.weight"), h.eps())
	}
	return x
}

// First returns the logits of Clover's first head behind a state.
func (h *Heads) First(state []float64) []float64 {
	return h.logits("output", rmsNorm(h.named("first", state), h.tensor("head_norm.weight"), h.eps()))
}

// Next returns the state behind a draft of Clover, and the logits there.
func (h *Heads) Next(state []float64, id int) (next, logits []float64) {
	next = h.cell("cell.", state, h.embed(id))
	read := append(append([]float64(nil), next...), h.embed(id)...)
	return next, h.logits("output", rmsNorm(h.named("next", read), h.tensor("head_norm.weight"), h.eps()))
}

// cell adds to each head of a state the values that a token has, times the cosine of the state's query and the token's key.
func (h *Heads) cell(prefix string, state, embed []float64) []float64 {
	q := h.named(prefix+"attn_q", rmsNorm(state, h.tensor("%sattn_norm.weight", prefix), h.eps()))
	k, v := h.named(prefix+"attn_k", embed), h.named(prefix+"attn_v", embed)
	out, heads := append([]float64(nil), state...), h.countOr("cell.head_count", h.count("attention.head_count"))
	size := len(out) / heads
	for at := 0; at < len(out); at += size {
		a, b := q[at:at+size], k[at:at+size]
		cos := dot(a, b) / math.Sqrt(dot(a, a)*dot(b, b))
		for i := range size {
			out[at+i] += cos * v[at+i]
		}
	}
	return out
}

// layer is a causal layer of Llama's kind (Touvron et al. 2023), whose heads rotate by halves.
func (h *Heads) layer(prefix string, in [][]float64) [][]float64 {
	heads, size := h.count("attention.head_count"), h.count("attention.key_length")
	shared, norm := heads/h.count("attention.head_count_kv"), func(name string, x []float64) []float64 {
		return rmsNorm(x, h.tensor("%s%s.weight", prefix, name), h.eps())
	}
	freq := make([]float64, size/2)
	for i := range freq {
		freq[i] = math.Pow(h.floatOr("rope.freq_base", 10000), -2*float64(i)/float64(size))
	}
	k, v, out := make([][]float64, len(in)), make([][]float64, len(in)), make([][]float64, len(in))
	for i, x := range in {
		a := norm("attn_norm", x)
		q := h.named(prefix+"attn_q", a)
		k[i], v[i] = h.named(prefix+"attn_k", a), h.named(prefix+"attn_v", a)
		for _, rows := range [][]float64{q, k[i]} {
			for at := 0; at < len(rows); at += size {
				rotate(rows[at:at+size], freq, i, 1, true)
			}
		}
		var all []float64
		for n := range heads {
			all = append(all, attend(q[n*size:(n+1)*size], part(k[:i+1], n/shared*size, size), part(v[:i+1], n/shared*size, size), 1/math.Sqrt(float64(size)), nil)...)
		}
		y := plus(x, h.named(prefix+"attn_output", all))
		f := norm("ffn_norm", y)
		mid := gates(h.named(prefix+"ffn_gate", f))
		for j, u := range h.named(prefix+"ffn_up", f) {
			mid[j] *= u
		}
		out[i] = plus(y, h.named(prefix+"ffn_down", mid))
	}
	return out
}
