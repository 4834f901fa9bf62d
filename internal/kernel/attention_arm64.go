//go:build arm64 && !purego

package kernel

import "unsafe"

// queryRows returns how many of n rows the next tile takes.
func queryRows(n int) int {
	switch {
	case n >= 6 && n != 8:
		return 6
	case n >= 4:
		return 4
	}
	return min(n, 2)
}

// attendTile chooses the tile for elements of width bytes. It names each function, so that arguments stay on
// the stack.
func attendTile(width, rows int, dst *float32, dstStride int, a *float32, aStride int, b *byte, bStep, bGroup int, ahead *byte, pace, steps, groups int) {
	switch width {
	case 4:
		attendF32NEON(rows, dst, dstStride, a, aStride, b, bStep, bGroup, ahead, pace, steps, groups)
	case 2:
		attendF16NEON(rows, dst, dstStride, a, aStride, b, bStep, bGroup, ahead, pace, steps, groups)
	case 1:
		attendI8NEON(rows, dst, dstStride, a, aStride, b, bStep, bGroup, ahead, pace, steps, groups)
	}
}

func scoresFloat(dst, q []float32, n int, keys []byte, lo, hi, size, width int, next []byte) {
	switch g0, g1 := wholeGroups(lo, hi); {
	case !NEON:
		scoresFloatGo(dst, q, n, keys, lo, hi, size, width)
	case g0 < lo || hi < g1:
		var tmp [8 * PageSlots]float32
		for j := 0; j < n; j += 8 {
			m := min(8, n-j)
			scoresFloat(tmp[:], q[j*size:], m, keys, g0, g1, size, width, next)
			copyScores(dst[j*PageSlots:], tmp[:], m, lo, hi)
		}
	default:
		for j := range n {
			clear(dst[j*PageSlots+lo : j*PageSlots+hi])
		}
		step := keyLanes * width
		tiles(width, dst[lo:], scoreRow, q, size*4, n, keys[lo*size*width:], step, size*step, next, size, (hi-lo)/keyLanes)
	}
}

func weighFloat(dst, p []float32, n int, values []byte, slots, size, width int, next []byte) {
	groups := 0
	if NEON {
		groups = size / 16
	}
	if groups > 0 {
		tiles(width, dst, size*4, p, scoreRow, n, values, size*width, 16*width, next, slots, groups)
	}
	if groups*16 < size {
		weighFloatGo(dst, p, n, values, slots, groups*16, size, width)
	}
}

func scoresQ8(dst []float32, q []int8, d []float32, bias []int32, n int, keys []byte, lo, hi, size int, next []byte) {
	nb := size / QBlock
	switch g0, g1 := wholeGroups(lo, hi); {
	case !NEON:
		scoresQ8Go(dst, q, d, n, keys, lo, hi, size)
	case g0 < lo || hi < g1:
		var tmp [8 * PageSlots]float32
		for j := 0; j < n; j += 8 {
			m := min(8, n-j)
			scoresQ8(tmp[:], q[j*size:], d[j*nb:], bias[j*nb:], m, keys, g0, g1, size, next)
			copyScores(dst[j*PageSlots:], tmp[:], m, lo, hi)
		}
	default:
		k, s := keys[q8KeyAt(lo, 0, size):], &keys[q8KeyScale(lo, 0, size)]
		ahead, rows := first(next, k), 4
		for j := 0; j < n; j += rows {
			for rows > n-j {
				rows /= 2
			}
			scoresQ8NEON(rows, &dst[j*PageSlots+lo], &q[j*size], &d[j*nb], &k[0], s, size, (hi-lo)/keyLanes, ahead)
			ahead = &k[0]
		}
	}
}

// widenQueries is how many queries pay for values that are turned into floats once, and not for each tile.
const widenQueries = 16

func weighQ8(dst, p []float32, n int, values []byte, lo, hi, size int, next []byte) {
	switch {
	case !NEON:
		weighQ8Go(dst, p, n, values, lo, hi, size)
	case n < widenQueries:
		weighTilesQ8(dst, p, n, values, lo, hi, size, next, nil)
	default:
		var room [PageSlots*QBlock*4 + cacheLine]byte
		at := -uintptr(unsafe.Pointer(&room)) % cacheLine
		weighTilesQ8(dst, p, n, values, lo, hi, size, next, room[at:])
	}
}

// cacheLine is the bytes that vectors should not straddle.
const cacheLine = 64

// weighTilesQ8 is weighQ8, block by block of 32 values, which it turns into floats in wide unless that is nil.
func weighTilesQ8(dst, p []float32, n int, values []byte, lo, hi, size int, next, wide []byte) {
	var w [8 * PageSlots]float32
	for e := 0; e < size; e += QBlock {
		scales, v, width, stride := &values[q8ValueScale(lo, e/QBlock)], values[q8ValueAt(lo, e, size):], 1, size
		// Of what comes next, a block's share of scales and then of values is prefetched.
		ahead := next[min(len(next), q8ValueScale(0, e/QBlock)+PageSlots*e):]
		more := ahead[min(len(ahead), 2*PageSlots):]
		if wide != nil {
			widenNEON((*float32)(unsafe.Pointer(&wide[0])), &v[0], size, hi-lo, first(more, v))
			v, width, stride, more = wide, 4, 4*QBlock, nil
		}
		for j := 0; j < n; j += 8 {
			rows := min(8, n-j)
			scaleWeightsNEON(rows, &w, &p[j*PageSlots], scales, hi-lo, first(ahead, v))
			tiles(width, dst[j*size+e:], size*4, w[:], scoreRow, rows, v, stride, 16*width, more, hi-lo, QBlock/16)
			ahead, more = nil, nil
		}
	}
}

func halves(dst []byte, x []float32) {
	n := 0
	if NEON {
		n = len(x) &^ 7
		halvesNEON(dst, x)
	}
	halvesGo(dst[2*n:], x[n:])
}

func roundBlock(dst *[QBlock]byte, x *[QBlock]float32, id float32) {
	if !NEON {
		roundBlockGo(dst, x, id)
		return
	}
	roundBlockNEON(dst, x, id)
}

func capScores(s *[PageSlots]float32, scale, softcap float32) {
	if !NEON {
		capScoresGo(s, scale, softcap)
		return
	}
	capScoresNEON(s, scale, softcap)
}

func softmax(s []float32, scale float32, m, sum []float32, next []byte) {
	if !NEON {
		softmaxGo(s, scale, m, sum)
		return
	}
	ahead, lines := (*byte)(unsafe.Pointer(&s[0])), 1
	if n := softmaxAhead / len(m); n > 0 && len(next) > 0 {
		ahead, lines = &next[0], n
	}
	softmaxNEON(&s[0], len(m), scale, &m[0], &sum[0], ahead, lines)
}

func mergeSums(x, y *[8]float32, m, l, mb, lb []float32) {
	switch {
	case !NEON:
		mergeSumsGo(x, y, m, l, mb, lb)
	case len(m) == len(x):
		mergeSumsNEON(&m[0], &l[0], &mb[0], &lb[0], &x[0], &y[0])
	default:
		var all [4][8]float32
		for i, v := range [][]float32{m, l, mb, lb} {
			copy(all[i][:], v)
		}
		mergeSumsNEON(&all[0][0], &all[1][0], &all[2][0], &all[3][0], &x[0], &y[0])
		copy(m, all[0][:])
		copy(l, all[1][:])
	}
}

func merge(o []float32, n int, x, y *[8]float32, ob []float32) {
	if size := len(o) / n; NEON && size%4 == 0 && size > 0 {
		mergeNEON(n, size, &o[0], &x[0], &y[0], &ob[0])
		return
	}
	mergeGo(o, n, x, y, ob)
}
