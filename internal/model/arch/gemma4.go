package arch

import (
	"fmt"
	"math"

	"grove/internal/compute"
	"grove/internal/kv"
	"grove/internal/model"
)

func init() { model.Register("gemma4", openGemma4) }

// gemma4Softcap is the soft cap of logits that files may lack.
const gemma4Softcap = 30

// gemma4 is Gemma 4, text only (Google 2026): [unitAttention] with heads of another size, and as many as the file says, in
// layers without a window; where files have them, inputs of each layer, a mixture beside the feed-forward block, and a factor of each layer.
type gemma4 struct {
	info    *model.Info
	hparams model.Hyperparameters
	head    model.Head
	inputs  layerInputs
	layers  []gemma4Layer
	softcap float32      // of logits; 0: none
	canvas  *canvasInput // of DiffusionGemma; nil: none
}

type gemma4Layer struct {
	attnNorm, postAttn compute.Vector
	attn               unitAttention
	ffnNorm, postFFN   compute.Vector
	mlp                model.MLP
	mixture            *gemma4Mixture // nil: none
	gate               inputGate
	scale              compute.Vector // one value; empty: 1
	text               compute.Vector // the scale of rows that are of no canvas, where it is another one
}

// gemma4Mixture is the experts beside the feed-forward block of a layer, with their norms.
type gemma4Mixture struct {
	experts                           model.Experts
	routerNorm, norm, post, postPlain compute.Vector
	scale                             float32 // of what the router reads
}

func openGemma4(l *model.Loader) model.Model {
	if m := loadGemma4(l); m != nil {
		return m
	}
	return nil
}

// loadGemma4 returns nil where the load has failed.
func loadGemma4(l *model.Loader) *gemma4 {
	s, layers := l.LayerHyperparameters()
	windowed := l.Windows(l.Count("attention.sliding_window", 1, 1<<24), gemma3Period)
	local := l.CountOr("attention.key_length_swa", s.KeySize, 1, 1<<12)
	if v := l.CountOr("attention.value_length_swa", local, 1, 1<<12); v != local || s.ValueSize != s.KeySize {
		l.Fail("%s has heads of %d and %d values for keys and of %d and %d for values; the two must be equal", l.Info().Arch, s.KeySize, local, s.ValueSize, v)
	}
	global := l.Rope(s, true)
	ropeLocal := localRope(l, l.CountOr("rope.dimension_count_swa", local, 1, local))
	for i := range layers {
		hp := &layers[i]
		if hp.KVHeads == 0 || hp.FFN == 0 {
			l.Fail("layer %d has %d heads of keys and %d inner values; each must be 1 or more", i, hp.KVHeads, hp.FFN)
		}
		if l.OK() && windowed[i] {
			hp.KeySize, hp.ValueSize = local, local
			l.Info().Layers[i] = kv.Layer{KVHeads: hp.KVHeads, KeySize: local, ValueSize: local, Keeps: l.Info().Layers[i].Keeps}
		}
	}
	if !l.OK() {
		return nil
	}
	shared := loadUnitLayers(l, layers, windowed, l.CountOr("attention.shared_kv_layers", 0, 0, s.Layers-1), global, ropeLocal)
	m := &gemma4{info: l.Info(), hparams: s, head: l.Head(s)}
	m.inputs = loadLayerInputs(l, s, l.CountOr("embedding_length_per_layer_input", 0, 0, 1<<12), 0)
	m.softcap = float32(l.RangeOr("final_logit_softcapping", gemma4Softcap, 0, 1e6))
	for i := 0; i < s.Layers && l.OK(); i++ {
		m.layers = append(m.layers, loadGemma4Layer(l, layers[i], i, &shared, m.inputs.n))
	}
	return m
}

func loadGemma4Layer(l *model.Loader, s model.Hyperparameters, i int, shared *unitLayers, inputs int) gemma4Layer {
	norm := func(t string) compute.Vector { return l.Vector(fmt.Sprintf("blk.%d.%s.weight", i, t), s.Width) }
	one := gemma4Layer{
		attnNorm: norm("attn_norm"), postAttn: norm("post_attention_norm"), attn: shared.attention(l, s, i),
		ffnNorm: norm("ffn_norm"), postFFN: norm("post_ffw_norm"), mlp: l.MLP(s, i),
		scale: l.VectorIf(fmt.Sprintf("blk.%d.layer_output_scale.weight", i), 1),
	}
	if inputs > 0 {
		one.gate = loadInputGate(l, s, inputs, i)
	}
	if l.Has(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i)) {
		needExperts(l, s)
		e := &gemma4Mixture{
			experts: l.Experts(s, i, l.Count("expert_feed_forward_length", 1, 1<<18)), scale: float32(1 / math.Sqrt(float64(s.Width))),
			routerNorm: l.Vector(fmt.Sprintf("blk.%d.ffn_gate_inp.scale", i), s.Width),
			norm:       norm("pre_ffw_norm_2"), post: norm("post_ffw_norm_2"), postPlain: norm("post_ffw_norm_1"),
		}
		e.experts.Choice.Weights = l.VectorIf(fmt.Sprintf("blk.%d.ffn_down_exps.scale", i), s.Experts)
		one.mixture = e
	}
	return one
}

// Info implements [model.Model].
func (m *gemma4) Info() *model.Info { return m.info }

// Lend implements [model.Lender].
func (m *gemma4) Lend() model.Lent {
	return m.head.Lent(float32(math.Sqrt(float64(m.hparams.Width))), m.hparams.Eps, 1, m.softcap)
}

// Forward implements [model.Model].
func (m *gemma4) Forward(x *compute.Exec) {
	eps := m.hparams.Eps
	x.Carry(m.inputs.carries())
	x.Embed(m.head.Embed, float32(math.Sqrt(float64(m.hparams.Width))))
	if h, ok := x.Begin(); ok {
		m.inputs.Begin(x, h)
		x.Leave(h)
	}
	m.canvas.begin(x)
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		a := l.attn.Forward(x, x.RMSNorm(stream, l.attnNorm, eps))
		stream = x.Add(stream, x.RMSNorm(a, l.postAttn, eps))
		f := l.mlp.Gelu(x, x.RMSNorm(stream, l.ffnNorm, eps))
		if l.mixture != nil {
			f = l.mixture.forward(x, stream, f, eps)
		}
		stream = x.Add(stream, x.RMSNorm(f, l.postFFN, eps))
		if m.inputs.n > 0 {
			stream = x.Add(stream, l.gate.Forward(x, &m.inputs, i, stream))
		}
		switch {
		case l.text.Len() > 0:
			stream = x.ScaleBlocks(stream, l.text.F[0], l.scale.F[0])
		case l.scale.Len() > 0:
			stream = x.Scale(stream, l.scale.F[0])
		}
		x.Leave(stream)
	}
	if h, ok := x.Outputs(); ok {
		x.Logits(x.RMSNorm(h, m.head.Norm, eps), compute.Projection{Matrix: m.head.Output}, m.softcap)
	}
}

// forward returns the sum of what the feed-forward block gave and of what the experts give, each behind its norm. The router
// reads the stream behind a norm of its own.
func (e *gemma4Mixture) forward(x *compute.Exec, stream, plain compute.Buf, eps float32) compute.Buf {
	route := x.Scale(x.RMSNorm(stream, e.routerNorm, eps), e.scale)
	mixed := e.experts.Gelu(x, x.RMSNorm(stream, e.norm, eps), route)
	return x.Add(x.RMSNorm(plain, e.postPlain, eps), x.RMSNorm(mixed, e.post, eps))
}
