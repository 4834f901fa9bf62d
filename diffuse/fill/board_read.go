package fill

import (
	"context"
	"fmt"

	"grove/internal/engine"
	"grove/internal/engine/step"
	"grove/internal/forest"
	"grove/internal/text/token"
)

// SetProgress sets the function that is told, after each step of a [Board.Read], how many tokens of the text are computed, of all; nil: none. It must not wait: any
// caller's goroutine may call it.
func (b *Board) SetProgress(told func(done, all int)) { b.read.told = told }

// Reused returns how many tokens of the text the cache had.
func (b *Board) Reused() int { return b.read.reused }

// Read implements [diffuse.TextBoard]. It takes as many steps as the tokens need. Errors: a token that is none, [engine.ErrContext]; ctx's, the model's.
func (b *Board) Read(ctx context.Context, ids []token.ID) (rows int, err error) {
	r := &b.read
	for _, id := range ids {
		if id < 0 || int(id) >= b.vocabulary() {
			return 0, fmt.Errorf("engine: token id %d is out of range: the vocabulary has %d", id, b.vocabulary())
		}
	}
	if n := len(r.ids) + len(ids); n > b.tokens {
		return 0, fmt.Errorf("engine: a text of %d tokens on a board of %d: %w", n, b.tokens, engine.ErrContext)
	}
	if len(ids) == 0 {
		return 0, nil
	}
	first := len(r.ids) == 0
	r.b, r.ids, r.rows = b, append(r.ids, ids...), 0
	if first {
		kept, err := b.restore(ctx, r.ids)
		if r.reused = kept; err != nil {
			return 0, err
		}
	}
	if err := b.trunk.Do(ctx, r); err != nil {
		return 0, err
	}
	return r.rows, nil
}

// text is the job that computes the text of a board and keeps it.
type text struct {
	b            *Board
	ids          []token.ID
	told         func(done, all int)
	rows, reused int
	end          forest.Node
}

// Need implements [step.Job].
func (r *text) Need() (step.Need, error) {
	t := &r.b.trunk
	t.Drop()
	at := t.Len()
	length, err := r.b.steps.Cache.Reuse(t.Seq, r.ids[:len(r.ids)-1]) // a job runs a row
	r.reused += length - at
	return step.Need{Prompt: len(r.ids) - length, Text: r.ids, PageTokens: r.b.tokens, WindowTokens: r.b.window(r.b.steps.Chunk)}, err
}

// Place implements [step.Job].
func (r *text) Place(st *step.Step) (err error) {
	at, rows := r.b.trunk.Len(), st.Rows()
	r.end, err = st.Path(rows, func(i int) forest.Row { return forest.Row{ID: r.ids[at+i], Transient: i < rows-1} })
	return err
}

// Take implements [step.Job].
func (r *text) Take(*step.Step) (done bool, err error) {
	t := &r.b.trunk
	r.rows += t.Rows
	at := t.Len() + t.Rows
	if err := r.b.steps.Cache.Commit(t.Seq, r.end); err != nil {
		return true, err
	}
	if r.told != nil {
		r.told(at, len(r.ids))
	}
	return at == len(r.ids), nil
}

// window returns for how many tokens layers with a window have pages, in a step of so many rows.
func (b *Board) window(rows int) int { return min(b.tokens, b.trunk.Len()+rows) }

func (b *Board) vocabulary() int { return b.steps.Model.Info().Vocabulary }
