//go:build amd64 && !purego

package kernel

import "unsafe"

//go:generate go -C _asm run ./attention -out ../z_attention_amd64.s -stubs ../z_attention_amd64.go -pkg kernel

// queryRows returns how many of n rows the next tile takes.
func queryRows(n int) int {
	switch {
	case AVX512 && n >= 8:
		return 8
	case !AVX512 && n >= 6 && n != 8:
		return 6
	case n >= 4:
		return 4
	}
	return min(n, 2)
}

// attendTile chooses the tile for elements of width bytes. It names each function, so that arguments stay on
// the stack.
func attendTile(width, rows int, dst *float32, dstStride int, a *float32, aStride int, b *byte, bStep, bGroup int, ahead *byte, pace, steps, groups int) {
	switch {
	case width == 4 && AVX512:
		attendF32AVX512(rows, dst, dstStride, a, aStride, b, bStep, bGroup, ahead, pace, steps, groups)
	case width == 2 && AVX512:
		attendF16AVX512(rows, dst, dstStride, a, aStride, b, bStep, bGroup, ahead, pace, steps, groups)
	case width == 1 && AVX512:
		attendI8AVX512(rows, dst, dstStride, a, aStride, b, bStep, bGroup, ahead, pace, steps, groups)
	case width == 4:
		attendF32AVX2(rows, dst, dstStride, a, aStride, b, bStep, bGroup, ahead, pace, steps, groups)
	case width == 2:
		attendF16AVX2(rows, dst, dstStride, a, aStride, b, bStep, bGroup, ahead, pace, steps, groups)
	case width == 1:
		attendI8AVX2(rows, dst, dstStride, a, aStride, b, bStep, bGroup, ahead, pace, steps, groups)
	}
}

func scoresFloat(dst, q []float32, n int, keys []byte, lo, hi, size, width int, next []byte) {
	switch g0, g1 := wholeGroups(lo, hi); {
	case !AVX2:
		scoresFloatGo(dst, q, n, keys, lo, hi, size, width)
	case g0 < lo || hi < g1:
		var tmp [8 * PageSlots]float32
		for j := 0; j < n; j += 8 {
			m := min(8, n-j)
			scoresFloat(tmp[:], q[j*size:], m, keys, g0, g1, size, width, next)
			copyScores(dst[j*PageSlots:], tmp[:], m, lo, hi)
		}
	case n >= manyRows:
		step := keyLanes * width
		p := product{dst[lo:], scoreRow, q, size * 4, n, keys[lo*size*width:], step, size * step, width, nil}
		p.many(size, (hi-lo)/keyLanes, true, next)
	default:
		if hi-lo == PageSlots {
			clear(dst[:n*PageSlots])
		} else {
			for j := range n {
				clear(dst[j*PageSlots+lo : j*PageSlots+hi])
			}
		}
		step := keyLanes * width
		tiles(width, dst[lo:], scoreRow, q, size*4, n, keys[lo*size*width:], step, size*step, next, size, (hi-lo)/keyLanes)
	}
}

func weighFloat(dst, p []float32, n int, values []byte, slots, size, width int, next []byte) {
	groups := 0
	if AVX2 {
		groups = size / 16
	}
	switch {
	case groups > 0 && n >= manyRows:
		p := product{dst, size * 4, p, scoreRow, n, values, size * width, 16 * width, width, nil}
		p.many(slots, groups, false, next)
	case groups > 0:
		tiles(width, dst, size*4, p, scoreRow, n, values, size*width, 16*width, next, slots, groups)
	}
	if groups*16 < size {
		weighFloatGo(dst, p, n, values, slots, groups*16, size, width)
	}
}

func scoresQ8(dst []float32, q []int8, d []float32, bias []int32, n int, keys []byte, lo, hi, size int, next []byte) {
	nb := size / QBlock
	switch g0, g1 := wholeGroups(lo, hi); {
	case !AVX2:
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
		if AVX512 {
			rows = 8
		}
		for j := 0; j < n; j += rows {
			for rows > n-j {
				rows /= 2
			}
			scoresTileQ8(rows, &dst[j*PageSlots+lo], &q[j*size], &d[j*nb], &bias[j*nb], &k[0], s, size, (hi-lo)/keyLanes, ahead)
			ahead = &k[0]
		}
	}
}

func scoresTileQ8(rows int, dst *float32, q *int8, d *float32, bias *int32, keys, scales *byte, size, groups int, ahead *byte) {
	switch {
	case VNNI512:
		scoresQ8VNNI512(rows, dst, q, d, bias, keys, scales, size, groups, ahead)
	case AVX512:
		scoresQ8AVX512(rows, dst, q, d, bias, keys, scales, size, groups, ahead)
	case VNNI256:
		scoresQ8VNNI256(rows, dst, q, d, bias, keys, scales, size, groups, ahead)
	default:
		scoresQ8AVX2(rows, dst, q, d, bias, keys, scales, size, groups, ahead)
	}
}

// weighQ8 goes block by block of 32 values, which share scales.
func weighQ8(dst, p []float32, n int, values []byte, lo, hi, size int, next []byte) {
	if !AVX2 {
		weighQ8Go(dst, p, n, values, lo, hi, size)
		return
	}
	for e := 0; e < size; e += QBlock {
		scales, v := &values[q8ValueScale(lo, e/QBlock)], values[q8ValueAt(lo, e, size):]
		// Of what comes next, a block's share of scales and then of values is prefetched.
		ahead := next[min(len(next), q8ValueScale(0, e/QBlock)+PageSlots*e):]
		if n >= manyRows {
			p := product{dst[e:], size * 4, p, scoreRow, n, v, size, 16, 1, scales}
			p.many(hi-lo, QBlock/16, false, ahead[:min(len(ahead), PageSlots*(QBlock+2))])
		} else {
			weighTilesQ8(dst[e:], p, n, v, scales, hi-lo, size, ahead)
		}
	}
}

// weighTilesQ8 is weighQ8 for a block.
func weighTilesQ8(dst, p []float32, n int, values []byte, scales *byte, slots, size int, ahead []byte) {
	var w [8 * PageSlots]float32
	more := ahead[min(len(ahead), 2*PageSlots):]
	for j := 0; j < n; j += 8 {
		rows := min(8, n-j)
		if AVX512 {
			scaleWeightsAVX512(rows, &w, &p[j*PageSlots], scales, slots, first(ahead, values))
		} else {
			scaleWeightsAVX2(rows, &w, &p[j*PageSlots], scales, slots, first(ahead, values))
		}
		tiles(1, dst[j*size:], size*4, w[:], scoreRow, rows, values, size, 16, more, slots, QBlock/16)
		ahead, more = nil, nil
	}
}

func halves(dst []byte, x []float32) {
	n := 0
	if AVX2 {
		n = len(x) &^ 7
		halvesAVX2(dst, x)
	}
	halvesGo(dst[2*n:], x[n:])
}

func roundBlock(dst *[QBlock]byte, x *[QBlock]float32, id float32) {
	if !AVX2 {
		roundBlockGo(dst, x, id)
		return
	}
	roundBlockAVX2(dst, x, id)
}

func capScores(s *[PageSlots]float32, scale, softcap float32) {
	if !AVX2 {
		capScoresGo(s, scale, softcap)
		return
	}
	capScoresAVX2(s, scale, softcap)
}

func softmax(s []float32, scale float32, m, sum []float32, next []byte) {
	ahead, lines := (*byte)(unsafe.Pointer(&s[0])), 1
	if n := softmaxAhead / len(m); n > 0 && len(next) > 0 {
		ahead, lines = &next[0], n
	}
	switch {
	case AVX512:
		softmaxAVX512(&s[0], len(m), scale, &m[0], &sum[0], ahead, lines)
	case AVX2:
		softmaxAVX2(&s[0], len(m), scale, &m[0], &sum[0], ahead, lines)
	default:
		softmaxGo(s, scale, m, sum)
	}
}

func mergeSums(x, y *[8]float32, m, l, mb, lb []float32) {
	if !AVX2 {
		mergeSumsGo(x, y, m, l, mb, lb)
		return
	}
	mergeSumsAVX2(len(m), &m[0], &l[0], &mb[0], &lb[0], x, y)
}

func merge(o []float32, n int, x, y *[8]float32, ob []float32) {
	switch size := len(o) / n; {
	case AVX512 && size%16 == 0:
		mergeAVX512(n, size, &o[0], &x[0], &y[0], &ob[0])
	case AVX2 && size%8 == 0:
		mergeAVX2(n, size, &o[0], &x[0], &y[0], &ob[0])
	default:
		mergeGo(o, n, x, y, ob)
	}
}
