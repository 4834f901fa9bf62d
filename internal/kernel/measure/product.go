package measure

import (
	"bytes"
	"time"

	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/machine"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

// The size of the matrix of a [Product], which a model of half a billion weights has: outputs, and inputs.
const (
	Outputs = 3584
	Inputs  = 1280
)

// productBytes is the least that the copies of a matrix take together: more than any cache holds, so that a product reads memory.
const productBytes = 96 << 20

// Product multiplies rows of activations by a matrix of one weight type. It is for one goroutine.
type Product struct {
	format        *matmul.Format
	matrices      [][]byte // equal copies
	next          int      // of matrices
	rows          kernel.Rows
	dst           []float32
	groups, chunk int              // an item of the pool is chunk groups of outputs
	scratch       []matmul.Scratch // by worker
}

// NewProduct returns a product with a matrix of a weight type that has a codec. Rows must be set before it runs, on a
// pool of so many threads.
func NewProduct(t tensor.Type, threads int) *Product {
	f, _ := matmul.FormatOf(t)
	p := &Product{format: f, groups: f.Groups(Outputs), chunk: max(1, 32/f.Group), scratch: make([]matmul.Scratch, threads)}
	size := f.PackedSize(Outputs, Inputs)
	first := make([]byte, size)
	f.Pack(first, matrix(t), Outputs, Inputs, 0, p.groups, &p.scratch[0])
	for range max(1, productBytes/size) {
		m := make([]byte, size)
		machine.HugePages(m)
		copy(m, first)
		p.matrices = append(p.matrices, m)
	}
	return p
}

// matrix returns a matrix in the layout of files, with equal rows of values of usual size.
func matrix(t tensor.Type) []byte {
	values := make([]float32, Inputs)
	for i := range values {
		values[i] = float32(i*37%101-50) / 1000
	}
	size, _ := t.RowBytes(Inputs)
	row := make([]byte, size)
	if err := tensor.Pack(t, row, values); err != nil {
		panic(err) // every type can hold these values
	}
	return bytes.Repeat(row, Outputs)
}

// Bytes returns the bytes of the packed matrix.
func (p *Product) Bytes() int { return len(p.matrices[0]) }

// Copies returns the number of copies of the matrix, which products use in turn.
func (p *Product) Copies() int { return len(p.matrices) }

// SetRows sets the number of rows that are multiplied.
func (p *Product) SetRows(n int) {
	blocks := n * Inputs / kernel.QBlock
	p.rows = kernel.Rows{
		N: n, K: Inputs, F: make([]float32, n*Inputs), Q: make([]int8, n*Inputs),
		D: make([]float32, blocks), Sum: make([]int32, blocks),
	}
	for i := range p.rows.F {
		p.rows.F[i] = float32(i%17) - 8
	}
	p.rows.Quantize()
	p.dst = make([]float32, n*Outputs)
	for i := range p.dst { // the system gives memory when it is written first
		p.dst[i] = 1
	}
}

// Run multiplies the rows several times on the threads of a pool and returns the seconds of one product.
func (p *Product) Run(pool *par.Pool, times int) float64 {
	start := time.Now()
	for range times {
		p.next = (p.next + 1) % len(p.matrices)
		pool.Run((p.groups+p.chunk-1)/p.chunk, p)
	}
	return time.Since(start).Seconds() / float64(times)
}

// Do implements [par.Task] for [Product.Run].
func (p *Product) Do(worker, item int) {
	first := item * p.chunk
	p.format.MatMul(p.dst, Outputs, p.matrices[p.next], Outputs, Inputs, first, min(first+p.chunk, p.groups), &p.rows, &p.scratch[worker])
}
