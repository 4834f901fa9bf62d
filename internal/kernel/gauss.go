package kernel

import "math"

// RootMeanSquare returns sqrt(max(mean(x*x), eps)) of a vector that is not empty.
//
// The order: s = S32 of FMA32(x, x, s); s/n, the larger of that and eps, and the root, every operation rounded.
func RootMeanSquare(x []float32, eps float32) float32 {
	return float32(math.Sqrt(float64(max(sumSquares(x)/float32(len(x)), eps))))
}

// GaussTopK writes max(0, x - (m + factor*d)) to dst, which may be x and has equal length: m is the mean, d the standard deviation
// sqrt(sum((x-m)*(x-m)) / (n-1)). A NaN passes, and an infinity gives NaN.
//
// The order: m = S32 of x, over n; x-m; s = S32 of FMA32 of its squares; b = factor * sqrt(s/(n-1)), every operation rounded; max(0, (x-m) - b).
func GaussTopK(dst, x []float32, factor float32) {
	sameLen(len(dst), x)
	n := float32(len(x))
	shift(dst, x, -(sum(x) / n))
	border := float32(factor * float32(math.Sqrt(float64(sumSquares(dst)/max(1, n-1)))))
	for i, v := range dst {
		dst[i] = max(0, v-border)
	}
}
