// texts.go computes texts of their own, which are no sequences, for what their tokens' rows give: states or logits.

package engine

import (
	"context"
	"crypto/rand"
	"errors"

	"grove/internal/compute"
	"grove/internal/engine/adapters"
	"grove/internal/engine/step"
	"grove/internal/forest"
	"grove/internal/text/token"
)

// Text is a text of which every row from the first wanted one on gives something. It may take several steps; each copies what its rows gave,
// so that no step waits for a reader. It is a [step.Job], for one goroutine and one [Text.Read].
type Text struct {
	IDs    []token.ID
	First  int                                              // row that gives something
	Row    forest.Row                                       // what these rows are
	Most   int                                              // of them in a step
	Whole  bool                                             // all rows are run in one step
	Values func(dst []float32, r *compute.Result) []float32 // appends what a row gave

	maker *step.Maker
	trunk step.Trunk
	end   forest.Node
	out   []float32 // of the last step's rows
}

// Read computes the text, with the adapters of a set (nil: none), one step after the other, and hands what its rows give to write between them, in order; a row is valid during the
// call. Errors: [step.ErrBusy], ctx's, the model's, write's.
func (j *Text) Read(ctx context.Context, m *step.Maker, set *adapters.Set, write func(row []float32) error) (err error) {
	j.maker = m
	if err := m.Open(&j.trunk, m.MaxOpen); err != nil {
		return err
	}
	j.trunk.Terms.Adapters = set
	j.trunk.Terms.Activate(j.IDs)
	j.trunk.Pinned, j.trunk.Terms.Salt = true, rand.Text() // the text may have had a salt: no other finds its pages
	defer func() { err = errors.Join(err, j.trunk.Close()) }()
	for at := 0; at < len(j.IDs); {
		if err := j.trunk.Do(ctx, j); err != nil {
			return err
		}
		n := j.trunk.Rows
		if given := at + n - max(at, j.First); given > 0 {
			width := len(j.out) / given
			for row := j.out; len(row) > 0; row = row[width:] {
				if err := write(row[:width]); err != nil {
					return err
				}
			}
		}
		at += n
	}
	return nil
}

// Need implements [step.Job].
func (j *Text) Need() (step.Need, error) {
	at := j.trunk.Len()
	n := step.Need{Prompt: len(j.IDs) - at, PageTokens: len(j.IDs), WindowTokens: min(len(j.IDs), at+j.maker.Chunk)}
	switch {
	case j.Whole:
		n.Rows, n.Prompt = n.Prompt, 0
	case at < j.First:
		n.Prompt = min(n.Prompt, j.First-at)
	default:
		n.Prompt = min(n.Prompt, j.Most)
	}
	return n, nil
}

// Place implements [step.Job].
func (j *Text) Place(st *step.Step) (err error) {
	at := j.trunk.Len()
	j.end, err = st.Path(st.Rows(), func(i int) forest.Row {
		r := j.Row
		if at+i < j.First {
			r = forest.Row{}
		}
		r.ID, r.Transient = j.IDs[at+i], i < j.trunk.Rows-1
		return r
	})
	return err
}

// Take implements [step.Job].
func (j *Text) Take(st *step.Step) (done bool, err error) {
	j.out = j.out[:0]
	for i := range j.trunk.Rows {
		j.out = j.Values(j.out, st.Result(i))
	}
	if j.Row.To > 0 {
		return true, nil // rows that stopped early are no text; they go with the sequence
	}
	return true, j.maker.Cache.Commit(j.trunk.Seq, j.end)
}
