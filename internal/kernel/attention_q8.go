package kernel

import (
	"encoding/binary"
	"math"

	"grove/internal/weights/tensor"
)

// q8Cache returns the cache format of Q8_0: per slot, blocks of 32 values with one F16 scale each.
// Keys are [4][size/32][16] scales, then [4][size/4][16][4] int8: group of slots, four elements, slot of
// the group. Values are [size/32][64] scales, then [64][size] int8.
//
// Rounding: d = amax/127 rounded to F16; id = d > 0 ? 1/d : 0; q = x*id rounded to even, within ±127.
// Scores: per block of 32, acc = FMA32(exact integer dot, dq*dk, acc). Weighted values:
// acc = FMA32(p*dv, q, acc).
func q8Cache() *CacheFormat {
	f := &CacheFormat{Type: tensor.Q8_0, Multiple: QBlock}
	f.KeyBytes = func(size int) int { return PageSlots * (size + size/QBlock*2) }
	f.ValueBytes = f.KeyBytes
	f.Put = func(keys, values []byte, slot int, size HeadSize, k, v []float32) PutResult {
		f.checkHead(keys, values, slot, size, k, v)
		return putSlotQ8(keys, values, slot, k, v)
	}
	f.Get = func(keys, values []byte, slot int, size HeadSize, k, v []float32) {
		f.checkHead(keys, values, slot, size, k, v)
		for e := range k {
			k[e] = float32(int8(keys[q8KeyAt(slot, e, size.Key)])) * half(keys[q8KeyScale(slot, e/QBlock, size.Key):])
		}
		for e := range v {
			v[e] = float32(int8(values[q8ValueAt(slot, e, size.Value)])) * half(values[q8ValueScale(slot, e/QBlock):])
		}
	}
	f.Copy = func(dstK, dstV []byte, dstSlot int, srcK, srcV []byte, srcSlot int, size HeadSize) {
		f.checkSlot(dstK, dstV, dstSlot, size)
		f.checkSlot(srcK, srcV, srcSlot, size)
		copySlotQ8(dstK, dstV, dstSlot, srcK, srcV, srcSlot, size)
	}
	f.Scores = func(dst []float32, q *Queries, n0, n1 int, keys []byte, lo, hi, size int, next []byte) {
		f.checkScores(dst, q, n0, n1, keys, lo, hi, size)
		if n0 < n1 && lo < hi {
			nb := size / QBlock
			scoresQ8(dst[n0*PageSlots:n1*PageSlots], q.Q[n0*size:n1*size], q.D[n0*nb:n1*nb], q.Bias[n0*nb:n1*nb], n1-n0,
				keys, lo, hi, size, next)
		}
	}
	f.Weigh = func(dst []float32, p []float32, n int, values []byte, lo, hi, at, size int, next []byte) {
		f.checkWeigh(dst, p, n, values, lo, hi, at, size)
		if n > 0 && lo < hi {
			weighQ8(dst, p[at:], n, values, lo, hi, size, next)
		}
	}
	return f
}

func putSlotQ8(keys, values []byte, slot int, k, v []float32) PutResult {
	if r := max(putQ8(k), putQ8(v)); r != PutOK {
		return r
	}
	var q [QBlock]byte
	for e := 0; e < len(k); e += QBlock {
		id := putScale(keys[q8KeyScale(slot, e/QBlock, len(k)):], k[e:e+QBlock])
		roundBlock(&q, (*[QBlock]float32)(k[e:]), id)
		spread(keys[q8KeyAt(slot, e, len(k)):], q[:], 4, keyLanes, 1, QBlock/4)
	}
	for e := 0; e < len(v); e += QBlock {
		id := putScale(values[q8ValueScale(slot, e/QBlock):], v[e:e+QBlock])
		roundBlock(&q, (*[QBlock]float32)(v[e:]), id)
		copy(values[q8ValueAt(slot, e, len(v)):], q[:])
	}
	return PutOK
}

func copySlotQ8(dstK, dstV []byte, d int, srcK, srcV []byte, s int, size HeadSize) {
	k, v := size.Key, size.Value
	spread(dstK[q8KeyAt(d, 0, k):], srcK[q8KeyAt(s, 0, k):], 4, keyLanes, keyLanes, k/4)
	spread(dstK[q8KeyScale(d, 0, k):], srcK[q8KeyScale(s, 0, k):], 2, keyLanes, keyLanes, k/QBlock)
	copy(dstV[q8ValueAt(d, 0, v):][:v], srcV[q8ValueAt(s, 0, v):])
	spread(dstV[q8ValueScale(d, 0):], srcV[q8ValueScale(s, 0):], 2, PageSlots, PageSlots, v/QBlock)
}

// putQ8 says whether Q8_0 can hold x: whether every scale is a finite half.
func putQ8(x []float32) PutResult {
	switch m, finite := MaxAbsFinite(x); {
	case !finite:
		return PutNotFinite
	case tensor.F32ToF16(m/127) >= 0x7c00:
		return PutRange
	}
	return PutOK
}

// putScale writes the scale of a block of 32 values and returns its inverse, 0 for a scale of 0.
func putScale(dst []byte, x []float32) (id float32) {
	m, _ := MaxAbsFinite(x)
	h := tensor.F32ToF16(m / 127)
	binary.LittleEndian.PutUint16(dst, h)
	if d := tensor.F16ToF32(h); d > 0 {
		id = 1 / d
	}
	return id
}

func roundBlockGo(dst *[QBlock]byte, x *[QBlock]float32, id float32) {
	for i, v := range x {
		r := math.RoundToEven(float64(float32(v * id)))
		dst[i] = byte(int8(max(-127, min(127, r))))
	}
}

// The places of a block's scale and of an element, in bytes.
func q8KeyScale(slot, b, size int) int {
	return ((slot/keyLanes*(size/QBlock)+b)*keyLanes + slot%keyLanes) * 2
}

func q8KeyAt(slot, e, size int) int {
	return PageSlots*size/QBlock*2 + (slot/keyLanes*size/4+e/4)*keyLanes*4 + slot%keyLanes*4 + e%4
}

func q8ValueScale(slot, b int) int { return (b*PageSlots + slot) * 2 }

func q8ValueAt(slot, e, size int) int { return PageSlots*size/QBlock*2 + slot*size + e }

// scoresQ8Go writes the scores of n queries, their int8 values q and scales d, for the slots
// [lo, hi).
func scoresQ8Go(dst []float32, q []int8, d []float32, n int, keys []byte, lo, hi, size int) {
	nb := size / QBlock
	for slot := lo; slot < hi; slot++ {
		for j := range n {
			var acc float32
			for b := range nb {
				var sum int32
				for e := b * QBlock; e < (b+1)*QBlock; e++ {
					sum += int32(q[j*size+e]) * int32(int8(keys[q8KeyAt(slot, e, size)]))
				}
				dk := half(keys[q8KeyScale(slot, b, size):])
				acc = FMA32(float32(sum), float32(d[j*nb+b]*dk), acc)
			}
			dst[j*PageSlots+slot] = acc
		}
	}
}

// weighQ8Go adds the slots [lo, hi) of values, weighted by p, to the sums of n queries.
func weighQ8Go(dst, p []float32, n int, values []byte, lo, hi, size int) {
	for slot := lo; slot < hi; slot++ {
		for b := range size / QBlock {
			dv := half(values[q8ValueScale(slot, b):])
			for j := range n {
				w := float32(p[j*PageSlots+slot-lo] * dv)
				for e := b * QBlock; e < (b+1)*QBlock; e++ {
					v := float32(int8(values[q8ValueAt(slot, e, size)]))
					dst[j*size+e] = FMA32(w, v, dst[j*size+e])
				}
			}
		}
	}
}
