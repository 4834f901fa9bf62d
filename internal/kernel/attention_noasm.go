//go:build (!amd64 && !arm64) || purego

package kernel

func scoresFloat(dst, q []float32, n int, keys []byte, lo, hi, size, width int, _ []byte) {
	scoresFloatGo(dst, q, n, keys, lo, hi, size, width)
}

func weighFloat(dst, p []float32, n int, values []byte, slots, size, width int, _ []byte) {
	weighFloatGo(dst, p, n, values, slots, 0, size, width)
}

func scoresQ8(dst []float32, q []int8, d []float32, _ []int32, n int, keys []byte, lo, hi, size int, _ []byte) {
	scoresQ8Go(dst, q, d, n, keys, lo, hi, size)
}

func weighQ8(dst, p []float32, n int, values []byte, lo, hi, size int, _ []byte) {
	weighQ8Go(dst, p, n, values, lo, hi, size)
}

func capScores(s *[PageSlots]float32, scale, softcap float32) { capScoresGo(s, scale, softcap) }

func softmax(s []float32, scale float32, m, sum []float32, _ []byte) { softmaxGo(s, scale, m, sum) }

func mergeSums(x, y *[8]float32, m, l, mb, lb []float32) { mergeSumsGo(x, y, m, l, mb, lb) }

func merge(o []float32, n int, x, y *[8]float32, ob []float32) { mergeGo(o, n, x, y, ob) }

func halves(dst []byte, x []float32) { halvesGo(dst, x) }

func roundBlock(dst *[QBlock]byte, x *[QBlock]float32, id float32) { roundBlockGo(dst, x, id) }
