//go:build (!amd64 && !arm64) || purego

package kernel

func sumSquares(x []float32) float32 { return sumSquaresGo(x) }

func sum(x []float32) float32 { return sumGo(x) }

func shift(dst, x []float32, a float32) { shiftGo(dst, x, a) }

func mulTwice(dst, x []float32, a float32, w []float32) { mulTwiceGo(dst, x, a, w) }

func add(dst, x []float32) { addGo(dst, x) }

func scale(dst, x []float32, a float32) { scaleGo(dst, x, a) }

func addScaled(dst []float32, a float32, x []float32) { addScaledGo(dst, a, x) }

func siluMul(dst, gate, up []float32) { siluMulGo(dst, gate, up) }

func clampedSwiGLU(dst, gate, up []float32) { clampedSwiGLUGo(dst, gate, up) }

func geluMul(dst, gate, up []float32) { geluMulGo(dst, gate, up) }

func gelu(dst, x []float32) { geluGo(dst, x) }

func geluErf(dst, x []float32) { geluErfGo(dst, x) }

func geluErfMul(dst, gate, up []float32) { geluErfMulGo(dst, gate, up) }

func silu(dst, x []float32) { siluGo(dst, x) }

func sigmoid(dst, x []float32) { sigmoidGo(dst, x) }

func softplus(dst, x []float32) { softplusGo(dst, x) }

func softcap(x []float32, limit float32) { softcapGo(x, limit) }

func rope(x []float32, heads, size int, cos, sin []float32, neox bool) {
	ropeGo(x, heads, size, 0, cos, sin, neox)
}

func maxAbsBits(x []float32) uint32 { return maxAbsBitsGo(x) }

func quantize(q []int8, d []float32, sum []int32, f []float32, nb int) {
	quantizeGo(q, d, sum, f, nb)
}
