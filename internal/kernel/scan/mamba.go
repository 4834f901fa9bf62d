package scan

import "grove/internal/kernel"

// Mamba2 is the selective scan with one decay for a head (Dao and Gu 2024): a head's state h, [N, HeadSize], decays by exp(dt*A), takes
// dt*x at the row's B and is read by its C. A part is a head's columns, 64 at most.
//
// An input is [x Heads*HeadSize | B Groups*N | C Groups*N | dt Heads, which is positive]. Head h has B and C of group h*Groups/Heads.
//
// The order: a = Exp32(float32(dt*A)); u = float32(x*dt); h = FMA32(B, u, float32(a*h)); y = sum of FMA32(h, C, y) over N ascending from +0,
// then y = FMA32(D, x, y).
type Mamba2 struct {
	Heads, HeadSize, N, Groups int
	A, D                       []float32 // [Heads]; D may be none
}

// Parts implements [Op].
func (m *Mamba2) Parts() int { return m.Heads * (m.HeadSize / columns(m.HeadSize)) }

// Size implements [Op].
func (m *Mamba2) Size() int { return m.N * columns(m.HeadSize) }

// Record implements [Op].
func (m *Mamba2) Record() int { return m.Heads*(m.HeadSize+1) + 2*m.Groups*m.N }

// Out implements [Op].
func (m *Mamba2) Out() int { return m.Heads * m.HeadSize }

// Advance implements [Op].
func (m *Mamba2) Advance(part int, to, from, in []float32, inStride, n int, out []float32, outStride int) {
	const most = 32 // rows whose decays are computed together
	var decays [most]float32
	var room, spare [2][maxColumns]float32
	w := columns(m.HeadSize)
	head := part / (m.HeadSize / w)
	inner, group := m.Heads*m.HeadSize, head*m.Groups/m.Heads
	for first := 0; first < n; first += most {
		a := decays[:min(most, n-first)]
		for i := range a {
			a[i] = float32(in[(first+i)*inStride+inner+2*m.Groups*m.N+head] * m.A[head])
		}
		exp(a, a)
		var two [2]written
		for i := 0; i < len(a); i += 2 {
			pair := min(2, len(a)-i)
			for r := range pair {
				row := in[(first+i+r)*inStride:]
				u, o := room[r][:w], spare[r][:w]
				if out != nil {
					o = out[(first+i+r)*outStride+part*w:][:w]
				}
				copy(u, row[part*w:])
				kernel.Scale(u, row[inner+2*m.Groups*m.N+head])
				two[r] = written{o, u, row[inner+group*m.N:][:m.N], row[inner+(m.Groups+group)*m.N:][:m.N]}
			}
			writeRows(two[:pair], to, from, a[i:])
			from = to
			for r := range pair {
				if len(m.D) > 0 && out != nil {
					kernel.AddScaled(two[r].o, m.D[head], in[(first+i+r)*inStride+part*w:][:w])
				}
			}
		}
	}
}

// Mamba1 is the selective scan with a decay for each channel and element (Gu and Dao 2023): channel c has a state h of N values, which decays by
// exp(dt_c*A_c), takes dt_c*x_c at the row's B and is read by its C. A part is 64 channels, the last part the rest; its state is [N, channels].
//
// An input is [x Inner | dt Inner, which is positive | B N | C N].
//
// The order: a = Exp32(float32(dt*A)); u = float32(dt*x); h = FMA32(B, u, float32(a*h)); y = sum of FMA32(h, C, y) over N ascending from +0,
// then y = FMA32(D, x, y).
type Mamba1 struct {
	Inner, N int
	A        []float32 // [N, Inner]
	D        []float32 // [Inner]
}

// channelGroup is the channels of a part of Mamba 1.
const channelGroup = 64

// Parts implements [Op].
func (m *Mamba1) Parts() int { return (m.Inner + channelGroup - 1) / channelGroup }

// Size implements [Op].
func (m *Mamba1) Size() int { return m.N * min(channelGroup, m.Inner) }

// Record implements [Op].
func (m *Mamba1) Record() int { return 2*m.Inner + 2*m.N }

// Out implements [Op].
func (m *Mamba1) Out() int { return m.Inner }

// Advance implements [Op].
func (m *Mamba1) Advance(part int, to, from, in []float32, inStride, n int, out []float32, outStride int) {
	var spare [channelGroup]float32
	lo := part * channelGroup
	w := min(channelGroup, m.Inner-lo)
	for i := range n {
		row := in[i*inStride:]
		y := spare[:w]
		if out != nil {
			y = out[i*outStride+lo:][:w]
		}
		m.channels(y, to, from, row[lo:][:w], row[m.Inner+lo:][:w], row[2*m.Inner:][:m.N], row[2*m.Inner+m.N:][:m.N], lo)
		from = to
	}
	clear(to[m.N*w:])
}

// channels advances the states h of the channels from lo on by one row, and writes them at to.
func (m *Mamba1) channels(y, to, h, x, dt, b, c []float32, lo int) {
	done := m.channelsVector(y, to, h, x, dt, b, c, lo)
	w := len(y)
	for j := done; j < w; j++ {
		u := float32(dt[j] * x[j])
		var sum float32
		for n := range m.N {
			a := kernel.Exp32(float32(dt[j] * m.A[n*m.Inner+lo+j]))
			v := kernel.FMA32(b[n], u, float32(a*h[n*w+j]))
			to[n*w+j] = v
			sum = kernel.FMA32(v, c[n], sum)
		}
		y[j] = kernel.FMA32(m.D[lo+j], x[j], sum)
	}
}
