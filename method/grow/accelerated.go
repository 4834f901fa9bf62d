package grow

import (
	"context"

	"grove/internal/forest"
	"grove/method"
)

// Accelerated is an [Exit] whose logits are those of further rows, beside the rows that live on (M2R2, 2025). Each token has two rows of the first layers behind the
// same parent: its own, which the verifying step takes further, and an accelerated one with a set of adapters, which sees the keys of the own rows before it and no others. It is for one
// goroutine.
type Accelerated struct {
	Exit
	adapter int // the number of the set
	own     int // rows of the last pass that are no accelerated ones
}

// NewAccelerated returns a source on a text's own trunk.
func NewAccelerated(own method.Trunk, model method.Size, layer, adapter int) *Accelerated {
	a := &Accelerated{Exit: *NewExit(own, model, layer), adapter: adapter}
	a.NoHead, a.Pass = true, 2
	return a
}

// Root implements [LogitSource]. There are no logits where a step has no room for both rows.
func (a *Accelerated) Root(ctx context.Context) (bool, error) {
	if min(a.Size.Rows, a.Size.MostLive()) < 2 {
		return false, nil
	}
	a.beside(LiveRow{ID: a.last, Parent: None})
	return a.Exit.Root(ctx)
}

// Expand implements [LogitSource].
func (a *Accelerated) Expand(ctx context.Context, t *method.Tree, drafts []int) error {
	for _, at := range drafts {
		a.beside(a.row(&t.Nodes()[at]))
	}
	return a.Exit.Expand(ctx, t, drafts)
}

// beside adds the accelerated row of a row to the next pass.
func (a *Accelerated) beside(l LiveRow) {
	row := method.Row{Row: forest.Row{ID: l.ID, To: a.Layer, Adapter: a.adapter, Want: forest.Want{Logits: true}}}
	if l.Parent != None {
		row.Parent = a.Live[l.Parent].Node
	}
	a.Beside = append(a.Beside, row)
	a.own = len(a.Beside)
}

// Logits implements [LogitSource].
func (a *Accelerated) Logits(i int) []float32 { return a.Exit.Logits(a.own + i) }

// Room implements [LogitSource]: a draft has two rows.
func (a *Accelerated) Room() (drafts, depth int) {
	_, depth = a.Exit.Room()
	return min(a.Size.Rows, a.Size.MostLive()-2*len(a.Live)) / 2, depth
}
