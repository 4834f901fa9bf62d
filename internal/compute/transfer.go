// transfer.go makes the streams of rows that begin at a middle layer as the product of another row's stream there with a matrix
// (Hidden Transfer, Wu et al. 2024).
//
// The order of arithmetic is that of N1, of rounded activations where the matrix is quantised (N4): a product depends on the stream and the matrix
// alone. Values beyond ±1e9 are brought within, and what is no number is 0, so that a wrong matrix cannot fail the step.

package compute

import (
	"fmt"
	"slices"

	"grove/internal/compute/weight"
	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/par"
)

// MaxTransfer bounds the values of a stream that a row begins with, in size.
const MaxTransfer = 1e9

// TransferTask makes streams. The zero value is ready; it is for one step at a time. Its buffers are kept.
type TransferTask struct {
	to      []int32     // the rows that begin with products of one matrix
	in      kernel.Rows // the streams that it multiplies
	out     []float32
	m       *weight.Matrix
	scratch []matmul.Scratch
	chunk   int // groups of an item
}

// Enter makes the streams of those rows of a step whose first layer is layer. stream is that of all rows, of width values each, as it enters the
// layer; scratch is that of each worker. It returns an error where a row's matrix is none of the model's width, or nobody wants outputs of
// the row that it is made of, which then might end before the layer.
func (t *TransferTask) Enter(layer int, rows []forest.Placed, stream []float32, width int, pool *par.Pool, scratch []matmul.Scratch) (err error) {
	for i := range rows {
		if rows[i].Through == nil || rows[i].Run.First() != layer {
			continue
		}
		if t.m, err = matrixOf(rows, i, width); err != nil {
			return err
		}
		t.to, t.scratch = t.to[:0], scratch
		for k := range rows {
			if rows[k].Through == rows[i].Through && rows[k].Run.First() == layer {
				t.to = append(t.to, int32(k))
			}
		}
		if int(t.to[0]) == i { // else they have been made
			t.multiply(rows, stream, width, pool)
		}
	}
	return nil
}

// matrixOf returns the matrix of row i.
func matrixOf(rows []forest.Placed, i, width int) (*weight.Matrix, error) {
	r := &rows[i]
	m, ok := r.Through.(*weight.Matrix)
	switch of := &rows[r.Source]; {
	case !ok || m.In() != width || m.Out() != width:
		return nil, fmt.Errorf("compute: the row at index %d begins as a product with a %T [%d, %d]; it must be a matrix of weights [%d, %d]", r.Index, r.Through, r.Through.Out(), r.Through.In(), width, width)
	case !of.Want.Output():
		return nil, fmt.Errorf("compute: the row at index %d begins as a product of the row at index %d, of which no output is wanted; want its logits or its state", r.Index, of.Index)
	}
	return m, nil
}

// multiply makes the streams of the rows of one matrix.
func (t *TransferTask) multiply(rows []forest.Placed, stream []float32, width int, pool *par.Pool) {
	n, x := len(t.to)*width, &t.in
	t.out, x.N, x.K, x.F = slices.Grow(t.out[:0], n)[:n], len(t.to), width, x.F[:0]
	for _, row := range t.to {
		x.F = append(x.F, stream[int(rows[row].Source)*width:][:width]...)
	}
	if t.m.Format.Quantized {
		blocks := n / kernel.QBlock
		x.Q, x.D, x.Sum = slices.Grow(x.Q[:0], n)[:n], slices.Grow(x.D[:0], blocks)[:blocks], slices.Grow(x.Sum[:0], blocks)[:blocks]
		x.Quantize()
	}
	c := CutOf(t.m.Groups(), x.N, pool.Threads(), CutWorkOf(t.m))
	t.chunk = c.Chunk
	pool.Run(c.Chunks, t)
	for i, v := range t.out {
		if t.out[i] = max(-MaxTransfer, min(v, MaxTransfer)); v != v {
			t.out[i] = 0
		}
	}
	for k, row := range t.to {
		copy(stream[int(row)*width:], t.out[k*width:][:width])
	}
}

// Do implements [par.Task]: an item is some groups of outputs, of all rows.
func (t *TransferTask) Do(worker, item int) {
	first := item * t.chunk
	t.m.Multiply(t.out, t.in.K, 0, first, min(first+t.chunk, t.m.Groups()), &t.in, &t.scratch[worker])
}
