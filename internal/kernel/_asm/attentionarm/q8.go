package main

import (
	"fmt"

	. "grove/internal/kernel/_asm/arm64"
	. "grove/internal/kernel/_asm/neon"
)

// scoresQ8 emits the scores of queries for groups of keys. The chains of up to four queries lie in registers, and the integer sums
// of a block of 32 elements: of four queries those of half a group at a time.
func scoresQ8() {
	counts := []int{4, 2, 1}
	Func("scoresQ8NEON", "func(rows int, dst *float32, q *int8, d *float32, keys, scales *byte, size, groups int, ahead *byte)",
		fmt.Sprintf("scoresQ8NEON writes the scores of some queries, one of %v, rows of q and d, for groups of 16 keys, to", counts),
		"rows of 64 floats. groups is positive. Meanwhile as many bytes as the keys and scales have are",
		"prefetched from ahead on.")
	perRows(counts, func(n int, label string) {
		size, dst, groups, scaleRow := Arg("size"), Arg("dst"), Arg("groups"), Reg()
		Text("LSR $3, %v, %v", size, scaleRow)
		s := scores{keys: Arg("keys"), scales: Arg("scales"), ahead: Arg("ahead"), qAt: Reg(), dAt: Reg()}
		s.q, s.d = rowPointers(Arg("q"), size, n), rowPointers(Arg("d"), scaleRow, n)
		blocks := Reg()
		Loop(label+"group", groups, func() {
			Text("MOVD $0, %v", s.qAt)
			Text("MOVD $0, %v", s.dAt)
			Text("LSR $5, %v, %v", size, blocks)
			acc := make([][]V, n)
			for r := range acc {
				acc[r] = Vecs(parts)
				for _, v := range acc[r] {
					ZERO(v)
				}
			}
			Loop(label+"block", blocks, func() { s.block(acc) })
			for r := range acc {
				Store(acc[r], dst, 4*PageSlots*r)
				Free(acc[r]...)
			}
			Advance(4*lanes, dst)
		})
	})
}

// PageSlots is the number of scores in a row.
const PageSlots = 64

// scores are the places of the next block's keys and scales, of the queries and their scales, and the byte index of the block in these.
type scores struct {
	keys, scales, ahead R
	q, d                []R
	qAt, dAt            R
}

// block emits the products of all queries and the group's next 32 elements.
func (s scores) block(acc [][]V) {
	n, wide := len(acc), parts
	if n > 2 {
		wide = parts / 2
	}
	sum, q, k := make([][]V, n), Vecs(n), Vecs(wide)
	for r := range sum {
		sum[r] = Vecs(wide)
	}
	for part := 0; part < parts; part += wide {
		for r := range sum {
			for _, v := range sum[r] {
				ZERO(v)
			}
		}
		for half := range 2 {
			for r := range q {
				LDRQX(q[r], s.q[r], s.qAt)
			}
			Advance(16-32*half, s.qAt)
			for i := range 4 {
				e := 4*half + i
				if part == 0 {
					prefetch(s.ahead, 4*lanes*e)
				}
				Load(k, s.keys, 4*lanes*e+16*part)
				for r := range sum {
					for j, v := range sum[r] {
						SDOTElem(v, k[j], q[r], i)
					}
				}
			}
		}
		s.scale(acc, sum, part, k, q)
	}
	prefetch(s.ahead, 8*4*lanes)
	Advance(8*4*lanes+2*lanes, s.ahead)
	Advance(8*4*lanes, s.keys)
	Advance(2*lanes, s.scales)
	Advance(32, s.qAt)
	Advance(4, s.dAt)
	for r := range sum {
		Free(sum[r]...)
	}
	Free(append(q, k...)...)
}

// scale emits one step of the chains of a part: FMA32(sum, d*dk, acc). It overwrites k and d.
func (s scores) scale(acc, sum [][]V, part int, k, d []V) {
	for j := 0; j < len(k); j += 2 {
		LDRQ(k[j+1], s.scales, 4*(part+j)*2)
		FCVTL(H4, k[j], k[j+1])
		FCVTL(H8, k[j+1], k[j+1])
	}
	for r := range d {
		LDRSX(d[r], s.d[r], s.dAt)
	}
	f := Vec()
	for r := range sum {
		for j, v := range sum[r] {
			SCVTF(S4, v, v)
			FMULElem(S4, f, k[j], d[r], 0)
			FMLA(S4, acc[r][part+j], v, f)
		}
	}
	Free(f)
}

// scaleWeights emits loops over slots, 16, 4 and 1 at a time, and within over rows: the scales are the same for all rows.
func scaleWeights() {
	Func("scaleWeightsNEON", "func(rows int, w *[512]float32, p *float32, scales *byte, slots int, ahead *byte)",
		"scaleWeightsNEON multiplies the first slots of up to 8 rows of 64 weights by the slots' F16 scales, and prefetches",
		"128 bytes from ahead on.")
	w, p, scales, slots, rows, ahead := Arg("w"), Arg("p"), Arg("scales"), Arg("slots"), Arg("rows"), Arg("ahead")
	to, from, left, d, v, row := Reg(), Reg(), Reg(), Vecs(4), Vecs(4), Reg()
	prefetch(ahead, 0)
	prefetch(ahead, cacheLine)
	Text("MOVD $%d, %v", 4*PageSlots, row)
	for _, n := range []int{16, 4, 1} {
		name := fmt.Sprintf("slots%d", n)
		Label(name)
		Text("SUBS $%d, %v, %v", n, slots, slots)
		Text("BLT %send", name)
		switch n {
		case 16:
			Load([]V{d[1], d[3]}, scales, 0)
			for i := 0; i < 4; i += 2 {
				FCVTL(H4, d[i], d[i+1])
				FCVTL(H8, d[i+1], d[i+1])
			}
		case 4:
			LDRD(d[0], scales, 0)
			FCVTL(H4, d[0], d[0])
		case 1:
			LDRH(d[0], scales, 0)
			FCVTL(H4, d[0], d[0])
		}
		Text("MOVD %v, %v", w, to)
		Text("MOVD %v, %v", p, from)
		Text("MOVD %v, %v", rows, left)
		Loop(name+"row", left, func() {
			if n == 1 {
				LDRS(v[0], from, 0)
				FMUL(S4, v[0], v[0], d[0])
				STRS(v[0], to, 0)
			} else {
				Load(v[:n/4], from, 0)
				for i := range n / 4 {
					FMUL(S4, v[i], v[i], d[i])
				}
				Store(v[:n/4], to, 0)
			}
			Text("ADD %v, %v", row, to)
			Text("ADD %v, %v", row, from)
		})
		Advance(4*n, w, p)
		Advance(2*n, scales)
		Text("B %s", name)
		Label(name + "end")
		Text("ADD $%d, %v", n, slots)
	}
	Return()
}

// widen emits the conversion of a block of 32 values of some slots to floats.
func widen() {
	Func("widenNEON", "func(dst *float32, values *byte, stride, slots int, ahead *byte)",
		"widenNEON turns 32 values of each slot, which lie stride bytes apart, into floats side by side; slots is positive.",
		"Meanwhile as many bytes are prefetched from ahead on.")
	dst, values, stride, slots, ahead := Arg("dst"), Arg("values"), Arg("stride"), Arg("slots"), Arg("ahead")
	raw, words, v := Vecs(2), Vecs(4), Vecs(8)
	Loop("slot", slots, func() {
		prefetch(ahead, 0)
		Advance(32, ahead)
		Load(raw, values, 0)
		for i := range words {
			SSHLL(B8+Arr(i%2), words[i], raw[i/2], 0)
		}
		for i := range v {
			SSHLL(H4+Arr(i%2), v[i], words[i/2], 0)
		}
		for i := range v {
			SCVTF(S4, v[i], v[i])
		}
		Store(v, dst, 0)
		Text("ADD %v, %v", stride, values)
		Advance(4*32, dst)
	})
	Return()
}
