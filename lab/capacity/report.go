package capacity

import (
	"encoding/json"
	"fmt"
	"io"

	"grove"
	"grove/internal/engine/plan"
)

// Report is the plans of a work, and what a token costs whatever the machines are.
type Report struct {
	Work  Work
	Type  string // of the weights
	Cache string // type of the cache
	Plans []Plan

	Machine Machine     // the first one, with which Cost is compared
	Cost    *grove.Cost // of steps that were measured there; nil: none
}

// Measured compares a prediction with a measurement of a step.
type Measured struct {
	Rows      int     `json:"rows"`
	Predicted float64 `json:"predicted_seconds"`
	Seconds   float64 `json:"measured_seconds"`
}

// Compare returns the predictions for the sizes of steps of the measured cost.
func (r *Report) Compare() (all []Measured) {
	if r.Cost == nil {
		return nil
	}
	for _, rows := range r.Cost.Rows {
		all = append(all, Measured{rows, r.Work.Step(r.Machine, rows), r.Cost.Seconds(plan.StepSize{Rows: rows, Depth: r.Work.Depth, Logits: rows})})
	}
	return all
}

// intensity returns the floating-point operations, two of each multiply-add, for each byte that a text's attention reads of the cache.
func (w Work) intensity() float64 {
	return 2 * float64(w.CacheOps()) / (float64(w.CacheValues()) * w.CacheBytes)
}

// WriteText writes the report as tables.
func (r *Report) WriteText(out io.Writer) error {
	w := r.Work
	all, active := w.Weights()
	fmt.Fprintf(out, "%s, %s: %.1f G weights, %.1f GB; a token reads %.1f GB of them and does %.1f G multiply-adds\n", w.Name, r.Type, float64(all)/1e9, float64(all)*w.WeightBytes/1e9, float64(active)*w.WeightBytes/1e9, float64(active)/1e9)
	fmt.Fprintf(out, "cache, %s: %.1f KB a token, %.2f GB of a text of %d tokens; %.0f operations for each byte of it\n\n", r.Cache, float64(w.CacheValues())*w.CacheBytes/1e3, w.text()/1e9, w.Depth, w.intensity())
	fmt.Fprintln(out, "| strategy | machines | texts | tokens/s | ms a token | GB a machine | use |\n|---|---|---|---|---|---|---|")
	for _, p := range r.Plans {
		if p.Fault != "" {
			fmt.Fprintf(out, "| %s | - | - | - | - | - | %s |\n", p.Strategy, p.Fault)
			continue
		}
		fmt.Fprintf(out, "| %s | %d | %d | %.1f | %.1f | %.1f | %s |\n", p.Strategy, p.Machines, p.Texts, p.Rate, 1e3*p.Token, p.Memory/1e9, p.Detail)
	}
	if r.Cost != nil {
		fmt.Fprintln(out, "\n| rows | predicted ms | measured ms | ratio |\n|---|---|---|---|")
		for _, m := range r.Compare() {
			fmt.Fprintf(out, "| %d | %.2f | %.2f | %.2f |\n", m.Rows, 1e3*m.Predicted, 1e3*m.Seconds, m.Predicted/m.Seconds)
		}
	}
	_, err := fmt.Fprintln(out, "\nreplicas are what grove serves; the other two are predictions for comparison")
	return err
}

// WriteJSON writes the report as one object.
func (r *Report) WriteJSON(out io.Writer) error {
	all, active := r.Work.Weights()
	return json.NewEncoder(out).Encode(map[string]any{
		"shape": r.Work.Shape, "type": r.Type, "cache_type": r.Cache, "depth": r.Work.Depth, "weights": all, "active_weights": active,
		"weight_bytes": float64(all) * r.Work.WeightBytes, "cache_bytes_per_token": float64(r.Work.CacheValues()) * r.Work.CacheBytes,
		"cache_operations_per_byte": r.Work.intensity(), "plans": r.Plans, "measured": r.Compare(),
	})
}
