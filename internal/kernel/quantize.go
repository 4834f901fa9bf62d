package kernel

import (
	"fmt"
	"math"
)

// QBlock is the number of consecutive activations that share one scale once they are quantised.
const QBlock = 32

// Rows are the activations that a matrix product reads: N rows of K values. F is [N, K] row-major.
// Products over quantised weights read Q, D and Sum instead, which [Rows.Quantize] fills and whose
// rows never influence each other (N4): Q is [N, K] within ±127, D and Sum are [N, K/32].
//
// The caller owns the slices and may reuse them for any later N and K that fit.
type Rows struct {
	N, K int
	F    []float32
	Q    []int8
	D    []float32
	Sum  []int32
}

// Quantize fills Q, D and Sum from F, block by block of 32 values of a row (N4). With the largest
// magnitude amax of a block, D = amax/127 and id = 127/amax, both rounded to float32, and id = 0
// where 127/amax overflows; Q = float32(x*id) rounded to the nearest integer, ties to even, which
// lies within ±127; Sum is the sum of Q. A block that holds a NaN or an infinity has Q = 0, Sum = 0
// and D = NaN, which every product over it turns into NaN.
// It panics unless K is a multiple of 32 and the slices hold N rows.
func (x *Rows) Quantize() {
	nb := x.N * (x.K / QBlock)
	if x.N < 0 || x.K < 0 || x.K%QBlock != 0 {
		panic(fmt.Sprintf("kernel: cannot quantise %d rows of %d values", x.N, x.K))
	}
	if len(x.F) < nb*QBlock || len(x.Q) < nb*QBlock || len(x.D) < nb || len(x.Sum) < nb {
		panic(fmt.Sprintf("kernel: quantising %d rows of %d values in slices too short", x.N, x.K))
	}
	quantize(x.Q, x.D, x.Sum, x.F, nb)
}

// quantizeGo is the specification of [Rows.Quantize] for nb blocks.
func quantizeGo(q []int8, d []float32, sum []int32, f []float32, nb int) {
	const infinity = 0x7f800000
	for b := range nb {
		x := (*[QBlock]float32)(f[b*QBlock:])
		q := (*[QBlock]int8)(q[b*QBlock:])
		amax := uint32(0) // as bits, which order magnitudes as the numbers do, NaN last
		for _, v := range x {
			amax = max(amax, math.Float32bits(v)&0x7fffffff)
		}
		sum[b] = 0
		if amax >= infinity {
			*q, d[b] = [QBlock]int8{}, float32(math.NaN())
			continue
		}
		d[b] = math.Float32frombits(amax) / 127
		id := 127 / math.Float32frombits(amax)
		if id > math.MaxFloat32 {
			id = 0
		}
		for i, v := range x {
			q[i] = int8(math.RoundToEven(float64(v * id)))
			sum[b] += int32(q[i])
		}
	}
}
