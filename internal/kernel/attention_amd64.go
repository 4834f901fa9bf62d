//go:build amd64 && !purego

package kernel

//go:generate go -C _asm run ./attention -out ../z_attention_amd64.s -stubs ../z_attention_amd64.go -pkg kernel

const (
	scoreRow  = PageSlots * 4 // bytes of a row of scores or weights
	cacheLine = 64
)

// tileQueries returns how many of n queries a tile takes.
func tileQueries(n, most int) int {
	for most > n {
		most /= 2
	}
	return most
}

// tiles multiplies n rows of a by b in tiles, as attendF32AVX2 says.
func tiles(width int, dst []float32, dstStride int, a []float32, aStride, n int, b []byte, bStep, bGroup, ahead, steps, groups int) {
	for n > 0 {
		rows := tileQueries(n, 8)
		if width == 2 {
			attendF16AVX2(rows, &dst[0], dstStride, &a[0], aStride, &b[0], bStep, bGroup, ahead, steps, groups)
		} else {
			attendF32AVX2(rows, &dst[0], dstStride, &a[0], aStride, &b[0], bStep, bGroup, ahead, steps, groups)
		}
		if n -= rows; n > 0 {
			dst, a = dst[rows*dstStride/4:], a[rows*aStride/4:]
		}
	}
}

// wholeGroups returns the smallest range of whole groups around the slots [lo, hi).
func wholeGroups(lo, hi int) (int, int) {
	return lo &^ (keyLanes - 1), (hi + keyLanes - 1) &^ (keyLanes - 1)
}

// copyScores copies the scores of the slots [lo, hi) of n queries.
func copyScores(dst, src []float32, n, lo, hi int) {
	for j := range n {
		copy(dst[j*PageSlots+lo:j*PageSlots+hi], src[j*PageSlots+lo:])
	}
}

func scoresFloat(dst, q []float32, n int, keys []byte, lo, hi, size, width int) {
	switch g0, g1 := wholeGroups(lo, hi); {
	case !useAVX2:
		scoresFloatGo(dst, q, n, keys, lo, hi, size, width)
	case g0 < lo || hi < g1:
		var tmp [8 * PageSlots]float32
		for j := 0; j < n; j += 8 {
			m := min(8, n-j)
			scoresFloat(tmp[:], q[j*size:], m, keys, g0, g1, size, width)
			copyScores(dst[j*PageSlots:], tmp[:], m, lo, hi)
		}
	default:
		for j := range n {
			clear(dst[j*PageSlots+lo : j*PageSlots+hi])
		}
		step := keyLanes * width
		tiles(width, dst[lo:], scoreRow, q, size*4, n, keys[lo*size*width:], step, size*step, 8/min(n, 8)*size*step, size, (hi-lo)/keyLanes)
	}
}

func weighFloat(dst, p []float32, n int, values []byte, slots, size, width int) {
	if !useAVX2 || size%8 != 0 {
		weighFloatGo(dst, p, n, values, slots, size, width)
		return
	}
	tiles(width, dst, size*4, p, scoreRow, n, values, size*width, 8*width, max(cacheLine, 8/min(n, 8)*8*width), slots, size/8)
}

func scoresQ8(dst []float32, q []int8, d []float32, n int, keys []byte, lo, hi, size int) {
	switch g0, g1 := wholeGroups(lo, hi); {
	case !useAVX2:
		scoresQ8Go(dst, q, d, n, keys, lo, hi, size)
	case g0 < lo || hi < g1:
		var tmp [8 * PageSlots]float32
		for j := 0; j < n; j += 8 {
			m := min(8, n-j)
			scoresQ8(tmp[:], q[j*size:], d[j*size/QBlock:], m, keys, g0, g1, size)
			copyScores(dst[j*PageSlots:], tmp[:], m, lo, hi)
		}
	default:
		for j := 0; j < n; {
			rows := tileQueries(n-j, 4)
			scoresQ8AVX2(rows, &dst[j*PageSlots+lo], &q[j*size], &d[j*size/QBlock], &keys[q8KeyAt(lo, 0, size)], &keys[q8KeyScale(lo, 0, size)], size, (hi-lo)/keyLanes)
			j += rows
		}
	}
}

func weighQ8(dst, p []float32, n int, values []byte, lo, hi, size int) {
	if !useAVX2 {
		weighQ8Go(dst, p, n, values, lo, hi, size)
		return
	}
	var w [8 * PageSlots]float32
	for j := 0; j < n; {
		rows := tileQueries(n-j, 8)
		for e := 0; e < size; e += QBlock {
			scaleWeightsAVX2(rows, &w, &p[j*PageSlots], &values[q8ValueScale(lo, e/QBlock)], hi-lo)
			attendI8AVX2(rows, &dst[j*size+e], size*4, &w[0], scoreRow,
				&values[q8ValueAt(lo, e, size)], size, 8, cacheLine, hi-lo, QBlock/8)
		}
		j += rows
	}
}

func halves(dst []byte, x []float32) {
	n := 0
	if useAVX2 {
		n = len(x) &^ 7
		halvesAVX2(dst, x)
	}
	halvesGo(dst[2*n:], x[n:])
}

func roundBlock(dst *[QBlock]byte, x *[QBlock]float32, id float32) {
	if !useAVX2 {
		roundBlockGo(dst, x, id)
		return
	}
	roundBlockAVX2(dst, x, id)
}

func capScores(s *[PageSlots]float32, scale, softcap float32) {
	if !useAVX2 {
		capScoresGo(s, scale, softcap)
		return
	}
	capScoresAVX2(s, scale, softcap)
}

func softmax(s *[PageSlots]float32, scale float32) (m, sum float32) {
	if !useAVX2 {
		return softmaxGo(s, scale)
	}
	return softmaxAVX2(s, scale)
}

func merge(o []float32, a, b float32, ob []float32) {
	n := 0
	if useAVX2 {
		n = len(ob) &^ 7
		mergeAVX2(o, a, b, ob)
	}
	mergeGo(o[n:], a, b, ob[n:])
}

func expPair(x, y float32) (a, b float32) {
	if !useAVX2 {
		return expPairGo(x, y)
	}
	return expPairAVX2(x, y)
}
