package grow

import (
	"context"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/method"
)

// Rows runs drafts as rows behind a trunk, and knows the rows that live: it is the part of a [LogitSource] that does not
// depend on whose trunk it is. It is for one goroutine.
type Rows struct {
	Trunk    method.Trunk
	Size     method.Size      // of the model
	Like     forest.Row       // the fields that all rows have in common: Skip, To, and outputs besides logits
	VocabMap *method.VocabMap // from the tree's tokens to the model's; nil: they are the same
	Base     int              // the live row of the text's last token; [None]: it is the trunk's end
	Live     []LiveRow        // parents first
	Cost     float64          // of a layer of a module, in layers of the target; 0: the model is the target
	Pass     int              // rows of a pass at most, where the rows are behind the text's own trunk
	Beside   []method.Row     // rows that the next Run runs too, behind its own; it clears them, and does not add them to Live
	NoHead   bool             // rows give what Like wants, and no logits

	// Vector, if it is not nil, returns the vector of the i-th row of a pass of drafts.
	Vector func(i int) []float32

	dense  []float32 // the logits of a row by the target's tokens, where these are others
	keep   int       // tokens of the vocabulary that are drafted
	rows   []method.Row
	levels []LiveRow
	places Places // in Live
	got    []method.Result
	ran    method.Ran
}

// LiveRow is a row that hangs from the trunk.
type LiveRow struct {
	ID     token.ID // the model's
	Parent int      // in Live; [None]
	Node   forest.Node
	Layers int // that it has run; 0: all
}

// Places has a number for nodes of a tree, by their place: such as where the rows of drafts are.
type Places []int

// Set sets the number of a node.
func (p *Places) Set(node, n int) {
	for len(*p) <= node {
		*p = append(*p, None)
	}
	(*p)[node] = n
}

// None is the trunk's end, as the parent of a live row.
const None = -1

// Vocabulary returns the number of tokens that logits are for. The target has vocabulary tokens.
func (r *Rows) Vocabulary(vocabulary int) int {
	switch r.VocabMap.Mapping() {
	case method.SharedTokens:
		r.keep = vocabulary
		r.dense = make([]float32, vocabulary)
	case method.ThroughText:
		r.keep = r.Size.Vocabulary
	default:
		r.keep = min(vocabulary, r.Size.Vocabulary)
	}
	return r.keep
}

// Run runs rows that each want logits, unless NoHead says otherwise, and adds them to Live.
func (r *Rows) Run(ctx context.Context, rows []LiveRow) error {
	r.rows = r.rows[:0]
	for i, l := range rows {
		row := method.Row{Row: r.Like}
		row.ID, row.Want.Logits = l.ID, !r.NoHead
		if r.Vector != nil {
			row.Vector = r.Vector(i)
		}
		if l.Parent != None {
			row.Parent = r.Live[l.Parent].Node
		}
		r.rows = append(r.rows, row)
	}
	r.rows, r.Beside = append(r.rows, r.Beside...), r.Beside[:0]
	if err := r.Grow(ctx, r.rows); err != nil {
		return err
	}
	for i, l := range rows {
		l.Node, l.Layers = r.got[i].Node, r.Like.To
		r.Live = append(r.Live, l)
	}
	return nil
}

// Grow runs rows as they are; Logits returns what they give. They are not added to Live.
func (r *Rows) Grow(ctx context.Context, rows []method.Row) (err error) {
	r.ran.Pass(rows, r.Size, r.Cost)
	r.got, err = r.Trunk.Grow(ctx, rows)
	return err
}

// Ran implements [method.Counter].
func (r *Rows) Ran() method.Ran { return r.ran }

// Result returns the result of the i-th row of the last pass.
func (r *Rows) Result(i int) *method.Result { return &r.got[i] }

// Expand implements [LogitSource].
func (r *Rows) Expand(ctx context.Context, t *method.Tree, drafts []int) error {
	r.levels = r.levels[:0]
	for _, at := range drafts {
		l := r.row(&t.Nodes()[at])
		r.places.Set(at, len(r.Live)+len(r.levels))
		r.levels = append(r.levels, l)
	}
	return r.Run(ctx, r.levels)
}

// row returns the row of a draft, whose parent was expanded.
func (r *Rows) row(n *method.Node) LiveRow {
	l := LiveRow{ID: r.VocabMap.ToDraft(n.ID), Parent: r.Base}
	if n.Parent != method.Root {
		l.Parent = r.places[n.Parent]
	}
	return l
}

// Logits implements [LogitSource].
func (r *Rows) Logits(i int) []float32 {
	logits := r.got[i].Logits
	if r.dense == nil {
		return logits[:r.keep]
	}
	r.VocabMap.Spread(r.dense, logits)
	return r.dense
}

// State implements [LogitSource].
func (r *Rows) State(i int) []float32 { return r.got[i].State }

// Room returns how many rows the next pass may have.
func (r *Rows) Room() int { return min(r.Size.Rows, r.Size.MostLive()-len(r.Live)) }
