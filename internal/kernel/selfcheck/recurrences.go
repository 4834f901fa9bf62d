package selfcheck

import "grove/internal/kernel/scan"

// recurrences returns the checks of the recurrences, in widths that make blocks of four registers, of one, and a rest.
func recurrences() []check {
	const rest, whole = 61, 64 // columns of a part
	return []check{
		single("Conv", func(d *data, dst []float32) []float32 {
			dst = advance(&scan.Conv{Channels: 90, Taps: 4, Weight: d.floats[500:], Bias: d.floats[200:290], Silu: true}, d, nil, dst)
			return advance(&scan.Conv{Channels: 90, Taps: 3, Weight: d.floats[500:]}, d, nil, dst)
		}),
		single("Mamba1", func(d *data, dst []float32) []float32 {
			for _, inner := range []int{rest, whole} {
				dst = advance(&scan.Mamba1{Inner: inner, N: 3, A: d.gates(3*inner, -1), D: d.floats[300:]}, d, d.gates(inner, 1), dst)
			}
			return dst
		}),
		single("Mamba2", func(d *data, dst []float32) []float32 {
			for _, size := range []int{rest, whole} {
				dst = advance(&scan.Mamba2{Heads: 1, HeadSize: size, N: 3, Groups: 1, A: d.gates(1, -1), D: d.floats[300:]}, d, d.gates(1, 1), dst)
			}
			return dst
		}),
		single("Delta", func(d *data, dst []float32) []float32 {
			for _, size := range []int{rest, whole} {
				dst = advance(&scan.Delta{Heads: 1, KeyHeads: 1, KeySize: 3, ValueSize: size}, d, d.gates(2, -1), dst)
				dst = advance(&scan.Delta{Heads: 1, KeyHeads: 1, KeySize: 9, ValueSize: size, PerChannel: true}, d, d.gates(10, -1), dst)
			}
			return dst
		}),
	}
}

// advance appends the outputs of three rows, in calls of one, in place, and of two, and the states behind both. The values of gates, of one sign,
// take the place of the last inputs of a row; of Mamba 1, of the times.
func advance(op scan.Op, d *data, gates, dst []float32) []float32 {
	const rows = 3
	record, width := op.Record(), op.Out()
	in := append([]float32(nil), d.floats[40:][:rows*record]...)
	for i := range rows {
		at := (i+1)*record - len(gates)
		if m, is := op.(*scan.Mamba1); is {
			at -= 2 * m.N
		}
		copy(in[at:], gates)
	}
	for part := range op.Parts() {
		dst = grow(dst, 2*op.Size()+rows*width)
		own := dst[len(dst)-2*op.Size()-rows*width:]
		first, state, out := own[:op.Size()], own[op.Size():2*op.Size()], own[2*op.Size():]
		op.Advance(part, first, first, in, record, 1, out, width)
		op.Advance(part, state, first, in[record:], record, rows-1, out[width:], width)
	}
	return dst
}

// gates returns n values between 0 and sign.
func (d *data) gates(n int, sign float32) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = sign * (float32(d.random[i]) + 1) / 256
	}
	return x
}
