package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	. "grove/internal/kernel/_asm/vec"
)

// scoresQ8 emits the scores of queries for groups of keys.
func scoresQ8(s set) {
	var counts []int
	for n := s.queries; n > 0; n /= 2 {
		counts = append(counts, n)
	}
	name := "scoresQ8" + s.name
	Func(name, "func(rows int, dst *float32, q *int8, d *float32, keys, scales *byte, size, groups int, ahead *byte)",
		fmt.Sprintf("%s writes the scores of some queries, one of %v, rows of q and d, for groups of 16 keys, to", name, counts),
		"rows of 64 floats. groups is positive. Meanwhile as many bytes as the keys have are prefetched from",
		"ahead on.")
	perRows(counts, func(n int, label string) {
		dst, keys, scales, groups, size, ahead := Int("dst"), Int("keys"), Int("scales"), Int("groups"), Int("size"), Int("ahead")
		scaleRow := GP64()
		MOVQ(size, scaleRow)
		SHRQ(U8(3), scaleRow)
		Label(label + "group")
		for part := range s.parts {
			if part > 0 { // the same group again
				SUBQ(size, scales)
				for range lanes {
					SUBQ(size, keys)
				}
			}
			s.scoresOfKeys(n, part, fmt.Sprintf("%spart%d", label, part), dst, keys, scales, size, scaleRow, ahead)
		}
		ADDQ(I32(4*lanes), dst)
		DECQ(groups)
		JNZ(LabelRef(label + "group"))
	})
}

// scoresOfKeys emits the scores of n queries for a register of keys, one part of a group.
func (s set) scoresOfKeys(n, part int, label string, dst, keys, scales, size, scaleRow, ahead reg.GPVirtual) {
	acc := make(Vecs, n)
	acc.Each(func(r int) {
		acc[r] = Vector()
		VPXOR(acc[r].AsX(), acc[r].AsX(), acc[r].AsX())
	})
	q, d, blocks := rows(Int("q"), size, n), rows(Int("d"), scaleRow, n), GP64()
	MOVQ(size, blocks)
	SHRQ(U8(5), blocks)
	Label(label + "block")
	sum := s.dotBlock(keys, ahead, part, q, n)
	dk := Vector()
	VCVTPH2PS(Mem{Base: scales, Disp: 2 * lanes / s.parts * part}, dk)
	acc.Each(func(r int) {
		f := Vector()
		VBROADCASTSS(d.at(r, 0), f)
		VMULPS(dk, f, f)
		VCVTDQ2PS(sum[r], sum[r])
		VFMADD231PS(f, sum[r], acc[r])
	})
	ADDQ(I32(8*4*lanes), keys)
	if part == 0 {
		ADDQ(I32(8*4*lanes), ahead)
	}
	ADDQ(U8(2*lanes), scales)
	q.advance(U8(32))
	d.advance(U8(4))
	DECQ(blocks)
	JNZ(LabelRef(label + "block"))
	acc.Each(func(r int) { VMOVUPS(acc[r], Mem{Base: dst, Disp: 256*r + 4*lanes/s.parts*part}) })
}

// dotBlock returns the integer products of n queries and a register of keys over 32 elements. The unsigned
// by signed multiply-add gets |k| and q with k's sign; no sum of two leaves 16 bits, as both operands
// are within 127.
func (s set) dotBlock(keys, next reg.Register, part int, q matrix, n int) Vecs {
	sum, ones, zero := make(Vecs, n), Vector(), Vector()
	VMOVUPS(Bits(0x00010001), ones)
	VPXOR(zero.AsX(), zero.AsX(), zero.AsX())
	for e := range 8 {
		k, abs := Vector(), Vector()
		if part == 0 {
			PREFETCHT0(Mem{Base: next, Disp: 4 * lanes * e})
		}
		VMOVUPS(Mem{Base: keys, Disp: 4*lanes*e + 4*lanes/s.parts*part}, k)
		VPABSB(k, abs)
		negate := s.negative(k, zero)
		for r := range n {
			v := Vector()
			VPBROADCASTD(q.at(r, 4*e), v)
			negate(v)
			VPMADDUBSW(v, abs, v)
			VPMADDWD(ones, v, v)
			if e == 0 {
				sum[r] = v
			} else {
				VPADDD(v, sum[r], sum[r])
			}
		}
	}
	return sum
}

func signsAVX2(k, _ reg.Register) func(v reg.Register) {
	return func(v reg.Register) { VPSIGNB(k, v, v) }
}

// signsAVX512 keeps v where k is 0: its product is 0 all the same.
func signsAVX512(k, zero reg.Register) func(v reg.Register) {
	mask := K()
	VPMOVB2M(k, mask)
	return func(v reg.Register) { VPSUBB(v, zero, mask, v) }
}
