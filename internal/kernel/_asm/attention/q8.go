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
	Func(name, "func(rows int, dst *float32, q *int8, d *float32, bias *int32, keys, scales *byte, size, groups int, ahead *byte)",
		fmt.Sprintf("%s writes the scores of some queries, one of %v, rows of q, d and bias, for groups of 16 keys, to", name, counts),
		"rows of 64 floats. groups is positive. Meanwhile as many bytes as the keys and scales have are",
		"prefetched from ahead on.")
	perRows(counts, func(n int, label string) {
		keys, scales, size, ahead := Int("keys"), Int("scales"), Int("size"), Int("ahead")
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
			s.scoresOfKeys(n, part, fmt.Sprintf("%spart%d", label, part), keys, scales, size, scaleRow, ahead)
		}
		ADDQ(I32(4*lanes), address("dst"))
		DECQ(address("groups"))
		JNZ(LabelRef(label + "group"))
	})
}

// scoresOfKeys emits the scores of n queries for a register of keys, one part of a group.
func (s set) scoresOfKeys(n, part int, label string, keys, scales, size, scaleRow, ahead reg.GPVirtual) {
	acc := make(Vecs, n)
	acc.Each(func(r int) {
		acc[r] = Vector()
		VPXOR(acc[r].AsX(), acc[r].AsX(), acc[r].AsX())
	})
	q, d, blocks := rows(Int("q"), size, n), rows(Int("d"), scaleRow, n), GP64()
	bias := d
	if s.negative == nil {
		bias = d.beside(Int("bias"))
	}
	MOVQ(size, blocks)
	SHRQ(U8(5), blocks)
	Label(label + "block")
	var sum Vecs
	if s.negative == nil {
		sum = s.dotBytes(keys, ahead, part, q, bias, n)
		bias.advance(U8(4))
	} else {
		sum = s.dotBlock(keys, ahead, part, q, n)
	}
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
		PREFETCHT0(Mem{Base: ahead, Disp: 8 * 4 * lanes})
		ADDQ(I32(8*4*lanes+2*lanes), ahead)
	}
	ADDQ(U8(2*lanes), scales)
	q.advance(U8(32))
	d.advance(U8(4))
	DECQ(blocks)
	JNZ(LabelRef(label + "block"))
	dst := Int("dst")
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

// dotBytes is dotBlock where one instruction adds four products of unsigned by signed bytes to an integer, exactly. Keys
// with 128 added are unsigned; each sum starts at its query's bias, which takes that off again.
func (s set) dotBytes(keys, next reg.Register, part int, q, bias matrix, n int) Vecs {
	sum, offset := make(Vecs, n), Vector()
	VMOVUPS(Bits(0x80808080), offset)
	sum.Each(func(r int) {
		sum[r] = Vector()
		VPBROADCASTD(bias.at(r, 0), sum[r])
	})
	for e := range 8 {
		k, key := Vector(), Mem{Base: keys, Disp: 4*lanes*e + 4*lanes/s.parts*part}
		if part == 0 {
			PREFETCHT0(Mem{Base: next, Disp: 4 * lanes * e})
		}
		if s.parts == 1 {
			VPXORD(key, offset, k)
			sum.Each(func(r int) { VPDPBUSD_BCST(q.at(r, 4*e), k, sum[r]) })
			continue
		}
		VPXOR(key, offset, k)
		sum.Each(func(r int) {
			v := Vector()
			VPBROADCASTD(q.at(r, 4*e), v)
			VPDPBUSD(v, k, sum[r])
		})
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

// scaleWeights emits a loop over rows inside one over vectors of slots: the scales are the same for all rows.
func scaleWeights(s set) {
	name := "scaleWeights" + s.name
	Func(name, "func(rows int, w *[512]float32, p *float32, scales *byte, slots int, ahead *byte)",
		name+" multiplies the first slots of up to 8 rows of 64 weights by the slots' F16 scales.",
		"It reads up to 30 bytes behind the last scale, and prefetches 128 bytes from ahead on.")
	w, p, scales, slots, left := Int("w"), Int("p"), Int("scales"), Int("slots"), Vector()
	n := lanes / s.parts
	VMOVD(slots.As32(), left.AsX())
	VPBROADCASTD(left.AsX(), left)
	numbers, ahead := laneNumbers(), Int("ahead")
	PREFETCHT0(Mem{Base: ahead})
	PREFETCHT0(Mem{Base: ahead, Disp: cacheLine})
	Label("slots")
	d := Vector()
	VCVTPH2PS(Mem{Base: scales}, d)
	multiply := s.scaleVector(numbers, left, d)
	rows, at := Int("rows"), GP64()
	XORQ(at, at)
	Label("row")
	multiply(At(p, at), At(w, at))
	ADDQ(I32(256), at)
	DECQ(rows)
	JNZ(LabelRef("row"))
	ADDQ(U8(4*n), p)
	ADDQ(U8(4*n), w)
	ADDQ(U8(2*n), scales)
	VPSUBD(Bits(uint32(n)), left, left)
	SUBQ(U8(n), slots)
	JG(LabelRef("slots"))
	End()
}

// scaleVector returns what stores a vector times d, of the lanes whose numbers are below left.
func (s set) scaleVector(numbers, left, d reg.VecVirtual) func(from, to Mem) {
	v := Vector()
	if s.parts == 1 {
		mask := K()
		VPCMPGTD(numbers, left, mask)
		return func(from, to Mem) {
			VMULPS_Z(from, d, mask, v)
			VMOVUPS(v, to)
		}
	}
	mask := Vector()
	VPCMPGTD(numbers, left, mask)
	return func(from, to Mem) {
		VMASKMOVPS(from, mask, v)
		VMULPS(d, v, v)
		VMOVUPS(v, to)
	}
}
