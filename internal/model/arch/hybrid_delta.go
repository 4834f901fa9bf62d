package arch

import (
	"fmt"
	"math"
	"slices"

	"grove/internal/compute"
	"grove/internal/model"
)

// deltaNet is the hyperparameters of gated delta nets.
type deltaNet struct {
	width       int
	heads, keys int // heads of values, of queries and keys
	size        int // of a head's queries, keys and values
	taps        int
	eps         float32
	tiled       bool // value head h has the query and key of head h mod keys; otherwise those of head h keys / heads
}

// loadDeltaNet reads the hyperparameters.
func loadDeltaNet(l *model.Loader, s model.Hyperparameters, tiled bool) deltaNet {
	d := deltaNet{
		width: s.Width, heads: l.Count("ssm.time_step_rank", 1, maxHeads), keys: l.Count("ssm.group_count", 1, maxHeads),
		size: l.Count("ssm.state_size", 1, maxState), taps: l.Count("ssm.conv_kernel", 2, maxTaps), eps: s.Eps, tiled: tiled,
	}
	inner, arch := l.Count("ssm.inner_size", 1, maxInner), l.Info().Arch
	switch {
	case !l.OK():
	case inner != d.heads*d.size:
		l.Fail("%s.ssm.inner_size is %d; it must be time_step_rank (%d) times state_size (%d)", arch, inner, d.heads, d.size)
	case d.heads%d.keys != 0:
		l.Fail("%s.ssm.group_count is %d; it must divide ssm.time_step_rank (%d)", arch, d.keys, d.heads)
	case d.channels()+2*d.heads > maxRecord:
		l.Fail("a row's input of a recurrence would have %d values, by %s.ssm.time_step_rank, group_count and state_size; %d are supported", d.channels()+2*d.heads, arch, maxRecord)
	}
	return d
}

// channels returns how many the convolution has: queries, keys and values.
func (d *deltaNet) channels() int { return (2*d.keys + d.heads) * d.size }

// gatedDelta is the gated delta net of Qwen 3 Next (Yang, Kautz and Hatamizadeh 2024; Qwen team 2025): queries, keys and values pass a
// short convolution; queries and keys get unit length; each head of values has a decay and a strength for the row. What it
// gives is normed head by head and gated by SiLU.
type gatedDelta struct {
	deltaNet
	layer     int
	in        []compute.Projection // queries, keys and values; the gate; strengths; what decays are made of
	conv      *compute.Conv
	dtBias, a compute.Vector
	delta     *compute.Delta
	unit      compute.Vector // of queries, the factor for their length; of keys 1
	norm      compute.Vector
	out       compute.Projection
}

// load loads the block of a layer, whose first products the architecture gives.
func (d deltaNet) load(l *model.Loader, layer int, in []compute.Projection) *gatedDelta {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", layer, t) }
	m := &gatedDelta{
		deltaNet: d, layer: layer, in: in, dtBias: l.Vector(name("ssm_dt.bias"), d.heads), a: l.Vector(name("ssm_a"), d.heads),
		norm: l.Vector(name("ssm_norm.weight"), d.size), out: l.Projection(name("ssm_out"), d.width, d.heads*d.size),
	}
	w := l.Table(name("ssm_conv1d.weight"), d.channels(), d.taps)
	if l.OK() {
		m.conv = compute.NewConv(w, compute.Vector{}, d.channels(), d.taps, true)
		m.unit.F = slices.Concat(slices.Repeat([]float32{unitScale(d.size)}, d.keys*d.size), slices.Repeat([]float32{1}, d.keys*d.size))
		m.delta = compute.NewDelta(d.heads, d.keys, d.size, d.size, false, d.tiled)
		keeps(l, layer, m.conv.Keeps(), m.delta.Keeps())
	}
	return m
}

// Forward implements [hybridBlock].
func (m *gatedDelta) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	p := x.Linears(m.in, h)
	qkv, z, beta, alpha := p[0], p[1], p[2], p[3]
	qkv = x.Recur(m.layer, 0, m.conv, qkv)
	n := 2 * m.keys * m.size
	qk, v := x.Part(qkv, 0, n), x.Part(qkv, n, m.heads*m.size)
	qk = x.MulVector(x.UnitHeads(qk, 2*m.keys, m.eps), m.unit)
	g := x.MulVector(x.Softplus(alpha, m.dtBias), m.a)
	o := x.Recur(m.layer, 1, m.delta, x.Join(qk, v, g, x.Sigmoid(beta)))
	return x.Linear(m.out, x.SiluMul(z, x.NormHeads(o, m.heads, m.norm, m.eps)))
}

// unitScale is the factor of queries of unit length.
func unitScale(size int) float32 { return float32(1 / math.Sqrt(float64(size))) }
