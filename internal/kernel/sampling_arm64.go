//go:build arm64 && !purego

package kernel

func maxOf(x []float32) float32 {
	if !NEON {
		return maxOfGo(x)
	}
	tail := rest(x)
	return maxOfNEON(x, &tail)
}

func sumExp(x []float32, m float32) float32 {
	if !NEON {
		return sumExpGo(x, m)
	}
	tail := rest(x)
	return sumExpNEON(x, &tail, m)
}

func draw(x []float32, invT float32, key Key, first uint32, best *choice) {
	n := 0
	if NEON {
		n = len(x) &^ 3
		drawNEON(x, invT, key.A, key.B, first, &best.score, &best.id)
	}
	drawGo(x[n:], invT, key, first+uint32(n), best)
}
