package grow

import (
	"context"

	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/method"
)

// Exit is a [LogitSource] of the target's own first layers. Rows on the text's own trunk stop at a layer, where the model's head gives the logits
// to draft from. They live on, and the verifying step runs them from that layer on (LayerSkip, Elhoushi et al. 2024). It is for one goroutine.
type Exit struct {
	Rows
	Layer int // number of layers that drafting rows run, at least 1 and fewer than the model has

	tree    *method.Tree
	last    token.ID
	at      int
	reached int // layers that the text's last token has run
	first   [1]LiveRow
	further [1]method.Row
}

// NewExit returns a source on a text's own trunk.
func NewExit(own method.Trunk, model method.Size, layer int) *Exit {
	return &Exit{Layer: layer, Rows: Rows{Trunk: own, Size: model, Pass: 1}}
}

// Exiting is an [Exit], or a source that extends one.
type Exiting interface {
	LogitSource
	// Begin begins the tree of a round behind a text. It returns false where no row can be run behind it.
	Begin(t *method.Tree, text *method.History) bool
	// At returns the length of the text of the round.
	At() int
	// Vocabulary returns the number of tokens that logits are for. The target has so many.
	Vocabulary(target int) int
	// Ran, MemoryFor and Held are those of [method.Counter] and [method.Sized].
	Ran() method.Ran
	MemoryFor(drafts int, p sample.Params) method.Memory
	Held() method.Memory
}

// exitDrafter grows a tree behind an exit for as long as a further draft pays.
type exitDrafter struct {
	Exiting
	history *method.History
	grower  *Grower
}

// NewExitDrafter returns a complete drafter that grows trees of a shape behind an exit, for a target with so many tokens.
func NewExitDrafter(source Exiting, shape Shape, vocabulary int) method.Drafter {
	return &exitDrafter{Exiting: source, grower: New(shape, source, source.Vocabulary(vocabulary))}
}

// Begin implements [method.Drafter].
func (d *exitDrafter) Begin(h *method.History) error {
	d.history = h
	return d.grower.Begin(h.Noise)
}

// Committed implements [method.Drafter].
func (d *exitDrafter) Committed(method.Update) {}

// Draft implements [method.Drafter].
func (d *exitDrafter) Draft(ctx context.Context, t *method.Tree) error {
	if !d.Exiting.Begin(t, d.history) {
		return nil
	}
	return d.grower.Grow(ctx, t, d.At())
}

// Begin begins the tree of a round behind a text. It returns false where no row can be run behind it.
func (e *Exit) Begin(t *method.Tree, text *method.History) bool {
	e.tree, e.at, e.Live = t, len(text.IDs())-text.SourceLen, e.Live[:0]
	e.last = text.Last(0)
	return e.at > 0 && e.at <= e.Size.Context && t.Depth() > 0
}

// At returns the length of the text of the round.
func (e *Exit) At() int { return e.at }

// Root implements [LogitSource].
func (e *Exit) Root(ctx context.Context) (bool, error) { return true, e.Through(ctx, e.Layer) }

// Through runs the text's last token through so many layers: anew or, behind an earlier call of the round, from where that ended. Logits(0)
// has the logits there.
func (e *Exit) Through(ctx context.Context, layers int) (err error) {
	if len(e.Live) == 0 {
		e.Like.To, e.first[0] = layers, LiveRow{ID: e.last, Parent: None}
		err = e.Run(ctx, e.first[:])
	} else {
		e.further[0] = method.Row{Row: forest.Row{Resume: e.Live[0].Node, From: e.reached, To: layers, Want: forest.Want{Logits: true}}}
		err = e.Grow(ctx, e.further[:])
	}
	if err != nil {
		return err
	}
	e.reached = layers
	e.tree.Resume(method.Root, method.Live{Node: e.Live[0].Node, Layer: layers})
	return nil
}

// Expand implements [LogitSource].
func (e *Exit) Expand(ctx context.Context, t *method.Tree, drafts []int) error {
	e.Like.To = e.Layer
	if err := e.Rows.Expand(ctx, t, drafts); err != nil {
		return err
	}
	for _, at := range drafts {
		row := e.Live[e.places[at]]
		t.Resume(at, method.Live{Node: row.Node, Parent: e.Live[row.Parent].Node, Layer: e.Layer})
	}
	return nil
}

// Room implements [LogitSource].
func (e *Exit) Room() (drafts, depth int) { return e.Rows.Room(), e.Size.Context - e.at }
