package main

import . "grove/internal/kernel/_asm/arm64"

// What follows unpacks the weights of 16 inputs, the first (part 0) or the last of 32, whose bits begin disp bytes behind those of
// the half in work.

// raw emits the load of a row of bytes for 4 outputs (column c).
func (t *tile) raw(disp, row, c int) V {
	v := Vec()
	LDRQ(v, t.bits, disp+wide*row+16*c)
	return v
}

// everywhere returns a register of one byte.
func everywhere(b uint32) V {
	v := Vec()
	MOVI(B16, v, b, 0)
	return v
}

func (t *tile) int8s(disp, part int) (w weights) {
	for c := range w {
		for j := range w[c] {
			w[c][j] = t.raw(disp, quads*part+j, c)
		}
	}
	return w
}

func (t *tile) nibbles(disp, part int) (w weights) {
	mask := everywhere(0x0f)
	for c := range w {
		for j := range w[c] {
			w[c][j] = t.raw(disp, j, c)
			if part == 0 {
				AND(B16, w[c][j], w[c][j], mask)
			} else {
				USHR(B16, w[c][j], w[c][j], 4)
			}
		}
	}
	Free(mask)
	return w
}

// fiveBits: nibbles, then a row of bytes whose bit j is the fifth bit of quad j.
func (t *tile) fiveBits(disp, part int) (w weights) {
	mask := everywhere(0x1f)
	for c := range w {
		high := t.raw(disp, quads, c)
		if part == 1 {
			USHR(B16, high, high, quads)
		}
		for j := range w[c] {
			w[c][j] = t.raw(disp, j, c)
			if part == 1 {
				USHR(B16, w[c][j], w[c][j], 4)
			}
			SLI(B16, w[c][j], high, 4)
			AND(B16, w[c][j], w[c][j], mask)
			if j < quads-1 {
				USHR(B16, high, high, 1)
			}
		}
		Free(high)
	}
	Free(mask)
	return w
}

// codebook returns a function that looks nibbles up.
func codebook(name string, values [16]int) func(t *tile, disp, part int) weights {
	return func(t *tile, disp, part int) weights {
		w := t.nibbles(disp, part)
		var words [4]uint32
		for i, v := range values {
			words[i/4] |= uint32(uint8(v)) << (i % 4 * 8)
		}
		at, codes := Data(name, words[:]...), Vec()
		LDRQ(codes, at, 0)
		for c := range w {
			for _, v := range w[c] {
				TBL(v, []V{codes}, v)
			}
		}
		Free(codes)
		Free(at)
		return w
	}
}

// less emits the subtraction of a number from all weights.
func less(w weights, by uint32) weights {
	number := everywhere(by)
	for c := range w {
		for _, v := range w[c] {
			SUB(B16, v, v, number)
		}
	}
	Free(number)
	return w
}

// sixBits: three quads in the low 6 bits of bytes, the fourth in their high 2 bits.
func (t *tile) sixBits(disp, part int) (w weights) {
	mask := everywhere(0x3f)
	for c := range w {
		for j := range 3 {
			w[c][j] = t.raw(disp, 3*part+j, c)
		}
		w[c][3] = Vec()
		USHR(B16, w[c][3], w[c][2], 2)
		SRI(B16, w[c][3], w[c][1], 4)
		SRI(B16, w[c][3], w[c][0], 6)
		for _, v := range w[c][:3] {
			AND(B16, v, v, mask)
		}
	}
	Free(mask)
	return less(w, 32)
}

// threeBits: bytes of two quads in the low 6 bits. The high 2 bits of the first two bytes are the low bits of quads 6 and
// 7, those of the third byte their third bits.
func (t *tile) threeBits(disp, part int) (w weights) {
	mask := everywhere(7)
	for c := range w {
		if part == 0 {
			for i := range 2 {
				w[c][2*i], w[c][2*i+1] = t.raw(disp, i, c), Vec()
				USHR(B16, w[c][2*i+1], w[c][2*i], 3)
			}
		} else {
			third := t.raw(disp, 2, c)
			for i := range 2 {
				w[c][2+i] = t.raw(disp, i, c)
				top := Vec()
				USHR(B16, w[c][2+i], w[c][2+i], 6)
				USHR(B16, top, third, 6+i)
				SLI(B16, w[c][2+i], top, 2)
				Free(top)
			}
			w[c][0], w[c][1] = third, Vec()
			USHR(B16, w[c][1], third, 3)
		}
		for _, v := range w[c] {
			AND(B16, v, v, mask)
		}
	}
	Free(mask)
	return less(w, 4)
}

// twoBits: four quads in the bytes of one.
func (t *tile) twoBits(disp, part int) (w weights) {
	mask := everywhere(3)
	for c := range w {
		w[c][0] = t.raw(disp, part, c)
		for j := 1; j < quads; j++ {
			w[c][j] = Vec()
			USHR(B16, w[c][j], w[c][0], 2*j)
		}
		for _, v := range w[c][:3] {
			AND(B16, v, v, mask)
		}
	}
	Free(mask)
	return w
}
