package kernel

// The constants of the clamped SwiGLU of gpt-oss.
const (
	swigluLimit = 7
	swigluAlpha = -1.702
)

// ClampedSwiGLU writes to dst, which may be gate or up, the gate of gpt-oss: with g = min(gate, 7) and u = up
// within ±7, g * sigmoid(1.702 g) * (u + 1). All have equal lengths. A NaN passes.
//
// The order: (g / (1 + Exp32(g * -1.702))) * (u + 1).
func ClampedSwiGLU(dst, gate, up []float32) {
	sameLen(len(dst), gate, up)
	clampedSwiGLU(dst, gate, up)
}

func clampedSwiGLUGo(dst, gate, up []float32) {
	for i, g := range gate {
		g, u := min(g, swigluLimit), max(min(up[i], swigluLimit), -swigluLimit)
		s := g / (1 + Exp32(float32(g*swigluAlpha)))
		dst[i] = float32(s * (u + 1))
	}
}
