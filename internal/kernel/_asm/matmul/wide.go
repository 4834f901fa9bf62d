package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The tiles of 512 bits: a register holds all outputs of a group, the chains of all rows stay in registers,
// and constants do too.

const wideRows = 12 // rows of the largest tile of floats and Q8_0

func wideTiles() {
	for _, t := range floatTypes {
		wideFloatTile(t)
		wideGroupsTile(t, 2, wideRows)
		wideGroupsTile(t, 4, 3)
	}
	wideQ8Tile()
	wideQ4Tile()
	wideQ4KTile()
	wideQ6KTile()
}

// registers returns n registers.
func registers(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = ZMM()
	}
	return v
}

// zero emits the clearing of registers.
func zero[R reg.Register](v ...R) {
	for _, r := range v {
		VPXORD(r, r, r)
	}
}

// each32 returns a register of equal 32-bit words.
func each32(name string, word uint32) reg.VecVirtual {
	v := ZMM()
	VPBROADCASTD(vector(name, func(int) uint32 { return word }), v)
	return v
}

// storeRows emits the store of a register to each row of dst.
func storeRows[R reg.Register](v []R) {
	dst, stride := Load(Param("dst"), GP64()), strideOf("stride", 2)
	for r := range v {
		VMOVUPS(v[r], Mem{Base: dst})
		if r < len(v)-1 {
			ADDQ(stride, dst)
		}
	}
}

// wideQ8Tile emits the product of n rows by a group of Q8_0 weights. As in [signedTile] a weight's sign moves
// to the activation: where a mask says that the weight is negative, the activation is subtracted from zero.
func wideQ8Tile() {
	const less = 1 // predicate of a comparison
	function("tileQ8_0AVX512", "func(dst *float32, stride int, w *byte, nb int, x *int8, d *float32, n int)",
		"tileQ8_0AVX512 writes the products of n rows (1 to 12) of nb > 0 blocks by a packed group of Q8_0",
		"weights to 16 elements of each of n rows of dst, stride elements apart.")
	perRows(wideRows, func(n int) {
		w, nb := Load(Param("w"), GP64()), Load(Param("nb"), GP64())
		x := rows("x", strideOf("nb", 5), n)
		d := rows("d", strideOf("nb", 2), n)
		chain, nothing := registers(n), ZMM()
		zero(append(chain, nothing)...)
		ones := each32("ones", 1<<16|1)
		loop := fmt.Sprintf("loop%d", n)
		Label(loop)
		isum := make([]reg.VecVirtual, n)
		for quad := range 8 {
			PREFETCHT0(Mem{Base: w, Disp: 64 * (ahead + quad)})
			abs, negative := ZMM(), K()
			VMOVDQU8(Mem{Base: w, Disp: scaleBytes + wide*quad}, abs)
			VPCMPB(U8(less), nothing, abs, negative) // VPMOVB2M would take four cycles
			VPABSB(abs, abs)
			for r := 0; r < n; r += 2 { // two rows at a time, so that one need not wait for itself
				p := registers(min(2, n-r))
				for i := range p {
					VPBROADCASTD(x.at(r+i, 4*quad), p[i])
				}
				for i := range p {
					VPSUBB(p[i], nothing, negative, p[i])
				}
				for i := range p {
					VPMADDUBSW(p[i], abs, p[i])
				}
				for i := range p {
					VPMADDWD(ones, p[i], p[i])
				}
				for i := range p {
					if quad == 0 {
						isum[r+i] = p[i]
						continue
					}
					VPADDD(p[i], isum[r+i], isum[r+i])
				}
			}
		}
		dw := ZMM()
		VCVTPH2PS(Mem{Base: w}, dw)
		for r := range isum {
			scale := ZMM()
			VMULPS_BCST(d.at(r, 0), dw, scale)
			VCVTDQ2PS(isum[r], isum[r])
			VFMADD231PS(isum[r], scale, chain[r])
		}
		ADDQ(U32(scaleBytes+8*wide), w)
		x.advance(32)
		d.advance(4)
		DECQ(nb)
		JNZ(LabelRef(loop))
		storeRows(chain)
	})
}
