//go:build amd64 && !purego

package kernel

//go:generate go -C _asm run ./peak -out ../z_peak_amd64.s -stubs ../z_peak_amd64.go -pkg kernel

func peak(k PeakKind, n int) int {
	if !useAVX2 {
		return peakGo(n)
	}
	const chains = 12
	switch k {
	case PeakFloat:
		peakFloatAVX2(n)
		return n * chains * 8
	case PeakInt8:
		peakInt8AVX2(n)
	default:
		peakNibbleAVX2(n)
	}
	return n * chains * 32
}
