package grow

import (
	"context"
	"errors"
	"slices"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/method"
)

// following is what sources that follow a text have in common: a sequence of a model, whose trunk holds a beginning of the text.
type following struct {
	Rows
	model  method.Model
	branch method.Branch // nil: it is not open
	text   []token.ID    // in tokens of the model
	known  int           // tokens of the text that the trunk holds
}

// begin forgets the text.
func (f *following) begin() error {
	f.text, f.known, f.Live, f.Base = nil, 0, f.Live[:0], None
	if f.branch == nil {
		return nil
	}
	return f.branch.Truncate(0)
}

// open opens the sequence; false: no slot is free.
func (f *following) open() (ok bool, err error) {
	if f.branch != nil {
		return true, nil
	}
	b, err := f.model.Open()
	if errors.Is(err, method.ErrBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	f.branch, f.Trunk = b, b
	return true, nil
}

// Close gives the sequence back.
func (f *following) Close() error {
	if f.branch == nil {
		return nil
	}
	return f.branch.Close()
}

// Room implements [LogitSource].
func (f *following) Room() (drafts, depth int) { return f.Rows.Room(), f.Size.Context - len(f.text) }

// match follows the live rows along the text to its token end at most, and returns the last row and how many there are.
func (f *following) match(end int) (at, n int) {
	at = None
	for i, l := range f.Live {
		if f.known+n < end && l.Parent == at && l.ID == f.text[f.known+n] {
			at = i
			n++
		}
	}
	return at, n
}

// extend runs the next n tokens of the text and makes them the trunk's; what lives is dropped. The last row gives what want says, which is
// then that of place 0.
func (f *following) extend(ctx context.Context, n int, want forest.Want) error {
	f.rows, f.Live = f.rows[:0], f.Live[:0]
	for i, id := range f.text[f.known : f.known+n] {
		f.rows = append(f.rows, method.Row{Row: forest.Row{ID: id, Transient: i < n-1}, After: i})
	}
	f.rows[n-1].Want = want
	if err := f.Grow(ctx, f.rows); err != nil {
		return errors.Join(err, f.branch.Drop())
	}
	if err := f.branch.Commit(f.got[n-1].Node); err != nil {
		return err
	}
	f.got = f.got[n-1:]
	f.known += n
	return nil
}

// pass runs a chain of tokens behind a live row, and rows behind its last token, and returns that token's place.
func (f *following) pass(ctx context.Context, at int, chain []token.ID, rows []LiveRow, logits bool) (last int, err error) {
	f.rows = f.rows[:0]
	for i, id := range chain {
		row := method.Row{Row: f.Like, After: i}
		row.ID = id
		if i == 0 && at != None {
			row.Parent = f.Live[at].Node
		}
		row.Want.Logits = logits && i == len(chain)-1
		f.rows = append(f.rows, row)
	}
	for _, r := range rows {
		row := method.Row{Row: f.Like, After: len(chain) + 1 + r.Parent}
		row.ID, row.Want.Logits = r.ID, true
		f.rows = append(f.rows, row)
	}
	if err := f.Grow(ctx, f.rows); err != nil {
		return None, err
	}
	for i, id := range chain {
		f.Live = append(f.Live, LiveRow{ID: id, Parent: at, Node: f.got[i].Node, Layers: f.Like.To})
		at = len(f.Live) - 1
	}
	for i, r := range rows {
		f.Live = append(f.Live, LiveRow{ID: r.ID, Parent: at + 1 + r.Parent, Node: f.got[len(chain)+i].Node, Layers: f.Like.To})
	}
	return at, nil
}

// Follower is a [LogitSource] that follows a text of which the end is not certain, with a sequence of a model whose tokens are the target's.
// Only certain tokens are committed: the others are rows behind the trunk, so that a text that goes on otherwise costs
// the computation of its new tokens alone. It is for one goroutine.
type Follower struct {
	following
	certain int // tokens of the text, from the beginning
	kept    []int
}

// behind is how many certain tokens a pass may run beside other rows: more are run before.
const behind = 8

// NewFollower returns a source of a model for a target's vocabulary. Its sequence is opened by the first pass for which a slot is free.
func NewFollower(m method.Model, vocabulary int) *Follower {
	f := &Follower{following: following{Rows: Rows{Size: m.Size(), Base: None}, model: m}}
	f.Vocabulary(vocabulary)
	return f
}

// Begin forgets the text.
func (f *Follower) Begin() error {
	f.certain = 0
	return f.begin()
}

// Follow sets the text, of which the first certain tokens are those of the last call and what was added to them. The slice is kept until
// the next call.
func (f *Follower) Follow(text []token.ID, certain int) { f.text, f.certain = text, certain }

// Root implements [LogitSource]. The model has no logits for a text longer than its context, nor while no slot is free.
func (f *Follower) Root(ctx context.Context) (ok bool, err error) {
	n, err := f.Join(ctx, nil)
	return n > 0, err
}

// Join is Root with rows behind the text in the same pass, of which Parent is a place among rows, or [None]: the text's last token. It
// returns for how many of these tokens Logits has what follows, the text's last one first: 0 where Root returns false, and fewer than all
// where the context or a step ends. The rows lie in Live behind Base, in order.
func (f *Follower) Join(ctx context.Context, rows []LiveRow) (n int, err error) {
	if room := f.Size.Context - len(f.text); room < len(rows) {
		rows = rows[:max(0, room)] // a path is no longer
	}
	if len(f.text) == 0 || len(f.text) > f.Size.Context || !f.knows() {
		return 0, nil
	}
	if ok, err := f.open(); !ok {
		return 0, err
	}
	if err := f.commit(ctx); err != nil {
		return 0, err
	}
	at, matched := f.match(len(f.text) - 1)
	if len(f.Live)+len(f.text)-f.known-matched+len(rows) > f.Size.MostLive() {
		f.Live = f.Live[:0]
		if err := f.branch.Drop(); err != nil {
			return 0, err
		}
		at, matched = None, 0
	}
	for chain := f.text[f.known+matched:]; ; {
		part := chain[:min(len(chain), f.Size.Rows)]
		last := len(part) == len(chain)
		if last {
			rows = rows[:min(len(rows), f.Size.Rows-len(part), max(0, f.Size.MostLive()-len(f.Live)-len(part)))]
		} else {
			rows, n = rows[:0], len(rows)
		}
		if at, err = f.pass(ctx, at, part, rows, last); err != nil {
			return 0, err
		}
		if last {
			f.Base, f.got = at, f.got[len(part)-1:]
			return 1 + len(rows), nil
		}
		chain, rows = chain[len(part):], rows[:n]
	}
}

// knows reports whether all tokens that the trunk lacks are of the model's vocabulary.
func (f *Follower) knows() bool {
	for _, id := range f.text[f.known:] {
		if id < 0 || int(id) >= f.Size.Vocabulary {
			return false
		}
	}
	return true
}

// commit makes the trunk the certain tokens, but for the last one and a few that the next pass runs.
func (f *Follower) commit(ctx context.Context) error {
	if at, n := f.match(f.certain - 1); n > 0 {
		if err := f.branch.Commit(f.Live[at].Node); err != nil {
			return err
		}
		f.known += n
		f.keep(at)
	}
	for f.certain-1-f.known > behind {
		if err := f.extend(ctx, min(f.certain-1-f.known, f.Size.Rows), forest.Want{}); err != nil {
			return err
		}
	}
	return nil
}

// keep forgets the live rows that do not descend from one, which is the trunk's end now.
func (f *Follower) keep(end int) {
	f.kept = slices.Grow(f.kept[:0], len(f.Live))[:len(f.Live)]
	n := 0
	for i, l := range f.Live {
		f.kept[i] = None
		switch {
		case l.Parent == end:
			l.Parent = None
		case l.Parent != None && f.kept[l.Parent] != None:
			l.Parent = f.kept[l.Parent]
		default:
			continue
		}
		f.kept[i] = n
		f.Live[n] = l
		n++
	}
	f.Live, f.Base = f.Live[:n], None
}
