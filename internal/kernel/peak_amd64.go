//go:build amd64 && !purego

package kernel

//go:generate go -C _asm run ./peak -out ../z_peak_amd64.s -stubs ../z_peak_amd64.go -pkg kernel

func peak(k PeakKind, n int) int {
	const chains = 12
	switch {
	case VNNI512 && k != PeakFloat:
		peakDotVNNI512(n)
		return n * chains * 64
	case AVX512:
		peakAVX512(k, n)
		return n * chains * peakLanes(k, 64)
	case VNNI256 && k != PeakFloat:
		peakDotVNNI256(n)
		return n * chains * 32
	case AVX2:
		peakAVX2(k, n)
		return n * chains * peakLanes(k, 32)
	}
	return peakGo(n)
}

// peakLanes returns the multiply-adds of a register of some bytes.
func peakLanes(k PeakKind, bytes int) int {
	if k == PeakFloat {
		return bytes / 4
	}
	return bytes
}

func peakAVX2(k PeakKind, n int) {
	switch k {
	case PeakFloat:
		peakFloatAVX2(n)
	case PeakInt8:
		peakInt8AVX2(n)
	default:
		peakNibbleAVX2(n)
	}
}

func peakAVX512(k PeakKind, n int) {
	switch k {
	case PeakFloat:
		peakFloatAVX512(n)
	case PeakInt8:
		peakInt8AVX512(n)
	default:
		peakNibbleAVX512(n)
	}
}

func stream(b []byte) uint64 {
	const piece = 256
	n := len(b) / piece
	if !AVX2 || n == 0 {
		return streamGo(b)
	}
	return streamAVX2(&b[0], n) + streamGo(b[n*piece:])
}
