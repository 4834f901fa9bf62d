package grow

import (
	"context"
	"errors"

	"grove/forest"
	"grove/method"
	"grove/text/token"
)

// Branch is a [Source] that follows a text with a sequence of a draft model: it commits the tokens that the text got
// and drops the other rows. It is for one goroutine.
type Branch struct {
	Rows
	model  method.Model
	branch method.Branch // nil: it is not open
	trim   *Trim         // nil: all of the draft model's vocabulary is computed
	kept   []int32       // groups of the vocabulary that are computed

	history *method.History
	text    []token.ID // in tokens of the draft model
	known   int        // tokens of the text that the trunk holds
}

// NewBranch returns a source of the draft model of e, whose sequence is opened once a text is drafted for and a slot is free.
func NewBranch(e method.Env, trim *Trim) *Branch {
	return &Branch{Rows: Rows{Size: e.Draft.Size(), Words: e.Words, Base: None}, model: e.Draft, trim: trim}
}

// Begin starts a text, which is empty until Committed or SetText tells of it.
func (b *Branch) Begin(h *method.History) error {
	b.history, b.text, b.known, b.Live = h, b.text[:0], 0, b.Live[:0]
	if b.Words == nil {
		b.text = nil
	}
	if b.trim != nil {
		b.kept = b.trim.pick(b.kept[:0])
	}
	if b.branch == nil {
		return nil
	}
	return b.branch.Truncate(0)
}

// Committed tells of tokens that were added to the text; the history has them. begins says that they are the first.
func (b *Branch) Committed(ids []token.ID, begins bool) {
	n := len(b.text)
	if b.Words == nil {
		b.SetText(b.history.IDs(), n)
		return
	}
	b.SetText(b.Words.Append(b.text, ids, begins), n)
}

// SetText replaces the text: ids are tokens of the draft model, of which those from place from on are new. The slice
// is kept until the next call.
func (b *Branch) SetText(ids []token.ID, from int) {
	b.text = ids
	if b.trim != nil {
		b.kept = b.trim.learn(b.kept, ids[from:])
		b.Like.Want.Subset = b.kept
	}
}

// Text returns the text in tokens of the draft model.
func (b *Branch) Text() []token.ID { return b.text }

// Close gives the sequence back.
func (b *Branch) Close() error {
	if b.branch == nil {
		return nil
	}
	return b.branch.Close()
}

// Root implements [Source]. The draft model has no logits for a text longer than its context, nor while no slot is free.
func (b *Branch) Root(ctx context.Context) (ok bool, err error) {
	if len(b.text) == 0 || len(b.text) > b.Size.Context {
		return false, nil
	}
	if b.branch == nil {
		if b.branch, err = b.model.Open(); err != nil {
			b.branch = nil
			if errors.Is(err, method.ErrBusy) {
				err = nil
			}
			return false, err
		}
		b.Trunk = b.branch
	}
	if err := b.keepAccepted(); err != nil {
		return false, err
	}
	if b.known == len(b.text) { // nothing was added
		if err := b.rewind(b.known - 1); err != nil {
			return false, err
		}
	}
	if err := b.catchUp(ctx); err != nil {
		return false, err
	}
	return true, nil
}

// Room implements [Source].
func (b *Branch) Room() (drafts, depth int) { return b.Rows.Room(), b.Size.Context - len(b.text) }

// keepAccepted commits the rows of the last round that were accepted, and drops the others. The text's last token is
// run anew: the logits behind it are gone.
func (b *Branch) keepAccepted() error {
	last := None
	for i, l := range b.Live {
		if b.known < len(b.text)-1 && l.Parent == last && l.ID == b.text[b.known] {
			last = i
			b.known++
		}
	}
	var err error
	if last != None {
		err = b.branch.Commit(b.Live[last].Node)
	}
	b.Live = b.Live[:0]
	return errors.Join(err, b.branch.Drop())
}

// Cut forgets the trunk and the live rows from place n of the text on.
func (b *Branch) Cut(n int) error {
	if n >= b.known {
		return nil
	}
	b.Live = b.Live[:0] // the cut drops them
	return b.rewind(n)
}

// rewind cuts the trunk, further where the cache does not hold the place any more.
func (b *Branch) rewind(n int) error {
	err := b.branch.Truncate(n)
	b.known = b.branch.Len()
	return err
}

// catchUp runs and commits the tokens that the trunk does not hold. The last one's logits are then those of place 0.
func (b *Branch) catchUp(ctx context.Context) error {
	for b.known < len(b.text) {
		b.rows = b.rows[:0]
		n := min(len(b.text)-b.known, b.Size.Rows)
		for i, id := range b.text[b.known : b.known+n] {
			row := method.Row{Row: forest.Row{ID: id, Passing: i < n-1}, After: i}
			if b.known+i == len(b.text)-1 {
				row.Want = b.Like.Want
				row.Want.Logits = true
			}
			b.rows = append(b.rows, row)
		}
		if err := b.Grow(ctx, b.rows); err != nil {
			return err
		}
		if err := b.branch.Commit(b.got[n-1].Node); err != nil {
			return err
		}
		b.got = b.got[n-1:]
		b.known += n
	}
	return nil
}
