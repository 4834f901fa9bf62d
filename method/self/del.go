// del.go drafts with the target's first layers, as layerskip does, and chooses how many of them, and how long the chain is, by what each
// exit would have drafted (DEL, 2025).
//
// In some rounds, the trials, the chain comes from a deep exit, whose rows give their streams at the exits before it. When it is known which
// drafts were accepted, the head turns the streams of those positions into the tokens that the other exits would have drafted there: the paper's
// shadow tokens. Rows of the verifying step are not asked for states: it would run them anew.

package self

import (
	"context"

	"grove/internal/forest"
	"grove/method"
	"grove/method/grow"
	"grove/method/layers"
)

const (
	delUsual   = 18 // drafts of a chain at most, where none is given: the paper's
	trialEvery = 8  // rounds in which it is asked, of which one is a trial
	trialDepth = 3  // drafts of a trial at least: positions to learn from
)

func init() {
	method.Register(method.Info{
		Name: "del", Paper: "DEL: dynamic exit layer, 2025", Kind: method.KindSelf, Grade: method.Exact,
		Needs: "a model of at least 2 layers", NotAuto: "it drafts well only with models that were trained for early exits", RunsRows: true, Lasting: true,
		CheckNeeds: layers.Meets(2),
	}.Takes(layers.Options("the most layers that draft", delUsual), openDel))
}

// openDel prepares the method with an exit, if one is given, and a depth.
func openDel(e method.Env, n []int) (method.Method, error) {
	size := e.Target.Size()
	if err := layers.Fits("del", n[0], size.Layers); err != nil {
		return nil, err
	}
	return &del{size, n[1], layers.NewShares(size.Layers, n[0])}, nil
}

// del keeps how often the drafts of each exit are accepted, of all texts.
type del struct {
	size  method.Size
	depth int
	*layers.Shares
}

// NewDrafter implements [method.Method].
func (m *del) NewDrafter(own method.Trunk) (method.Drafter, error) {
	if own == nil {
		return nil, method.ErrOnRecord
	}
	d := &delDrafter{Exit: grow.NewExit(own, m.size, m.Exits[0]), shares: m.Shares, depth: m.depth}
	d.shadows.width, d.shadows.all = m.size.Width, forest.LayerRange(0, m.size.Layers)
	d.Pass = 1 + maxShadows
	shape := grow.Shape{Ranks: []int{1}, Beam: 1, Depth: m.depth, Stop: func() grow.Stop { return &d.stop }}
	d.grower = grow.New(shape, d, d.Vocabulary(m.size.Vocabulary))
	return d, nil
}

// delDrafter grows a chain a round. It is the source of its logits.
type delDrafter struct {
	*grow.Exit
	shares  *layers.Shares
	depth   int // drafts of a chain at most
	history *method.History
	grower  *grow.Grower
	stop    grow.Between
	shadows shadows

	exit  int // of the round, as a place among the exits
	trial bool
	asked int // rounds in which it drafted
	since int // rounds since then
}

// Begin implements [method.Drafter].
func (d *delDrafter) Begin(h *method.History) error {
	d.history = h
	d.shadows.forget()
	return d.grower.Begin(h.Noise)
}

// Committed implements [method.Drafter].
func (d *delDrafter) Committed(u method.Update) {
	d.since++
	d.stop.Judged = 0
	d.grower.Committed(u.IDs)
	if n := d.stop.Judged; n > 0 {
		d.shares.Learn(d.exit, d.stop.Accepted, n)
		d.shadows.tell(u.IDs[:n])
	}
}

// Draft implements [method.Drafter]. A round is a trial now and then, and where the planner has not asked for some rounds.
func (d *delDrafter) Draft(ctx context.Context, t *method.Tree) error {
	if !d.Exit.Begin(t, d.history) {
		return nil
	}
	m := layers.Units(d.Size.Layers)
	if t.Steps != nil {
		m.Steps = t.Steps
	}
	c := d.shares.Choose(m, d.depth)
	d.trial = d.asked%trialEvery == 0 || d.since > 1
	d.asked, d.since = d.asked+1, 0
	switch {
	case d.trial:
		d.exit, d.stop.Depth, d.Like.Want.Hidden = c.Farthest, min(max(c.Depth, trialDepth), d.depth), d.shares.Before(c.Farthest)
	case !c.Pays && t.Throughput > 0:
		return nil // plain decoding is faster
	default:
		d.exit, d.stop.Depth, d.Like.Want.Hidden = c.Exit, c.Depth, forest.Layers{}
	}
	d.Layer = d.shares.Exits[d.exit]
	d.Beside = d.shadows.rows(d.Beside[:0], m, d.Rows.Room()-1-trialDepth)
	return d.grower.Grow(ctx, t, d.At())
}
