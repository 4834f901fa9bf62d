package scan

import "grove/internal/kernel"

// A state of Mamba 2 and of a delta net is a matrix of a row for each element of a key and a column for each output. Columns are
// independent and are the lanes; sums go over the rows in ascending order. A part has at most 64 columns, so that the state of a usual
// head stays in the first-level cache while rows pass.

// maxColumns is the columns of a part: of registers of 512 bits, four.
const maxColumns = 64

// columns returns how many columns a part has where a head has n: all, or the largest divisor within the limit.
func columns(n int) int {
	for w := min(n, maxColumns); w > 1; w-- {
		if n%w == 0 {
			return w
		}
	}
	return 1
}

// A decay multiplies the rows of a state: row i by f[i*step]; step is 0 where one factor is that of all rows, else 1.
type decay struct {
	f    []float32
	step int
}

// A lookup reads the state by a key: u = float32(beta * (v - float32(c*p))), p the sum over the rows of FMA32(s, k, p).
type lookup struct {
	k, v    []float32
	c, beta float32
}

// read fills u with what l gives. The state s has a row of len(u) columns for each element of l.k.
func read(u, s []float32, l *lookup) {
	done := readVector(u, s, l)
	w := len(u)
	for j := done; j < w; j++ {
		var p float32
		for i, k := range l.k {
			p = kernel.FMA32(s[i*w+j], k, p)
		}
		u[j] = delta(p, j, l)
	}
}

func delta(p float32, j int, l *lookup) float32 {
	return float32(l.beta * (l.v[j] - float32(l.c*p)))
}

// write advances the state s by the key k and the values u, at to: v = FMA32(k, u, float32(a*s)); and writes the sums over the rows of
// FMA32(v, q, o) to o. Where l is not nil, u becomes what l reads of to. s may be to.
func write(o, u, to, s, k, q []float32, a decay, l *lookup) {
	writeFrom(0, o, u, to, s, k, q, a, l)
}

// writeFrom is write for the columns from first on.
func writeFrom(first int, o, u, to, s, k, q []float32, a decay, l *lookup) {
	w := len(u)
	for j := writeVector(first, o, u, to, s, k, q, a, l); j < w; j++ {
		var sum, p float32
		for i, k := range k {
			v := kernel.FMA32(k, u[j], float32(a.f[i*a.step]*s[i*w+j]))
			to[i*w+j] = v
			sum = kernel.FMA32(v, q[i], sum)
			if l != nil {
				p = kernel.FMA32(v, l.k[i], p)
			}
		}
		o[j] = sum
		if l != nil {
			u[j] = delta(p, j, l)
		}
	}
}

// written is a row that advances a state, as write has it.
type written struct{ o, u, k, q []float32 }

// writeRows advances the state s by a row or two, row i with the decay a[i], at to, which may be s.
func writeRows(rows []written, to, s, a []float32) {
	done := 0
	if len(rows) == 2 {
		done = writeTwoVector(&rows[0], &rows[1], to, s, a)
	}
	if w := len(rows[0].u); done < w {
		for i, r := range rows {
			writeFrom(done, r.o, r.u, to, s, r.k, r.q, decay{a[i:], 0}, nil)
			s = to
		}
	}
}

// exp writes Exp32 of x to dst, which may be x.
func exp(dst, x []float32) {
	for i := expVector(dst, x); i < len(x); i++ {
		dst[i] = kernel.Exp32(x[i])
	}
}
