package selfcheck

import (
	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/weights/tensor"
)

// products returns the checks of the products over every weight type.
func products() (all []check) {
	sizes := make([]int, mostRows)
	for i := range sizes {
		sizes[i] = i + 1
	}
	for _, t := range tensor.Types() {
		f, ok := matmul.FormatOf(t)
		if !ok {
			continue
		}
		all = append(all, check{t.String(), "row", sizes, func(d *data) run { return product(f, d) }})
	}
	return all
}

// product multiplies rows by one group of outputs. A group that is not full differs in Go alone.
func product(f *matmul.Format, d *data) run {
	k := floatK
	switch {
	case f.BlockK > kernel.QBlock:
		k = f.BlockK
	case f.Quantized:
		k = blocksK * f.BlockK
	}
	w := d.packed(f, k)
	return func(n int, dst []float32) []float32 {
		x := kernel.Rows{N: n, K: k, F: d.floats, Q: d.q, D: d.d, Sum: d.sum}
		y := grow(dst, n*outputs)
		f.MatMul(y[len(dst):], outputs, w, outputs, k, 0, f.Groups(outputs), &x, &d.scratch)
		return y
	}
}

// packed returns a packed matrix: random bytes with finite scales, but for one output, and with extremes in the last outputs.
func (d *data) packed(f *matmul.Format, k int) []byte {
	c, _ := tensor.CodecOf(f.Type)
	all := d.bytes(f.PackedSize(outputs, k))
	if !f.Quantized {
		small(all, c.Bytes)
		return all
	}
	for rest := all; len(rest) > 0; {
		for _, p := range c.Parts {
			part := rest[:p.Bytes*f.Group]
			rest = rest[len(part):]
			if p.Unit < 4 {
				small(part, p.Unit)
			} else {
				extremes(part, p.Unit, f.Group)
			}
		}
	}
	return all
}

// small makes scales or weights, of unit bytes, finite and less than 2, but large or not finite those of the second output. Scales of
// a byte are exponents.
func small(part []byte, unit int) {
	for i := unit - 1; i < len(part); i += unit {
		switch {
		case i == 2*unit-1:
			part[i] |= 0x7c
		case unit == 1:
			part[i] = part[i]&15 | 0x70
		default:
			part[i] &^= 1 << 6 // the upper bit of the exponent
		}
	}
}

// extremes sets the last outputs of a group, whose units lie side by side.
func extremes(part []byte, unit, group int) {
	values := [...]byte{0x00, 0xff, 0x80, 0x7f}
	for ; len(part) > 0; part = part[group*unit:] {
		for j, v := range values {
			to := part[(group-len(values)+j)*unit:][:unit]
			for i := range to {
				to[i] = v
			}
		}
	}
}
