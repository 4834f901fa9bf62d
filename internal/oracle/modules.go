package oracle

import (
	"iter"
	"math"

	"grove/weights/gguf"
)

// Pair is the input of a draft module's row: a token, and the feature of the token before it.
type Pair struct {
	ID      int
	Feature []float64 // nil: what the row before gave
}

// Module is a draft module's file, and that of the target that lends its embeddings and its head. One goroutine at a time may use it.
type Module struct{ own, target *Model }

// NewModule makes the oracle of a module of a family eagle, eagle3 or kangaroo.
func NewModule(f, target *gguf.File) *Module {
	open := func(f *gguf.File) *Model {
		arch, _, _ := f.String("general.architecture")
		return &Model{file: f, arch: arch, tensors: map[string]weights{}}
	}
	return &Module{open(f), open(target)}
}

// Forward computes a path of pairs and returns the logits behind each.
func (m *Module) Forward(pairs []Pair) [][]float64 {
	return alone(pairs, m.forward)
}

// alone computes a path whose later rows read what the earlier gave: forward returns the logits of rows and the features that they give.
func alone(pairs []Pair, forward func([]Pair) (logits, gives [][]float64)) [][]float64 {
	pairs = append([]Pair(nil), pairs...)
	for i := range pairs {
		if pairs[i].Feature == nil {
			_, gives := forward(pairs[:i])
			pairs[i].Feature = gives[i-1]
		}
	}
	logits, _ := forward(pairs)
	return logits
}

// forward is EAGLE (Li et al. 2024), EAGLE-3 (Li et al. 2025) and Kangaroo (Liu et al. 2024).
func (m *Module) forward(pairs []Pair) (logits, gives [][]float64) {
	eps := m.own.floatOr("attention.layer_norm_rms_epsilon", 1e-5)
	x, in := make([][]float64, len(pairs)), make([][]float64, len(pairs))
	for i, p := range pairs {
		x[i], in[i] = m.joined(p, eps)
	}
	for i, a := range m.attention(in) {
		x[i] = plus(x[i], a)
		if m.own.has("blk.0.ffn_gate.weight") {
			x[i] = plus(x[i], m.own.gatedBlock(0, rmsNorm(x[i], m.own.tensor("blk.0.ffn_norm.weight"), eps)))
		}
		h := x[i]
		if m.own.has("output_norm.weight") {
			h = rmsNorm(h, m.own.tensor("output_norm.weight"), eps)
		}
		logits = append(logits, m.head(h))
		if m.own.arch == "eagle" {
			gives = append(gives, h)
		} else {
			gives = append(gives, x[i])
		}
	}
	return logits, gives
}

// joined returns the stream of a row before the first layer, and what its queries, keys and values are made of.
func (m *Module) joined(p Pair, eps float64) (x, in []float64) {
	if m.own.arch == "kangaroo" {
		return p.Feature, rmsNorm(p.Feature, m.own.tensor("blk.0.attn_norm.weight"), eps)
	}
	embedding := m.target.tensor("token_embd.weight").row(p.ID)
	if m.target.gemma() {
		embedding = times(math.Sqrt(float64(len(embedding))), embedding)
	}
	if m.own.arch == "eagle" {
		x = m.own.tensor("fc.weight").mul(append(append([]float64{}, embedding...), p.Feature...))
		if m.own.has("fc.bias") {
			x = plus(x, m.own.tensor("fc.bias").v)
		}
		return x, x
	}
	if x = p.Feature; len(x) > len(embedding) { // the target's
		x = m.own.tensor("fc.weight").mul(x)
	}
	return x, append(rmsNorm(embedding, m.own.tensor("blk.0.embd_norm.weight"), eps), rmsNorm(x, m.own.tensor("blk.0.attn_norm.weight"), eps)...)
}

// attention is that of the module's layer, whose heads rotate by halves.
func (m *Module) attention(in [][]float64) (out [][]float64) {
	heads, kvHeads, size := m.own.count("attention.head_count"), m.own.count("attention.head_count_kv"), m.own.count("attention.key_length")
	freq := yarn(size, m.own.floatOr("rope.freq_base", 10000), 1, 4096, 32, 1, true) // stretched by 1: plain
	q, k, v := make([][]float64, len(in)), make([][]float64, len(in)), make([][]float64, len(in))
	for i := range in {
		q[i], k[i], v[i] = m.own.queries(0, in[i])
		for _, x := range [][]float64{q[i], k[i]} {
			for at := 0; at < len(x); at += size {
				rotate(x[at:at+size], freq, i, 1, true)
			}
		}
	}
	for i := range in {
		var all []float64
		for h := range heads {
			at := h / (heads / kvHeads) * size
			all = append(all, attend(q[i][h*size:(h+1)*size], part(k[:i+1], at, size), part(v[:i+1], at, size), 1/math.Sqrt(float64(size)), nil)...)
		}
		out = append(out, m.own.tensor("blk.0.attn_output.weight").mul(all))
	}
	return out
}

// head gives logits by the module's own output, or by the target's.
func (m *Module) head(h []float64) []float64 {
	if m.own.has("output.weight") {
		return m.own.tensor("output.weight").mul(h)
	}
	name := "token_embd.weight"
	if m.target.has("output.weight") {
		name = "output.weight"
	}
	logits := m.target.tensor("%s", name).mul(h)
	if limit := m.target.floatOr("final_logit_softcapping", 0); limit > 0 {
		for i := range logits {
			logits[i] = limit * math.Tanh(logits[i]/limit)
		}
	}
	return logits
}

// predictor is a predictor of a model's file that is computed (DeepSeek-AI 2024, section 2.2).
type predictor struct {
	layer   int
	streams [][]float64 // before its layer
	states  [][]float64 // that its norm gives
}

// Predict computes a path of pairs by the first predictor of a model's file, and returns the logits behind each. What a row gives is its final state.
func (m *Model) Predict(pairs []Pair) [][]float64 {
	defer func() { m.predictor = nil }()
	return alone(pairs, m.predict)
}

func (m *Model) predict(pairs []Pair) (logits, states [][]float64) {
	p := &predictor{layer: m.count("block_count") - m.count("nextn_predict_layers")}
	eps := m.floatOr("attention.layer_norm_rms_epsilon", 1e-5)
	of := func(name string) weights { return m.tensor("blk.%d.nextn.%s.weight", p.layer, name) }
	table := m.tensor("token_embd.weight")
	if m.has("blk.%d.nextn.embed_tokens.weight", p.layer) {
		table = of("embed_tokens")
	}
	ids := make([]int, len(pairs))
	for i, pair := range pairs {
		ids[i] = pair.ID
		p.streams = append(p.streams, of("eh_proj").mul(append(rmsNorm(table.row(pair.ID), of("enorm"), eps), rmsNorm(pair.Feature, of("hnorm"), eps)...)))
	}
	m.predictor = p
	logits = m.Forward(ids)
	return logits, p.states
}

// inputs returns the streams before the first layer: the embeddings of a text, or what a predictor makes of pairs.
func (m *Model) inputs(ids []int) [][]float64 {
	if m.predictor != nil {
		return m.predictor.streams
	}
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = m.tensor("token_embd.weight").row(id)
	}
	return x
}

// ownLayers returns the model's own layers, or that of the predictor that is computed.
func (m *Model) ownLayers() iter.Seq[int] {
	first, end := 0, m.count("block_count")-m.countOr("nextn_predict_layers", 0)
	if m.predictor != nil {
		first, end = m.predictor.layer, m.predictor.layer+1
	}
	return func(yield func(int) bool) {
		for l := first; l < end && yield(l); l++ {
		}
	}
}

// finalNorm returns the weights of the norm before the head: those of the predictor that is computed, or the model's.
func (m *Model) finalNorm() weights {
	const own = "blk.%d.nextn.shared_head_norm.weight"
	if p := m.predictor; p != nil && m.has(own, p.layer) {
		return m.tensor(own, p.layer)
	}
	return m.tensor("output_norm.weight")
}

// keepStates keeps what a predictor's rows give.
func (m *Model) keepStates(states [][]float64) {
	if m.predictor != nil {
		m.predictor.states = states
	}
}
