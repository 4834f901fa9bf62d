package model

import (
	"math"
	"math/bits"

	"grove/internal/compute"
	"grove/internal/kernel"
)

// Slopes returns what a distance of 1 takes off the scores of each head (ALiBi, Press et al. 2022): a geometric row that ends with 2^-most
// at the last head; for heads that are no power of 2, the row of the power below, and then every second value of the row of twice as many.
func (l *Loader) Slopes(heads int, most float64) compute.Vector {
	power := 1 << (bits.Len(uint(heads)) - 1)
	v := compute.Vector{F: make([]float32, heads)}
	for h := range v.F {
		exponent := most * float64(h+1) / float64(power)
		if h >= power {
			exponent = most * float64(2*(h-power)+1) / float64(2*power)
		}
		v.F[h] = float32(kernel.Exp64(float64(-exponent * math.Ln2)))
	}
	return v
}

// Rows returns the rows of a matrix of the file, or 0 where it has none of the name.
func (l *Loader) Rows(name string) int {
	if v, ok := l.file.Tensor(name); ok && len(v.Shape) == 2 {
		return v.Shape[0]
	}
	return 0
}
