// Package layerskip drafts with the target's first layers and its own head, and lets the verifying step run the other layers alone (LayerSkip,
// Elhoushi et al. 2024).
//
// The drafting rows hang from the text's own trunk and live on: the step that verifies them begins at the layer where they stopped. Only the
// last draft, which no other follows, has not been run.
package layerskip

import (
	"context"
	"fmt"

	"grove/method"
	"grove/method/grow"
	"grove/method/layers"
)

// Values where no option is given. The paper drafts with 8 of 32 layers, 6 tokens at a time.
const (
	share = 4 // one layer of so many drafts
	depth = 6 // drafts of a chain at most
)

// deepest bounds the option depth.
const deepest = 25

func init() {
	method.Register(method.Info{
		Name: "layerskip", Paper: "LayerSkip: early exit and self-speculative decoding, 2024", Kind: method.KindSelf, Grade: method.Exact,
		Needs: "a model of at least 2 layers", NotAuto: "it drafts well only with models that were trained for early exits", RunsRows: true,
		CheckNeeds: meets, Open: opener(layers.Options{Depth: depth}), WithOption: set, Options: fmt.Sprintf("exit=L+depth=%d", depth),
	})
}

// meets returns an error where there is no layer to stop before.
func meets(e method.Env) error {
	if e.Target != nil && e.Target.Size().Layers >= 2 {
		return nil
	}
	return method.ErrNeeds
}

// set reads the options.
func set(option string) (func(method.Env) (method.Method, error), string, error) {
	o := layers.Options{Depth: depth}
	if err := o.Read(option, "the layers that draft", deepest); err != nil {
		return nil, "", err
	}
	return opener(o), o.String(), nil
}

func opener(o layers.Options) func(method.Env) (method.Method, error) {
	return func(e method.Env) (method.Method, error) {
		size, o := e.Target.Size(), o
		if err := o.Fits("layerskip", size.Layers); err != nil {
			return nil, err
		}
		if o.Exit == 0 {
			o.Exit = max(1, size.Layers/share)
		}
		return &layerskip{size, o}, nil
	}
}

type layerskip struct {
	size method.Size
	layers.Options
}

// NewDrafter implements [method.Method].
func (m *layerskip) NewDrafter(own method.Trunk) (method.Drafter, error) {
	if own == nil {
		return nil, fmt.Errorf("%w: the answer is on record", method.ErrNeeds)
	}
	d := &drafter{Exit: grow.NewExit(own, m.size, m.Exit)}
	shape := grow.Shape{Ranks: []int{1}, Beam: 1, Depth: m.Depth}
	d.grower = grow.New(shape, d, d.Vocabulary(m.size.Vocabulary))
	return d, nil
}

// drafter grows a chain for as long as a further draft pays.
type drafter struct {
	*grow.Exit
	history *method.History
	grower  *grow.Grower
}

// Begin implements [method.Drafter].
func (d *drafter) Begin(h *method.History) error {
	d.history = h
	return d.grower.Begin(h.Noise)
}

// Committed implements [method.Drafter].
func (d *drafter) Committed(method.Update) {}

// Draft implements [method.Drafter].
func (d *drafter) Draft(ctx context.Context, t *method.Tree) error {
	if !d.Exit.Begin(t, d.history) {
		return nil
	}
	return d.grower.Grow(ctx, t, d.At())
}
