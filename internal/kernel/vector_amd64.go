//go:build amd64 && !purego

package kernel

//go:generate go -C _asm run ./vector -out ../z_vector_amd64.s -stubs ../z_vector_amd64.go -pkg kernel

// The assembly takes whole vectors; the portable twin takes the rest.

func sumSquares(x []float32) float32 {
	if !AVX2 {
		return sumSquaresGo(x)
	}
	var tail [32]float32
	copy(tail[:], x[len(x)&^31:])
	return sumSquaresAVX2(x, &tail)
}

func sum(x []float32) float32 {
	if !AVX2 {
		return sumGo(x)
	}
	var tail [32]float32
	copy(tail[:], x[len(x)&^31:])
	return sumAVX2(x, &tail)
}

func shift(dst, x []float32, a float32) {
	n := 0
	if AVX2 {
		n = len(x) &^ 7
		shiftAVX2(dst, x, a)
	}
	shiftGo(dst[n:], x[n:], a)
}

func mulTwice(dst, x []float32, a float32, w []float32) {
	n := 0
	if AVX2 {
		n = len(x) &^ 7
		mulTwiceAVX2(dst, x, a, w)
	}
	mulTwiceGo(dst[n:], x[n:], a, w[n:])
}

func add(dst, x []float32) {
	n := 0
	if AVX2 {
		n = len(x) &^ 7
		addAVX2(dst, x)
	}
	addGo(dst[n:], x[n:])
}

func scale(dst, x []float32, a float32) {
	n := 0
	if AVX2 {
		n = len(x) &^ 7
		scaleAVX2(dst, x, a)
	}
	scaleGo(dst[n:], x[n:], a)
}

func addScaled(dst []float32, a float32, x []float32) {
	n := 0
	if AVX2 {
		n = len(x) &^ 7
		addScaledAVX2(dst, a, x)
	}
	addScaledGo(dst[n:], a, x[n:])
}

func gated(avx2, portable func(dst, gate, up []float32), dst, gate, up []float32) {
	n := 0
	if AVX2 {
		n = len(gate) &^ 7
		avx2(dst, gate, up)
	}
	portable(dst[n:], gate[n:], up[n:])
}

func siluMul(dst, gate, up []float32) { gated(siluMulAVX2, siluMulGo, dst, gate, up) }

func geluMul(dst, gate, up []float32) { gated(geluMulAVX2, geluMulGo, dst, gate, up) }

func clampedSwiGLU(dst, gate, up []float32) { gated(clampedSwiGLUAVX2, clampedSwiGLUGo, dst, gate, up) }

func activation(avx2, portable func(dst, x []float32), dst, x []float32) {
	n := 0
	if AVX2 {
		n = len(x) &^ 7
		avx2(dst, x)
	}
	portable(dst[n:], x[n:])
}

func gelu(dst, x []float32) { activation(geluAVX2, geluGo, dst, x) }

func geluErf(dst, x []float32) { activation(geluErfAVX2, geluErfGo, dst, x) }

func geluErfMul(dst, gate, up []float32) { gated(geluErfMulAVX2, geluErfMulGo, dst, gate, up) }

func silu(dst, x []float32) { activation(siluAVX2, siluGo, dst, x) }

func sigmoid(dst, x []float32) { activation(sigmoidAVX2, sigmoidGo, dst, x) }

func softplus(dst, x []float32) { activation(softplusAVX2, softplusGo, dst, x) }

func softcap(x []float32, limit float32) {
	n := 0
	if AVX2 {
		n = len(x) &^ 7
		softcapAVX2(x, limit)
	}
	softcapGo(x[n:], limit)
}

func rope(x []float32, heads, size int, cos, sin []float32, neox bool) {
	pairs := 0
	if AVX2 {
		if neox {
			pairs = len(cos) &^ 7
		} else {
			pairs = len(cos) &^ 3
		}
	}
	switch {
	case pairs == 0:
	case neox:
		ropeNeoxAVX2(&x[0], heads, size, len(cos), pairs, &cos[0], &sin[0])
	default:
		ropePairsAVX2(&x[0], heads, size, pairs, &cos[0], &sin[0])
	}
	ropeGo(x, heads, size, pairs, cos, sin, neox)
}

func maxAbsBits(x []float32) uint32 {
	n, m := 0, uint32(0)
	if AVX2 {
		n = len(x) &^ 7
		m = maxAbsBitsAVX2(x)
	}
	return max(m, maxAbsBitsGo(x[n:]))
}

func quantize(q []int8, d []float32, sum []int32, f []float32, nb int) {
	if !AVX2 || nb == 0 {
		quantizeGo(q, d, sum, f, nb)
		return
	}
	quantizeAVX2(&q[0], &d[0], &sum[0], &f[0], nb)
}
