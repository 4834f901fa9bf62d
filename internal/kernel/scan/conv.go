package scan

import "grove/internal/kernel"

const (
	convGroup = 512 // channels of a part of a convolution: its rows stay in the first-level cache
	maxTaps   = 8   // of the assembly
)

// Conv is a causal convolution of each channel by itself with its last Taps inputs, the short convolution of recurrent layers. A
// state is the inputs of the last Taps-1 rows, the oldest first. A part is 512 channels, the last part the rest.
//
// The order: y = bias, or +0; over the taps, the oldest row first, y = FMA32(w, x, y); with Silu, y / (1 + Exp32(-y)).
type Conv struct {
	Channels, Taps int
	Weight         []float32 // [Taps, Channels], that of the oldest row first
	Bias           []float32 // [Channels], or none
	Silu           bool
}

// Parts implements [Op].
func (c *Conv) Parts() int { return (c.Channels + convGroup - 1) / convGroup }

// Size implements [Op].
func (c *Conv) Size() int { return (c.Taps - 1) * min(convGroup, c.Channels) }

// Record implements [Op].
func (c *Conv) Record() int { return c.Channels }

// Out implements [Op].
func (c *Conv) Out() int { return c.Channels }

// Advance implements [Op].
func (c *Conv) Advance(part int, to, from, in []float32, inStride, n int, out []float32, outStride int) {
	lo := part * convGroup
	width, keep := min(convGroup, c.Channels-lo), c.Taps-1
	row := func(i int) []float32 { // i from -keep on
		if i < 0 {
			return from[(keep+i)*width:][:width]
		}
		return in[i*inStride+lo:][:width]
	}
	if out != nil {
		var taps [maxTaps][]float32
		for i := range n {
			dst := out[i*outStride+lo:][:width]
			done := 0
			if c.Taps <= maxTaps {
				for j := range c.Taps {
					taps[j] = row(i - keep + j)
				}
				done = c.taps(dst, lo, &taps)
			}
			rest := dst[done:]
			clear(rest)
			if len(c.Bias) > 0 {
				copy(rest, c.Bias[lo+done:])
			}
			for j := range c.Taps {
				mulAdd(rest, row(i - keep + j)[done:], c.Weight[j*c.Channels+lo+done:])
			}
			if c.Silu {
				kernel.Silu(rest, rest)
			}
		}
	}
	for i := range keep {
		copy(to[i*width:][:width], row(n-keep+i)) // where to is from, each row is read before it is written
	}
	clear(to[keep*width:])
}

// mulAdd adds x*w to dst: dst = FMA32(w, x, dst).
func mulAdd(dst, x, w []float32) {
	for i := range dst {
		dst[i] = kernel.FMA32(w[i], x[i], dst[i])
	}
}
