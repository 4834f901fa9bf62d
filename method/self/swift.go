// swift.go drafts with the target itself, some of whose layers are passed over; which ones is searched while
// texts are decoded (SWIFT, Xia et al. 2024).
//
// Attention and feed-forward parts of layers are chosen apart where the model runs them apart, and else whole layers. The drafting
// rows hang from the text's own trunk, so that they read the keys that all layers left of the text, and are dropped
// before the drafts are verified. The first and the last layer always run. At temperature 0 drafts are the likeliest
// tokens; above it they are those that the same random numbers draw from the drafting logits.

package self

import (
	"context"
	"errors"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
	"grove/method/layers"
)

func init() {
	method.Register(method.Info{
		Name: "swift", Paper: "SWIFT: on-the-fly self-speculative decoding, 2024", Kind: method.KindSelf, Grade: method.Exact,
		Needs: "a model of at least 3 layers", Auto: true, RunsRows: true, Lasting: true, CheckNeeds: layers.Meets(3),
		Open: func(e method.Env) (method.Method, error) {
			size := e.Target.Size()
			return &swift{size, layers.SearchOf(size, swiftRatio, swiftRatio)}, nil
		},
	})
}

// The paper's values.
const (
	swiftRatio   = 0.45 // layers passed over, or parts of each kind, as a share of those between the first and the last
	swiftDeepest = 25   // levels of a tree
	least        = 0.8  // probability of a token behind which drafting goes on
)

// shape is a spine of the likeliest tokens, with siblings.
var shape = grow.Shape{Ranks: []int{grow.MaxRanks}, Beam: 1, Depth: swiftDeepest, Width: width, Spine: true, Least: least}

// width returns how many tokens are drafted behind a node, by the probability of the likeliest.
func width(p float32, greedy bool) int {
	widths := [...]int{1, 3, 5}
	if greedy {
		widths = [...]int{3, 5, 8}
	}
	for i, above := range [...]float32{0.95, 0.8, 0.5} {
		if p > above {
			return widths[i]
		}
	}
	return grow.MaxRanks
}

// swift keeps the set of layers that all texts of an engine draft with.
type swift struct {
	size method.Size
	*layers.Search
}

// NewDrafter implements [method.Method].
func (m *swift) NewDrafter(own method.Trunk) (method.Drafter, error) {
	if own == nil {
		return nil, method.ErrOnRecord
	}
	d := &swiftDrafter{search: m.Search, Rows: grow.Rows{Trunk: own, Size: m.size, Pass: max(2, shape.Beam)}}
	d.grower = grow.New(shape, d, d.Vocabulary(m.size.Vocabulary))
	return d, nil
}

// swiftDrafter is the source of the trees that its grower grows. The text's last token is its first row.
type swiftDrafter struct {
	grow.Rows
	search  *layers.Search
	history *method.History
	grower  *grow.Grower

	trial   layers.Trial // of the round: the sets that the last token is run with
	drafted [2]token.ID  // behind it by the two sets; [token.None]: it was not run
	at      int          // the place of the text that they were drafted for
	roots   []method.Row
}

// Begin implements [method.Drafter].
func (d *swiftDrafter) Begin(h *method.History) error {
	d.history, d.drafted = h, [2]token.ID{token.None, token.None}
	return d.grower.Begin(h.Noise)
}

// Committed implements [method.Drafter]: the token that was drawn tells which of the two sets drafted it.
func (d *swiftDrafter) Committed(method.Update) {
	if ids := d.history.IDs(); d.drafted[1] != token.None && d.at < len(ids) {
		d.search.Count(d.trial, d.drafted[0] == ids[d.at], d.drafted[1] == ids[d.at])
	}
	d.drafted = [2]token.ID{token.None, token.None}
}

// Draft implements [method.Drafter].
func (d *swiftDrafter) Draft(ctx context.Context, t *method.Tree) error {
	d.at = len(d.history.IDs())
	if d.at == 0 || d.at > d.Size.Context || t.Depth() < 1 {
		return nil
	}
	return errors.Join(d.grower.Grow(ctx, t, d.at), d.Trunk.Drop())
}

// Root implements [grow.LogitSource]: it runs the text's last token with the best set and, in the same step, with the set
// on trial.
func (d *swiftDrafter) Root(ctx context.Context) (ok bool, err error) {
	d.trial = d.search.Next()
	row := method.Row{Row: forest.Row{ID: d.history.Last(0), Want: forest.Want{Logits: true}}}
	d.trial.Best.Apply(&row.Row)
	d.roots = append(d.roots[:0], row)
	if d.trial.Open && d.Size.Rows > 1 {
		d.trial.Other.Apply(&row.Row)
		d.roots = append(d.roots, row)
	}
	if err := d.Grow(ctx, d.roots); err != nil {
		return false, err
	}
	for i := range d.roots {
		if d.drafted[i], err = d.grower.First(d.Logits(i), d.at); err != nil {
			return false, err
		}
	}
	d.trial.Best.Apply(&d.Like)
	d.Live = append(d.Live[:0], grow.LiveRow{ID: row.ID, Parent: grow.None, Node: d.Result(0).Node})
	return true, nil
}

// Room implements [grow.LogitSource].
func (d *swiftDrafter) Room() (drafts, depth int) { return d.Rows.Room(), d.Size.Context - d.at }
