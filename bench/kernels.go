package bench

import (
	"fmt"
	"io"

	"grove"
	"grove/internal/kernel/measure"
	"grove/internal/par"
	"grove/internal/stat"
	"grove/internal/weights/tensor"
)

// KernelResult is the time of the product of one weight type with a number of rows.
type KernelResult struct {
	Type    string  `json:"type"`
	Rows    int     `json:"rows"`
	Seconds float64 `json:"seconds"`
	Spread  float64 `json:"spread"`
	Read    float64 `json:"bytes_per_second"`         // of weights
	Rate    float64 `json:"multiply_adds_per_second"` // of the product
	Limit   string  `json:"limit"`                    // of the machine that the product reaches first: "reads" or "multiply-adds"
	Share   float64 `json:"share"`                    // of this limit
}

// KernelReport is the result of [Kernels].
type KernelReport struct {
	Implementation string
	Threads        int
	Results        []KernelResult
}

// KernelOptions say what [Kernels] measures.
type KernelOptions struct {
	Threads int           // 0: one for each core
	Types   []tensor.Type // of weights; nil: all
	Rows    []int         // of the products, each positive
	Repeat  int           // times that each is measured; 0: 5
}

// Kernels measures products in turns with the limits of the machine.
func Kernels(o KernelOptions, progress Progress) *KernelReport {
	if o.Threads == 0 {
		o.Threads = par.Threads()
	}
	if o.Types == nil {
		o.Types = tensor.Types()
	}
	if o.Repeat == 0 {
		o.Repeat = 5
	}
	pool := par.New(o.Threads)
	defer pool.Close()
	r := &KernelReport{Implementation: grove.Version().Kernels, Threads: o.Threads}
	for i, t := range o.Types {
		r.Results = append(r.Results, kernelsOf(pool, t, o)...)
		progress.show(i+1, len(o.Types))
	}
	return r
}

// kernelBytes is the bytes that a read covers.
const kernelBytes = 96 << 20

func kernelsOf(pool *par.Pool, t tensor.Type, o KernelOptions) []KernelResult {
	p := measure.NewProduct(t, pool.Threads())
	l := newLimits(pool, kernelBytes, t)
	rows := o.Rows
	seconds := make([]stat.Sample, len(rows))
	for turn := range o.Repeat + 1 { // the first warms up and does not count
		l.turn()
		for i, n := range rows {
			p.SetRows(n)
			s := p.Run(pool, max(1, min(p.Copies(), 8*p.Copies()/n)))
			if turn > 0 {
				seconds[i] = append(seconds[i], s)
			}
		}
	}
	out := make([]KernelResult, len(rows))
	for i, n := range rows {
		s := seconds[i].Median()
		out[i] = KernelResult{
			Type: t.String(), Rows: n, Seconds: s, Spread: seconds[i].Spread(),
			Read: float64(p.Bytes()) / s, Rate: float64(n*measure.Outputs*measure.Inputs) / s,
		}
		reads, work := out[i].Read/l.bandwidth(), out[i].Rate/l.rate()
		out[i].Limit, out[i].Share = "reads", reads
		if work > reads {
			out[i].Limit, out[i].Share = "multiply-adds", work
		}
	}
	return out
}

// limits is the limits of the machine, measured in the turns of a run.
type limits struct {
	*measure.Limits
	read stat.Sample // seconds of a read
	one  stat.Sample // seconds of a multiply-add
}

func newLimits(pool *par.Pool, bytes int, t tensor.Type) *limits {
	return &limits{Limits: measure.NewLimits(pool, bytes, t)}
}

// turn measures both limits once.
func (l *limits) turn() {
	l.read = append(l.read, l.Read())
	l.one = append(l.one, l.MultiplyAdd())
}

// bandwidth returns the bytes that the threads read in a second.
func (l *limits) bandwidth() float64 { return float64(l.Bytes()) / l.read.Median() }

// rate returns the multiply-adds that the threads do in a second.
func (l *limits) rate() float64 { return 1 / l.one.Median() }

// WriteText writes the report as a table.
func (r *KernelReport) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "products of %d x %d, %s, %d threads\n\n| type | rows | GB/s of weights | G multiply-adds/s | ± | of the limit | limit |\n|---|---|---|---|---|---|---|\n",
		measure.Outputs, measure.Inputs, r.Implementation, r.Threads)
	for _, k := range r.Results {
		_, err := fmt.Fprintf(w, "| %s | %d | %.1f | %.1f | %.0f %% | %.0f %% | %s |\n", k.Type, k.Rows, k.Read/1e9, k.Rate/1e9, 100*k.Spread, 100*k.Share, k.Limit)
		if err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, "\nlimit: what the product reaches first, a plain loop that reads the weights or the multiply-adds of its kernels in registers, both measured in the same run")
	return err
}

// WriteJSON writes the report as one object a line.
func (r *KernelReport) WriteJSON(w io.Writer) error { return WriteLines(w, r.Results) }
