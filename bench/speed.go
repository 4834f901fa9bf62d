package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"grove/internal/engine"
	"grove/internal/stat"
)

// SpeedOptions is the options of [Model.Speed].
type SpeedOptions struct {
	Rows   []int // sizes of steps
	Tokens int   // tokens of plain decoding; 0: none
	Depth  int   // tokens of the trunk before the rows
	Repeat int   // turns; 0: 5
}

// SpeedResult is one measurement.
type SpeedResult struct {
	Test            string  `json:"test"` // ppN: a step of N rows; tgN: N tokens of plain decoding
	Rows            int     `json:"rows"`
	Depth           int     `json:"depth"`
	Logits          string  `json:"logits"` // last: of the last row; all: of every row
	TokensPerSecond float64 `json:"tokens_per_second"`
	Seconds         float64 `json:"seconds"` // of the step, or of one token
	Spread          float64 `json:"spread"`  // half the distance between the extremes, as a share
}

// SpeedReport is the result of [Model.Speed].
type SpeedReport struct {
	Title     string // of the model
	Results   []SpeedResult
	Bandwidth float64 // bytes per second of a plain read loop in the same run
	Rate      float64 // multiply-adds a second in registers
	ReadShare float64 // of the bandwidth, by a step of one row with logits; 0 if not measured
	RateShare float64 // of the rate, by a step of 64 rows with logits; 0 if not measured
}

// speedTest is one line of the table.
type speedTest struct {
	result  SpeedResult
	probe   engine.Probe
	times   int // probes of one turn
	seconds stat.Sample
}

// Speed measures steps of several sizes and plain decoding, in turns.
func (m *Model) Speed(ctx context.Context, o SpeedOptions, progress Progress) (*SpeedReport, error) {
	if o.Repeat == 0 {
		o.Repeat = 5
	}
	tests := m.speedTests(o)
	info := m.model.Info()
	limits := newLimits(m.pool, info.Bytes-info.IdleBytes, info.Type)
	for turn := range o.Repeat + 1 { // the first warms up and does not count
		limits.turn()
		for i := range tests {
			t := &tests[i]
			seconds, _, err := m.engine.Probe(ctx, t.probe, t.times)
			if err != nil {
				return nil, err
			}
			sum := 0.0
			for _, s := range seconds {
				sum += s
			}
			if turn > 0 {
				t.seconds = append(t.seconds, sum/float64(t.times))
			}
		}
		progress.show(turn+1, o.Repeat+1)
	}
	r := &SpeedReport{Title: m.Title(), Bandwidth: limits.bandwidth(), Rate: limits.rate()}
	for _, t := range tests {
		t.result.Seconds, t.result.Spread = t.seconds.Median(), t.seconds.Spread()
		t.result.TokensPerSecond = float64(t.result.Rows) / t.result.Seconds
		r.Results = append(r.Results, t.result)
	}
	m.shares(r)
	return r, nil
}

func (m *Model) speedTests(o SpeedOptions) []speedTest {
	var tests []speedTest
	layers := len(m.model.Info().Layers)
	for _, logits := range []string{"last", "all"} {
		for _, rows := range o.Rows {
			p := engine.Probe{Rows: rows, Depth: o.Depth, Layers: layers, Logits: 1}
			if logits == "all" {
				p.Logits = rows
			}
			tests = append(tests, speedTest{
				result: SpeedResult{Test: fmt.Sprintf("pp%d", rows), Rows: rows, Depth: o.Depth, Logits: logits},
				probe:  p, times: max(1, 16/rows),
			})
		}
	}
	if o.Tokens > 0 {
		tests = append(tests, speedTest{
			result: SpeedResult{Test: fmt.Sprintf("tg%d", o.Tokens), Rows: 1, Depth: o.Depth, Logits: "all"},
			probe:  engine.Probe{Rows: 1, Depth: o.Depth, Layers: layers, Logits: 1}, times: o.Tokens,
		})
	}
	return tests
}

// shares compares the steps of 1 and of 64 rows with the limits of the machine.
func (m *Model) shares(r *SpeedReport) {
	info := m.model.Info()
	idle := (info.Experts - info.ExpertsPerToken) * info.ExpertBytes * info.Mixtures
	read := float64(info.Bytes - info.IdleBytes - idle)
	work := float64(info.Params-info.IdleParams) * read / float64(info.Bytes-info.IdleBytes)
	if one, ok := r.find(1); ok {
		r.ReadShare = read / one.Seconds / r.Bandwidth
	}
	if many, ok := r.find(64); ok {
		r.RateShare = work * 64 / many.Seconds / r.Rate
	}
}

// find returns the step of a number of rows that all have logits.
func (r *SpeedReport) find(rows int) (SpeedResult, bool) {
	for _, s := range r.Results {
		if s.Rows == rows && s.Logits == "all" {
			return s, true
		}
	}
	return SpeedResult{}, false
}

// WriteText writes the report as a table, under the title of the model.
func (r *SpeedReport) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s\n\n| test | depth | logits | tokens/s | ± | T(n) ms | T(n)/T(1) |\n|---|---|---|---|---|---|---|\n", r.Title)
	for _, s := range r.Results {
		ratio := "-"
		if one, ok := r.find(1); ok && s.Logits == "all" && s.Test[:2] == "pp" {
			ratio = fmt.Sprintf("%.2f", s.Seconds/one.Seconds)
		}
		fmt.Fprintf(w, "| %s | %d | %s | %.2f | %.1f %% | %.2f | %s |\n", s.Test, s.Depth, s.Logits, s.TokensPerSecond, 100*s.Spread, 1e3*s.Seconds, ratio)
	}
	fmt.Fprintf(w, "\nthis machine, same run: %.1f GB/s of reads, %.1f G multiply-adds/s in registers\n", r.Bandwidth/1e9, r.Rate/1e9)
	if r.ReadShare > 0 {
		fmt.Fprintf(w, "1 row reads its weights at %.0f %% of that\n", 100*r.ReadShare)
	}
	var err error
	if r.RateShare > 0 {
		_, err = fmt.Fprintf(w, "64 rows multiply and add at %.0f %% of that\n", 100*r.RateShare)
	}
	return err
}

// WriteJSON writes the report as one object a line: the measurements, then the limits.
func (r *SpeedReport) WriteJSON(w io.Writer) error {
	if err := WriteLines(w, r.Results); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(map[string]float64{
		"bandwidth": r.Bandwidth, "multiply_adds": r.Rate, "read_share": r.ReadShare, "rate_share": r.RateShare,
	})
}
