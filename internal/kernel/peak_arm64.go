//go:build arm64 && !purego

package kernel

func peak(k PeakKind, n int) int {
	const chains = 16
	switch {
	case !NEON:
		return peakGo(n)
	case k == PeakFloat:
		peakFloatNEON(n)
		return n * chains * 4
	case I8MM:
		peakMatrixI8MM(n)
		return n * chains * 32
	}
	peakDotNEON(n)
	return n * chains * 16
}

func stream(b []byte) uint64 {
	const piece = 256
	n := len(b) / piece
	if !NEON || n == 0 {
		return streamGo(b)
	}
	return streamNEON(&b[0], n) + streamGo(b[n*piece:])
}
