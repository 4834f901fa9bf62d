package compute

import (
	"fmt"
	"math"
	"sync/atomic"

	"grove/internal/forest"
	"grove/internal/kernel"
)

// rowKind names what a rowTask does to each row.
type rowKind int

const (
	embedRows rowKind = iota
	positionRows
	inputRows
	normRows
	centerRows
	centerHeads
	limitRows
	addRows
	addScaledRows
	siluRows
	geluRows
	clampedRows
	plainGeluRows
	geluErfRows
	reluRows
	reluSquaredRows
	xieluRows
	temperRows
	ropeRows
	ropeAngles
	quantizeRows
	storeRows
	storeSource
	recordRows
	gatherRows
	sumExperts
	copyHeads
	gatherHeads
	scatterHeads
	mulRows
	mulHeadsRows
	scaleRows
	scaleBlocks
	mulVectorRows
	addVectorRows
	plainSiluRows
	sigmoidRows
	softplusRows
	unitHeads
	tanhRows
	lookupRows
	embedPairs
	carriedRows
	setCarriedRows
	addMixed
	matchLength
	gaussTopK
)

// rowTask is an operation that treats rows one by one. The Exec has one value for all operations, so that
// passing it to the pool allocates nothing.
type rowTask struct {
	kind  rowKind
	x     *Exec
	rows  int
	chunk int

	dst, a, b Buf
	weight    []float32
	bias      []float32
	add       []float32
	eps       float32
	scale     float32
	heads     int // vectors of a row, each treated by itself
	xielu     kernel.XIELU
	table     *Matrix
	rope      *ropeTable
	routing   *Routing
	rounded   *kernel.Rows
	layer     int

	to, from, n int          // of copied heads; n is also the length of temperRows, and from its first position
	problem     atomic.Int32 // a kernel.PutResult other than PutOK
}

// inlineWork is the number of values below which a second core costs more than it saves.
const inlineWork = 16 << 10

// leastRows is the least number of values of an item, so that many threads do not claim items that are shorter than the claim.
const leastRows = inlineWork / 8

// runRows runs x.rowTask for n rows of about work values each.
func (x *Exec) runRows(n, work int) {
	if n == 0 {
		return
	}
	t := &x.rowTask
	t.rows, t.chunk = n, n
	threads := x.pool.Threads()
	if threads == 1 || n == 1 || n*work <= inlineWork {
		t.Do(0, 0)
		return
	}
	t.chunk = max(1, n/(threads*CutItemsPerThread), leastRows/work)
	x.pool.Run((n+t.chunk-1)/t.chunk, t)
}

func (t *rowTask) Do(worker, item int) {
	for i := item * t.chunk; i < min((item+1)*t.chunk, t.rows); i++ {
		t.one(worker, i)
	}
}

func (t *rowTask) one(worker, i int) {
	switch t.kind {
	case embedRows:
		t.embed(worker, i)
	case embedPairs:
		t.embedPair(worker, i)
	case positionRows:
		t.addPosition(worker, i)
	case inputRows:
		if t.x.Step.Rows()[i].Resume == forest.Trunk {
			one := t.x.streamRow(int32(i))
			if t.add != nil {
				kernel.Add(one, t.add)
			}
			kernel.LayerNorm(one, one, t.weight, t.bias, t.eps)
		}
	case normRows:
		size := t.a.width / t.heads
		src, dst := t.a.row(i), t.dst.row(i)
		for h := 0; h < len(src); h += size {
			kernel.RMSNorm(dst[h:h+size], src[h:h+size], t.weight, t.eps)
		}
	case centerRows:
		kernel.LayerNorm(t.dst.row(i), t.a.row(i), t.weight, t.bias, t.eps)
	case centerHeads:
		row, size := t.a.row(i), t.a.width/t.heads
		for h := 0; h < len(row); h += size {
			kernel.LayerNorm(row[h:h+size], row[h:h+size], t.weight[h:h+size], nil, t.eps)
		}
	case limitRows:
		t.limit(i)
	case addRows:
		kernel.Add(t.dst.row(i), t.a.row(i))
	case addScaledRows:
		kernel.AddScaled(t.dst.row(i), t.scale, t.a.row(i))
	case siluRows:
		kernel.SiluMul(t.dst.row(i), t.a.row(i), t.b.row(i))
	case geluRows:
		kernel.GeluMul(t.dst.row(i), t.a.row(i), t.b.row(i))
	case clampedRows:
		t.clamp(i)
	case plainGeluRows:
		kernel.Gelu(t.dst.row(i), t.a.row(i))
	case geluErfRows:
		kernel.GeluErf(t.dst.row(i), t.a.row(i))
	case reluRows:
		kernel.Relu(t.dst.row(i), t.a.row(i))
	case reluSquaredRows:
		kernel.ReluSquared(t.dst.row(i), t.a.row(i))
	case xieluRows:
		t.xielu.Forward(t.dst.row(i), t.a.row(i))
	case temperRows:
		t.temper(i)
	case ropeRows:
		t.rotate(i)
	case ropeAngles:
		t.rope.fill(i, t.x.Step.Rows()[i].Pos)
	case quantizeRows:
		round(t.rounded, i, 0, t.rounded.K)
	case storeRows, storeSource:
		t.store(i)
	case recordRows:
		t.keepRecord(i)
	case gatherRows:
		copy(t.dst.row(i), t.a.row(int(t.routing.source[i])))
	case sumExperts:
		t.routing.sum(t.dst.row(i), t.a, i)
	case copyHeads:
		t.copyHead(i)
	case gatherHeads:
		t.gatherHead(i)
	case scatterHeads:
		t.scatterHead(i)
	case scaleBlocks:
		if t.x.Step.Rows()[t.x.active[i]].Block > 0 {
			kernel.Scale(t.a.row(i), t.scale)
		} else {
			kernel.Scale(t.a.row(i), t.eps)
		}
	case lookupRows, carriedRows, setCarriedRows, addMixed, matchLength, gaussTopK:
		t.stream(worker, i)
	default:
		t.element(i)
	}
}

// embed fills row i of the stream from its input.
func (t *rowTask) embed(worker, i int) {
	x := t.x
	r := &x.Step.Rows()[i]
	dst := x.streamRow(int32(i))
	switch {
	case r.Resume != forest.Trunk:
		copy(dst, x.hidden[int(r.Slot)*x.width:])
	case r.Vector != nil:
		copy(dst, r.Vector)
	default:
		t.lookUp(dst, worker, i, r)
	}
}

// addPosition adds the embedding of its position to row i of the stream. A resumed row has it already.
func (t *rowTask) addPosition(worker, i int) {
	r := &t.x.Step.Rows()[i]
	if r.Resume == forest.Trunk {
		one := t.a.row(i)
		t.table.Embedding(one, int(r.Pos), &t.x.scratch[worker])
		kernel.Add(t.x.streamRow(int32(i)), one)
	}
}

// RMSNorm returns x_i / sqrt(mean(x^2) + eps) * w_i for each row.
func (x *Exec) RMSNorm(a Buf, w Vector, eps float32) Buf {
	dst := x.alloc(a.rows, a.width)
	x.norm(dst, a, 1, w, eps)
	return dst
}

// LayerNorm returns (x_i - mean(x)) / sqrt(variance(x) + eps) * w_i + b_i for each row; an empty b is none.
func (x *Exec) LayerNorm(a Buf, w, b Vector, eps float32) Buf {
	dst := x.alloc(a.rows, a.width)
	x.rowTask = rowTask{kind: centerRows, x: x, dst: dst, a: a, weight: w.F, bias: b.F, eps: eps}
	x.runRows(a.rows, a.width*2)
	return dst
}

// NormStream applies [Exec.LayerNorm] in place, for a model that norms the stream after its additions.
func (x *Exec) NormStream(a Buf, w, b Vector, eps float32) Buf {
	x.rowTask = rowTask{kind: centerRows, x: x, dst: a, a: a, weight: w.F, bias: b.F, eps: eps}
	x.runRows(a.rows, a.width*2)
	return x.changed(a)
}

// NormHeads applies [Exec.RMSNorm] in place to each head of a row by itself.
func (x *Exec) NormHeads(a Buf, heads int, w Vector, eps float32) Buf {
	x.norm(a, a, heads, w, eps)
	return x.changed(a)
}

// CenterHeads applies [Exec.LayerNorm] in place to each head of a row by itself; w has the weights of all heads.
func (x *Exec) CenterHeads(a Buf, heads int, w Vector, eps float32) Buf {
	x.rowTask = rowTask{kind: centerHeads, x: x, a: a, heads: heads, weight: w.F, eps: eps}
	x.runRows(a.rows, a.width*2)
	return x.changed(a)
}

func (x *Exec) norm(dst, a Buf, heads int, w Vector, eps float32) {
	x.rowTask = rowTask{kind: normRows, x: x, dst: dst, a: a, heads: heads, weight: w.F, eps: eps}
	x.runRows(a.rows, a.width)
}

// Add adds a to dst, the residual connection.
func (x *Exec) Add(dst, a Buf) Buf {
	x.rowTask = rowTask{kind: addRows, x: x, dst: dst, a: a}
	x.runRows(a.rows, a.width)
	return x.changed(dst)
}

// AddScaled adds scale times a to dst.
func (x *Exec) AddScaled(dst Buf, scale float32, a Buf) Buf {
	if scale == 1 {
		return x.Add(dst, a)
	}
	x.rowTask = rowTask{kind: addScaledRows, x: x, dst: dst, a: a, scale: scale}
	x.runRows(a.rows, a.width)
	return x.changed(dst)
}

// Temper multiplies each row by 1 + scale * ln(1 + floor((position + first) / length)), in place: a temperature of attention for
// queries far from the start. Llama 4 (Meta AI 2025) counts positions from 1, Ministral 3 from 0.
func (x *Exec) Temper(a Buf, scale float32, length, first int) Buf {
	x.rowTask = rowTask{kind: temperRows, x: x, a: a, scale: scale, n: length, from: first}
	x.runRows(a.rows, a.width)
	return x.changed(a)
}

func (t *rowTask) temper(i int) {
	pos := int(t.x.Step.Rows()[t.x.active[i]].Pos)
	kernel.Scale(t.a.row(i), 1+float32(float64(t.scale)*kernel.Log64(float64(1+(pos+t.from)/t.n))))
}

// SiluMul returns silu(gate) * up.
func (x *Exec) SiluMul(gate, up Buf) Buf { return x.gated(siluRows, gate, up) }

// ClampedSwiGLU returns the gate of gpt-oss: min(gate, 7) * sigmoid(1.702 min(gate, 7)) * (up within ±7 + 1). An
// infinity, which the clamp would hide, fails the step.
func (x *Exec) ClampedSwiGLU(gate, up Buf) Buf {
	out := x.gated(clampedRows, gate, up)
	if x.rowTask.problem.Load() != 0 {
		x.fail(fmt.Errorf("compute: a feed-forward block: %w", ErrNotFinite))
	}
	return out
}

func (t *rowTask) clamp(i int) {
	gate, up := t.a.row(i), t.b.row(i)
	t.finite(gate)
	t.finite(up)
	kernel.ClampedSwiGLU(t.dst.row(i), gate, up)
}

// Limit brings the values of a within ±limit, in place. An infinity, which the limit would hide, fails the step.
func (x *Exec) Limit(a Buf, limit float32) Buf {
	x.rowTask = rowTask{kind: limitRows, x: x, a: a, scale: limit}
	x.runRows(a.rows, a.width)
	if x.rowTask.problem.Load() != 0 {
		x.fail(fmt.Errorf("compute: a limited projection: %w", ErrNotFinite))
	}
	return x.changed(a)
}

func (t *rowTask) limit(i int) {
	row := t.a.row(i)
	t.finite(row)
	for j, v := range row {
		row[j] = max(-t.scale, min(v, t.scale))
	}
}

// Gelu returns gelu(a), with the tanh approximation, in place.
func (x *Exec) Gelu(a Buf) Buf { return x.gated(plainGeluRows, a, Buf{}) }

// GeluErf returns gelu(a) by the normal distribution itself, in place.
func (x *Exec) GeluErf(a Buf) Buf { return x.gated(geluErfRows, a, Buf{}) }

// Relu returns max(a, 0), in place.
func (x *Exec) Relu(a Buf) Buf { return x.gated(reluRows, a, Buf{}) }

// ReluSquared returns max(a, 0) squared, in place.
func (x *Exec) ReluSquared(a Buf) Buf { return x.gated(reluSquaredRows, a, Buf{}) }

// XIELU is the settings of the activation of this name in one layer.
type XIELU struct{ k kernel.XIELU }

// NewXIELU prepares the activation (Huang and Schlag 2024, section 3). The settings are those that were trained: the
// softplus of alphaP multiplies squares, that of alphaN and beta together exponentials. eps is the largest exponent.
func NewXIELU(alphaP, alphaN, beta, eps float32) XIELU {
	softplus := func(a float32) float64 {
		return max(float64(a), 0) + kernel.Log64(1+kernel.Exp64(-math.Abs(float64(a))))
	}
	return XIELU{kernel.XIELU{P: float32(softplus(alphaP)), N: float32(float64(beta) + softplus(alphaN)), Beta: beta, Eps: eps}}
}

// XIELU returns the activation of a, in place.
func (x *Exec) XIELU(a Buf, s XIELU) Buf {
	x.rowTask = rowTask{kind: xieluRows, x: x, dst: a, a: a, xielu: s.k}
	x.runRows(a.rows, a.width*4)
	return x.changed(a)
}

func (x *Exec) gated(kind rowKind, gate, up Buf) Buf {
	x.rowTask = rowTask{kind: kind, x: x, dst: gate, a: gate, b: up}
	x.runRows(gate.rows, gate.width*4)
	return x.changed(gate)
}

// quantize returns the 8-bit blocks of a (N4), computed once for each content of a buffer.
func (x *Exec) quantize(a Buf) *kernel.Rows {
	if x.quantizedID == a.id {
		return &x.quantized[x.current]
	}
	q := x.otherRows(a)
	x.rowTask = rowTask{kind: quantizeRows, x: x, rounded: q}
	x.runRows(a.rows, a.width)
	x.current, x.quantizedID = 1-x.current, a.id
	return q
}

// otherRows returns room for the 8-bit blocks of a, which is not that of the current ones.
func (x *Exec) otherRows(a Buf) *kernel.Rows {
	q, blocks := &x.quantized[1-x.current], a.width/kernel.QBlock
	q.N, q.K, q.F = a.rows, a.width, a.f
	q.Q, q.D, q.Sum = grow(q.Q, a.rows*a.width), grow(q.D, a.rows*blocks), grow(q.Sum, a.rows*blocks)
	return q
}

// round fills the blocks of the values [lo, hi) of a row.
func round(q *kernel.Rows, row, lo, hi int) {
	from, to := row*q.K+lo, row*q.K+hi
	b0, b1 := from/kernel.QBlock, to/kernel.QBlock
	one := kernel.Rows{N: 1, K: hi - lo, F: q.F[from:to], Q: q.Q[from:to], D: q.D[b0:b1], Sum: q.Sum[b0:b1]}
	one.Quantize()
}

// grow returns a slice of n values, s itself where it is long enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
