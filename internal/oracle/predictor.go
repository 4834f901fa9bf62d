package oracle

import "iter"

// Pair is the input of a draft module's row: a token, and the feature of the token before it.
type Pair struct {
	ID      int
	Feature []float64 // nil: what the row before gave
}

// Alone computes a path whose later rows read what the earlier gave: forward returns the logits of rows and the features that they give.
func Alone(pairs []Pair, forward func([]Pair) (logits, gives [][]float64)) [][]float64 {
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

// predictor is a predictor of a model's file that is computed (DeepSeek-AI 2024, section 2.2).
type predictor struct {
	layer   int
	streams [][]float64 // before its layer
	states  [][]float64 // that its norm gives
}

// Predict computes a path of pairs by the i-th predictor of a model's file, and returns the logits behind each. What a row gives is its final state.
func (m *Model) Predict(i int, pairs []Pair) [][]float64 {
	defer func() { m.predictor = nil }()
	return Alone(pairs, func(pairs []Pair) (logits, states [][]float64) { return m.predict(i, pairs) })
}

func (m *Model) predict(i int, pairs []Pair) (logits, states [][]float64) {
	p := &predictor{layer: m.Count("block_count") - m.Count("nextn_predict_layers") + i}
	eps := m.FloatOr("attention.layer_norm_rms_epsilon", 1e-5)
	of := func(name string) Weights { return m.Tensor("blk.%d.nextn.%s.weight", p.layer, name) }
	table := m.Tensor("token_embd.weight")
	if m.Has("blk.%d.nextn.embed_tokens.weight", p.layer) {
		table = of("embed_tokens")
	}
	ids := make([]int, len(pairs))
	for i, pair := range pairs {
		ids[i] = pair.ID
		embedding, state := RMSNorm(table.Row(pair.ID), of("enorm"), eps), RMSNorm(pair.Feature, of("hnorm"), eps)
		if !m.Has("blk.%d.nextn.eh_proj.weight", p.layer) {
			p.streams = append(p.streams, Plus(embedding, state))
			continue
		}
		p.streams = append(p.streams, of("eh_proj").Mul(append(embedding, state...)))
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
		x[i] = m.Tensor("token_embd.weight").Row(id)
	}
	return x
}

// ownLayers returns the model's own layers, or that of the predictor that is computed.
func (m *Model) ownLayers() iter.Seq[int] {
	first, end := 0, m.Count("block_count")-m.CountOr("nextn_predict_layers", 0)
	if m.predictor != nil {
		first, end = m.predictor.layer, m.predictor.layer+1
	}
	return func(yield func(int) bool) {
		for l := first; l < end && yield(l); l++ {
		}
	}
}

// finalNorm returns the weights of the norm before the head: those of the predictor that is computed, or the model's.
func (m *Model) finalNorm() Weights {
	const own = "blk.%d.nextn.shared_head_norm.weight"
	if p := m.predictor; p != nil && m.Has(own, p.layer) {
		return m.Tensor(own, p.layer)
	}
	return m.Tensor("output_norm.weight")
}

// keepStates keeps what a predictor's rows give.
func (m *Model) keepStates(states [][]float64) {
	if m.predictor != nil {
		m.predictor.states = states
	}
}
