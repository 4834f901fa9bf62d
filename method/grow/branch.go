package grow

import (
	"context"
	"errors"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/method"
)

// Branch is a [LogitSource] that follows a text with a sequence of a draft model: it commits the tokens that the text got
// and drops the other rows. It is for one goroutine.
type Branch struct {
	following
	trim    *Trim   // nil: all of the draft model's vocabulary is computed
	kept    []int32 // groups of the vocabulary that are computed
	history *method.History
}

// NewBranch returns a source of the draft model of e, whose sequence is opened once a text is drafted for and a slot is free.
func NewBranch(e method.Env, trim *Trim) *Branch {
	return &Branch{following: following{Rows: Rows{Size: e.Draft.Size(), VocabMap: e.VocabMap, Base: None}, model: e.Draft}, trim: trim}
}

// Begin starts a text, which is empty until Committed or SetText tells of it.
func (b *Branch) Begin(h *method.History) error {
	text := b.text[:0]
	err := b.begin()
	if b.history = h; b.VocabMap != nil {
		b.text = text
	}
	if b.trim != nil {
		b.kept = b.trim.pick(b.kept[:0])
	}
	return err
}

// Committed tells of tokens that were added to the text; the history has them. begins says that they are the first.
func (b *Branch) Committed(ids []token.ID, begins bool) {
	n := len(b.text)
	if b.VocabMap == nil {
		b.SetText(b.history.IDs(), n)
		return
	}
	b.SetText(b.VocabMap.Append(b.text, ids, begins), n)
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

// Root implements [LogitSource]. The draft model has no logits for a text longer than its context, nor while no slot is free.
func (b *Branch) Root(ctx context.Context) (ok bool, err error) {
	if len(b.text) == 0 || len(b.text) > b.Size.Context {
		return false, nil
	}
	if ok, err := b.open(); !ok {
		return false, err
	}
	if err := b.keepAccepted(); err != nil {
		return false, err
	}
	if b.known == len(b.text) { // nothing was added
		if err := b.rewind(b.known - 1); err != nil {
			return false, err
		}
	}
	for b.known < len(b.text) {
		n, want := min(len(b.text)-b.known, b.Size.Rows), forest.Want{}
		if b.known+n == len(b.text) {
			want = b.Like.Want
			want.Logits = true
		}
		if err := b.extend(ctx, n, want); err != nil {
			return false, err
		}
	}
	return true, nil
}

// keepAccepted commits the rows of the last round that were accepted, and drops the others. The text's last token is
// run anew: the logits behind it are gone.
func (b *Branch) keepAccepted() error {
	var err error
	if at, n := b.match(len(b.text) - 1); n > 0 {
		err = b.branch.Commit(b.Live[at].Node)
		b.known += n
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
