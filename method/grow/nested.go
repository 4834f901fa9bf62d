package grow

import (
	"context"
	"errors"
	"slices"

	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/method"
)

// Level is an exit of a nested draft model: the first layers, behind which its own final norm and head draft.
type Level struct {
	Layers int
	Least  float32 // a largest probability below it sends the row to the next level
}

// Nested is a [LogitSource] of a draft model whose first layers draft too (S2D, 2024). A row runs the layers of the first level; where the
// largest probability there is small, it runs on to the next level, and the rows before it, which it reads, run on with it. Rows that the text
// follows live on as they are: the layers above their levels run when a later row is to go further, or many rows at once when they are committed.
// It is for one goroutine, and expands one draft at a time.
type Nested struct {
	*Branch
	levels []Level
	path   []int // live rows, in a scratch slice
}

// settleAfter is the most tokens, besides the last, that join the rows behind the trunk: of more, as of a prompt, the trunk is made.
const settleAfter = 8

// NewNested returns a source on a branch, by levels of rising numbers of layers, the last of all that the model has.
func NewNested(b *Branch, levels []Level) *Nested {
	b.Like.To = levels[0].Layers
	return &Nested{Branch: b, levels: levels}
}

// Root implements [LogitSource]. The draft model has no logits for a text longer than its context, nor while no slot is free.
func (n *Nested) Root(ctx context.Context) (ok bool, err error) {
	if len(n.text) == 0 || len(n.text) > n.Size.Context {
		return false, nil
	}
	if ok, err := n.open(); !ok {
		return false, err
	}
	at, followed := n.match(len(n.text) - 1)
	fresh := n.text[n.known+followed:]
	if len(fresh) > min(settleAfter, n.Size.Rows) || len(n.Live)+len(fresh) > n.Size.MostLive()/2 {
		if err := n.settle(ctx, at, followed); err != nil {
			return false, err
		}
		at, fresh = None, n.text[n.known:]
	}
	if n.Base, err = n.pass(ctx, at, fresh, nil, true); err != nil {
		return false, err
	}
	n.got = n.got[len(fresh)-1:]
	return true, n.deepen(ctx, n.Base)
}

// settle makes the trunk all of the text but its last token, of which the live rows down to one are followed tokens. The other rows are dropped.
func (n *Nested) settle(ctx context.Context, at, followed int) error {
	if at != None {
		if err := n.through(ctx, at, n.Size.Layers, forest.Want{}); err != nil {
			return err
		}
		if err := n.branch.Commit(n.Live[at].Node); err != nil {
			return err
		}
		n.known += followed
	}
	n.Live = n.Live[:0]
	if err := n.branch.Drop(); err != nil {
		return err
	}
	for most := len(n.text) - 1; n.known < most; {
		if err := n.extend(ctx, min(most-n.known, n.Size.Rows), forest.Want{}); err != nil {
			return err
		}
	}
	return nil
}

// Expand implements [LogitSource].
func (n *Nested) Expand(ctx context.Context, t *method.Tree, drafts []int) error {
	if err := n.Branch.Expand(ctx, t, drafts); err != nil {
		return err
	}
	return n.deepen(ctx, len(n.Live)-1)
}

// deepen runs the last row of a pass on, level by level, until one is sure.
func (n *Nested) deepen(ctx context.Context, at int) error {
	for k, l := range n.levels[:len(n.levels)-1] {
		if most, lse, finite := kernel.LogSumExp(n.got[0].Logits); finite && kernel.Exp32(most-lse) >= l.Least {
			return nil
		}
		want := n.Like.Want
		want.Logits = true
		if err := n.through(ctx, at, n.levels[k+1].Layers, want); err != nil {
			return err
		}
	}
	return nil
}

// through runs a live row, and those before it that have stopped earlier, on through so many layers. The last one gives what want says.
func (n *Nested) through(ctx context.Context, at, layers int, want forest.Want) error {
	n.path = n.path[:0]
	for i := at; i != None && n.Live[i].Layers < layers; i = n.Live[i].Parent {
		n.path = append(n.path, i)
	}
	slices.Reverse(n.path)
	for path := n.path; len(path) > 0; {
		part := path[:min(len(path), n.Size.Rows)]
		path = path[len(part):]
		n.rows = n.rows[:0]
		for _, i := range part {
			n.rows = append(n.rows, method.Row{Row: forest.Row{Resume: n.Live[i].Node, From: n.Live[i].Layers, To: layers}})
		}
		if len(path) == 0 {
			n.rows[len(n.rows)-1].Want = want
		}
		if err := n.Grow(ctx, n.rows); err != nil {
			return errors.Join(err, n.forget())
		}
		for _, i := range part {
			n.Live[i].Layers = layers
		}
		n.got = n.got[len(part)-1:]
	}
	return nil
}

// forget drops the live rows.
func (n *Nested) forget() error {
	n.Live = n.Live[:0]
	return n.branch.Drop()
}

// Room implements [LogitSource].
func (n *Nested) Room() (drafts, depth int) {
	drafts, depth = n.Branch.Room()
	return min(drafts, 1), depth
}
