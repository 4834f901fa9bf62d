//go:build arm64 && !purego

package scan

import "grove/internal/kernel"

func lanes() int {
	if kernel.NEON {
		return 4
	}
	return 0
}

// exponentials returns the registers of a wide block of Mamba 1.
func exponentials() int { return 2 }

func readBlock(wide bool, u, s *float32, stride int, k *float32, n int, v *float32, c, beta float32) {
	if wide {
		read4NEON(u, s, stride, k, n, v, c, beta)
	} else {
		read1NEON(u, s, stride, k, n, v, c, beta)
	}
}

func writeBlock(wide bool, o, u, to, s *float32, stride int, k, q, a *float32, step, n int) {
	if wide {
		write4NEON(o, u, to, s, stride, k, q, a, step, n)
	} else {
		write1NEON(o, u, to, s, stride, k, q, a, step, n)
	}
}

func writeReadBlock(wide bool, o, u, to, s *float32, stride int, k, q, a *float32, step, n int, next, v *float32, c, beta float32) {
	if wide {
		writeRead4NEON(o, u, to, s, stride, k, q, a, step, n, next, v, c, beta)
	} else {
		writeRead1NEON(o, u, to, s, stride, k, q, a, step, n, next, v, c, beta)
	}
}

// writeTwoBlock advances by one row after the other.
func writeTwoBlock(wide bool, o0, o1, u0, u1, to, s *float32, stride int, k0, k1, q0, q1 *float32, a *[2]float32, n int) {
	writeBlock(wide, o0, u0, to, s, stride, k0, q0, &a[0], 0, n)
	writeBlock(wide, o1, u1, to, to, stride, k1, q1, &a[1], 0, n)
}

func tapsBlock(wide, silu bool, dst *float32, rows *[maxTaps]*float32, taps int, w *float32, stride int, bias *float32, blocks int) {
	switch {
	case wide && silu:
		tapsSilu4NEON(dst, rows, taps, w, stride, bias, blocks)
	case wide:
		taps4NEON(dst, rows, taps, w, stride, bias, blocks)
	case silu:
		tapsSilu1NEON(dst, rows, taps, w, stride, bias, blocks)
	default:
		taps1NEON(dst, rows, taps, w, stride, bias, blocks)
	}
}

func selectiveBlock(wide bool, y, to, s *float32, stride int, x, dt, b, c, a *float32, aStride, n int, d *float32) {
	if wide {
		selective2NEON(y, to, s, stride, x, dt, b, c, a, aStride, n, d)
	} else {
		selective1NEON(y, to, s, stride, x, dt, b, c, a, aStride, n, d)
	}
}

func expVector(dst, x []float32) int {
	if !kernel.NEON {
		return 0
	}
	expNEON(dst, x)
	return len(x) &^ 7
}
