// Package layerskip drafts with the target's first layers and its own head, and lets the verifying step run the other layers alone (LayerSkip,
// Elhoushi et al. 2024).
//
// The drafting rows hang from the text's own trunk and live on: the step that verifies them begins at the layer where they stopped. Only the
// last draft, which no other follows, has not been run.
package layerskip

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"grove/method"
	"grove/method/grow"
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
		CheckNeeds: meets, Open: opener(options{depth: depth}), WithOption: set, Options: fmt.Sprintf("exit=L+depth=%d", depth),
	})
}

// meets returns an error where there is no layer to stop before.
func meets(e method.Env) error {
	if e.Target != nil && e.Target.Size().Layers >= 2 {
		return nil
	}
	return method.ErrNeeds
}

// options are what a user may choose.
type options struct {
	exit  int // layers that draft; 0: a quarter of the model's
	depth int
}

// set reads the options exit and depth, with a + between them where both are given.
func set(option string) (func(method.Env) (method.Method, error), string, error) {
	o := options{depth: depth}
	for _, one := range strings.Split(option, "+") {
		name, value, _ := strings.Cut(one, "=")
		n, err := strconv.Atoi(value)
		switch {
		case err == nil && name == "exit" && n >= 1 && o.exit == 0:
			o.exit = n
		case err == nil && name == "depth" && n >= 1 && n <= deepest:
			o.depth = n
		default:
			return nil, "", fmt.Errorf("option %q is not known; use exit=L, the layers that draft, from 1, and depth=N, the drafts of a chain, from 1 to %d, with a + between the two", option, deepest)
		}
	}
	spelling := fmt.Sprintf("depth=%d", o.depth)
	if o.exit > 0 {
		spelling = fmt.Sprintf("exit=%d+%s", o.exit, spelling)
	}
	return opener(o), spelling, nil
}

func opener(o options) func(method.Env) (method.Method, error) {
	return func(e method.Env) (method.Method, error) {
		size, o := e.Target.Size(), o
		if o.exit >= size.Layers {
			return nil, fmt.Errorf("layerskip: exit=%d: the model has %d layers; the exit must be 1 to %d", o.exit, size.Layers, size.Layers-1)
		}
		if o.exit == 0 {
			o.exit = max(1, size.Layers/share)
		}
		return &layerskip{size, o}, nil
	}
}

type layerskip struct {
	size method.Size
	options
}

// NewDrafter implements [method.Method].
func (m *layerskip) NewDrafter(own method.Trunk) (method.Drafter, error) {
	if own == nil {
		return nil, fmt.Errorf("%w: the answer is on record", method.ErrNeeds)
	}
	d := &drafter{Exit: grow.NewExit(own, m.size, m.exit)}
	shape := grow.Shape{Ranks: []int{1}, Beam: 1, Depth: m.depth}
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
