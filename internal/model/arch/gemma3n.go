package arch

import (
	"fmt"
	"math"

	"grove/internal/compute"
	"grove/internal/compute/weight"
	"grove/internal/model"
)

func init() { model.Register("gemma3n", openGemma3n) }

// Settings of Gemma 3n that files may lack, or that are the same in all.
const (
	gemma3nStreams  = 4
	gemma3nPeriod   = 5   // layers from one without a window to the next
	gemma3nOwn      = 20  // layers with keys of their own
	gemma3nInputs   = 256 // values of a layer's inputs
	gemma3nLaurel   = 64  // rank
	gemma3nSparse   = 10  // layers whose gate keeps some values alone
	gemma3nQuantile = 1.6448533535003662
	gemma3nSoftcap  = 30
	gemma3nLeast    = 1e-5 // of the mean of squares that scales a stream
)

// gemma3n is Gemma 3n, text only (Google 2025): [unitAttention]; four streams (AltUp, Baykal et al. 2023), of which the first is the residual
// stream and rows carry the others; beside attention a product of low rank (LAuReL, Menghani et al. 2024); inputs of each layer; and in the first layers
// a gate that keeps the largest values alone, those beyond a quantile of the normal distribution.
type gemma3n struct {
	info     *model.Info
	hparams  model.Hyperparameters
	head     model.Head
	inputs   layerInputs
	expand   *compute.Matrix // from the first stream to the others, [3, width, width]
	contract *compute.Matrix // from the others to what is added to the first
	layers   []gemma3nLayer
	softcap  float32
}

type gemma3nLayer struct {
	attnNorm, postAttn compute.Vector
	attn               unitAttention
	laurel             [2]compute.Projection
	laurelNorm         compute.Vector
	ffnNorm, postFFN   compute.Vector
	mlp                model.MLP
	sparse             float32 // standard deviations above the mean from which on the gate keeps values; 0: it keeps all
	altup              altUp
	gate               inputGate
}

// altUp predicts the streams behind a layer from those before it, and corrects them by what the layer makes of the first.
type altUp struct {
	norm                     compute.Vector
	router, predict, correct compute.Projection
	scale, ones              compute.Vector
	width                    int
	eps                      float32
}

func openGemma3n(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	if s.ValueSize != s.KeySize {
		l.Fail("gemma3n.attention.value_length is %d; it must be key_length (%d)", s.ValueSize, s.KeySize)
	}
	if n, at := l.CountOr("altup.num_inputs", gemma3nStreams, 0, 1<<16), l.CountOr("altup.active_idx", 0, 0, 1<<16); n != gemma3nStreams || at != 0 {
		l.Fail("gemma3n has %d streams of which number %d is active; only %d and 0 are supported", n, at, gemma3nStreams)
	}
	windowed := l.Windows(l.Count("attention.sliding_window", 1, 1<<24), gemma3nPeriod)
	global, local := l.Rope(s, true), localRope(l, s.KeySize)
	shared := l.CountOr("attention.shared_kv_layers", max(0, s.Layers-gemma3nOwn), 0, max(0, s.Layers-1))
	if !l.OK() {
		return nil
	}
	layers := make([]model.Hyperparameters, s.Layers)
	for i := range layers {
		layers[i] = s
	}
	for i, n := range l.LayerCountsOr("feed_forward_length", s.FFN, 1, 1<<18) {
		layers[i].FFN = n
	}
	unit := loadUnitLayers(l, layers, windowed, shared, global, local)
	m := &gemma3n{info: l.Info(), hparams: s, head: l.Head(s)}
	m.expand = l.Stack("altup_proj.weight", gemma3nStreams-1, s.Width, s.Width)
	m.contract = l.Stack("altup_unembd_proj.weight", gemma3nStreams-1, s.Width, s.Width)
	m.inputs = loadLayerInputs(l, s, l.CountOr("embedding_length_per_layer_input", gemma3nInputs, 1, 1<<12), (gemma3nStreams-1)*s.Width)
	m.softcap = float32(l.RangeOr("final_logit_softcapping", gemma3nSoftcap, 0, 1e6))
	sparse := gemma3nSparsity(l, s)
	for i := 0; i < s.Layers && l.OK(); i++ {
		one := loadGemma3nLayer(l, layers[i], i, &unit, m.inputs.n)
		one.sparse = sparse[i]
		m.layers = append(m.layers, one)
	}
	return m
}

// gemma3nSparsity returns for each layer the standard deviations from which on its gate keeps values; 0: it keeps all.
func gemma3nSparsity(l *model.Loader, s model.Hyperparameters) []float32 {
	sparse := l.QuantilesIf("activation_sparsity_scale")
	for i := 0; sparse == nil && i < s.Layers; i++ {
		sparse = make([]float32, s.Layers)
		for j := range min(gemma3nSparse, s.Layers) {
			sparse[j] = gemma3nQuantile
		}
	}
	return sparse
}

func loadGemma3nLayer(l *model.Loader, s model.Hyperparameters, i int, shared *unitLayers, inputs int) gemma3nLayer {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", i, t) }
	norm := func(t string) compute.Vector { return l.Vector(name(t+".weight"), s.Width) }
	matrix := func(t string, out, in int) compute.Projection {
		return compute.Projection{Matrix: l.Matrix(name(t+".weight"), out, in)}
	}
	const n = gemma3nStreams
	return gemma3nLayer{
		attnNorm: norm("attn_norm"), postAttn: norm("post_attention_norm"), attn: shared.attention(l, s, i),
		laurel:     [2]compute.Projection{l.Projection(name("laurel_l"), gemma3nLaurel, s.Width), l.Projection(name("laurel_r"), s.Width, gemma3nLaurel)},
		laurelNorm: norm("laurel_post_norm"),
		ffnNorm:    norm("ffn_norm"), postFFN: norm("post_ffw_norm"), mlp: l.MLP(s, i),
		altup: altUp{
			norm: norm("altup_router_norm"), router: matrix("altup_router", n, s.Width),
			predict: matrix("altup_predict_coef", n*n, n), correct: matrix("altup_correct_coef", n, n),
			scale: norm("altup_correct_scale"), ones: weight.Ones(n), width: s.Width, eps: s.Eps,
		},
		gate: loadInputGate(l, s, inputs, i),
	}
}

// Info implements [model.Model].
func (m *gemma3n) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *gemma3n) Forward(x *compute.Exec) {
	const others = gemma3nStreams - 1
	eps, width := m.hparams.Eps, m.hparams.Width
	x.Carry(m.inputs.carries())
	x.Embed(m.head.Embed, float32(math.Sqrt(float64(width))))
	if h, ok := x.Begin(); ok {
		m.inputs.Begin(x, h)
		x.SetCarried(0, m.project(x, m.expand, x.Join(h, h, h), h))
		x.Leave(h)
	}
	for i := range m.layers {
		if stream, ok := x.Enter(i); ok {
			streams := m.layers[i].forward(x, &m.inputs, i, x.Join(stream, x.Carried(0, others*width)))
			x.SetCarried(0, x.Part(streams, width, others*width))
			x.Leave(x.CopyHeads(stream, 0, streams, 0, width, 1))
		}
	}
	if h, ok := x.Outputs(); ok {
		rest := m.project(x, m.contract, x.Carried(0, others*width), h)
		for i := range others {
			h = x.Add(h, x.Part(rest, i*width, width))
		}
		h = x.Scale(h, 1.0/gemma3nStreams)
		x.Logits(x.RMSNorm(h, m.head.Norm, eps), compute.Projection{Matrix: m.head.Output}, m.softcap)
	}
}

// project multiplies each of three streams by its matrix and gives the products the length of the first stream.
func (m *gemma3n) project(x *compute.Exec, by *compute.Matrix, streams, like compute.Buf) compute.Buf {
	const others = gemma3nStreams - 1
	return x.MatchLength(x.LinearHeads(x.Buffer(streams, others*m.hparams.Width), 0, streams, by), others, like, gemma3nLeast)
}

// forward returns the streams behind a layer.
func (l *gemma3nLayer) forward(x *compute.Exec, inputs *layerInputs, i int, streams compute.Buf) compute.Buf {
	a := &l.altup
	eps, width := a.eps, a.width
	predicted := x.AddMixed(streams, x.Linear(a.predict, a.route(x, x.Part(streams, 0, width))), gemma3nStreams)
	active := x.Part(predicted, 0, width)
	h := x.RMSNorm(active, l.attnNorm, eps)
	attn := x.RMSNorm(l.attn.Forward(x, h), l.postAttn, eps)
	low := x.RMSNorm(x.Linear(l.laurel[1], x.Linear(l.laurel[0], h)), l.laurelNorm, eps)
	mid := x.Add(x.Add(attn, active), x.Add(low, h))
	mid = x.Scale(mid, float32(math.Sqrt2/2))
	made := x.Add(x.RMSNorm(l.feedForward(x, x.RMSNorm(mid, l.ffnNorm, eps)), l.postFFN, eps), mid)

	corrected := a.adjust(x, predicted, made, active)
	first := x.MulVector(x.Part(corrected, 0, width), a.scale)
	add := l.gate.Forward(x, inputs, i, first)
	rest := x.Add(x.Part(corrected, width, (gemma3nStreams-1)*width), x.Join(add, add, add))
	return x.CopyHeads(corrected, width, rest, 0, (gemma3nStreams-1)*width, 1)
}

// route returns the weights of the streams that a stream asks for.
func (a *altUp) route(x *compute.Exec, h compute.Buf) compute.Buf {
	return x.Tanh(x.Linear(a.router, x.Scale(x.RMSNorm(h, a.norm, a.eps), 1/float32(a.width))))
}

// adjust adds to each predicted stream its share of what the layer made beyond its prediction.
func (a *altUp) adjust(x *compute.Exec, predicted, made, active compute.Buf) compute.Buf {
	shares := x.AddVector(x.Linear(a.correct, a.route(x, made)), a.ones)
	news := x.AddScaled(x.Part(made, 0, a.width), -1, active)
	return x.Add(predicted, x.MulHeads(x.Join(news, news, news, news), shares))
}

// feedForward is the gated block, whose gate may keep its largest values alone.
func (l *gemma3nLayer) feedForward(x *compute.Exec, h compute.Buf) compute.Buf {
	if l.sparse == 0 {
		return l.mlp.Gelu(x, h)
	}
	g := x.Linears(l.mlp.GateUp, h)
	gate, up := g[0], g[1]
	return x.Linear(l.mlp.Down, x.GeluMul(x.GaussTopK(gate, l.sparse), up))
}
