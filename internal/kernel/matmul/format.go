// Package matmul multiplies rows of activations by matrices of every weight type, which it packs for that:
// in portable Go, which is the specification, and in assembly chosen by [kernel.Use]. Its README states the
// order of every sum (N1).
package matmul

import (
	"fmt"

	"grove/internal/kernel"
	"grove/internal/weights/tensor"
)

// The tiles of arm64 are generated from here, as go generate reads no file of another system.
//go:generate go -C ../_asm run ./matmularm -set neon -out ../matmul/z_tiles_neon_arm64.s -stubs ../matmul/z_tiles_neon_arm64.go -pkg matmul
//go:generate go -C ../_asm run ./matmularm -set i8mm -out ../matmul/z_tiles_i8mm_arm64.s -stubs ../matmul/z_tiles_i8mm_arm64.go -pkg matmul

// A Format stores and multiplies the weights of one type, as the type's [tensor.Codec] describes them. A matrix of
// out outputs and k inputs is stored in groups of Group outputs.
//
// All functions panic on a caller's mistake (a k that is no multiple of BlockK, a range of groups
// outside the matrix, a slice too short) and allocate nothing. They may run concurrently over
// different groups, each call with a scratch of its own.
type Format struct {
	Type      tensor.Type
	Quantized bool // MatMul reads Q, D and Sum of the rows, not F
	BlockK    int  // k must be a multiple of it
	Group     int  // outputs of a group, which are interleaved

	// MatMul multiplies every row of x by the outputs of the groups [g0, g1) of the packed matrix
	// w: dst[r*stride+o] = w[o] . x[r], in the order that the README of this package states for the
	// type (N1). It writes nothing else of dst. Tests plant faults here.
	MatMul func(dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows, s *Scratch)

	codec *tensor.Codec
	tiles tiles
}

// Lanes is the number of outputs of a packed group of any type: two vectors of eight.
const Lanes = 16

const lanes = Lanes

// Scratch is working memory of a thread for the methods of any format. The zero value is ready.
type Scratch struct {
	// Expand makes products of few rows expand weights where those of many do and a tile has as few: for checks.
	Expand bool

	block  [tensor.MaxBlock]byte         // a block of a file
	blocks [lanes * tensor.MaxBlock]byte // blocks of a group in the order of the kernels
	term   tensor.Term
	lanes  [lanes]float32
	group  [maxTileRows * lanes]float32 // products of a tile with a group that is not full
	room   []byte
	wide   []byte // expanded blocks of some groups
}

// Room returns n bytes for the caller's own use, which hold anything. They are valid until the next call.
func (s *Scratch) Room(n int) []byte { return grown(&s.room, n) }

// expanded is Room for the tiles.
func (s *Scratch) expanded(n int) []byte { return grown(&s.wide, n) }

func grown(b *[]byte, n int) []byte {
	if cap(*b) < n {
		*b = make([]byte, n)
	}
	return (*b)[:n]
}

// maxTileRows is the rows that a tile may have.
const maxTileRows = 16

// formats are the formats in the order of [tensor.Types].
var formats = func() (all []*Format) {
	for _, t := range tensor.Types() {
		c, _ := tensor.CodecOf(t)
		f := &Format{Type: t, Quantized: c.Quantised(), BlockK: c.Elems, Group: lanes, codec: c, tiles: tilesOf(t)}
		f.MatMul = f.multiply
		all = append(all, f)
	}
	return all
}()

// FormatOf returns the format of weights of type t, false where products over it do not exist. It is called when a matrix is
// loaded, which keeps the format.
func FormatOf(t tensor.Type) (*Format, bool) {
	for _, f := range formats {
		if f.Type == t {
			return f, true
		}
	}
	return nil, false
}

// Groups returns the number of groups of a matrix of out outputs.
func (f *Format) Groups(out int) int { return (out + f.Group - 1) / f.Group }

// PackedSize returns the bytes of the packed matrix, padded to whole groups.
func (f *Format) PackedSize(out, k int) int { return f.Groups(out) * f.groupBytes(k) }

// groupBytes returns the bytes of a packed group.
func (f *Format) groupBytes(k int) int { return k / f.codec.Elems * f.codec.Bytes * lanes }

// Pack writes the groups [g0, g1) of the row-major matrix src, the bytes of a file, to their
// places in dst, which holds PackedSize(out, k) bytes. Outputs past the last are zero.
func (f *Format) Pack(dst, src []byte, out, k, g0, g1 int, s *Scratch) {
	f.checkPack(dst, src, out, k, g0, g1)
	if f.Quantized {
		f.packBlocks(dst, src, out, k, g0, g1, s)
	} else {
		f.packFloats(dst, src, out, k, g0, g1)
	}
}

// multiply is MatMul: by the tile in use, or else by the portable product.
func (f *Format) multiply(dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows, s *Scratch) {
	f.checkMatMul(dst, stride, w, out, k, g0, g1, x)
	switch {
	case x.N == 0 || f.tiles.multiply(f, dst, stride, w, out, k, g0, g1, x, s):
	case f.Quantized:
		f.multiplyBlocks(dst, stride, w, out, k, g0, g1, x, s)
	default:
		f.multiplyFloats(dst, stride, w, out, k, g0, g1, x, s)
	}
}

// Row writes the k values of output o of the packed matrix w to dst, as an embedding table
// needs them.
func (f *Format) Row(dst []float32, w []byte, out, k, o int, s *Scratch) {
	f.checkRow(dst, w, out, k, o)
	w = w[o/lanes*f.groupBytes(k):][:f.groupBytes(k)]
	if f.Quantized {
		f.blocksRow(dst[:k], w, o%lanes, s)
	} else {
		f.floatsRow(dst[:k], w, o%lanes, s)
	}
}

// Peak returns the kind of multiply-add that products over the type are made of.
func (f *Format) Peak() kernel.PeakKind {
	switch {
	case !f.Quantized:
		return kernel.PeakFloat
	case f.codec.FullBytes:
		return kernel.PeakInt8
	}
	return kernel.PeakNibble
}

// clearOutputs sets outputs [o0, o1) of n rows to +0, where every sum of N1 starts.
func clearOutputs(dst []float32, stride, o0, o1, n int) {
	for r := range n {
		clear(dst[r*stride+o0 : r*stride+o1])
	}
}

// checkRange panics unless out, k and the groups [g0, g1) describe a part of a matrix of f.
func (f *Format) checkRange(out, k, g0, g1 int) {
	if out < 0 || k < 0 || k%f.BlockK != 0 {
		panic(fmt.Sprintf("matmul: %v: no matrix of %d outputs and %d inputs", f.Type, out, k))
	}
	if g0 < 0 || g1 < g0 || g1 > f.Groups(out) {
		panic(fmt.Sprintf("matmul: %v: groups [%d, %d) of %d", f.Type, g0, g1, f.Groups(out)))
	}
}

// checkPack panics unless dst and src hold a whole matrix.
func (f *Format) checkPack(dst, src []byte, out, k, g0, g1 int) {
	f.checkRange(out, k, g0, g1)
	row, _ := f.Type.RowBytes(k)
	if len(src) < out*row || len(dst) < f.PackedSize(out, k) {
		panic(fmt.Sprintf("matmul: %v: packing [%d, %d] from %d bytes into %d", f.Type, out, k, len(src), len(dst)))
	}
}

// checkMatMul panics unless every slice holds what the product reads and writes.
func (f *Format) checkMatMul(dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows) {
	f.checkRange(out, k, g0, g1)
	if len(w) < f.PackedSize(out, k) {
		panic(fmt.Sprintf("matmul: %v: [%d, %d] in %d bytes", f.Type, out, k, len(w)))
	}
	if x.N < 0 || x.K != k {
		panic(fmt.Sprintf("matmul: %v: %d rows of %d values for %d inputs", f.Type, x.N, x.K, k))
	}
	short := len(x.F) < x.N*k
	if f.Quantized {
		nb := x.N * (k / kernel.QBlock)
		short = len(x.Q) < x.N*k || len(x.D) < nb || len(x.Sum) < nb
	}
	if short {
		panic(fmt.Sprintf("matmul: %v: %d rows of %d values in slices too short", f.Type, x.N, k))
	}
	if x.N > 0 && (stride < out || len(dst) < (x.N-1)*stride+out) {
		panic(fmt.Sprintf("matmul: %v: %d rows of %d outputs, stride %d, in %d", f.Type, x.N, out, stride, len(dst)))
	}
}

// checkRow panics unless output o exists in w and dst has room for it.
func (f *Format) checkRow(dst []float32, w []byte, out, k, o int) {
	f.checkRange(out, k, 0, 0)
	if o < 0 || o >= out || len(w) < f.PackedSize(out, k) || len(dst) < k {
		panic(fmt.Sprintf("matmul: %v: output %d of [%d, %d] in %d bytes into %d values", f.Type, o, out, k, len(w), len(dst)))
	}
}
