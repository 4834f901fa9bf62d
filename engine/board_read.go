package engine

import (
	"context"
	"fmt"

	"grove/engine/step"
	"grove/forest"
	"grove/text/token"
)

// SetProgress sets the function that is told, after each step of a [Board.Read], how many tokens of the text are computed, of all; nil: none. It must not wait: any
// caller's goroutine may call it.
func (b *Board) SetProgress(told func(done, all int)) { b.read.told = told }

// Reused returns how many tokens of the text the cache had.
func (b *Board) Reused() int { return b.read.reused }

// Read implements [diffuse.TextBoard]. It takes as many steps as the tokens need. Errors: a token that is none, [ErrContext]; ctx's, the model's.
func (b *Board) Read(ctx context.Context, ids []token.ID) (rows int, err error) {
	r := &b.read
	for _, id := range ids {
		if id < 0 || int(id) >= b.e.vocab {
			return 0, fmt.Errorf("engine: token id %d is out of range: the vocabulary has %d", id, b.e.vocab)
		}
	}
	if n := len(r.text) + len(ids); n > b.tokens {
		return 0, fmt.Errorf("engine: a text of %d tokens on a board of %d: %w", n, b.tokens, ErrContext)
	}
	if len(ids) == 0 {
		return 0, nil
	}
	r.b, r.text, r.rows = b, append(r.text, ids...), 0
	if err := b.trunk.Do(ctx, r); err != nil {
		return 0, err
	}
	return r.rows, nil
}

// boardText is the job that computes the text of a board and keeps it.
type boardText struct {
	b            *Board
	text         []token.ID
	told         func(done, all int)
	rows, reused int
	end          forest.Node
}

// Need implements [step.Job].
func (r *boardText) Need() (step.Need, error) {
	t := &r.b.trunk
	t.Drop()
	at := t.Len()
	length, err := r.b.e.steps.Cache.Reuse(t.Seq, r.text[:len(r.text)-1]) // a job runs a row
	r.reused += length - at
	return step.Need{Prompt: len(r.text) - length, Text: r.text, PageTokens: r.b.tokens, WindowTokens: r.b.window(r.b.e.steps.Chunk)}, err
}

// Place implements [step.Job].
func (r *boardText) Place(st *step.Step) (err error) {
	at, rows := r.b.trunk.Len(), st.Rows()
	r.end, err = st.Path(rows, func(i int) forest.Row { return forest.Row{ID: r.text[at+i], Transient: i < rows-1} })
	return err
}

// Take implements [step.Job].
func (r *boardText) Take(*step.Step) (done bool, err error) {
	t := &r.b.trunk
	r.rows += t.Rows
	at := t.Len() + t.Rows
	if err := r.b.e.steps.Cache.Commit(t.Seq, r.end); err != nil {
		return true, err
	}
	if r.told != nil {
		r.told(at, len(r.text))
	}
	return at == len(r.text), nil
}

// window returns for how many tokens layers with a window have pages, in a step of so many rows.
func (b *Board) window(rows int) int { return min(b.tokens, b.trunk.Len()+rows) }
