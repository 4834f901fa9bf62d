package kernel

import (
	"encoding/binary"
	"math"

	"grove/internal/weights/tensor"
)

// keyLanes is the number of keys that lie interleaved: vector lanes are keys.
const keyLanes = 16

// floatCache returns the cache format of a float type of width bytes. Keys are [4][size][16]: group
// of slots, element, slot of the group. Values are [64][size]. A multiply-add a value, from +0.
func floatCache(t tensor.Type, width int) *CacheFormat {
	f := &CacheFormat{Type: t, Multiple: 1}
	f.KeyBytes = func(size int) int { return PageSlots * size * width }
	f.ValueBytes = f.KeyBytes
	f.Put = func(keys, values []byte, slot int, size HeadSize, k, v []float32) PutResult {
		f.checkHead(keys, values, slot, size, k, v)
		if r := max(putFloat(k, width), putFloat(v, width)); r != PutOK {
			return r
		}
		encode(values[slot*size.Value*width:], v, width)
		var b [256]byte
		for e := 0; e < size.Key; e += 64 {
			n := min(64, size.Key-e)
			encode(b[:], k[e:e+n], width)
			spread(keys[keyAt(slot, e, size.Key)*width:], b[:], width, keyLanes, 1, n)
		}
		return PutOK
	}
	f.Get = func(keys, values []byte, slot int, size HeadSize, k, v []float32) {
		f.checkHead(keys, values, slot, size, k, v)
		for e := range k {
			k[e] = loadFloat(keys, keyAt(slot, e, size.Key), width)
		}
		for e := range v {
			v[e] = loadFloat(values, slot*size.Value+e, width)
		}
	}
	f.Copy = func(dstK, dstV []byte, dstSlot int, srcK, srcV []byte, srcSlot int, size HeadSize) {
		f.checkSlot(dstK, dstV, dstSlot, size)
		f.checkSlot(srcK, srcV, srcSlot, size)
		n, row := size.Key, size.Value*width
		spread(dstK[keyAt(dstSlot, 0, n)*width:], srcK[keyAt(srcSlot, 0, n)*width:], width, keyLanes, keyLanes, n)
		copy(dstV[dstSlot*row:][:row], srcV[srcSlot*row:])
	}
	f.Scores = func(dst []float32, q *Queries, n0, n1 int, keys []byte, lo, hi, size int, next []byte) {
		f.checkScores(dst, q, n0, n1, keys, lo, hi, size)
		if n0 < n1 && lo < hi {
			scoresFloat(dst[n0*PageSlots:n1*PageSlots], q.F[n0*size:n1*size], n1-n0, keys, lo, hi, size, width, next)
		}
	}
	f.Weigh = func(dst []float32, p []float32, n int, values []byte, lo, hi, at, size int, next []byte) {
		f.checkWeigh(dst, p, n, values, lo, hi, at, size)
		if n > 0 && lo < hi {
			weighFloat(dst, p[at:], n, values[lo*size*width:], hi-lo, size, width, next)
		}
	}
	return f
}

// putFloat says whether a float type of width bytes can hold x.
func putFloat(x []float32, width int) PutResult {
	limit := float32(math.MaxFloat32)
	if width == 2 {
		limit = 65520 - 0x1p-8 // the largest float32 that rounds to a finite half
	}
	switch m, finite := MaxAbsFinite(x); {
	case !finite:
		return PutNotFinite
	case m > limit:
		return PutRange
	}
	return PutOK
}

// keyAt returns the place of element e of a slot among the keys of a page.
func keyAt(slot, e, size int) int { return (slot/keyLanes*size+e)*keyLanes + slot%keyLanes }

// spread copies n units of 2 or 4 bytes. They lie to units apart in dst and from units apart in src.
func spread(dst, src []byte, unit, to, from, n int) {
	for i := range n {
		d, s := i*to*unit, i*from*unit
		if unit == 2 {
			binary.LittleEndian.PutUint16(dst[d:d+2], binary.LittleEndian.Uint16(src[s:s+2]))
		} else {
			binary.LittleEndian.PutUint32(dst[d:d+4], binary.LittleEndian.Uint32(src[s:s+4]))
		}
	}
}

// encode writes x to dst as floats of width bytes.
func encode(dst []byte, x []float32, width int) {
	if width == 2 {
		halves(dst, x)
		return
	}
	for i, v := range x {
		binary.LittleEndian.PutUint32(dst[4*i:4*i+4], math.Float32bits(v))
	}
}

func halvesGo(dst []byte, x []float32) {
	for i, v := range x {
		binary.LittleEndian.PutUint16(dst[2*i:2*i+2], tensor.F32ToF16(v))
	}
}

func loadFloat(b []byte, i, width int) float32 {
	if width == 2 {
		return half(b[2*i : 2*i+2])
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i : 4*i+4]))
}

// scoresFloatGo writes the scores of n queries for the slots [lo, hi).
func scoresFloatGo(dst, q []float32, n int, keys []byte, lo, hi, size, width int) {
	for slot := lo; slot < hi; slot++ {
		for j := range n {
			dst[j*PageSlots+slot] = 0
		}
		for e := range size {
			k := loadFloat(keys, keyAt(slot, e, size), width)
			for j := range n {
				at := j*PageSlots + slot
				dst[at] = FMA32(q[j*size+e], k, dst[at])
			}
		}
	}
}

// weighFloatGo adds the elements from e0 on of the first slots of values, weighted by p, to the sums of n
// queries.
func weighFloatGo(dst, p []float32, n int, values []byte, slots, e0, size, width int) {
	for s := range slots {
		for e := e0; e < size; e++ {
			v := loadFloat(values, s*size+e, width)
			for j := range n {
				dst[j*size+e] = FMA32(p[j*PageSlots+s], v, dst[j*size+e])
			}
		}
	}
}

// half returns the half float at the start of b.
func half(b []byte) float32 { return tensor.F16ToF32(binary.LittleEndian.Uint16(b)) }
