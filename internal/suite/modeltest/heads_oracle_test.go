package modeltest

import (
	"fmt"
	"math"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// headOracle computes the heads of a file, a draft module of the families medusa, hydra and clover, in float64, for a target of Llama's kind. It shares no code with
// the packages that it checks. It panics where a file lacks a tensor.
type headOracle struct {
	file, target *gguf.File
	family       string
}

func newHeadOracle(file, target *gguf.File, family string) *headOracle {
	return &headOracle{file, target, family}
}

const headEps = 1e-5

// has reports whether the file of heads has a tensor.
func (h *headOracle) has(name string) bool {
	_, ok := h.file.Tensor(name)
	return ok
}

// values returns a tensor, and the length of its rows.
func values(f *gguf.File, name string) (v []float64, in int) {
	view, ok := f.Tensor(name)
	if !ok {
		panic("no tensor " + name)
	}
	out := make([]float32, view.Elems())
	if err := tensor.Unpack(view.Type, out, view.Data); err != nil {
		panic(err)
	}
	return doubles(out), view.Shape[len(view.Shape)-1]
}

// matrixTimes returns the product with a matrix.
func matrixTimes(f *gguf.File, name string, x []float64) (y []float64) {
	w, in := values(f, name)
	if in != len(x) {
		panic(name)
	}
	for ; len(w) > 0; w = w[in:] {
		y = append(y, inner(w[:in], x))
	}
	return y
}

func inner(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

func added(a, b []float64) (y []float64) {
	for i, v := range a {
		y = append(y, v+b[i])
	}
	return y
}

// named returns the product with a matrix, plus the bias where there is one.
func (h *headOracle) named(name string, x []float64) []float64 {
	y := matrixTimes(h.file, name+".weight", x)
	if h.has(name + ".bias") {
		bias, _ := values(h.file, name+".bias")
		y = added(y, bias)
	}
	return y
}

// normed is RMSNorm (Zhang and Sennrich 2019).
func (h *headOracle) normed(name string, x []float64) (y []float64) {
	w, _ := values(h.file, name+".weight")
	r := math.Sqrt(inner(x, x)/float64(len(x)) + headEps)
	for i, v := range x {
		y = append(y, v/r*w[i])
	}
	return y
}

// gates is SiLU of each value.
func gates(x []float64) (y []float64) {
	for _, v := range x {
		y = append(y, v/(1+math.Exp(-v)))
	}
	return y
}

func (h *headOracle) count(key string, other int) int {
	if n, ok, err := h.file.Uint(h.family + "." + key); ok && err == nil {
		return n
	}
	return other
}

// embed returns the embedding of a token.
func (h *headOracle) embed(id int) []float64 {
	f := h.target
	if h.has("token_embd.weight") {
		f = h.file
	}
	w, in := values(f, "token_embd.weight")
	return w[id*in : (id+1)*in]
}

// logits returns the logits of what a head makes, by an output of its own or by the target's.
func (h *headOracle) logits(own string, x []float64) []float64 {
	if h.has(own + ".weight") {
		return h.named(own, x)
	}
	return matrixTimes(h.target, "output.weight", x)
}

// Head returns the logits of head k of Medusa or Hydra, which reads a state and, of Hydra, k+1 tokens.
func (h *headOracle) Head(k int, state []float64, ids []int) []float64 {
	name, x := func(t string) string { return fmt.Sprintf("blk.%d.%s", k, t) }, state
	if h.family == "hydra" {
		read := append([]float64(nil), state...)
		for _, id := range ids {
			read = append(read, h.embed(id)...)
		}
		x = added(h.named(name("skip"), read), gates(h.named(name("in"), read)))
	}
	for j := 0; h.has(name(fmt.Sprint("res.", j)) + ".weight"); j++ {
		x = added(x, gates(h.named(name(fmt.Sprint("res.", j)), x)))
	}
	return h.logits(name("output"), x)
}

// Read returns what Hydra++'s heads read, or the first states of Clover's, behind each state of a text; ids[i] is the token behind state i.
func (h *headOracle) Read(states [][]float64, ids []int) [][]float64 {
	if h.family == "hydra" {
		x := h.layer("prefix.", states)
		for i := range x {
			x[i] = h.normed("prefix.output_norm", x[i])
		}
		return x
	}
	x := make([][]float64, len(states))
	for i, id := range ids {
		x[i] = h.cell("mix.", states[i], h.embed(id))
	}
	for l := range h.count("block_count", 0) {
		x = h.layer(fmt.Sprintf("blk.%d.", l), x)
	}
	for i := range x {
		x[i] = h.normed("output_norm", x[i])
	}
	return x
}

// First returns the logits of Clover's first head behind a state.
func (h *headOracle) First(state []float64) []float64 {
	return h.logits("output", h.normed("head_norm", h.named("first", state)))
}

// Next returns the state behind a draft of Clover, and the logits there.
func (h *headOracle) Next(state []float64, id int) (next, logits []float64) {
	next = h.cell("cell.", state, h.embed(id))
	read := append(append([]float64(nil), next...), h.embed(id)...)
	return next, h.logits("output", h.normed("head_norm", h.named("next", read)))
}

// cell adds to each head of a state the values that a token has, times the cosine of the state's query and the token's key.
func (h *headOracle) cell(prefix string, state, embed []float64) []float64 {
	q := h.named(prefix+"attn_q", h.normed(prefix+"attn_norm", state))
	k, v := h.named(prefix+"attn_k", embed), h.named(prefix+"attn_v", embed)
	out, heads := append([]float64(nil), state...), h.count("cell.head_count", h.count("attention.head_count", 0))
	size := len(out) / heads
	for at := 0; at < len(out); at += size {
		a, b := q[at:at+size], k[at:at+size]
		cos := inner(a, b) / math.Sqrt(inner(a, a)*inner(b, b))
		for i := range size {
			out[at+i] += cos * v[at+i]
		}
	}
	return out
}

// layer is a causal layer of Llama's kind (Touvron et al. 2023), whose heads rotate by halves (Su et al. 2021).
func (h *headOracle) layer(prefix string, in [][]float64) (out [][]float64) {
	heads, size := h.count("attention.head_count", 0), h.count("attention.key_length", 0)
	shared := heads / h.count("attention.head_count_kv", heads)
	turned := func(x []float64, place int) []float64 {
		for i := range x {
			if j := i % size; j < size/2 {
				sin, cos := math.Sincos(float64(place) * math.Pow(10000, -2*float64(j)/float64(size)))
				x[i], x[i+size/2] = x[i]*cos-x[i+size/2]*sin, x[i]*sin+x[i+size/2]*cos
			}
		}
		return x
	}
	var k, v [][]float64
	for i, x := range in {
		a := h.normed(prefix+"attn_norm", x)
		q := turned(h.named(prefix+"attn_q", a), i)
		k, v = append(k, turned(h.named(prefix+"attn_k", a), i)), append(v, h.named(prefix+"attn_v", a))
		all := make([]float64, heads*size)
		for n := range heads {
			at, sum, weight := n/shared*size, 0.0, make([]float64, i+1)
			for j := range weight {
				weight[j] = math.Exp(inner(q[n*size:(n+1)*size], k[j][at:at+size]) / math.Sqrt(float64(size)))
				sum += weight[j]
			}
			for j, w := range weight {
				for d := range size {
					all[n*size+d] += w / sum * v[j][at+d]
				}
			}
		}
		y := added(x, h.named(prefix+"attn_output", all))
		f := h.normed(prefix+"ffn_norm", y)
		mid := gates(h.named(prefix+"ffn_gate", f))
		for j, u := range h.named(prefix+"ffn_up", f) {
			mid[j] *= u
		}
		out = append(out, added(y, h.named(prefix+"ffn_down", mid)))
	}
	return out
}
