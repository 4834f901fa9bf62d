package fill

import (
	"math"

	"grove/internal/kernel"
	"grove/internal/sample"
)

// What the random numbers of latents are for: of each value of a row, those of some tries.
const (
	noisePurpose sample.Purpose = 1 << 24
	tries                       = 64
)

// Noise returns latents of standard normal values for a block behind the text, as many rows as are asked for, of a width up to 2^20. They depend on the seed and the sample index
// of the settings, and on the place in the text, and on nothing else.
func (t *LatentText) Noise(rows, width int) [][]float32 {
	latents := make([][]float32, rows)
	for i := range latents {
		latents[i] = make([]float32, width)
		for j := range latents[i] {
			latents[i][j] = t.normal(len(t.ids)+i, noisePurpose+tries*sample.Purpose(j))
		}
	}
	return latents
}

// normal returns a standard normal number by the polar method (Marsaglia and Bray 1964). One try in five fails; 0 stands for what no try gives.
func (t *LatentText) normal(index int, use sample.Purpose) float32 {
	for end := use + tries; use < end; use += 2 {
		x, y := float64(2*t.chain.Number(index, use))-1, float64(2*t.chain.Number(index, use+1))-1
		if s := float64(x*x) + float64(y*y); s > 0 && s < 1 { // each product is rounded: no machine fuses them
			return float32(x * math.Sqrt(float64(-2*kernel.Log64(s))/s))
		}
	}
	return 0
}
