package grove

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"grove/internal/engine"
	"grove/internal/engine/plan"
	"grove/internal/fileio"
	"grove/internal/resident"
)

// Cost is the seconds of a step on this machine by the step size; see [engine.Cost].
type Cost = engine.Cost

// Tune measures the cost of steps on this machine, in less than three seconds for any model, and writes it to the
// user's cache directory, where the next [Open] of this model finds it. It returns the cost and the path of its file.
// Errors: [ErrCost] where that cannot be written, before anything is measured; ctx's, the model's.
func (m *Model) Tune(ctx context.Context) (*Cost, string, error) {
	if err := m.generates(); err != nil {
		return nil, "", err
	}
	path, err := m.engine.CostPath()
	if err == nil {
		err = fileio.CheckCache(path)
	}
	if err != nil {
		return nil, "", fmt.Errorf("grove: %w: %w", ErrCost, err)
	}
	c, err := m.engine.Tune(ctx)
	if err != nil {
		return nil, "", err
	}
	path, err = m.engine.SaveCost()
	if err != nil {
		err = fmt.Errorf("grove: %w: %w", ErrCost, err)
	}
	return c, path, err
}

// Primed describes the file that [Model.Prime] wrote.
type Primed = resident.Primed

// Prime computes the likeliest successors of the n tokens with the lowest ids, which vocabularies give to the commonest ones, on the first layer of
// the model or on all, and writes them to the user's cache directory. The methods recycle and goose of models that are opened later begin with
// them. told is told the progress. It changes the speed alone. Errors: an [*OptionError] for n out of range, [ErrBusy], ctx's, the model's.
func (m *Model) Prime(ctx context.Context, n int, told func(done, all int)) (Primed, error) {
	if err := m.generates(); err != nil {
		return Primed{}, err
	}
	return m.resident.Prime(ctx, n, told)
}

// LayerSet describes the layers that [Model.SearchLayers] found.
type LayerSet = resident.LayerSet

// SearchLayers searches the layers that the method draft-verify passes over, in so many trials of 32 tokens each, and writes them to the user's cache
// directory: the method begins with them where the model is opened later. told is told the progress, in tokens. It changes the speed alone.
// Errors: an [*OptionError] for trials out of range, [ErrBusy], ctx's, the model's.
func (m *Model) SearchLayers(ctx context.Context, trials int, told func(done, all int)) (LayerSet, error) {
	if err := m.generates(); err != nil {
		return LayerSet{}, err
	}
	return m.resident.SearchLayers(ctx, trials, told)
}

// Cost returns the cost of steps as it is known now; nil: it was never measured.
func (m *Model) Cost() *Cost { return m.engine.Cost() }

// WriteCost writes a cost as a table: the time of steps of several sizes at several depths, all rows with
// logits, and as multiples of a step of one row.
func WriteCost(w io.Writer, c *Cost) error {
	fmt.Fprintf(w, "| rows | depth | T ms | T/T(1) |\n|---|---|---|---|\n")
	one := c.Seconds(plan.StepSize{Rows: 1, Logits: 1})
	for _, depth := range []int{0, 1024, 4096} {
		for _, rows := range c.Rows {
			s := c.Seconds(plan.StepSize{Rows: rows, Depth: depth, Logits: rows})
			if _, err := fmt.Fprintf(w, "| %d | %d | %.2f | %.2f |\n", rows, depth, 1e3*s, s/one); err != nil {
				return err
			}
		}
	}
	if c.Expert > 0 {
		fmt.Fprintf(w, "\neach expert that a layer's rows touch: %.3f ms\n", 1e3*c.Expert)
	}
	return nil
}

// maxCost bounds the file of a cost.
const maxCost = 1 << 16

// ReadCost reads a cost of steps as grove tune --json writes it, and checks that it makes sense.
func ReadCost(r io.Reader) (*Cost, error) {
	c := new(Cost)
	d := json.NewDecoder(io.LimitReader(r, maxCost))
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("grove: the cost of steps: %w", err)
	}
	if !c.Valid() {
		return nil, fmt.Errorf("grove: the cost of steps is invalid; grove tune --json writes one")
	}
	return c, nil
}
