package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A wideTile is a superTile whose registers hold all outputs of a group: the weights of a block of 32
// inputs as unsigned bytes, and the chains of the rows.
type wideTile struct {
	superTile
	chain []reg.VecPhysical
}

const blockQuads = 8 // quads of inputs in a block

// blockChains hold the chains. The code that begins a super-block is that of the AVX2 tiles, which reaches only
// the registers below them.
var blockChains = [blockRows]reg.VecPhysical{reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23}

// wideFunction emits the tile function of a type with a frame of so many bytes. body emits the code
// for all blocks of n rows.
func wideFunction(name, params string, frame int, body func(t *wideTile)) {
	fn := "tile" + name + "AVX512"
	TEXT(fn, 0, "func(dst *float32, stride int, w *byte, nb int, "+params+", n int)")
	Pragma("noescape")
	Doc(fn+" writes the products of n rows (1 to 8) of nb > 0 blocks by a packed group of "+name,
		"weights to 16 elements of each of n rows of dst, stride elements apart.")
	room := AllocLocal(frame + 56)
	perRows(blockRows, func(n int) {
		t := &wideTile{superTile: superTile{blockTile: &blockTile{n: n, w: Load(Param("w"), GP64()), frame: GP64()}}}
		LEAQ(room.Offset(56), t.frame)
		ANDQ(I8(-64), t.frame)
		t.chain = blockChains[:n]
		zero(t.chain...)
		body(t)
		storeRows(t.chain)
	})
}

// sums emits the sums in 16 bits of weights, of quads from first on, times the activations of row r, less
// the words at minus where that is not nil.
func (t *wideTile) sums(u []reg.VecVirtual, r, first int, minus *Mem) reg.VecVirtual {
	acc := ZMM()
	for j := range u {
		p := ZMM()
		VPBROADCASTD(t.x.at(r, 4*(first+j)), p)
		VPMADDUBSW(p, u[j], p)
		switch {
		case j > 0:
			VPADDW(p, acc, acc)
		case minus != nil:
			VPBROADCASTD(*minus, acc)
			VPSUBW(acc, p, acc)
		default:
			acc = p
		}
	}
	return acc
}

// wideNibbles emits the weights of a block whose nibbles begin at disp.
func (t *wideTile) wideNibbles(disp int, mask reg.VecVirtual) []reg.VecVirtual {
	u := make([]reg.VecVirtual, blockQuads)
	for j := range halfQuads {
		low, high := ZMM(), ZMM()
		VMOVDQU8(Mem{Base: t.w, Disp: disp + wide*j}, high)
		VPANDD(high, mask, low)
		VPSRLW(U8(4), high, high)
		VPANDD(high, mask, high)
		u[j], u[halfQuads+j] = low, high
	}
	return u
}

// wideQ4Tile emits the product of n rows by a group of Q4_0 weights. In the frame: [row] 8 times the sum
// of a block's activations.
func wideQ4Tile() {
	wideFunction("Q4_0", "x *int8, d *float32, sum *int32", 4*blockRows, func(t *wideTile) {
		nb := Load(Param("nb"), GP64())
		t.x = rows("x", strideOf("nb", 5), t.n)
		stride := strideOf("nb", 2)
		d, sum := rows("d", stride, t.n), rows("sum", stride, t.n)
		mask, ones := each32("bytes0f", 0x0f0f0f0f), each32("ones", 1<<16|1)
		loop := fmt.Sprintf("loop%d", t.n)
		Label(loop)
		t.prefetch(5)
		for r := range t.n {
			s := GP32()
			MOVL(sum.at(r, 0), s)
			SHLL(U8(3), s)
			MOVL(s, t.local(4*r))
		}
		u, dw := t.wideNibbles(scaleBytes, mask), ZMM()
		VCVTPH2PS(Mem{Base: t.w}, dw)
		for r, chain := range t.chain {
			acc, scale := t.sums(u, r, 0, nil), ZMM()
			VPMADDWD(ones, acc, acc)
			VPSUBD_BCST(t.local(4*r), acc, acc)
			VCVTDQ2PS(acc, acc)
			VMULPS_BCST(d.at(r, 0), dw, scale)
			VFMADD231PS(acc, scale, chain)
		}
		ADDQ(U32(scaleBytes+halfQuads*wide), t.w)
		t.x.advance(32)
		d.advance(4)
		sum.advance(4)
		DECQ(nb)
		JNZ(LabelRef(loop))
	})
}

// wideQ4KTile emits the product of n rows by a group of Q4_K weights, as [q4KTile] does.
func wideQ4KTile() {
	wideFunction("Q4_K", "x *int8, d *float32, sum *int32", q4Frame, func(t *wideTile) {
		sum, mask := Load(Param("sum"), GP64()), each32("bytes0f", 0x0f0f0f0f)
		d, dmin := ZMM(), ZMM()
		t.loops(halfQuads*wide, q4Step, func() reg.Register {
			VCVTPH2PS(Mem{Base: t.w}, d)
			VCVTPH2PS(Mem{Base: t.w, Disp: scaleBytes}, dmin)
			return t.q4KHead(sum)
		}, func(at, scales reg.Register) {
			u, pairs, minima := t.wideNibbles(0, mask), ZMM(), ZMM()
			VMOVDQU8(Mem{Base: scales, Disp: q4Pairs}, pairs)
			VMOVUPS(Mem{Base: scales, Disp: q4Minima}, minima)
			for r, chain := range t.chain {
				acc, scale, low, lowScale := t.sums(u, r, 0, nil), ZMM(), ZMM(), ZMM()
				dx, sum := Mem{Base: at, Disp: scalesX + eight*r}, Mem{Base: at, Disp: q4Sums + eight*r}
				VPMADDWD(pairs, acc, acc)
				VCVTDQ2PS(acc, acc)
				VMULPS_BCST(dx, d, scale)
				VFMADD231PS(acc, scale, chain)
				VMULPS_BCST(sum, minima, low)
				VMULPS_BCST(dx, dmin, lowScale)
				VFNMADD231PS(low, lowScale, chain)
			}
		})
	})
}

// wideQ6KTile emits the product of n rows by a group of Q6_K weights, as [q6KTile] does.
func wideQ6KTile() {
	wideFunction("Q6_K", "x *int8, d *float32", q6Frame, func(t *wideTile) {
		low6 := each32("bytes3f", 0x3f3f3f3f)
		var tops [3]reg.VecVirtual
		for j := range tops {
			tops[j] = each32(fmt.Sprintf("bytes%02x", 3<<(2*j)), 0x01010101*3<<(2*j))
		}
		d := ZMM()
		t.loops(2*q6Half, 2*wide, func() reg.Register {
			VCVTPH2PS(Mem{Base: t.w}, d)
			return t.q6KHead()
		}, func(at, scales reg.Register) {
			u := append(t.wideSixBits(0, low6, tops), t.wideSixBits(q6Half, low6, tops)...)
			for r, chain := range t.chain {
				var acc [2]reg.VecVirtual
				for half := range acc {
					minus := Mem{Base: at, Disp: q6Sums + eight*(blockRows*half+r)}
					acc[half] = t.sums(u[halfQuads*half:][:halfQuads], r, halfQuads*half, &minus)
					VPMADDWD(Mem{Base: scales, Disp: wide * half}, acc[half], acc[half])
				}
				scale := ZMM()
				VPADDD(acc[0], acc[1], acc[1])
				VCVTDQ2PS(acc[1], acc[1])
				VMULPS_BCST(Mem{Base: at, Disp: scalesX + eight*r}, d, scale)
				VFMADD231PS(acc[1], scale, chain)
			}
		})
	})
}

// wideSixBits emits the weights of half a sub-block at disp, as [superTile.sixBits] does.
func (t *wideTile) wideSixBits(disp int, low6 reg.VecVirtual, tops [3]reg.VecVirtual) []reg.VecVirtual {
	const orAnd = 0xf8 // the destination, or both sources
	last := ZMM()
	u := make([]reg.VecVirtual, 0, halfQuads)
	for j, top := range tops {
		y, low := ZMM(), ZMM()
		VMOVDQU8(Mem{Base: t.w, Disp: disp + wide*j}, y)
		VPANDD(y, low6, low)
		u = append(u, low)
		if j == 0 {
			VPSRLW(U8(6), y, last)
			VPANDD(top, last, last)
			continue
		}
		VPSRLW(U8(6-2*j), y, y)
		VPTERNLOGD(U8(orAnd), top, y, last)
	}
	return append(u, last)
}
