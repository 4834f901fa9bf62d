package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"grove/internal/engine"
	"grove/internal/machine"
	"grove/internal/stat"
)

// SharingOptions is the options of [Model.Sharing].
type SharingOptions struct {
	Tokens int // decoded in a turn
	Repeat int // turns
	// Busy starts a process that keeps one processor busy, and returns a function that ends it.
	Busy func() (stop func() error, err error)
}

// SharingReport says how much grove and another process slow each other down.
type SharingReport struct {
	Title     string  `json:"-"`          // of the model
	IdleShare float64 `json:"idle_share"` // of one processor, while no step runs; -1: not known
	Quiet     float64 `json:"quiet_tokens_per_second"`
	Busy      float64 `json:"busy_tokens_per_second"` // beside a process that keeps one processor busy
	Ratio     float64 `json:"ratio"`                  // busy over quiet, the median of turns
	Spread    float64 `json:"spread"`                 // of the ratio
}

// The time for which the threads are watched while no step runs, and the time that a busy process gets before the
// measurement.
const (
	idlePause   = 300 * time.Millisecond
	settlePause = 100 * time.Millisecond
)

// Sharing measures, in turns, plain decoding, the processor time of the threads while no step runs, and decoding beside a
// busy process.
func (m *Model) Sharing(ctx context.Context, o SharingOptions, progress Progress) (*SharingReport, error) {
	var quiet, busy, ratios stat.Sample
	var idle, watched time.Duration
	for turn := range o.Repeat + 1 { // the first warms up and does not count
		fast, err := m.decodeRate(ctx, o.Tokens)
		if err != nil {
			return nil, err
		}
		before, start := machine.CPUTime(), time.Now()
		if err := pause(ctx, idlePause); err != nil {
			return nil, err
		}
		spent, passed := machine.CPUTime()-before, time.Since(start)
		slow, err := m.besideBusy(ctx, o)
		if err != nil {
			return nil, err
		}
		if turn > 0 {
			quiet, busy, ratios = append(quiet, fast), append(busy, slow), append(ratios, slow/fast)
			idle, watched = idle+spent, watched+passed
		}
		progress.show(turn+1, o.Repeat+1)
	}
	r := &SharingReport{
		Title:     m.Title(),
		IdleShare: idle.Seconds() / watched.Seconds(),
		Quiet:     quiet.Median(), Busy: busy.Median(), Ratio: ratios.Median(), Spread: ratios.Spread(),
	}
	if machine.CPUTime() == 0 {
		r.IdleShare = -1
	}
	return r, nil
}

// besideBusy measures decoding while another process keeps a processor busy.
func (m *Model) besideBusy(ctx context.Context, o SharingOptions) (rate float64, err error) {
	stop, err := o.Busy()
	if err != nil {
		return 0, fmt.Errorf("bench: starting a busy process: %w", err)
	}
	defer func() {
		if stopErr := stop(); err == nil {
			err = stopErr
		}
	}()
	if err := pause(ctx, settlePause); err != nil {
		return 0, err
	}
	return m.decodeRate(ctx, o.Tokens)
}

// decodeRate returns the tokens a second of plain decoding.
func (m *Model) decodeRate(ctx context.Context, tokens int) (float64, error) {
	one := engine.Probe{Rows: 1, Layers: len(m.model.Info().Layers), Logits: 1}
	start := time.Now()
	_, _, err := m.engine.Probe(ctx, one, tokens)
	return float64(tokens) / time.Since(start).Seconds(), err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// WriteText writes the report as text, under the title of the model.
func (r *SharingReport) WriteText(w io.Writer) error {
	idle := "takes a share of one processor that the system does not report"
	if r.IdleShare >= 0 {
		idle = fmt.Sprintf("takes %.2f %% of one processor", 100*r.IdleShare)
	}
	_, err := fmt.Fprintf(w, "%s\n\nbetween steps grove %s\nalone it decodes %.2f tokens/s, beside one busy process %.2f: %.2f of that ± %.0f %%\n",
		r.Title, idle, r.Quiet, r.Busy, r.Ratio, 100*r.Spread)
	return err
}

// WriteJSON writes the report as one object.
func (r *SharingReport) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }
