package bench

import (
	"fmt"
	"io"

	"grove"
	"grove/internal/kernel/measure"
	"grove/internal/par"
	"grove/internal/stat"
	"grove/weights/tensor"
)

// KernelResult is the time of the product of one weight type with a number of rows.
type KernelResult struct {
	Type    string  `json:"type"`
	Rows    int     `json:"rows"`
	Seconds float64 `json:"seconds"`
	Spread  float64 `json:"spread"`
	Read    float64 `json:"bytes_per_second"`         // of weights
	Rate    float64 `json:"multiply_adds_per_second"` // of the product
	Share   float64 `json:"share"`                    // of the limit of the machine: reads for 1 row, multiply-adds for more
}

// KernelReport is the result of [Kernels].
type KernelReport struct {
	Implementation string
	Threads        int
	Results        []KernelResult
}

// Kernels measures the products of every weight type with 1, 8 and 512 rows on a number of threads; 0: one for each core.
func Kernels(threads int, progress Progress) *KernelReport {
	if threads == 0 {
		threads = par.Threads()
	}
	pool := par.New(threads)
	defer pool.Close()
	r := &KernelReport{Implementation: grove.Version().Kernels, Threads: threads}
	types := tensor.Types()
	for i, t := range types {
		r.Results = append(r.Results, kernelsOf(pool, t)...)
		progress.show(i+1, len(types))
	}
	return r
}

const (
	kernelTurns = 5
	kernelBytes = 96 << 20 // that a read covers: more than the caches hold
)

func kernelsOf(pool *par.Pool, t tensor.Type) []KernelResult {
	p := measure.NewProduct(t, pool.Threads())
	l := newLimits(pool, kernelBytes, t)
	rows := []int{1, 8, 512}
	seconds := make([]stat.Sample, len(rows))
	for turn := range kernelTurns + 1 { // the first warms up and does not count
		l.turn()
		for i, n := range rows {
			p.SetRows(n)
			s := p.Run(pool, max(1, p.Copies()/n))
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
		out[i].Share = out[i].Read / l.bandwidth()
		if n > 1 {
			out[i].Share = out[i].Rate / l.rate()
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
	fmt.Fprintf(w, "products of %d x %d, %s, %d threads\n\n| type | rows | GB/s of weights | G multiply-adds/s | ± | of the machine |\n|---|---|---|---|---|---|\n",
		measure.Outputs, measure.Inputs, r.Implementation, r.Threads)
	for _, k := range r.Results {
		_, err := fmt.Fprintf(w, "| %s | %d | %.1f | %.1f | %.0f %% | %.0f %% |\n", k.Type, k.Rows, k.Read/1e9, k.Rate/1e9, 100*k.Spread, 100*k.Share)
		if err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, "\nof the machine: 1 row against a plain read loop, more rows against multiply-adds in registers, in the same run")
	return err
}

// WriteJSON writes the report as one object a line.
func (r *KernelReport) WriteJSON(w io.Writer) error { return WriteLines(w, r.Results) }
