package main

import (
	"fmt"
	"slices"

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

// products emits the sums in 16 bits of the weights u of a block times the activations of each row, a sum for
// so many quads, less the words that minus returns where it exists, and then the steps of finish. Two rows go
// together and the steps are spread over the sums of the next two: what waits for results leaves room in the
// scheduler for what need not wait.
func (t *wideTile) products(u []reg.VecVirtual, quads int, minus func(r, sum int) Mem, finish func(r int, acc []reg.VecVirtual) steps) {
	var late steps
	for r := 0; r < t.n; r += 2 {
		acc := make([][]reg.VecVirtual, min(2, t.n-r))
		for j := range u {
			for i := range acc {
				p := ZMM()
				VPBROADCASTD(t.x.at(r+i, 4*j), p)
				VPMADDUBSW(p, u[j], p)
				switch first := j%quads == 0; {
				case !first:
					VPADDW(p, acc[i][j/quads], acc[i][j/quads])
				case minus == nil:
					acc[i] = append(acc[i], p)
				default:
					less := ZMM()
					VPBROADCASTD(minus(r+i, j/quads), less)
					VPSUBW(less, p, p)
					acc[i] = append(acc[i], p)
				}
			}
			if j%2 == 1 {
				late = late.take((len(u) - j + 1) / 2)
			}
		}
		late = nil
		for i := range acc {
			late = late.with(finish(r+i, acc[i]))
		}
	}
	late.take(1)
}

// with returns the steps of s and of more, two by two.
func (s steps) with(more steps) steps {
	both := slices.Clone(more)
	for i := range s {
		both[i] = func() {
			s[i]()
			more[i]()
		}
	}
	return both
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

// wideQ4Tile emits the product of n rows by a group of Q4_0 weights.
func wideQ4Tile() {
	wideFunction("Q4_0", "x *int8, d *float32, sum *int32", 0, func(t *wideTile) {
		nb := Load(Param("nb"), GP64())
		t.x = rows("x", strideOf("nb", 5), t.n)
		stride := strideOf("nb", 2)
		d, sum := rows("d", stride, t.n), rows("sum", stride, t.n)
		mask, ones := each32("bytes0f", 0x0f0f0f0f), each32("ones", 1<<16|1)
		loop := fmt.Sprintf("loop%d", t.n)
		Label(loop)
		t.prefetch(5)
		u, dw := t.wideNibbles(scaleBytes, mask), ZMM()
		VCVTPH2PS(Mem{Base: t.w}, dw)
		t.products(u, blockQuads, nil, func(r int, acc []reg.VecVirtual) steps {
			sum8, scale := ZMM(), ZMM()
			return steps{func() {
				VPSLLD_BCST(U8(3), sum.at(r, 0), sum8)
				VPMADDWD(ones, acc[0], acc[0])
			}, func() {
				VPSUBD(sum8, acc[0], acc[0])
			}, func() {
				VMULPS_BCST(d.at(r, 0), dw, scale)
				VCVTDQ2PS(acc[0], acc[0])
			}, func() {
				VFMADD231PS(acc[0], scale, t.chain[r])
			}}
		})
		ADDQ(U32(scaleBytes+halfQuads*wide), t.w)
		t.x.advance(32)
		d.advance(4)
		sum.advance(4)
		DECQ(nb)
		JNZ(LabelRef(loop))
	})
}

// wideQ4KTile emits the product of n rows by a group of Q4_K weights, as [nibbleSuperTile] does.
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
			t.products(u, blockQuads, nil, func(r int, acc []reg.VecVirtual) steps {
				scale, low, lowScale := ZMM(), ZMM(), ZMM()
				dx, sum := Mem{Base: at, Disp: scalesX + eight*r}, Mem{Base: at, Disp: q4Sums + eight*r}
				return steps{func() {
					VPMADDWD(pairs, acc[0], acc[0])
				}, func() {
					VMULPS_BCST(dx, d, scale)
					VCVTDQ2PS(acc[0], acc[0])
				}, func() {
					VFMADD231PS(acc[0], scale, t.chain[r])
				}, func() {
					VMULPS_BCST(sum, minima, low)
					VMULPS_BCST(dx, dmin, lowScale)
					VFNMADD231PS(low, lowScale, t.chain[r])
				}}
			})
		})
	})
}

// wideQ6KTile emits the product of n rows by a group of Q6_K weights, as [signedSuperTile] does.
func wideQ6KTile() {
	wideFunction("Q6_K", "x *int8, d *float32", q6Frame, func(t *wideTile) {
		low6 := each32("bytes3f", 0x3f3f3f3f)
		var tops [3]reg.VecVirtual
		for j := range tops {
			tops[j] = each32(fmt.Sprintf("bytes%02x", 3<<(2*j)), 0x01010101*3<<(2*j))
		}
		d := ZMM()
		t.loops(typeQ6K.bits, 2*wide, func() reg.Register {
			VCVTPH2PS(Mem{Base: t.w}, d)
			return t.signedHead(typeQ6K)
		}, func(at, scales reg.Register) {
			u := append(t.wideSixBits(0, low6, tops), t.wideSixBits(typeQ6K.bits/2, low6, tops)...)
			var pairs [2]reg.VecVirtual
			for half := range pairs {
				pairs[half] = ZMM()
				VMOVDQU8(Mem{Base: scales, Disp: wide * half}, pairs[half])
			}
			t.products(u, halfQuads, func(r, half int) Mem {
				return Mem{Base: at, Disp: q6Sums + eight*(blockRows*half+r)}
			}, func(r int, acc []reg.VecVirtual) steps {
				scale := ZMM()
				return steps{func() {
					VPMADDWD(pairs[0], acc[0], acc[0])
					VPMADDWD(pairs[1], acc[1], acc[1])
				}, func() {
					VPADDD(acc[0], acc[1], acc[1])
				}, func() {
					VMULPS_BCST(Mem{Base: at, Disp: scalesX + eight*r}, d, scale)
					VCVTDQ2PS(acc[1], acc[1])
				}, func() {
					VFMADD231PS(acc[1], scale, t.chain[r])
				}}
			})
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
