//go:build amd64 && !purego

package scan

import "grove/internal/kernel"

//go:generate go -C ../_asm run ./scan -out ../scan/z_scan_amd64.s -stubs ../scan/z_scan_amd64.go -pkg scan

func lanes() int {
	switch {
	case kernel.AVX512:
		return 16
	case kernel.AVX2:
		return 8
	}
	return 0
}

// exponentials returns the registers of a wide block of Mamba 1.
func exponentials() int {
	if kernel.AVX512 {
		return 4
	}
	return 2
}

func readBlock(wide bool, u, s *float32, stride int, k *float32, n int, v *float32, c, beta float32) {
	switch {
	case kernel.AVX512 && wide:
		read4AVX512(u, s, stride, k, n, v, c, beta)
	case kernel.AVX512:
		read1AVX512(u, s, stride, k, n, v, c, beta)
	case wide:
		read4AVX2(u, s, stride, k, n, v, c, beta)
	default:
		read1AVX2(u, s, stride, k, n, v, c, beta)
	}
}

func writeBlock(wide bool, o, u, to, s *float32, stride int, k, q, a *float32, step, n int) {
	switch {
	case kernel.AVX512 && wide:
		write4AVX512(o, u, to, s, stride, k, q, a, step, n)
	case kernel.AVX512:
		write1AVX512(o, u, to, s, stride, k, q, a, step, n)
	case wide:
		write4AVX2(o, u, to, s, stride, k, q, a, step, n)
	default:
		write1AVX2(o, u, to, s, stride, k, q, a, step, n)
	}
}

func writeReadBlock(wide bool, o, u, to, s *float32, stride int, k, q, a *float32, step, n int, next, v *float32, c, beta float32) {
	switch {
	case kernel.AVX512 && wide:
		writeRead4AVX512(o, u, to, s, stride, k, q, a, step, n, next, v, c, beta)
	case kernel.AVX512:
		writeRead1AVX512(o, u, to, s, stride, k, q, a, step, n, next, v, c, beta)
	case wide:
		writeRead4AVX2(o, u, to, s, stride, k, q, a, step, n, next, v, c, beta)
	default:
		writeRead1AVX2(o, u, to, s, stride, k, q, a, step, n, next, v, c, beta)
	}
}

func writeTwoBlock(wide bool, o0, o1, u0, u1, to, s *float32, stride int, k0, k1, q0, q1 *float32, a *[2]float32, n int) {
	switch {
	case kernel.AVX512 && wide:
		writeTwo4AVX512(o0, o1, u0, u1, to, s, stride, k0, k1, q0, q1, &a[0], n)
	case kernel.AVX512:
		writeTwo1AVX512(o0, o1, u0, u1, to, s, stride, k0, k1, q0, q1, &a[0], n)
	case wide:
		writeTwo4AVX2(o0, o1, u0, u1, to, s, stride, k0, k1, q0, q1, &a[0], n)
	default:
		writeTwo1AVX2(o0, o1, u0, u1, to, s, stride, k0, k1, q0, q1, &a[0], n)
	}
}

func tapsBlock(wide, silu bool, dst *float32, rows *[maxTaps]*float32, taps int, w *float32, stride int, bias *float32, blocks int) {
	switch {
	case kernel.AVX512 && wide && silu:
		tapsSilu4AVX512(dst, rows, taps, w, stride, bias, blocks)
	case kernel.AVX512 && wide:
		taps4AVX512(dst, rows, taps, w, stride, bias, blocks)
	case kernel.AVX512 && silu:
		tapsSilu1AVX512(dst, rows, taps, w, stride, bias, blocks)
	case kernel.AVX512:
		taps1AVX512(dst, rows, taps, w, stride, bias, blocks)
	case wide && silu:
		tapsSilu4AVX2(dst, rows, taps, w, stride, bias, blocks)
	case wide:
		taps4AVX2(dst, rows, taps, w, stride, bias, blocks)
	case silu:
		tapsSilu1AVX2(dst, rows, taps, w, stride, bias, blocks)
	default:
		taps1AVX2(dst, rows, taps, w, stride, bias, blocks)
	}
}

func selectiveBlock(wide bool, y, to, s *float32, stride int, x, dt, b, c, a *float32, aStride, n int, d *float32) {
	switch {
	case kernel.AVX512 && wide:
		selective4AVX512(y, to, s, stride, x, dt, b, c, a, aStride, n, d)
	case kernel.AVX512:
		selective1AVX512(y, to, s, stride, x, dt, b, c, a, aStride, n, d)
	case wide:
		selective2AVX2(y, to, s, stride, x, dt, b, c, a, aStride, n, d)
	default:
		selective1AVX2(y, to, s, stride, x, dt, b, c, a, aStride, n, d)
	}
}

func expVector(dst, x []float32) int {
	if !kernel.AVX2 {
		return 0
	}
	expAVX2(dst, x)
	return len(x) &^ 7
}
