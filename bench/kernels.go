package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/machine"
	"grove/internal/par"
	"grove/weights/tensor"
)

// KernelResult is the product of one type of weights with some rows.
type KernelResult struct {
	Type    string  `json:"type"`
	Rows    int     `json:"rows"`
	Seconds float64 `json:"seconds"`
	Spread  float64 `json:"spread"`
	Read    float64 `json:"bytes_per_second"`         // of weights
	Rate    float64 `json:"multiply_adds_per_second"` // of the product
	Share   float64 `json:"share"`                    // of what the machine can do: reads for 1 row, multiply-adds for more
}

// KernelReport is what a run of [Kernels] found.
type KernelReport struct {
	Implementation string
	Threads        int
	Results        []KernelResult
}

// The matrix that kernels multiply: of the 0.5 b shape, as many times as leave every cache for one row.
const (
	kernelOut, kernelK = 3584, 1280
	kernelBytes        = 96 << 20
)

// Kernels measures the products of every type for 1, 8 and 512 rows with some threads, 0 meaning all.
func Kernels(threads int, progress func(done, all int)) *KernelReport {
	if threads == 0 {
		threads = par.Threads()
	}
	pool := par.New(threads)
	defer pool.Close()
	r := &KernelReport{Implementation: kernel.Implementation(), Threads: threads}
	types := tensor.Types()
	for i, t := range types {
		r.Results = append(r.Results, kernelsOf(pool, t)...)
		if progress != nil {
			progress(i+1, len(types))
		}
	}
	return r
}

const kernelTurns = 5

func kernelsOf(pool *par.Pool, t tensor.Type) []KernelResult {
	p := newProduct(t, pool.Threads())
	l := newLimits(pool, kernelBytes, t)
	rows := []int{1, 8, 512}
	seconds := make([]sample, len(rows))
	for turn := range kernelTurns + 1 {
		l.turn()
		for i, n := range rows {
			times := max(1, len(p.matrices)/n)
			p.setRows(n)
			start := time.Now()
			for range times {
				p.next = (p.next + 1) % len(p.matrices)
				pool.Run((p.groups+p.chunk-1)/p.chunk, p)
			}
			if turn > 0 {
				seconds[i] = append(seconds[i], time.Since(start).Seconds()/float64(times))
			}
		}
	}
	out := make([]KernelResult, len(rows))
	for i, n := range rows {
		s := seconds[i].median()
		out[i] = KernelResult{
			Type: t.String(), Rows: n, Seconds: s, Spread: seconds[i].spread(),
			Read: float64(len(p.matrices[0])) / s, Rate: float64(n*kernelOut*kernelK) / s,
		}
		out[i].Share = out[i].Read / l.bandwidth()
		if n > 1 {
			out[i].Share = out[i].Rate / l.rate()
		}
	}
	return out
}

// product is the multiplication of rows by one of several equal matrices; an item is chunk groups.
type product struct {
	format        *matmul.Format
	matrices      [][]byte
	next          int
	rows          kernel.Rows
	dst           []float32
	groups, chunk int
	scratch       []matmul.Scratch // by worker
}

func newProduct(t tensor.Type, threads int) *product {
	f, _ := matmul.FormatOf(t)
	p := &product{format: f, groups: f.Groups(kernelOut), chunk: max(1, 32/f.Group), scratch: make([]matmul.Scratch, threads)}
	size := f.PackedSize(kernelOut, kernelK)
	first := make([]byte, size)
	f.Pack(first, weightsOf(t), kernelOut, kernelK, 0, p.groups, &p.scratch[0])
	for range max(1, kernelBytes/size) {
		m := make([]byte, size)
		machine.HugePages(m)
		copy(m, first)
		p.matrices = append(p.matrices, m)
	}
	return p
}

// weightsOf returns a matrix of the file whose rows are alike and hold values of usual size.
func weightsOf(t tensor.Type) []byte {
	values := make([]float32, kernelK)
	for i := range values {
		values[i] = float32(i*37%101-50) / 1000
	}
	size, _ := t.RowBytes(kernelK)
	row := make([]byte, size)
	if err := tensor.Pack(t, row, values); err != nil {
		panic(err) // small values fit every type
	}
	return bytes.Repeat(row, kernelOut)
}

func (p *product) setRows(n int) {
	blocks := n * kernelK / kernel.QBlock
	p.rows = kernel.Rows{
		N: n, K: kernelK, F: make([]float32, n*kernelK), Q: make([]int8, n*kernelK),
		D: make([]float32, blocks), Sum: make([]int32, blocks),
	}
	for i := range p.rows.F {
		p.rows.F[i] = float32(i%17) - 8
	}
	p.rows.Quantize()
	p.dst = make([]float32, n*kernelOut)
}

// Do implements [par.Task].
func (p *product) Do(worker, item int) {
	first := item * p.chunk
	p.format.MatMul(p.dst, kernelOut, p.matrices[p.next], kernelOut, kernelK, first, min(first+p.chunk, p.groups), &p.rows, &p.scratch[worker])
}

// WriteTable writes the report for a person.
func (r *KernelReport) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "products of %d x %d, %s, %d threads\n\n| type | rows | GB/s of weights | G multiply-adds/s | ± | of the machine |\n|---|---|---|---|---|---|\n",
		kernelOut, kernelK, r.Implementation, r.Threads)
	for _, k := range r.Results {
		_, err := fmt.Fprintf(w, "| %s | %d | %.1f | %.1f | %.0f %% | %.0f %% |\n", k.Type, k.Rows, k.Read/1e9, k.Rate/1e9, 100*k.Spread, 100*k.Share)
		if err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, "\nOf the machine: of a plain read loop for 1 row, of multiply-adds in registers for more, in the same run.")
	return err
}

// WriteJSON writes the report as one object a line.
func (r *KernelReport) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	for _, k := range r.Results {
		if err := e.Encode(k); err != nil {
			return err
		}
	}
	return nil
}
