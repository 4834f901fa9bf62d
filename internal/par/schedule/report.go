package schedule

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"grove/internal/stat"
)

// Result is a step of some rows on some threads.
type Result struct {
	Rows     int     `json:"rows"`
	Threads  int     `json:"threads"`
	Measured float64 `json:"measured_seconds,omitempty"` // 0: it was not measured
	Spread   float64 `json:"spread,omitempty"`
	Speedup  float64 `json:"speedup"` // over one thread, predicted where it was predicted
	Bound    string  `json:"bound,omitempty"`

	Predicted *Prediction `json:"predicted,omitempty"`
}

// Report is steps on several numbers of threads, measured or predicted.
type Report struct {
	Title   string   // of the model
	Machine *Machine // nil: nothing was predicted
	Results []Result
}

// Add adds a step of some rows: the seconds that it took, none where it was not measured, and its traces. The step on one
// thread, with which the others are compared, is added first.
func (r *Report) Add(rows, threads int, seconds stat.Sample, traces []Step) {
	s := Result{Rows: rows, Threads: threads}
	if len(seconds) > 0 {
		s.Measured, s.Spread = seconds.Median(), seconds.Spread()
	}
	if r.Machine != nil {
		p := r.Machine.Predict(Median(traces), threads)
		s.Predicted, s.Bound = &p, r.Machine.Bound(p)
	}
	one := s
	for _, other := range r.Results {
		if other.Rows == rows && other.Threads == 1 {
			one = other
		}
	}
	if s.Predicted != nil {
		s.Speedup = one.Predicted.Seconds / s.Predicted.Seconds
	} else {
		s.Speedup = one.Measured / s.Measured
	}
	r.Results = append(r.Results, s)
}

// WriteText writes the report as a table, under the title of the model.
func (r *Report) WriteText(w io.Writer) error {
	head := []string{"rows", "threads", "measured ms", "±", "speed-up", "efficiency"}
	if r.Machine != nil {
		head = append(head, "predicted ms", "error", "items", "memory", "barriers", "imbalance", "serial", "bound")
	}
	fmt.Fprintf(w, "%s\n\n| %s |\n%s|\n", r.Title, strings.Join(head, " | "), strings.Repeat("|---", len(head)))
	for _, s := range r.Results {
		line := fmt.Sprintf("| %d | %d | - | - | %.2f | %.0f %% |", s.Rows, s.Threads, s.Speedup, 100*s.Speedup/float64(s.Threads))
		if s.Measured > 0 {
			line = strings.Replace(line, "- | -", fmt.Sprintf("%.2f | %.1f %%", 1e3*s.Measured, 100*s.Spread), 1)
		}
		if p := s.Predicted; p != nil {
			fault := "-"
			if s.Measured > 0 {
				fault = fmt.Sprintf("%+.1f %%", 100*(p.Seconds/s.Measured-1))
			}
			line += fmt.Sprintf(" %.2f | %s |", 1e3*p.Seconds, fault)
			for _, part := range []float64{p.Items, p.Memory, p.Barriers, p.Imbalance, p.Serial} {
				line += fmt.Sprintf(" %.0f %% |", 100*part/p.Seconds)
			}
			line += " " + s.Bound + " |"
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	if r.Machine == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.Machine)
	return err
}

// WriteJSON writes the report as one object a line: the steps, then, where they were simulated, the machine.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	for _, s := range r.Results {
		if err := e.Encode(s); err != nil {
			return err
		}
	}
	if r.Machine == nil {
		return nil
	}
	return e.Encode(r.Machine)
}
