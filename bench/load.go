package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"grove"
	"grove/internal/machine"
	"grove/internal/stat"
	"grove/internal/weights/gguf"
)

// LoadReport is the result of [Load].
type LoadReport struct {
	Seconds      float64 `json:"seconds"` // until the model is ready; the file is in the cache of the system
	Spread       float64 `json:"spread"`
	PerGB        float64 `json:"seconds_per_gb"` // of the file
	FileBytes    int64   `json:"file_bytes"`
	WeightBytes  int64   `json:"weight_bytes"`  // in memory once it is open
	LargestBytes int64   `json:"largest_bytes"` // of one tensor
	PeakBytes    int64   `json:"peak_bytes"`    // the most memory of the process until the first load ended; 0: not known
}

// Load opens a model several times, after a first time that brings the file to the cache of the system and does not count.
// The process must not have held another model, because Load reads the peak of its memory. open opens the model of file.
func Load(open func() (*grove.Model, error), file *gguf.File, repeat int, progress Progress) (*LoadReport, error) {
	r := &LoadReport{FileBytes: file.Size()}
	for _, t := range file.Tensors {
		r.LargestBytes = max(r.LargestBytes, int64(len(t.Data)))
	}
	var seconds stat.Sample
	for turn := range repeat + 1 {
		start := time.Now()
		m, err := open()
		if err != nil {
			return nil, err
		}
		took := time.Since(start).Seconds()
		if turn == 0 {
			r.PeakBytes, r.WeightBytes = machine.PeakMemory(), int64(m.Info().WeightBytes)
		} else {
			seconds = append(seconds, took)
		}
		if err := m.Close(); err != nil {
			return nil, err
		}
		debug.FreeOSMemory() // the next load begins with the memory of a new process
		progress.show(turn+1, repeat+1)
	}
	r.Seconds, r.Spread = seconds.Median(), seconds.Spread()
	r.PerGB = r.Seconds / (float64(r.FileBytes) / 1e9)
	return r, nil
}

// WriteText writes the report as text.
func (r *LoadReport) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "loads in %.2f s ± %.0f %%, %.2f s a GB of the file (%.2f GB, in the system's cache)\n",
		r.Seconds, 100*r.Spread, r.PerGB, float64(r.FileBytes)/1e9)
	if r.PeakBytes == 0 {
		_, err := fmt.Fprintln(w, "the system does not report how much memory that took")
		return err
	}
	_, err := fmt.Fprintf(w, "memory at most %.1f MB: weights %.1f, largest tensor %.1f, and %.1f more\n",
		float64(r.PeakBytes)/1e6, float64(r.WeightBytes)/1e6, float64(r.LargestBytes)/1e6,
		float64(r.PeakBytes-r.WeightBytes-r.LargestBytes)/1e6)
	return err
}

// WriteJSON writes the report as one object.
func (r *LoadReport) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }
