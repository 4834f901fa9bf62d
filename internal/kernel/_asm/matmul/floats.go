package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A floatType is a type of float weights.
type floatType struct {
	name string
	elem int // bytes
	load func(m Mem, v reg.VecVirtual)
}

var floatTypes = []floatType{
	{"F32", 4, func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) }},
	{"F16", 2, func(m Mem, v reg.VecVirtual) { VCVTPH2PS(m, v) }},
	{"BF16", 2, func(m Mem, v reg.VecVirtual) {
		VPMOVZXWD(m, v)
		VPSLLD(U8(16), v, v)
	}},
}

// function begins the product of n rows, up to most, by adjacent groups of float weights, [k][16 outputs] each. Few rows
// take several groups at once: a fused multiply-add waits for the one before it in its chain, so that two a cycle need
// eight chains or more.
func (t floatType) function(set string, groups, most int) {
	fn, of := "tile"+t.name+set, "a group"
	if groups > 1 {
		fn, of = fmt.Sprintf("tile%sx%d%s", t.name, groups, set), fmt.Sprintf("%d adjacent groups", groups)
	}
	function(fn, "func(dst *float32, stride int, w *byte, k int, x *float32, n int)",
		fmt.Sprintf("%s writes the products of n rows (1 to %d) of k > 0 values by %s of %s weights", fn, most, of, t.name),
		fmt.Sprintf("to %d elements of each of n rows of dst, stride elements apart.", 16*groups))
}

// A groupAt addresses the weights of adjacent groups.
type groupAt struct{ w, size, size3 reg.GPVirtual }

// groupsAt returns the addresses of some groups of k inputs.
func (t floatType) groupsAt(groups int) groupAt {
	a := groupAt{w: GP64()}
	Load(Param("w"), a.w)
	if groups > 1 {
		a.size = GP64()
		Load(Param("k"), a.size)
		IMUL3Q(U8(16*t.elem), a.size, a.size)
	}
	if groups > 3 {
		a.size3 = GP64()
		LEAQ(Mem{Base: a.size, Index: a.size, Scale: 2}, a.size3)
	}
	return a
}

func (a groupAt) at(group, disp int) Mem {
	m := Mem{Base: a.w, Disp: disp}
	switch group {
	case 1, 2:
		m.Index, m.Scale = a.size, uint8(group)
	case 3:
		m.Index, m.Scale = a.size3, 1
	}
	return m
}

// floatTile emits the products of n rows by groups of float weights.
func floatTile(t floatType, groups, most int) {
	t.function("AVX2", groups, most)
	perRows(most, func(n int) {
		w, k := t.groupsAt(groups), Load(Param("k"), GP64())
		x := rows("x", strideOf("k", 2), n)
		acc := make([][][vectors]reg.VecVirtual, groups)
		for g := range acc {
			acc[g] = accumulators(n)
			for _, a := range acc[g] {
				for _, v := range a {
					VXORPS(v, v, v)
				}
			}
		}
		loop := fmt.Sprintf("loop%d", n)
		Label(loop)
		var xv reg.VecVirtual
		for g := range acc {
			PREFETCHT0(w.at(g, 64*ahead))
			wv := vectorPair()
			for v := range wv {
				t.load(w.at(g, 8*t.elem*v), wv[v])
			}
			for r := range acc[g] {
				if n > 1 || g == 0 {
					xv = YMM()
					VBROADCASTSS(x.at(r, 0), xv)
				}
				for v := range wv {
					VFMADD231PS(xv, wv[v], acc[g][r][v])
				}
			}
		}
		ADDQ(U8(8*vectors*t.elem), w.w)
		x.advance(4)
		DECQ(k)
		JNZ(LabelRef(loop))
		dst := rows("dst", strideOf("stride", 2), n)
		for g := range acc {
			for r := range acc[g] {
				for v := range acc[g][r] {
					VMOVUPS(acc[g][r][v], dst.at(r, 64*g+32*v))
				}
			}
		}
	})
}

// wideFloatTile emits the product of n rows by a group of float weights, [k][16 outputs].
//
// Each row has a pointer of its own: an operand with an index would be two operations to the front end.
func wideFloatTile(t floatType) {
	const unroll = 4
	fn, elem := "tile"+t.name+"AVX512", t.elem
	function(fn, "func(dst *float32, stride int, w *byte, k int, x *float32, n int)",
		fn+" writes the products of n rows (1 to 12) of k > 0 values by a group of "+t.name+" weights",
		"to 16 elements of each of n rows of dst, stride elements apart.")
	perRows(wideRows, func(n int) {
		x := make([]reg.GPVirtual, n)
		x[0] = GP64()
		Load(Param("x"), x[0])
		stride := strideOf("k", 2)
		for r := 1; r < n; r++ {
			x[r] = GP64()
			LEAQ(Mem{Base: x[r-1], Index: stride, Scale: 1}, x[r])
		}
		w, k := Load(Param("w"), GP64()), Load(Param("k"), GP64())
		acc := registers(n)
		zero(acc...)
		inputs := func(many int) {
			for i := range many {
				if i*16*elem%64 == 0 {
					PREFETCHT0(Mem{Base: w, Disp: 64*ahead + 16*elem*i})
				}
				wv := ZMM()
				t.load(Mem{Base: w, Disp: 16 * elem * i}, wv)
				for r := range acc {
					VFMADD231PS_BCST(Mem{Base: x[r], Disp: 4 * i}, wv, acc[r])
				}
			}
			ADDQ(U32(16*elem*many), w)
			for r := range x {
				ADDQ(U8(4*many), x[r])
			}
		}
		many, one, done := fmt.Sprintf("many%d", n), fmt.Sprintf("one%d", n), fmt.Sprintf("done%d", n)
		SUBQ(U8(unroll), k)
		JL(LabelRef(one))
		Label(many)
		inputs(unroll)
		SUBQ(U8(unroll), k)
		JGE(LabelRef(many))
		Label(one)
		CMPQ(k, I8(-unroll))
		JE(LabelRef(done))
		inputs(1)
		DECQ(k)
		JMP(LabelRef(one))
		Label(done)
		storeRows(acc)
	})
}

// wideGroupsTile emits the products of n rows by groups of float weights. An activation is read once for all groups.
func wideGroupsTile(t floatType, groups, most int) {
	const unroll = 2
	t.function("AVX512", groups, most)
	perRows(most, func(n int) {
		w, k := t.groupsAt(groups), Load(Param("k"), GP64())
		x := rows("x", strideOf("k", 2), n)
		acc := make([][]reg.VecVirtual, groups)
		for g := range acc {
			acc[g] = registers(n)
			zero(acc[g]...)
		}
		inputs := func(many int) {
			for i := range many {
				wv := registers(groups)
				for g := range wv {
					if i*16*t.elem%64 == 0 {
						PREFETCHT0(w.at(g, 64*ahead+16*t.elem*i))
					}
					t.load(w.at(g, 16*t.elem*i), wv[g])
				}
				for r := range n {
					xv := ZMM()
					VBROADCASTSS(x.at(r, 4*i), xv)
					for g := range wv {
						VFMADD231PS(xv, wv[g], acc[g][r])
					}
				}
			}
			ADDQ(U32(16*t.elem*many), w.w)
			x.advance(4 * many)
		}
		loop, last, done := fmt.Sprintf("loop%d", n), fmt.Sprintf("last%d", n), fmt.Sprintf("done%d", n)
		SUBQ(U8(unroll), k)
		JL(LabelRef(last))
		Label(loop)
		inputs(unroll)
		SUBQ(U8(unroll), k)
		JGE(LabelRef(loop))
		Label(last)
		CMPQ(k, I8(-unroll))
		JE(LabelRef(done))
		inputs(1)
		Label(done)
		dst, stride := Load(Param("dst"), GP64()), strideOf("stride", 2)
		for r := range n {
			for g := range acc {
				VMOVUPS(acc[g][r], Mem{Base: dst, Disp: 64 * g})
			}
			if r < n-1 {
				ADDQ(stride, dst)
			}
		}
	})
}
