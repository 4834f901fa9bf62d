package compute

import (
	"grove/internal/kernel/scan"
	"grove/internal/kv"
)

// keeps returns what the cache keeps of a recurrence.
func keeps(op scan.Op) kv.State {
	return kv.State{Parts: op.Parts(), Size: op.Size(), Record: op.Record()}
}

// Conv is a short causal convolution of each channel by itself. Its input and output are rows of channels values. It is read-only and
// safe for concurrent use.
type Conv struct{ scan.Conv }

// Keeps returns the form of the states that the cache keeps of it.
func (c *Conv) Keeps() kv.State { return keeps(c) }

// NewConv makes a convolution with weights [channels, taps], the tap of the oldest row first, and a bias, unless it is empty; with silu
// its outputs pass through SiLU. It panics where lengths do not fit.
func NewConv(weight, bias Vector, channels, taps int, silu bool) *Conv {
	if bias.Len() > 0 {
		fits(bias, channels)
	}
	return &Conv{scan.Conv{Channels: channels, Taps: taps, Weight: turned(weight, channels, taps), Bias: bias.F, Silu: silu}}
}

// Mamba1 is the selective scan of Mamba (Gu and Dao 2023). A row of its input is [x inner | dt inner, after softplus | B n | C n], of
// its output [inner]. It is read-only and safe for concurrent use.
type Mamba1 struct{ scan.Mamba1 }

// Keeps returns the form of the states that the cache keeps of it.
func (m *Mamba1) Keeps() kv.State { return keeps(m) }

// NewMamba1 makes a scan of inner channels of n values each, with a [inner, n], which is negative, and d [inner]: h = exp(dt*a) h + dt*x B;
// y = C h + d*x. It panics where lengths do not fit.
func NewMamba1(a, d Vector, inner, n int) *Mamba1 {
	fits(d, inner)
	return &Mamba1{scan.Mamba1{Inner: inner, N: n, A: turned(a, inner, n), D: d.F}}
}

// Mamba2 is the selective scan of Mamba 2 (Dao and Gu 2024). A row of its input is [x heads*size | B groups*n | C groups*n | dt heads,
// after softplus], of its output [heads*size]. It is read-only and safe for concurrent use.
type Mamba2 struct{ scan.Mamba2 }

// Keeps returns the form of the states that the cache keeps of it.
func (m *Mamba2) Keeps() kv.State { return keeps(m) }

// NewMamba2 makes a scan of heads of size channels of n values each, with a [heads], which is negative, and d [heads], which may be
// empty: h = exp(dt*a) h + dt*x B; y = C h + d*x. Head h has B and C of group h*groups/heads. It panics where lengths do not fit.
func NewMamba2(a, d Vector, heads, size, n, groups int) *Mamba2 {
	fits(a, heads)
	if d.Len() > 0 {
		fits(d, heads)
	}
	return &Mamba2{scan.Mamba2{Heads: heads, HeadSize: size, N: n, Groups: groups, A: a.F, D: d.F}}
}

// Delta is the gated delta rule (Yang, Kautz and Hatamizadeh 2024) and Kimi's delta attention (Kimi Team 2025). A row of its input is
// [q kheads*dk | k kheads*dk | v heads*dv | g, the logarithm of the decay | beta heads], of its output [heads*dv]. It is read-only and
// safe for concurrent use.
type Delta struct{ scan.Delta }

// Keeps returns the form of the states that the cache keeps of it.
func (d *Delta) Keeps() kv.State { return keeps(d) }

// NewDelta makes a recurrence of heads of values of size dv and kheads of queries and keys of size dk, which the caller has normed and scaled.
// g is [heads], or with perChannel [heads*dk]: S = exp(g) S; u = beta (v - S^T k); S = S + k u^T; o = S^T q. Value head h has
// the query and key of head h*kheads/heads (Qwen3-Next), with tiled of head h%kheads (Qwen 3.5, as files for llama.cpp order its heads).
func NewDelta(heads, kheads, dk, dv int, perChannel, tiled bool) *Delta {
	return &Delta{scan.Delta{Heads: heads, KeyHeads: kheads, KeySize: dk, ValueSize: dv, PerChannel: perChannel, Tiled: tiled}}
}

// fits panics unless v has n weights.
func fits(v Vector, n int) {
	if v.Len() != n {
		panic("compute: weights of a recurrence of another length")
	}
}

// turned returns the matrix [rows, columns] as [columns, rows].
func turned(v Vector, rows, columns int) []float32 {
	fits(v, rows*columns)
	t := make([]float32, rows*columns)
	for i := range t {
		t[i] = v.F[i%rows*columns+i/rows]
	}
	return t
}
