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

// maxFactors is the largest key whose decays lie on the stack.
const maxFactors = 256

// deltaRow is what a part reads of a row.
type deltaRow struct {
	q, k  []float32
	decay decay
	at    lookup
}

// row returns what the part reads of the row x. Its decays lie in room.
func (d *Delta) row(part int, x []float32, room *[2][maxFactors]float32) (r deltaRow) {
	w := columns(d.ValueSize)
	blocks, size := d.ValueSize/w, d.KeySize
	head, at := part/blocks, part%blocks*w
	key := head * d.KeyHeads / d.Heads
	if d.Tiled {
		key = head % d.KeyHeads
	}
	keys, values := d.KeyHeads*size, d.Heads*d.ValueSize
	r.q, r.k = x[key*size:][:size], x[keys+key*size:][:size]
	r.at.v = x[2*keys+head*d.ValueSize+at:][:w]
	g := x[2*keys+values:]
	r.at.beta = g[d.decays()+head]
	if !d.PerChannel {
		f := room[0][:1]
		exp(f, g[head:head+1])
		r.decay, r.at.c, r.at.k = decay{f, 0}, f[0], r.k
		return r
	}
	f, k := room[0][:], room[1][:]
	if size > maxFactors {
		f, k = make([]float32, size), make([]float32, size)
	}
	f, k = f[:size], k[:size]
	exp(f, g[head*size:][:size])
	copy(k, r.k)
	kernel.Mul(k, f)
	r.decay, r.at.c, r.at.k = decay{f, 1}, 1, k
	return r
}

// Advance implements [Op].
func (d *Delta) Advance(part int, state, in []float32, inStride, n int, out []float32, outStride int) {
	var rooms [2][2][maxFactors]float32
	var room, spare [maxColumns]float32
	w := columns(d.ValueSize)
	u := room[:w]
	now := d.row(part, in, &rooms[0])
	read(u, state, &now.at)
	for i := range n {
		o := spare[:w]
		if out != nil {
			o = out[i*outStride+part*w:][:w]
		}
		if i == n-1 {
			write(o, u, state, now.k, now.q, now.decay, nil)
			return
		}
		next := d.row(part, in[(i+1)*inStride:], &rooms[(i+1)%2])
		write(o, u, state, now.k, now.q, now.decay, &next.at)
		now = next
	}
}
