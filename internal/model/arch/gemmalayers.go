package arch

import (
	"fmt"
	"math"

	"grove/internal/compute"
	"grove/internal/compute/rotary"
	"grove/internal/compute/weight"
	"grove/internal/kv"
	"grove/internal/model"
)

// unitAttention is the attention of Gemma 3n and 4 (Google 2025, 2026): norms of queries, keys and values head by head, that of
// values without weights, and products without a scale. Layers with a window have a rotation of their own. The last layers have
// no keys and values: they read those of the last layer before them that sees as far.
type unitAttention struct {
	hparams            model.Hyperparameters
	layer              int
	qkv                []compute.Projection // queries; and keys, and values, which may be the keys; of shared layers queries alone
	out                compute.Projection
	qNorm, kNorm, unit compute.Vector
	rope               *compute.Rope
	wide               bool // rows of a block see all of it in layers with a window
}

// unitLayers has what the layers of a model with this attention share.
type unitLayers struct {
	windowed      []bool
	own           int // layers with keys and values of their own, the first ones
	global, local *compute.Rope
}

// loadUnitLayers reads the settings. layers has the hyperparameters of each layer, with its sizes of heads; the last shared ones read
// the keys of others.
func loadUnitLayers(l *model.Loader, layers []model.Hyperparameters, windowed []bool, shared int, global, local *compute.Rope) unitLayers {
	u := unitLayers{windowed: windowed, own: len(layers) - shared, global: global, local: local}
	for i := u.own; i < len(layers) && l.OK(); i++ {
		from := u.own - 1
		for from >= 0 && windowed[from] != windowed[i] {
			from--
		}
		if from < 0 {
			l.Fail("%s.attention.shared_kv_layers is %d; layer %d has no layer of its kind before layer %d, whose keys it could read", l.Info().Arch, shared, i, u.own)
			return u
		}
		a, b := &l.Info().Layers[from], &l.Info().Layers[i]
		if a.KVHeads != b.KVHeads || a.KeySize != b.KeySize {
			l.Fail("layer %d has %d heads of %d values, and layer %d, whose keys it reads, %d of %d; the two must be equal", i, b.KVHeads, b.KeySize, from, a.KVHeads, a.KeySize)
		}
		b.Keeps = kv.Share(from)
	}
	return u
}

// localRope is the rotation of layers with a window.
func localRope(l *model.Loader, dims int) *compute.Rope {
	return l.NewRope(rotary.Config{Dims: dims, NeoX: true, Base: l.FloatOr("rope.freq_base_swa", 10000)})
}

// attention loads the block of a layer. Files may have the projections of keys and values of a shared layer, which nothing reads.
func (u *unitLayers) attention(l *model.Loader, s model.Hyperparameters, i int) unitAttention {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", i, t) }
	a := unitAttention{hparams: s, layer: i, rope: u.global, qNorm: l.Vector(name("attn_q_norm.weight"), s.KeySize)}
	if u.windowed[i] {
		a.rope = u.local
	}
	a.qkv = []compute.Projection{l.Projection(name("attn_q"), s.Heads*s.KeySize, s.Width)}
	a.out = l.Projection(name("attn_output"), s.Width, s.Heads*s.KeySize)
	if i >= u.own {
		l.LeaveOut(name("attn_k.weight"), name("attn_k.bias"), name("attn_v.weight"), name("attn_v.bias"), name("attn_k_norm.weight"))
		return a
	}
	a.qkv = append(a.qkv, l.Projection(name("attn_k"), s.KVHeads*s.KeySize, s.Width))
	if l.Has(name("attn_v.weight")) {
		a.qkv = append(a.qkv, l.Projection(name("attn_v"), s.KVHeads*s.KeySize, s.Width))
	}
	a.kNorm, a.unit = l.Vector(name("attn_k_norm.weight"), s.KeySize), weight.Ones(s.KeySize)
	return a
}

// Forward returns the block's addition; h is the normed stream.
func (a *unitAttention) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	s := &a.hparams
	c := compute.Attention{Layer: a.layer, Heads: s.Heads, Scale: 1, Wide: a.wide}
	qkv := x.Linears(a.qkv, h)
	q := x.Rope(x.NormHeads(qkv[0], s.Heads, a.qNorm, s.Eps), s.Heads, a.rope)
	if len(qkv) == 1 {
		return x.Linear(a.out, x.AttendShared(c, q))
	}
	k, v := qkv[1], qkv[len(qkv)-1]
	if len(qkv) == 2 {
		v = x.Part(k, 0, s.KVHeads*s.KeySize)
	}
	k = x.Rope(x.NormHeads(k, s.KVHeads, a.kNorm, s.Eps), s.KVHeads, a.rope)
	return x.Linear(a.out, x.Attend(c, q, k, x.NormHeads(v, s.KVHeads, a.unit, s.Eps)))
}

// layerInputs is the inputs that every layer has of its own: n values of a second embedding of the row's token, and of a product of its first
// one (Gemma 3n). Rows carry them.
type layerInputs struct {
	n, layers int // values of a layer; 0: none
	at        int // what a row carries before them
	width     int
	eps       float32
	table     *compute.Matrix
	project   compute.Projection
	norm      compute.Vector
}

// loadLayerInputs loads the inputs, n values for each layer. Rows carry at values before them.
func loadLayerInputs(l *model.Loader, s model.Hyperparameters, n, at int) layerInputs {
	all := n * s.Layers
	if all > 1<<16 {
		l.Fail("%s.embedding_length_per_layer_input is %d; the inputs of %d layers may have %d values together", l.Info().Arch, n, s.Layers, 1<<16)
		return layerInputs{}
	}
	p := layerInputs{n: n, layers: s.Layers, at: at, width: s.Width, eps: s.Eps}
	if n == 0 || !l.OK() {
		return p
	}
	p.table = l.LookupTable("per_layer_token_embd.weight", l.Info().Vocabulary, all)
	p.project = compute.Projection{Matrix: l.Matrix("per_layer_model_proj.weight", all, s.Width)}
	p.norm = l.Vector("per_layer_proj_norm.weight", n)
	return p
}

// carries returns the number of values that rows carry with the inputs.
func (p *layerInputs) carries() int { return p.at + p.n*p.layers }

// Begin makes the inputs of the rows that begin; h is their embeddings.
func (p *layerInputs) Begin(x *compute.Exec, h compute.Buf) {
	if p.n == 0 {
		return
	}
	b := x.Scale(x.Linear(p.project, h), float32(1/math.Sqrt(float64(p.width))))
	b = x.NormHeads(b, p.layers, p.norm, p.eps)
	b = x.Add(b, x.Lookup(p.table, float32(math.Sqrt(float64(p.n)))))
	x.SetCarried(p.at, x.Scale(b, float32(math.Sqrt2/2)))
}

// inputGate lets the stream choose from a layer's inputs.
type inputGate struct {
	gate, project compute.Projection
	norm          compute.Vector
}

func loadInputGate(l *model.Loader, s model.Hyperparameters, n, i int) inputGate {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", i, t) }
	return inputGate{
		gate: l.Projection(name("inp_gate"), n, s.Width), project: l.Projection(name("proj"), s.Width, n), norm: l.Vector(name("post_norm.weight"), s.Width),
	}
}

// Forward returns the addition of the inputs of layer i to the stream h.
func (g *inputGate) Forward(x *compute.Exec, p *layerInputs, i int, h compute.Buf) compute.Buf {
	mid := x.GeluMul(x.Linear(g.gate, h), x.Carried(p.at+i*p.n, p.n))
	return x.RMSNorm(x.Linear(g.project, mid), g.norm, p.eps)
}
