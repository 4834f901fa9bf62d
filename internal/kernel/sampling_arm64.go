//go:build arm64 && !purego

package kernel

// rest returns the values behind the whole blocks of 32, and -Inf.
func rest(x []float32) (tail [32]float32) {
	n := copy(tail[:], x[len(x)&^31:])
	for i := n; i < len(tail); i++ {
		tail[i] = negInf
	}
	return tail
}

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
