package matmul

import (
	"grove/internal/kernel"
	"grove/internal/weights/tensor"
)

// Quantised types. A packed matrix is [groups][blocks of a row] packed blocks; each holds one block of 16 outputs in the
// bytes that these take in the file.

// packedBlock returns the bytes of a packed block.
func (f *Format) packedBlock() int { return lanes * f.codec.Bytes }

// packBlocks is Pack for quantised types.
func (f *Format) packBlocks(dst, src []byte, out, k, g0, g1 int, s *Scratch) {
	nb, size := k/f.codec.Elems, f.codec.Bytes
	row := nb * size
	for gb := g0 * nb; gb < g1*nb; gb++ {
		g, b := gb/nb, gb%nb
		n := min(lanes, out-g*lanes)
		from := src[g*lanes*row+b*size:][:(n-1)*row+size]
		f.packBlock(dst[gb*f.packedBlock():][:f.packedBlock()], from, row, s)
	}
}

// packBlock writes a packed block. The blocks of up to 16 outputs lie row bytes apart in src; the outputs that
// it lacks become zero.
func (f *Format) packBlock(dst, src []byte, row int, s *Scratch) {
	c := f.codec
	if c.Reorder != nil {
		n := 0
		for ; n*row < len(src); n++ {
			c.Reorder(s.blocks[n*c.Bytes:][:c.Bytes], src[n*row:][:c.Bytes])
		}
		src, row = s.blocks[:n*c.Bytes], c.Bytes
	}
	at := 0
	for _, p := range c.Parts {
		end := at + p.Bytes
		interleave(dst[lanes*at:lanes*end], src[at:len(src)-c.Bytes+end], row, p.Bytes, p.Unit)
		at = end
	}
}

// unpackBlock returns the file's block of output j of a packed block. It is valid until the scratch is used again.
func (f *Format) unpackBlock(packed []byte, j int, s *Scratch) []byte {
	c := f.codec
	block, at := s.block[:c.Bytes], 0
	if c.Reorder != nil {
		block = s.blocks[:c.Bytes]
	}
	for _, p := range c.Parts {
		gather(block[at:at+p.Bytes], packed[lanes*at+j*p.Unit:], p.Unit)
		at += p.Bytes
	}
	if c.Reorder != nil {
		c.Restore(s.block[:c.Bytes], block)
	}
	return s.block[:c.Bytes]
}

// blocksRow is Row of output j of a packed group for quantised types.
func (f *Format) blocksRow(dst []float32, group []byte, j int, s *Scratch) {
	for n := f.codec.Elems; len(dst) > 0; dst, group = dst[n:], group[f.packedBlock():] {
		f.codec.Unpack(dst[:n], f.unpackBlock(group[:f.packedBlock()], j, s))
	}
}

// multiplyBlocks is the specification of the product over packed blocks. The packed layouts and the assembly change
// nothing of its bits (N1, N7).
func (f *Format) multiplyBlocks(dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows, s *Scratch) {
	nb := k / f.codec.Elems
	clearOutputs(dst, stride, min(g0*lanes, out), min(g1*lanes, out), x.N)
	for gb := g0 * nb; gb < g1*nb; gb++ {
		g, b := gb/nb, gb%nb
		for j := range min(lanes, out-g*lanes) {
			block := f.unpackBlock(w[gb*f.packedBlock():][:f.packedBlock()], j, s)
			f.dot(dst[g*lanes+j:], stride, block, b*f.codec.Elems/kernel.QBlock, x, &s.term)
		}
	}
}

// dot continues the sums of one output over one block of its weights, as the file holds it: acc[r*stride]
// for every row r, whose activations of the block start at the row's block xb of 32. t is scratch.
func (f *Format) dot(acc []float32, stride int, block []byte, xb int, x *kernel.Rows, t *tensor.Term) {
	nb := x.K / kernel.QBlock
	for s := range f.codec.Elems / kernel.QBlock {
		*t = tensor.Term{Scale: [2]int32{1, 1}}
		f.codec.Term(t, block, s)
		for r := range x.N {
			at := r*nb + xb + s
			p, o := integers(t, (*[kernel.QBlock]int8)(x.Q[at*kernel.QBlock:]), x.Sum[at])
			acc[r*stride] = kernel.FMA32(float32(p), t.D*x.D[at], acc[r*stride])
			if t.HasOffsets {
				acc[r*stride] = kernel.FMA32(float32(o), t.DOffset*x.D[at], acc[r*stride])
			}
		}
	}
}

// integers returns p and o of a term for a block of activations and its sum.
func integers(t *tensor.Term, x *[kernel.QBlock]int8, sum int32) (p, o int32) {
	if t.Scale[0] == t.Scale[1] {
		for i, v := range x {
			p += int32(t.Q[i]) * int32(v)
		}
		p *= t.Scale[0]
	} else {
		var first, second int32
		for i := range 16 {
			first += int32(t.Q[i]) * int32(x[i])
			second += int32(t.Q[16+i]) * int32(x[16+i])
		}
		p = t.Scale[0]*first + t.Scale[1]*second
	}
	if t.Offset[0] == t.Offset[1] {
		return p, t.Offset[0] * sum
	}
	first := int32(0)
	for _, v := range x[:16] {
		first += int32(v)
	}
	return p, t.Offset[0]*first + t.Offset[1]*(sum-first)
}
