//go:build (!amd64 && !arm64) || purego

package kernel

func maxOf(x []float32) float32 { return maxOfGo(x) }

func sumExp(x []float32, m float32) float32 { return sumExpGo(x, m) }

func draw(x []float32, invT float32, key Key, first uint32, best *choice) {
	drawGo(x, invT, key, first, best)
}
