//go:build arm64 && !purego

package kernel

// The assembly takes whole vectors; the portable twin takes the rest.

func sumSquares(x []float32) float32 {
	if !NEON {
		return sumSquaresGo(x)
	}
	var tail [32]float32
	copy(tail[:], x[len(x)&^31:])
	return sumSquaresNEON(x, &tail)
}

func sum(x []float32) float32 {
	if !NEON {
		return sumGo(x)
	}
	var tail [32]float32
	copy(tail[:], x[len(x)&^31:])
	return sumNEON(x, &tail)
}

func shift(dst, x []float32, a float32) {
	n := 0
	if NEON {
		n = len(x) &^ 7
		shiftNEON(dst, x, a)
	}
	shiftGo(dst[n:], x[n:], a)
}

func mulTwice(dst, x []float32, a float32, w []float32) {
	n := 0
	if NEON {
		n = len(x) &^ 7
		mulTwiceNEON(dst, x, a, w)
	}
	mulTwiceGo(dst[n:], x[n:], a, w[n:])
}

func add(dst, x []float32) {
	n := 0
	if NEON {
		n = len(x) &^ 7
		addNEON(dst, x)
	}
	addGo(dst[n:], x[n:])
}

func scale(dst, x []float32, a float32) {
	n := 0
	if NEON {
		n = len(x) &^ 7
		scaleNEON(dst, x, a)
	}
	scaleGo(dst[n:], x[n:], a)
}

func addScaled(dst []float32, a float32, x []float32) {
	n := 0
	if NEON {
		n = len(x) &^ 7
		addScaledNEON(dst, a, x)
	}
	addScaledGo(dst[n:], a, x[n:])
}

func gated(neon, portable func(dst, gate, up []float32), dst, gate, up []float32) {
	n := 0
	if NEON {
		n = len(gate) &^ 7
		neon(dst, gate, up)
	}
	portable(dst[n:], gate[n:], up[n:])
}

func siluMul(dst, gate, up []float32) { gated(siluMulNEON, siluMulGo, dst, gate, up) }

func geluMul(dst, gate, up []float32) { gated(geluMulNEON, geluMulGo, dst, gate, up) }

func clampedSwiGLU(dst, gate, up []float32) { gated(clampedSwiGLUNEON, clampedSwiGLUGo, dst, gate, up) }

func geluErf(dst, x []float32) { geluErfGo(dst, x) }

func geluErfMul(dst, gate, up []float32) { geluErfMulGo(dst, gate, up) }

func activation(neon, portable func(dst, x []float32), dst, x []float32) {
	n := 0
	if NEON {
		n = len(x) &^ 7
		neon(dst, x)
	}
	portable(dst[n:], x[n:])
}

func silu(dst, x []float32) { activation(siluNEON, siluGo, dst, x) }

func sigmoid(dst, x []float32) { activation(sigmoidNEON, sigmoidGo, dst, x) }

func softplus(dst, x []float32) { activation(softplusNEON, softplusGo, dst, x) }

func gelu(dst, x []float32) { activation(geluNEON, geluGo, dst, x) }

func softcap(x []float32, limit float32) {
	n := 0
	if NEON {
		n = len(x) &^ 7
		softcapNEON(x, limit)
	}
	softcapGo(x[n:], limit)
}

func rope(x []float32, heads, size int, cos, sin []float32, neox bool) {
	pairs := 0
	if NEON {
		pairs = len(cos) &^ 3
	}
	switch {
	case pairs == 0:
	case neox:
		ropeNeoxNEON(&x[0], heads, size, len(cos), pairs, &cos[0], &sin[0])
	default:
		ropePairsNEON(&x[0], heads, size, pairs, &cos[0], &sin[0])
	}
	ropeGo(x, heads, size, pairs, cos, sin, neox)
}

func maxAbsBits(x []float32) uint32 {
	n, m := 0, uint32(0)
	if NEON {
		n = len(x) &^ 7
		m = maxAbsBitsNEON(x)
	}
	return max(m, maxAbsBitsGo(x[n:]))
}

func quantize(q []int8, d []float32, sum []int32, f []float32, nb int) {
	if !NEON || nb == 0 {
		quantizeGo(q, d, sum, f, nb)
		return
	}
	quantizeNEON(&q[0], &d[0], &sum[0], &f[0], nb)
}
