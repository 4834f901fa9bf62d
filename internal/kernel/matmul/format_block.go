package matmul

import (
	"grove/internal/kernel"
	"grove/weights/codec"
	"grove/weights/tensor"
)

// A blockLayout says how the blocks of a quantised type are packed and multiplied. A packed matrix
// is [groups][blocks of a row] packed blocks; each holds one block of 16 outputs in the bytes that
// these take in the file.
type blockLayout struct {
	t     tensor.Type
	elems int // of a block
	size  int // of a block of the file in bytes

	// parts cut a block; of each part the packed block holds one unit of every output in turn. Where
	// reordered is set, the block is brought into the kernels' order before that.
	parts     []blockPart
	reordered bool
}

// A blockPart is bytes of a block that are interleaved unit by unit.
type blockPart struct{ bytes, unit int }

// maxBlock is the bytes of the largest block of a file.
const maxBlock = codec.Q6_KBytes

// blockFormat is the format of a quantised type, l without its sizes.
func blockFormat(l blockLayout) *Format {
	l.elems, l.size, _ = l.t.Block()
	f := &Format{Type: l.t, Quantized: true, BlockK: l.elems, Group: lanes}
	f.PackedSize = func(out, k int) int { return f.Groups(out) * (k / l.elems) * l.packed() }
	f.Pack = func(dst, src []byte, out, k, g0, g1 int) {
		f.checkPack(dst, src, out, k, g0, g1)
		nb := k / l.elems
		row := nb * l.size
		var room [lanes * maxBlock]byte
		for gb := g0 * nb; gb < g1*nb; gb++ {
			g, b := gb/nb, gb%nb
			n := min(lanes, out-g*lanes)
			from := src[g*lanes*row+b*l.size:][:(n-1)*row+l.size]
			l.pack(dst[gb*l.packed():][:l.packed()], from, row, &room)
		}
	}
	f.MatMul = func(dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows) {
		f.checkMatMul(dst, stride, w, out, k, g0, g1, x)
		if x.N > 0 {
			mulBlocks(&l, dst, stride, w, out, k, g0, g1, x)
		}
	}
	f.Row = func(dst []float32, w []byte, out, k, o int) {
		f.checkRow(dst, w, out, k, o)
		nb := k / l.elems
		var block [maxBlock]byte
		for b := range nb {
			l.unpack(block[:l.size], w[(o/lanes*nb+b)*l.packed():][:l.packed()], o%lanes)
			if err := codec.Unpack(l.t, dst[b*l.elems:][:l.elems], block[:l.size]); err != nil {
				panic(err) // a layout of a type that package quant lacks
			}
		}
	}
	return f
}

// packed returns the bytes of a packed block.
func (l *blockLayout) packed() int { return lanes * l.size }

// pack writes a packed block. The blocks of up to 16 outputs lie row bytes apart in src; the outputs that
// it lacks become zero. room holds reordered blocks.
func (l *blockLayout) pack(dst, src []byte, row int, room *[lanes * maxBlock]byte) {
	if l.reordered {
		n := 0
		for ; n*row < len(src); n++ {
			l.reorder(room[n*l.size:][:l.size], src[n*row:][:l.size])
		}
		src, row = room[:n*l.size], l.size
	}
	at := 0
	for _, p := range l.parts {
		end := at + p.bytes
		interleave(dst[lanes*at:lanes*end], src[at:len(src)-l.size+end], row, p.bytes, p.unit)
		at = end
	}
}

// unpack writes the file's block of output j of a packed block.
func (l *blockLayout) unpack(block, packed []byte, j int) {
	at := 0
	for _, p := range l.parts {
		for end := at + p.bytes; at < end; at += p.unit {
			copy(block[at:at+p.unit], packed[lanes*at+j*p.unit:])
		}
	}
	if l.reordered {
		var own [maxBlock]byte
		copy(own[:], block)
		l.restore(block, own[:l.size])
	}
}

// mulBlocksGo is the product over packed blocks by the specification.
func mulBlocksGo(l *blockLayout, dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows) {
	nb := k / l.elems
	var block [maxBlock]byte
	clearOutputs(dst, stride, min(g0*lanes, out), min(g1*lanes, out), x.N)
	for gb := g0 * nb; gb < g1*nb; gb++ {
		g, b := gb/nb, gb%nb
		for j := range min(lanes, out-g*lanes) {
			l.unpack(block[:l.size], w[gb*l.packed():][:l.packed()], j)
			l.dot(dst[g*lanes+j:], stride, block[:l.size], b*l.elems/kernel.QBlock, k/kernel.QBlock, x)
		}
	}
}
