//go:build amd64 && !purego

package kernel

//go:generate go -C _asm run ./sampling -out ../z_sampling_amd64.s -stubs ../z_sampling_amd64.go -pkg kernel

func maxOf(x []float32) float32 {
	if !AVX2 {
		return maxOfGo(x)
	}
	tail := rest(x)
	return maxOfAVX2(x, &tail)
}

func sumExp(x []float32, m float32) float32 {
	if !AVX2 {
		return sumExpGo(x, m)
	}
	tail := rest(x)
	return sumExpAVX2(x, &tail, m)
}

func draw(x []float32, invT float32, key Key, first uint32, best *choice) {
	n := 0
	if AVX2 {
		n = len(x) &^ 7
		drawAVX2(x, invT, key.A, key.B, first, &best.score, &best.id)
	}
	drawGo(x[n:], invT, key, first+uint32(n), best)
}
