package selfcheck

import (
	"grove/internal/kernel"
	"grove/internal/weights/tensor"
)

// single is the check of a kernel that is run once.
func single(name string, f func(d *data, dst []float32) []float32) check {
	return check{name, "", []int{1}, func(d *data) run {
		return func(_ int, dst []float32) []float32 { return f(d, dst) }
	}}
}

// checks returns all checks. A test sees to it that every kernel is among them.
func checks() []check {
	all := append(products(), vectors()...)
	for _, t := range []tensor.Type{tensor.F32, tensor.F16, tensor.Q8_0} {
		f, _ := kernel.CacheFormatOf(t)
		all = append(all, attention(f)...)
	}
	all = append(all, merging()...)
	all = append(all, recurrences()...)
	return append(all, sampling()...)
}

// vectors returns the checks of the operations over vectors.
func vectors() []check {
	return []check{
		single("Rows.Quantize", quantize),
		single("RMSNorm", func(d *data, dst []float32) []float32 {
			return into(dst, func(y []float32) { kernel.RMSNorm(y, d.floats[:vector], d.floats[vector:2*vector], 1e-5) })
		}),
		single("LayerNorm", func(d *data, dst []float32) []float32 {
			return into(dst, func(y []float32) {
				kernel.LayerNorm(y, d.floats[:vector], d.floats[vector:2*vector], d.floats[2*vector:3*vector], 1e-5)
			})
		}),
		inPlace("Add", func(x, y []float32) { kernel.Add(x, y) }),
		inPlace("Scale", func(x, _ []float32) { kernel.Scale(x, 1.7) }),
		inPlace("AddScaled", func(x, y []float32) { kernel.AddScaled(x, -0.3, y) }),
		inPlace("SiluMul", func(x, y []float32) { kernel.SiluMul(x, x, y) }),
		inPlace("GeluMul", func(x, y []float32) { kernel.GeluMul(x, x, y) }),
		inPlace("ClampedSwiGLU", func(x, y []float32) { kernel.ClampedSwiGLU(x, x, y) }),
		inPlace("Gelu", func(x, _ []float32) { kernel.Gelu(x, x) }),
		inPlace("GeluErf", func(x, _ []float32) { kernel.GeluErf(x, x) }),
		inPlace("GeluErfMul", func(x, y []float32) { kernel.GeluErfMul(x, x, y) }),
		inPlace("Mul", func(x, y []float32) { kernel.Mul(x, y) }),
		inPlace("Silu", func(x, _ []float32) { kernel.Silu(x, x) }),
		inPlace("Sigmoid", func(x, _ []float32) { kernel.Sigmoid(x, x) }),
		inPlace("Softplus", func(x, _ []float32) { kernel.Softplus(x, x) }),
		single("GaussTopK", func(d *data, dst []float32) []float32 {
			return into(dst, func(y []float32) { kernel.GaussTopK(y, d.floats[:vector], -0.5) })
		}),
		single("RootMeanSquare", func(d *data, dst []float32) []float32 {
			return into(dst, func(y []float32) {
				copy(y, d.floats[:vector])
				kernel.Scale(y, 1/kernel.RootMeanSquare(d.floats[:vector], 1e-6))
			})
		}),
		inPlace("UnitNorm", func(x, y []float32) { kernel.UnitNorm(x, y, 1e-6) }),
		inPlace("Softcap", func(x, _ []float32) { kernel.Softcap(x, 30) }),
		inPlace("Finish", func(x, y []float32) { kernel.Finish(x, x, y[0]) }),
		single("Rope", rope),
		single("MaxAbsFinite", func(d *data, dst []float32) []float32 {
			for _, x := range [][]float32{d.floats[:vector], d.wild(vector)} {
				most, finite := kernel.MaxAbsFinite(x)
				dst = append(dst, most, number(finite))
			}
			return dst
		}),
	}
}

// into appends the vector that f fills.
func into(dst []float32, f func(y []float32)) []float32 {
	y := grow(dst, vector)
	f(y[len(dst):])
	return y
}

// inPlace is the check of an operation that changes x, over usual values and over wild ones.
func inPlace(name string, f func(x, y []float32)) check {
	return single(name, func(d *data, dst []float32) []float32 {
		y := d.floats[vector : 2*vector]
		dst = into(dst, func(x []float32) { copy(x, d.floats); f(x, y) })
		return into(dst, func(x []float32) { copy(x, d.wild(vector)); f(x, y) })
	})
}

func quantize(d *data, dst []float32) []float32 {
	const blocks = 9
	x := kernel.Rows{N: 1, K: blocks * kernel.QBlock, Q: make([]int8, blocks*kernel.QBlock), D: make([]float32, blocks), Sum: make([]int32, blocks)}
	x.F = append(d.wild(3*kernel.QBlock), d.floats[:x.K-3*kernel.QBlock]...)
	clear(x.F[4*kernel.QBlock:][:kernel.QBlock])
	x.Quantize()
	for b := range blocks {
		dst = append(dst, x.D[b], float32(x.Sum[b]))
	}
	for _, q := range x.Q {
		dst = append(dst, float32(q))
	}
	return dst
}

// rope rotates heads in both orders of pairs, each with a rest behind whole vectors.
func rope(d *data, dst []float32) []float32 {
	const heads, size, rot = 3, 48, 44
	for _, neox := range []bool{true, false} {
		x := append([]float32(nil), d.floats[:heads*size]...)
		kernel.Rope(x, heads, size, rot, d.floats[200:][:rot/2], d.floats[300:][:rot/2], neox)
		dst = append(dst, x...)
	}
	return dst
}

func number(b bool) float32 {
	if b {
		return 1
	}
	return 0
}

// sampling returns the checks of the passes over logits.
func sampling() []check {
	return []check{
		single("LogSumExp", func(d *data, dst []float32) []float32 {
			for _, x := range [][]float32{d.floats[:logits], d.masked(logits), d.wild(vector)} {
				most, lse, finite := kernel.LogSumExp(x)
				if !finite { // the numbers mean nothing
					most, lse = 0, 0
				}
				dst = append(dst, most, lse, number(finite))
			}
			return dst
		}),
		single("GumbelMax", func(d *data, dst []float32) []float32 {
			x := d.masked(vector)
			for i := range uint32(30) { // the noise decides
				id, most, lse, finite := kernel.GumbelMax(x, 0.02, kernel.MakeKey(7, 0, i, 1))
				dst = append(dst, float32(id), most, lse, number(finite))
			}
			return dst
		}),
		single("ArgMax", func(d *data, dst []float32) []float32 {
			for _, x := range [][]float32{d.floats[:logits], d.masked(logits), d.wild(vector)} {
				dst = append(dst, float32(kernel.ArgMax(x)))
			}
			return dst
		}),
	}
}
