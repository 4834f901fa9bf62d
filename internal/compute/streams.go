package compute

import "grove/internal/kernel"

// AddMixed returns streams of a, each with a mixture of all of them added: a row of a has streams side by side, a row of c, n*n values, the
// factors of the n streams in what stream 0 gets, then those of stream 1, and so on (AltUp, Baykal et al. 2023, section 3).
func (x *Exec) AddMixed(a, c Buf, n int) Buf {
	dst := x.alloc(a.rows, a.width)
	x.rowTask = rowTask{kind: addMixed, x: x, dst: dst, a: a, b: c, heads: n}
	x.runRows(a.rows, n*a.width)
	return dst
}

func (t *rowTask) addMixed(i int) {
	dst, src, c := t.dst.row(i), t.a.row(i), t.b.row(i)
	copy(dst, src)
	width := len(src) / t.heads
	for to := range t.heads {
		for from := range t.heads {
			kernel.AddScaled(dst[to*width:(to+1)*width], c[to*t.heads+from], src[from*width:(from+1)*width])
		}
	}
}

// MatchLength scales each head of a to the length of the row of like, in place; lengths are square roots of means of squares, and one of a
// below the square root of eps counts as that.
func (x *Exec) MatchLength(a Buf, heads int, like Buf, eps float32) Buf {
	x.rowTask = rowTask{kind: matchLength, x: x, dst: a, a: like, heads: heads, eps: eps}
	x.runRows(a.rows, a.width*2)
	return x.changed(a)
}

// GaussTopK keeps of each row what lies above its mean by more than factor times its standard deviation (that of a sample: n-1), less that border, and
// makes the rest 0, in place: with the factor of a quantile of the normal distribution it keeps about that share (Gemma 3n, Google 2025; Spark Transformer, You et al. 2025).
func (x *Exec) GaussTopK(a Buf, factor float32) Buf {
	x.rowTask = rowTask{kind: gaussTopK, x: x, dst: a, scale: factor}
	x.runRows(a.rows, a.width*4)
	return x.changed(a)
}

// Tanh returns the hyperbolic tangent of a, in place. An infinity, which it would hide, fails the step.
func (x *Exec) Tanh(a Buf) Buf { return x.element(tanhRows, a, 1, Vector{}, 0) }

// GeluMul returns gelu(gate) * up, with the approximation by tanh.
func (x *Exec) GeluMul(gate, up Buf) Buf { return x.gated(geluRows, gate, up) }

func (t *rowTask) matchLength(i int) {
	length := kernel.RootMeanSquare(t.a.row(i), 0)
	row := t.dst.row(i)
	for n := len(row) / t.heads; len(row) > 0; row = row[n:] {
		kernel.Scale(row[:n], length/kernel.RootMeanSquare(row[:n], t.eps))
	}
}

// stream runs an operation on what rows carry beside their stream.
func (t *rowTask) stream(worker, i int) {
	switch t.kind {
	case lookupRows:
		t.lookup(worker, i)
	case carriedRows:
		copy(t.dst.row(i), t.x.carriedRow(t.x.active[i])[t.from:])
	case setCarriedRows:
		copy(t.x.carriedRow(t.x.active[i])[t.to:], t.a.row(i))
	case addMixed:
		t.addMixed(i)
	case matchLength:
		t.matchLength(i)
	case gaussTopK:
		kernel.GaussTopK(t.dst.row(i), t.dst.row(i), t.scale)
	}
}
