// layerskip.go drafts with the target's first layers and its own head, and lets the verifying step run the other layers alone (LayerSkip,
// Elhoushi et al. 2024).
//
// The drafting rows hang from the text's own trunk and live on: the step that verifies them begins at the layer where they stopped. Only the
// last draft, which no other follows, has not been run.

package self

import (
	"grove/method"
	"grove/method/grow"
	"grove/method/layers"
)

// Values where no option is given. The paper drafts with 8 of 32 layers, 6 tokens at a time.
const (
	share = 4 // one layer of so many drafts
	depth = 6 // drafts of a chain at most
)

func init() {
	method.Register(method.Info{
		Name: "layerskip", Paper: "LayerSkip: early exit and self-speculative decoding, 2024", Kind: method.KindSelf, Grade: method.Exact,
		Needs: "a model of at least 2 layers", NotAuto: "it drafts well only with models that were trained for early exits", RunsRows: true,
		CheckNeeds: layers.Meets(2),
	}.Takes(layers.Options("the layers that draft", depth), openLayerskip))
}

// openLayerskip prepares the method with an exit, or by default a share of the layers, and a depth.
func openLayerskip(e method.Env, n []int) (method.Method, error) {
	size := e.Target.Size()
	if err := layers.Fits("layerskip", n[0], size.Layers); err != nil {
		return nil, err
	}
	if n[0] == 0 {
		return &layerskip{size, max(1, size.Layers/share), n[1]}, nil
	}
	return &layerskip{size, n[0], n[1]}, nil
}

type layerskip struct {
	size  method.Size
	exit  int // layers that draft
	depth int // drafts of a chain at most
}

// NewDrafter implements [method.Method].
func (m *layerskip) NewDrafter(own method.Trunk) (method.Drafter, error) {
	if own == nil {
		return nil, method.ErrOnRecord
	}
	return grow.NewExitDrafter(grow.NewExit(own, m.size, m.exit), grow.Shape{Ranks: []int{1}, Beam: 1, Depth: m.depth}, m.size.Vocabulary), nil
}
