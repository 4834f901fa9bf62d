package kernel

import (
	"encoding/binary"
	"math"

	"grove/quant"
	"grove/tensor"
)

// q8Cache returns the cache format of Q8_0: per slot, blocks of 32 values with one F16 scale each.
// Keys are [8][size/4][8][4] int8 (group of slots, four elements, slot of the group), then
// [8][size/32][8] scales. Values are [64][size] int8, then [64][size/32] scales.
//
// Rounding: d = amax/127 rounded to F16; id = d > 0 ? 1/d : 0; q = x*id rounded to even, within ±127.
// Scores: per block of 32, acc = FMA32(exact integer dot, dq*dk, acc). Weighted values:
// acc = FMA32(p*dv, q, acc).
func q8Cache() *CacheFormat {
	f := &CacheFormat{Type: tensor.Q8_0, Multiple: QBlock}
	f.KeyBytes = func(size int) int { return PageSlots * (size + size/QBlock*2) }
	f.ValueBytes = f.KeyBytes
	f.Put = func(keys, values []byte, slot, size int, k, v []float32) PutResult {
		f.checkSlot(keys, values, slot, size)
		sameLen(size, k, v)
		if r := max(putQ8(k), putQ8(v)); r != PutOK {
			return r
		}
		for b := range size / QBlock {
			e := b * QBlock
			id := putScale(keys[q8KeyScale(slot, b, size):], k[e:e+QBlock])
			for i := e; i < e+QBlock; i++ {
				keys[q8KeyAt(slot, i, size)] = roundQ8(k[i], id)
			}
			id = putScale(values[q8ValueScale(slot, b, size):], v[e:e+QBlock])
			for i := e; i < e+QBlock; i++ {
				values[slot*size+i] = roundQ8(v[i], id)
			}
		}
		return PutOK
	}
	f.Get = func(keys, values []byte, slot, size int, k, v []float32) {
		f.checkSlot(keys, values, slot, size)
		sameLen(size, k, v)
		for e := range size {
			b := e / QBlock
			k[e] = float32(int8(keys[q8KeyAt(slot, e, size)])) * half(keys[q8KeyScale(slot, b, size):])
			v[e] = float32(int8(values[slot*size+e])) * half(values[q8ValueScale(slot, b, size):])
		}
	}
	f.Copy = func(dstK, dstV []byte, dstSlot int, srcK, srcV []byte, srcSlot, size int) {
		f.checkSlot(dstK, dstV, dstSlot, size)
		f.checkSlot(srcK, srcV, srcSlot, size)
		copyUnits(dstK, srcK, q8KeyAt(dstSlot, 0, size), q8KeyAt(srcSlot, 0, size), 4, size/4)
		copyUnits(dstK, srcK, q8KeyScale(dstSlot, 0, size), q8KeyScale(srcSlot, 0, size), 2, size/QBlock)
		copy(dstV[dstSlot*size:][:size], srcV[srcSlot*size:])
		scales := size / QBlock * 2
		copy(dstV[q8ValueScale(dstSlot, 0, size):][:scales], srcV[q8ValueScale(srcSlot, 0, size):])
	}
	f.Scores = func(dst []float32, q *Queries, n0, n1 int, keys []byte, lo, hi, size int) {
		f.checkScores(dst, q, n0, n1, keys, lo, hi, size)
		if n0 < n1 && lo < hi {
			nb := size / QBlock
			scoresQ8(dst[n0*PageSlots:n1*PageSlots], q.Q[n0*size:n1*size], q.D[n0*nb:n1*nb], n1-n0, keys, lo, hi, size)
		}
	}
	f.Weigh = func(dst []float32, p []float32, n int, values []byte, lo, hi, at, size int) {
		f.checkWeigh(dst, p, n, values, lo, hi, at, size)
		if n > 0 && lo < hi {
			weighQ8(dst, p[at:], n, values, lo, hi, size)
		}
	}
	return f
}

// putQ8 says whether Q8_0 can hold x: whether every scale is a finite half.
func putQ8(x []float32) PutResult {
	switch m, finite := MaxAbsFinite(x); {
	case !finite:
		return PutNotFinite
	case quant.F32ToF16(m/127) >= 0x7c00:
		return PutRange
	}
	return PutOK
}

// putScale writes the scale of a block of 32 values and returns its inverse, 0 for a scale of 0.
func putScale(dst []byte, x []float32) (id float32) {
	m, _ := MaxAbsFinite(x)
	h := quant.F32ToF16(m / 127)
	binary.LittleEndian.PutUint16(dst, h)
	if d := quant.F16ToF32(h); d > 0 {
		id = 1 / d
	}
	return id
}

func roundQ8(x, id float32) byte {
	r := math.RoundToEven(float64(float32(x * id)))
	return byte(int8(max(-127, min(127, r))))
}

// The places of an element and of a block's scale, in bytes.
func q8KeyAt(slot, e, size int) int {
	return (slot/keyLanes*size/4+e/4)*keyLanes*4 + slot%keyLanes*4 + e%4
}

func q8KeyScale(slot, b, size int) int {
	return PageSlots*size + ((slot/keyLanes*(size/QBlock)+b)*keyLanes+slot%keyLanes)*2
}

func q8ValueScale(slot, b, size int) int { return PageSlots*size + (slot*(size/QBlock)+b)*2 }

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
			dv := half(values[q8ValueScale(slot, b, size):])
			for j := range n {
				w := float32(p[j*PageSlots+slot-lo] * dv)
				for e := b * QBlock; e < (b+1)*QBlock; e++ {
					v := float32(int8(values[slot*size+e]))
					dst[j*size+e] = FMA32(w, v, dst[j*size+e])
				}
			}
		}
	}
}
