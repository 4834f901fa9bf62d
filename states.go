package grove

import (
	"context"
	"errors"
	"fmt"

	"grove/internal/engine/reading"
	"grove/internal/text/token"
)

// StatesOptions says which states of a text's tokens are read.
type StatesOptions struct {
	// Layers are numbers of layers, ascending: behind the first K layers, the residual stream as it is. 0 are the embeddings, as they enter the
	// first layer, and [Info].Layers is the stream before the final norm.
	Layers []int
	// Final reads the state behind the final norm, which the output head reads, too.
	Final bool
}

// States computes exactly the tokens ids, of a text of its own in which a token sees itself and those before it, and calls write for each, in order, with
// what was read of it: a state of [Info].Width values for each of the layers, in their order, and then the final one. They have the bits that the
// model has when it answers, with the same type of cache, whatever the threads and chunks. write must not keep or change the slices.
// Calls are independent and may be made by several goroutines. Errors: an [*OptionError] where nothing is to be read, where the model has no such layer, is an encoder or an
// encoder-decoder; no tokens; an id out of range; [ErrContext], [ErrBusy]; write's, ctx's, the model's.
func (m *Model) States(ctx context.Context, ids []token.ID, o StatesOptions, write func(states [][]float32) error) error {
	if err := m.generates(); err != nil {
		return err
	}
	r, err := m.statesOf(o)
	if err != nil {
		return &OptionError{Err: err}
	}
	if len(ids) == 0 {
		return errors.New("grove: the text is empty: it has no states")
	}
	if err := m.checkIDs(ids); err != nil {
		return err
	}
	width, parts := m.model.Info().Width, make([][]float32, 0, len(o.Layers)+1)
	return m.busy(m.engine.States(ctx, ids, r, func(row []float32) error {
		for parts = parts[:0]; len(row) > 0; row = row[width:] {
			parts = append(parts, row[:width:width])
		}
		return write(parts)
	}))
}

// statesOf returns how the states of options are read.
func (m *Model) statesOf(o StatesOptions) (r reading.Reading, err error) {
	info := m.model.Info()
	r = reading.Reading{Layers: []int{}, Mask: reading.Causal, State: o.Final}
	switch {
	case info.Source != nil:
		return r, fmt.Errorf("grove: %s is an encoder-decoder: a text alone has no states, its decoder's depend on a source", info.Arch)
	case len(o.Layers) == 0 && !o.Final:
		return r, errors.New("grove: no states are asked for; name layers, or the final state")
	}
	for i, k := range o.Layers {
		switch {
		case k < 0 || k > len(info.Layers):
			return r, fmt.Errorf("grove: layer %d: the model has states from 0 (the embeddings) to %d (behind its layers)", k, len(info.Layers))
		case i > 0 && k <= o.Layers[i-1]:
			return r, fmt.Errorf("grove: layers %v: they must ascend", o.Layers)
		case k == 0:
			r.Embeds = true
		default:
			r.Layers = append(r.Layers, k-1)
		}
	}
	return r, nil
}
