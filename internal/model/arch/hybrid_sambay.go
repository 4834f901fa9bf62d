package arch

import (
	"fmt"
	"math"

	"grove/internal/compute"
	"grove/internal/kv"
	"grove/internal/model"
)

func init() { model.Register("sambay", openSambaY) }

// sambaY is SambaY with differential attention (Ren et al. 2025, section 2; Phi-4-mini-flash). The layers of the lower half are Mamba and
// differential attention within a window, by turns. The middle is Mamba, whose scan gives the rows' memory, and attention to all tokens. The
// upper layers are gated memory units, which read the memory, and attention that reads the keys and values of the middle: they keep nothing.
type sambaY struct {
	info          *model.Info
	embed, output *compute.Matrix
	norm          model.LayerNorm
	memory        int // values that rows carry
	layers        []sambaLayer
}

type sambaLayer struct {
	mixNorm, ffnNorm model.LayerNorm
	mixer            hybridBlock
	ffn              model.MLP
}

func openSambaY(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	s.Eps = float32(l.RangeOr("attention.layer_norm_epsilon", 1e-5, 0, 1))
	h := loadSSM(l, s)
	window := l.Count("attention.sliding_window", 1, 1<<24)
	l.Refuse("attention.sliding_window_pattern")
	if checkSambaY(l, s); !l.OK() {
		return nil
	}
	for i := range l.Info().Layers {
		l.Info().Layers[i] = sambaKeeps(s, i, window, l.Info().Context)
	}
	m := &sambaY{info: l.Info(), memory: h.inner}
	m.embed, m.output = l.Tables(s)
	m.norm = l.LayerNorm("output_norm", s.Width, s.Eps)
	for i := 0; i < s.Layers && l.OK(); i++ {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s", i, t) }
		m.layers = append(m.layers, sambaLayer{
			mixNorm: l.LayerNorm(name("attn_norm"), s.Width, s.Eps), ffnNorm: l.LayerNorm(name("ffn_norm"), s.Width, s.Eps),
			mixer: loadSambaMixer(l, s, h, i), ffn: l.FusedMLP(s, i),
		})
	}
	return m
}

// maxPair is the largest number of values of a pair of heads.
const maxPair = 1 << 12

// checkSambaY refuses numbers of layers and heads of which the parts cannot be made.
func checkSambaY(l *model.Loader, s model.Hyperparameters) {
	switch {
	case !l.OK():
	case s.Layers%4 != 0:
		l.Fail("sambay.block_count is %d; it must be a multiple of 4", s.Layers)
	case s.Heads%2 != 0 || s.KVHeads%2 != 0:
		l.Fail("sambay.attention.head_count is %d and head_count_kv %d; heads come in pairs, so that both must be even", s.Heads, s.KVHeads)
	case s.ValueSize != s.KeySize:
		l.Fail("sambay.attention.value_length is %d; it must be key_length (%d)", s.ValueSize, s.KeySize)
	case s.KeySize > maxPair/2:
		l.Fail("sambay.attention.key_length is %d; it must be at most %d, as two heads make one of the cache", s.KeySize, maxPair/2)
	case s.Experts > 0:
		l.Fail("sambay.expert_count is %d; only 0 is supported", s.Experts)
	}
}

// sambaKeeps returns what layer i keeps, besides the states of its recurrence. A pair of heads is one head of the cache: their keys side by
// side, and their values, which both read.
func sambaKeeps(s model.Hyperparameters, i, window, context int) kv.Layer {
	if i%2 == 0 {
		return kv.Layer{}
	}
	full := s.Layers/2 + 1
	one := kv.Layer{KVHeads: s.KVHeads / 2, KeySize: 2 * s.KeySize, ValueSize: 2 * s.KeySize}
	switch {
	case i > full:
		one.Keeps = kv.Share(full)
	case i < full && window < context:
		one.Keeps = kv.Window(window)
	}
	return one
}

// loadSambaMixer loads what mixes rows in layer i.
func loadSambaMixer(l *model.Loader, s model.Hyperparameters, h ssm, i int) hybridBlock {
	middle := s.Layers / 2
	switch {
	case i%2 == 1:
		return loadDifferential(l, s, i, i > middle+1)
	case i > middle:
		return &memoryUnit{
			in:     l.Projection(fmt.Sprintf("blk.%d.gmu_in", i), h.inner, s.Width),
			out:    l.Projection(fmt.Sprintf("blk.%d.gmu_out", i), s.Width, h.inner),
			memory: h.inner,
		}
	}
	m := h.loadMamba1(l, i, false)
	m.remembers = i == middle
	return m
}

// Info implements [model.Model].
func (m *sambaY) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *sambaY) Forward(x *compute.Exec) {
	x.Carry(m.memory)
	x.Embed(m.embed, 1)
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		stream = x.Add(stream, l.mixer.Forward(x, l.mixNorm.Forward(x, stream)))
		x.Leave(x.Add(stream, l.ffn.Silu(x, l.ffnNorm.Forward(x, stream))))
	}
	if h, ok := x.Outputs(); ok {
		x.Logits(m.norm.Forward(x, h), compute.Projection{Matrix: m.output}, 0)
	}
}

// memoryUnit is the gated memory unit: what an earlier layer's scan gave of the row, gated by the row as it is now. A row that skipped
// that layer has a memory of zeros.
type memoryUnit struct {
	in, out compute.Projection
	memory  int
}

// Forward implements [hybridBlock].
func (m *memoryUnit) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	return x.Linear(m.out, x.SiluMul(x.Linear(m.in, h), x.Carried(0, m.memory)))
}

// subNormEps is the epsilon of the norm of a pair, which files do not tell.
const subNormEps = 1e-5

// differential is differential attention (Ye et al. 2024, section 2.1): heads 2p and 2p+1 are a pair, which reads the values of both by two
// softmaxes and takes a part of the second from the first. The difference is normed.
type differential struct {
	layer, heads, size int
	scale              float32
	qkv                []compute.Projection // queries, keys, values; queries alone, where the layer reads another's keys
	out                compute.Projection
	lambda             float32        // the part of the second
	norm               compute.Vector // of a pair, with the factor behind it
}

func loadDifferential(l *model.Loader, s model.Hyperparameters, i int, shared bool) *differential {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", i, t) }
	d := &differential{layer: i, heads: s.Heads, size: s.KeySize, scale: float32(1 / math.Sqrt(float64(s.KeySize)))}
	if shared {
		d.qkv = []compute.Projection{l.Projection(name("attn_q"), s.Heads*s.KeySize, s.Width)}
	} else {
		d.qkv = l.Projections(name("attn_qkv"), s.Width, s.Heads*s.KeySize, s.KVHeads*s.KeySize, s.KVHeads*s.KeySize)
	}
	d.out = l.Projection(name("attn_output"), s.Width, s.Heads*s.KeySize)
	first, lambda := loadLambda(l, i, s.KeySize)
	d.lambda = lambda
	norm := l.Vector(name("attn_sub_norm.weight"), 2*s.KeySize)
	d.norm.F = make([]float32, norm.Len())
	for j, w := range norm.F {
		d.norm.F[j] = w * (1 - first)
	}
	return d
}

// Forward implements [hybridBlock].
func (d *differential) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	qkv := x.Linears(d.qkv, h)
	c := compute.Attention{Layer: d.layer, Heads: d.heads, Scale: d.scale}
	var o compute.Buf
	if q := d.apart(x, qkv[0]); len(qkv) == 1 {
		o = x.AttendShared(c, q)
	} else {
		o = x.Attend(c, q, qkv[1], qkv[2])
	}
	pairs, n := d.heads/2, 2*d.size
	first := x.CopyHeads(x.Buffer(o, pairs*n), 0, o, 0, n, pairs)
	second := x.CopyHeads(x.Buffer(o, pairs*n), 0, o, n, n, pairs)
	return x.Linear(d.out, x.NormHeads(x.AddScaled(first, -d.lambda, second), pairs, d.norm, subNormEps))
}

// apart returns the queries of pairs as they read the keys of pairs: [q1 0], then [0 q2]. A product with a zero changes no sum.
func (d *differential) apart(x *compute.Exec, q compute.Buf) compute.Buf {
	pairs, n := d.heads/2, d.size
	zeros := x.Scale(x.Part(q, 0, 2*pairs*n), 0) // where a query is not finite they are not, and the step fails
	dst := x.CopyHeads(x.Buffer(q, 4*pairs*n), 0, q, 0, n, pairs)
	dst = x.CopyHeads(dst, n, zeros, 0, 2*n, pairs)
	return x.CopyHeads(dst, 3*n, q, n, n, pairs)
}
