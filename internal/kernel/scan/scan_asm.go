//go:build (amd64 || arm64) && !purego

package scan

// The assembly takes blocks of some registers, then single ones, of the columns from done on; the portable code takes the rest. Functions
// return how many columns are done. A file of each architecture has lanes, the floats of a register (0: there is no assembly), and what a block
// is; its calls are direct, as a function's value would move arguments to the heap.

// block returns the columns of the next block, and whether it is one of many registers; 0: the rest is for portable code.
func block(left, many int) (columns int, wide bool) {
	n := lanes()
	if n > 0 && many*n <= left {
		return many * n, true
	}
	if n <= left {
		return n, false
	}
	return 0, false
}

func readVector(u, s []float32, l *lookup) (done int) {
	stride, rows := len(u), len(l.k)
	if rows == 0 {
		return 0
	}
	_, _ = s[rows*stride-1], l.v[stride-1]
	for {
		n, wide := block(stride-done, 4)
		if n == 0 {
			return done
		}
		readBlock(wide, &u[done], &s[done], stride, &l.k[0], rows, &l.v[done], l.c, l.beta)
		done += n
	}
}

func writeVector(done int, o, u, to, s, k, q []float32, a decay, l *lookup) int {
	stride, rows := len(u), len(k)
	if rows == 0 {
		return done
	}
	_, _, _, _, _ = to[rows*stride-1], s[rows*stride-1], o[stride-1], q[rows-1], a.f[(rows-1)*a.step]
	if l != nil {
		_, _ = l.k[rows-1], l.v[stride-1]
	}
	for {
		n, wide := block(stride-done, 4)
		switch {
		case n == 0:
			return done
		case l == nil:
			writeBlock(wide, &o[done], &u[done], &to[done], &s[done], stride, &k[0], &q[0], &a.f[0], a.step, rows)
		default:
			writeReadBlock(wide, &o[done], &u[done], &to[done], &s[done], stride, &k[0], &q[0], &a.f[0], a.step, rows, &l.k[0], &l.v[done], l.c, l.beta)
		}
		done += n
	}
}

func writeTwoVector(r0, r1 *written, to, s, a []float32) (done int) {
	stride, rows := len(r0.u), len(r0.k)
	if rows == 0 {
		return 0
	}
	_, _, _, _, _ = to[rows*stride-1], s[rows*stride-1], r1.k[rows-1], r0.q[rows-1], r1.q[rows-1]
	_, _, _, _ = r0.o[stride-1], r1.o[stride-1], r1.u[stride-1], a[1]
	for {
		n, wide := block(stride-done, 4)
		if n == 0 {
			return done
		}
		writeTwoBlock(wide, &r0.o[done], &r1.o[done], &r0.u[done], &r1.u[done], &to[done], &s[done], stride, &r0.k[0], &r1.k[0], &r0.q[0], &r1.q[0], (*[2]float32)(a), rows)
		done += n
	}
}

// taps computes the columns of dst, the channels from lo on, from the rows of inputs; with Silu, through that.
func (c *Conv) taps(dst []float32, lo int, rows *[maxTaps][]float32) (done int) {
	var inputs [maxTaps]*float32
	_ = c.Weight[(c.Taps-1)*c.Channels+lo+len(dst)-1]
	for {
		left := len(dst) - done
		n, wide := block(left, 4)
		if n == 0 {
			return done
		}
		var bias *float32
		if len(c.Bias) > 0 {
			bias = &c.Bias[lo+done : lo+len(dst)][0]
		}
		for j := range c.Taps {
			inputs[j] = &rows[j][done]
		}
		blocks := left / n
		tapsBlock(wide, c.Silu, &dst[done], &inputs, c.Taps, &c.Weight[lo+done], c.Channels, bias, blocks)
		done += blocks * n
	}
}

func (m *Mamba1) channelsVector(y, to, h, x, dt, b, c []float32, lo int) (done int) {
	w := len(y)
	if m.N == 0 {
		return 0
	}
	_, _, _, _, _ = to[m.N*w-1], h[m.N*w-1], m.A[(m.N-1)*m.Inner+lo+w-1], m.D[lo+w-1], c[m.N-1]
	for {
		n, wide := block(w-done, exponentials())
		if n == 0 {
			return done
		}
		selectiveBlock(wide, &y[done], &to[done], &h[done], w, &x[done], &dt[done], &b[0], &c[0], &m.A[lo+done], m.Inner, m.N, &m.D[lo+done])
		done += n
	}
}
