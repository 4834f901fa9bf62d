package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/compute/weight"
	"grove/internal/kv"
	"grove/internal/model"
)

// Limits of the hyperparameters of recurrences: above those of any model, and small enough that their products do not
// overflow.
const (
	maxTaps   = 64      // of a convolution
	maxState  = 1 << 10 // values that a channel of a recurrence keeps
	maxInner  = 1 << 16 // channels of a recurrence
	maxHeads  = 1 << 12
	maxRecord = 1 << 17 // values of a row's input
)

// ssm is the hyperparameters of Mamba's blocks.
type ssm struct {
	width, inner int // of the stream, of the recurrence
	taps, n      int // of the convolution; values of a channel's state
	rank         int // Mamba 1: of the matrix that makes the steps; Mamba 2: heads
	groups       int // Mamba 2: heads of a group share B and C
	eps          float32
}

// loadSSM reads the hyperparameters of Mamba 1's blocks.
func loadSSM(l *model.Loader, s model.Hyperparameters) ssm {
	h := ssm{
		width: s.Width, inner: l.Count("ssm.inner_size", 1, maxInner), taps: l.Count("ssm.conv_kernel", 2, maxTaps),
		n: l.Count("ssm.state_size", 1, maxState), rank: l.Count("ssm.time_step_rank", 1, maxHeads), eps: s.Eps,
	}
	if record := 2 * (h.inner + h.n); record > maxRecord {
		l.Fail("a row's input of a recurrence would have %d values, by %s.ssm.inner_size and state_size; %d are supported", record, l.Info().Arch, maxRecord)
	}
	return h
}

// loadSSM2 reads the hyperparameters of Mamba 2's blocks.
func loadSSM2(l *model.Loader, s model.Hyperparameters) ssm {
	h := loadSSM(l, s)
	h.groups = l.CountOr("ssm.group_count", 1, 1, maxHeads)
	arch := l.Info().Arch
	switch {
	case !l.OK():
	case h.inner%h.rank != 0:
		l.Fail("%s.ssm.time_step_rank is %d; it must divide ssm.inner_size (%d)", arch, h.rank, h.inner)
	case h.rank%h.groups != 0:
		l.Fail("%s.ssm.group_count is %d; it must divide ssm.time_step_rank (%d)", arch, h.groups, h.rank)
	case h.conv()+h.rank > maxRecord:
		l.Fail("a row's input of a recurrence would have %d values, by %s.ssm.inner_size, state_size and group_count; %d are supported", h.conv()+h.rank, arch, maxRecord)
	}
	return h
}

// conv returns the channels of Mamba 2's convolution.
func (h *ssm) conv() int { return h.inner + 2*h.groups*h.n }

// keeps says that a layer keeps the states of recurrences, besides keys if it attends.
func keeps(l *model.Loader, layer int, states ...kv.State) { l.Info().Layers[layer].States = states }

// loadConv loads the convolution of a layer, whose outputs pass SiLU.
func (h *ssm) loadConv(l *model.Loader, layer, channels int) *compute.Conv {
	name := fmt.Sprintf("blk.%d.ssm_conv1d", layer)
	w, bias := l.Table(name+".weight", channels, h.taps), l.VectorIf(name+".bias", channels)
	if !l.OK() {
		return nil
	}
	return compute.NewConv(w, bias, channels, h.taps, true)
}

// mamba1 is Mamba's block (Gu and Dao 2023, section 3.4 and algorithm 2): a short convolution, then a recurrence whose
// steps and matrices B and C are functions of the row, gated by SiLU.
type mamba1 struct {
	ssm
	layer                int
	in                   []compute.Projection // x, z
	conv                 *compute.Conv
	select3              []compute.Projection // what the steps are made of, B, C
	dtNorm, bNorm, cNorm compute.Vector       // of these; empty: none
	dt, out              compute.Projection
	scan                 *compute.Mamba1
	remembers            bool // rows carry what the scan gives
}

// loadMamba1 loads the block of a layer. normed: the inputs of the steps, B and C are normed, with weights of one where
// the file has none.
func (h ssm) loadMamba1(l *model.Loader, layer int, normed bool) *mamba1 {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", layer, t) }
	m := &mamba1{ssm: h, layer: layer, in: l.Projections(name("ssm_in"), h.width, h.inner, h.inner), conv: h.loadConv(l, layer, h.inner)}
	m.select3 = l.Projections(name("ssm_x"), h.inner, h.rank, h.n, h.n)
	if normed {
		m.dtNorm, m.bNorm, m.cNorm = normOrOnes(l, name("ssm_dt_norm.weight"), h.rank), normOrOnes(l, name("ssm_b_norm.weight"), h.n), normOrOnes(l, name("ssm_c_norm.weight"), h.n)
	}
	l.Need(name("ssm_dt.bias"))
	m.dt = l.Projection(name("ssm_dt"), h.inner, h.rank)
	a, d := l.Table(name("ssm_a"), h.inner, h.n), l.Vector(name("ssm_d"), h.inner)
	m.out = l.Projection(name("ssm_out"), h.width, h.inner)
	if l.OK() {
		m.scan = compute.NewMamba1(a, d, h.inner, h.n)
		keeps(l, layer, m.conv.Keeps(), m.scan.Keeps())
	}
	return m
}

// normOrOnes loads the weights of a norm, or ones.
func normOrOnes(l *model.Loader, name string, n int) compute.Vector {
	if !l.Has(name) {
		return weight.Ones(n)
	}
	return l.Vector(name, n)
}

// Forward implements [hybridBlock].
func (m *mamba1) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	xz := x.Linears(m.in, h)
	u, z := xz[0], xz[1]
	u = x.Recur(m.layer, 0, m.conv, u)
	p := x.Linears(m.select3, u)
	dt, b, c := p[0], p[1], p[2]
	if m.dtNorm.Len() > 0 {
		dt, b, c = x.NormHeads(dt, 1, m.dtNorm, m.eps), x.NormHeads(b, 1, m.bNorm, m.eps), x.NormHeads(c, 1, m.cNorm, m.eps)
	}
	dt = x.Softplus(x.Linear(m.dt, dt), compute.Vector{})
	y := x.Recur(m.layer, 1, m.scan, x.Join(u, dt, b, c))
	if m.remembers {
		x.SetCarried(0, y)
	}
	return x.Linear(m.out, x.SiluMul(z, y))
}

// mamba2 is Mamba 2's block (Dao and Gu 2024, section 7.1): one product makes all that the recurrence needs, whose heads
// each have one decay; groups of heads share B and C. What it gives is gated by SiLU and normed in groups.
type mamba2 struct {
	ssm
	layer  int
	in     []compute.Projection // z; x, B and C; what the steps are made of
	dtBias compute.Vector
	conv   *compute.Conv
	scan   *compute.Mamba2
	ones   compute.Vector // of a group
	norm   compute.Vector // of all groups; empty: none
	out    compute.Projection
}

// loadMamba2 loads the block of a layer, with a norm where the file has one.
func (h ssm) loadMamba2(l *model.Loader, layer int) *mamba2 {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", layer, t) }
	m := &mamba2{ssm: h, layer: layer, in: l.Projections(name("ssm_in"), h.width, h.inner, h.conv(), h.rank)}
	m.conv, m.dtBias = h.loadConv(l, layer, h.conv()), l.Vector(name("ssm_dt.bias"), h.rank)
	a, d := l.Table(name("ssm_a"), h.rank, 1), l.Table(name("ssm_d"), h.rank, 1)
	if norm := name("ssm_norm.weight"); l.Has(norm) {
		m.norm, m.ones = l.Table(norm, h.groups, h.inner/h.groups), weight.Ones(h.inner/h.groups)
	}
	m.out = l.Projection(name("ssm_out"), h.width, h.inner)
	if l.OK() {
		m.scan = compute.NewMamba2(a, d, h.rank, h.inner/h.rank, h.n, h.groups)
		keeps(l, layer, m.conv.Keeps(), m.scan.Keeps())
	}
	return m
}

// Forward implements [hybridBlock].
func (m *mamba2) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	p := x.Linears(m.in, h)
	z, xbc, dt := p[0], p[1], p[2]
	xbc = x.Recur(m.layer, 0, m.conv, xbc)
	y := x.Recur(m.layer, 1, m.scan, x.Join(xbc, x.Softplus(dt, m.dtBias)))
	y = x.SiluMul(z, y)
	if m.norm.Len() > 0 {
		y = x.MulVector(x.NormHeads(y, m.groups, m.ones, m.eps), m.norm)
	}
	return x.Linear(m.out, y)
}
