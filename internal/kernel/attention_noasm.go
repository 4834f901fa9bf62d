//go:build !amd64 || purego

package kernel

func scoresFloat(dst, q []float32, n int, keys []byte, lo, hi, size, width int) {
	scoresFloatGo(dst, q, n, keys, lo, hi, size, width)
}

func weighFloat(dst, p []float32, n int, values []byte, slots, size, width int) {
	weighFloatGo(dst, p, n, values, slots, size, width)
}

func scoresQ8(dst []float32, q []int8, d []float32, n int, keys []byte, lo, hi, size int) {
	scoresQ8Go(dst, q, d, n, keys, lo, hi, size)
}

func weighQ8(dst, p []float32, n int, values []byte, lo, hi, size int) {
	weighQ8Go(dst, p, n, values, lo, hi, size)
}

func capScores(s *[PageSlots]float32, scale, softcap float32) { capScoresGo(s, scale, softcap) }

func softmax(s *[PageSlots]float32, scale float32) (m, sum float32) { return softmaxGo(s, scale) }

func merge(o []float32, a, b float32, ob []float32) { mergeGo(o, a, b, ob) }

func halves(dst []byte, x []float32) { halvesGo(dst, x) }

func roundBlock(dst *[QBlock]byte, x *[QBlock]float32, id float32) { roundBlockGo(dst, x, id) }

func expPair(x, y float32) (a, b float32) { return expPairGo(x, y) }
