//go:build amd64 && !purego

package scan

import "grove/internal/kernel"

//go:generate go -C ../_asm run ./scan -out ../scan/z_scan_amd64.s -stubs ../scan/z_scan_amd64.go -pkg scan

// The assembly takes blocks of four registers, then single ones, of the columns from done on; the portable code takes the rest. Functions
// return how many columns are done. Calls are direct, as a function's value would move arguments to the heap.

// block returns the columns of the next block, of many registers or of one; 0: the rest is for portable code.
func block(left, many int) int {
	lanes := 0
	switch {
	case kernel.AVX512:
		lanes = 16
	case kernel.AVX2:
		lanes = 8
	}
	if n := many * lanes; n <= left {
		return n
	}
	if lanes <= left {
		return lanes
	}
	return 0
}

func readVector(u, s []float32, l *lookup) (done int) {
	stride, rows := len(u), len(l.k)
	if rows == 0 {
		return 0
	}
	k, c, beta := &l.k[0], l.c, l.beta
	_, _ = s[rows*stride-1], l.v[stride-1]
	for {
		n := block(stride-done, 4)
		if n == 0 {
			return done
		}
		u, s, v := &u[done], &s[done], &l.v[done]
		switch done += n; {
		case !kernel.AVX512 && n == 8:
			read1AVX2(u, s, stride, k, rows, v, c, beta)
		case !kernel.AVX512:
			read4AVX2(u, s, stride, k, rows, v, c, beta)
		case n == 16:
			read1AVX512(u, s, stride, k, rows, v, c, beta)
		default:
			read4AVX512(u, s, stride, k, rows, v, c, beta)
		}
	}
}

func writeVector(done int, o, u, s, k, q []float32, a decay, l *lookup) int {
	if len(k) == 0 {
		return done
	}
	if l != nil {
		return writeReadVector(done, o, u, s, k, q, a, l)
	}
	stride, rows, step := len(u), len(k), a.step
	key, query, f := &k[0], &q[0], &a.f[0]
	_, _, _, _ = s[rows*stride-1], o[stride-1], q[rows-1], a.f[(rows-1)*step]
	for {
		n := block(stride-done, 4)
		if n == 0 {
			return done
		}
		o, u, s := &o[done], &u[done], &s[done]
		switch done += n; {
		case !kernel.AVX512 && n == 8:
			write1AVX2(o, u, s, stride, key, query, f, step, rows)
		case !kernel.AVX512:
			write4AVX2(o, u, s, stride, key, query, f, step, rows)
		case n == 16:
			write1AVX512(o, u, s, stride, key, query, f, step, rows)
		default:
			write4AVX512(o, u, s, stride, key, query, f, step, rows)
		}
	}
}

func writeReadVector(done int, o, u, s, k, q []float32, a decay, l *lookup) int {
	stride, rows, step := len(u), len(k), a.step
	key, query, f, next, c, beta := &k[0], &q[0], &a.f[0], &l.k[0], l.c, l.beta
	_, _, _, _ = s[rows*stride-1], o[stride-1], q[rows-1], a.f[(rows-1)*step]
	_, _ = l.k[rows-1], l.v[stride-1]
	for {
		n := block(stride-done, 4)
		if n == 0 {
			return done
		}
		o, u, s, v := &o[done], &u[done], &s[done], &l.v[done]
		switch done += n; {
		case !kernel.AVX512 && n == 8:
			writeRead1AVX2(o, u, s, stride, key, query, f, step, rows, next, v, c, beta)
		case !kernel.AVX512:
			writeRead4AVX2(o, u, s, stride, key, query, f, step, rows, next, v, c, beta)
		case n == 16:
			writeRead1AVX512(o, u, s, stride, key, query, f, step, rows, next, v, c, beta)
		default:
			writeRead4AVX512(o, u, s, stride, key, query, f, step, rows, next, v, c, beta)
		}
	}
}

func writeTwoVector(r0, r1 *written, s, a []float32) (done int) {
	stride, rows := len(r0.u), len(r0.k)
	if rows == 0 {
		return 0
	}
	k0, k1, q0, q1, f := &r0.k[0], &r1.k[0], &r0.q[0], &r1.q[0], &a[0]
	_, _, _, _ = s[rows*stride-1], r1.k[rows-1], r0.q[rows-1], r1.q[rows-1]
	_, _, _, _ = r0.o[stride-1], r1.o[stride-1], r1.u[stride-1], a[1]
	for {
		n := block(stride-done, 4)
		if n == 0 {
			return done
		}
		o0, o1, u0, u1, s := &r0.o[done], &r1.o[done], &r0.u[done], &r1.u[done], &s[done]
		switch done += n; {
		case !kernel.AVX512 && n == 8:
			writeTwo1AVX2(o0, o1, u0, u1, s, stride, k0, k1, q0, q1, f, rows)
		case !kernel.AVX512:
			writeTwo4AVX2(o0, o1, u0, u1, s, stride, k0, k1, q0, q1, f, rows)
		case n == 16:
			writeTwo1AVX512(o0, o1, u0, u1, s, stride, k0, k1, q0, q1, f, rows)
		default:
			writeTwo4AVX512(o0, o1, u0, u1, s, stride, k0, k1, q0, q1, f, rows)
		}
	}
}

// taps computes the columns of dst, the channels from lo on, from the rows of inputs; with Silu, through that.
func (c *Conv) taps(dst []float32, lo int, rows *[maxTaps][]float32) (done int) {
	var inputs [maxTaps]*float32
	_ = c.Weight[(c.Taps-1)*c.Channels+lo+len(dst)-1]
	for {
		left := len(dst) - done
		n := block(left, 4)
		if n == 0 {
			return done
		}
		var bias *float32
		if len(c.Bias) > 0 {
			bias = &c.Bias[lo+done : len(dst)+lo][0]
		}
		for j := range c.Taps {
			inputs[j] = &rows[j][done]
		}
		to, w, stride := &dst[done], &c.Weight[lo+done], c.Channels
		blocks := left / n
		done += blocks * n
		switch {
		case !kernel.AVX512 && n == 8 && c.Silu:
			tapsSilu1AVX2(to, &inputs, c.Taps, w, stride, bias, blocks)
		case !kernel.AVX512 && n == 8:
			taps1AVX2(to, &inputs, c.Taps, w, stride, bias, blocks)
		case !kernel.AVX512 && c.Silu:
			tapsSilu4AVX2(to, &inputs, c.Taps, w, stride, bias, blocks)
		case !kernel.AVX512:
			taps4AVX2(to, &inputs, c.Taps, w, stride, bias, blocks)
		case n == 16 && c.Silu:
			tapsSilu1AVX512(to, &inputs, c.Taps, w, stride, bias, blocks)
		case n == 16:
			taps1AVX512(to, &inputs, c.Taps, w, stride, bias, blocks)
		case c.Silu:
			tapsSilu4AVX512(to, &inputs, c.Taps, w, stride, bias, blocks)
		default:
			taps4AVX512(to, &inputs, c.Taps, w, stride, bias, blocks)
		}
	}
}

func expVector(dst, x []float32) int {
	if !kernel.AVX2 {
		return 0
	}
	expAVX2(dst, x)
	return len(x) &^ 7
}

func (m *Mamba1) channelsVector(y, h, x, dt, b, c []float32, lo int) (done int) {
	many := 2
	if kernel.AVX512 {
		many = 4
	}
	w := len(y)
	if m.N == 0 {
		return 0
	}
	_, _, _, _ = h[m.N*w-1], m.A[(m.N-1)*m.Inner+lo+w-1], m.D[lo+w-1], c[m.N-1]
	for {
		n := block(w-done, many)
		if n == 0 {
			return done
		}
		y, h, x, dt, a, d := &y[done], &h[done], &x[done], &dt[done], &m.A[lo+done], &m.D[lo+done]
		switch done += n; {
		case !kernel.AVX512 && n == 8:
			selective1AVX2(y, h, w, x, dt, &b[0], &c[0], a, m.Inner, m.N, d)
		case !kernel.AVX512:
			selective2AVX2(y, h, w, x, dt, &b[0], &c[0], a, m.Inner, m.N, d)
		case n == 16:
			selective1AVX512(y, h, w, x, dt, &b[0], &c[0], a, m.Inner, m.N, d)
		default:
			selective4AVX512(y, h, w, x, dt, &b[0], &c[0], a, m.Inner, m.N, d)
		}
	}
}
