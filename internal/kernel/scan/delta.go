package scan

import "grove/internal/kernel"

// Delta is the gated delta rule (Yang, Kautz and Hatamizadeh 2024), and with PerChannel Kimi's delta attention (Kimi Team 2025): a head's
// state S, [KeySize, ValueSize], decays by exp(g), takes u = beta (v - S^T k) at its key and is read by the query. A part is a head's columns,
// 64 at most.
//
// An input is [q KeyHeads*KeySize | k KeyHeads*KeySize | v Heads*ValueSize | g, the logarithm of the decay: Heads, with PerChannel
// Heads*KeySize | beta Heads]; q and k are of unit length, and q is scaled, where the model wants it. Value head h has the query and
// key of head h*KeyHeads/Heads, with Tiled of head h%KeyHeads.
//
// The order: a = Exp32(g). One decay for all: p = sum of FMA32(S, k, p) over the rows of S ascending from +0, then float32(a*p);
// PerChannel: the same sum with float32(a*k) for k. u = float32(beta * (v - p)); S = FMA32(k, u, float32(a*S)); o = sum of FMA32(S, q, o)
// likewise.
type Delta struct {
	Heads, KeyHeads    int
	KeySize, ValueSize int
	PerChannel, Tiled  bool
}

// Parts implements [Op].
func (d *Delta) Parts() int { return d.Heads * (d.ValueSize / columns(d.ValueSize)) }

// Size implements [Op].
func (d *Delta) Size() int { return d.KeySize * columns(d.ValueSize) }

// Record implements [Op].
func (d *Delta) Record() int {
	return 2*d.KeyHeads*d.KeySize + d.Heads*d.ValueSize + d.decays() + d.Heads
}

// Out implements [Op].
func (d *Delta) Out() int { return d.Heads * d.ValueSize }

func (d *Delta) decays() int {
	if d.PerChannel {
		return d.Heads * d.KeySize
	}
	return d.Heads
}

const (
	maxFactors = 256 // the largest key whose decays lie on the stack
	deltaRows  = 32  // rows whose decays are computed together, where a head has one
)

// deltaRow is what a part reads of a row.
type deltaRow struct {
	q, k  []float32
	decay decay
	at    lookup
}

// row returns what the part reads of the row x, but its decay.
func (d *Delta) row(part int, x []float32) (r deltaRow) {
	w := columns(d.ValueSize)
	head := part / (d.ValueSize / w)
	key := head * d.KeyHeads / d.Heads
	if d.Tiled {
		key = head % d.KeyHeads
	}
	keys, size := d.KeyHeads*d.KeySize, d.KeySize
	r.q, r.k = x[key*size:][:size], x[keys+key*size:][:size]
	r.at.v = x[2*keys+part*w:][:w]
	r.at.beta = x[d.Record()-d.Heads+head]
	return r
}

// shared returns what the part reads of row i, with a decay for all rows of the state. Those of some rows lie in factors: of the row before too.
func (d *Delta) shared(part int, in []float32, inStride, i, n int, factors *[2 * deltaRows]float32) deltaRow {
	r := d.row(part, in[i*inStride:])
	at := i % (2 * deltaRows)
	if i%deltaRows == 0 {
		some := factors[at:][:min(deltaRows, n-i)]
		g := d.Record() - 2*d.Heads + part/(d.ValueSize/columns(d.ValueSize))
		for j := range some {
			some[j] = in[(i+j)*inStride+g]
		}
		exp(some, some)
	}
	r.decay, r.at.c, r.at.k = decay{factors[at : at+1], 0}, factors[at], r.k
	return r
}

// apart returns what the part reads of the row x, with a decay for each row of the state, which lie in room.
func (d *Delta) apart(part int, x []float32, room *[2][maxFactors]float32) deltaRow {
	r := d.row(part, x)
	f, k, size := room[0][:], room[1][:], d.KeySize
	if size > maxFactors {
		f, k = make([]float32, size), make([]float32, size)
	}
	f, k = f[:size], k[:size]
	head := part / (d.ValueSize / columns(d.ValueSize))
	exp(f, x[d.Record()-d.Heads-(d.Heads-head)*size:][:size])
	copy(k, r.k)
	kernel.Mul(k, f)
	r.decay, r.at.c, r.at.k = decay{f, 1}, 1, k
	return r
}

// Advance implements [Op].
func (d *Delta) Advance(part int, to, from, in []float32, inStride, n int, out []float32, outStride int) {
	if !d.PerChannel {
		d.advance(part, to, from, in, inStride, n, out, outStride, nil)
		return
	}
	var rooms [2][2][maxFactors]float32
	d.advance(part, to, from, in, inStride, n, out, outStride, &rooms)
}

// advance is Advance. The rooms of two rows are for decays of channels.
func (d *Delta) advance(part int, to, from, in []float32, inStride, n int, out []float32, outStride int, rooms *[2][2][maxFactors]float32) {
	var factors [2 * deltaRows]float32
	var room, spare [maxColumns]float32
	var now, next deltaRow
	w := columns(d.ValueSize)
	u := room[:w]
	for i := range n + 1 {
		switch {
		case i == n:
		case d.PerChannel:
			next = d.apart(part, in[i*inStride:], &rooms[i%2])
		default:
			next = d.shared(part, in, inStride, i, n, &factors)
		}
		if i == 0 {
			read(u, from, &next.at)
			now = next
			continue
		}
		o := spare[:w]
		if out != nil {
			o = out[(i-1)*outStride+part*w:][:w]
		}
		if i == n {
			write(o, u, to, from, now.k, now.q, now.decay, nil)
			return
		}
		write(o, u, to, from, now.k, now.q, now.decay, &next.at)
		now, from = next, to
	}
}
