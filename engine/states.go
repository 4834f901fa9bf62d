package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"grove/adapters"
	"grove/compute"
	"grove/engine/reading"
	"grove/engine/step"
	"grove/forest"
	"grove/text/token"
)

// logitsRows bounds the rows of a step that want logits of one text: a vocabulary's worth of memory each.
const logitsRows = 16

// states is the job that computes a text of its own, of which every row from the first wanted one on gives something:
// states or logits. It may take several steps; each copies what its rows gave, so that no step waits for a reader.
type states struct {
	e      *Engine
	trunk  step.Trunk
	ids    []token.ID
	first  int        // row that gives something
	row    forest.Row // what these rows are
	most   int        // of them in a step
	whole  bool       // all rows are run in one step
	end    forest.Node
	values func(dst []float32, r *compute.Result) []float32 // appends what a row gave
	out    []float32                                        // of the last step's rows
}

// States computes a text of its own and calls write with what is read of each token, in order. A row is valid during the call. Tokens see what the mask
// says. An encoder-decoder gives its encoder's states. Errors: a reading that the model does not have; [ErrContext] with both numbers, [ErrBusy], ctx's, the
// model's, write's.
func (e *Engine) States(ctx context.Context, ids []token.ID, r reading.Reading, write func(row []float32) error) error {
	if e.encoder != nil {
		return e.encoder.States(ctx, ids, r, write)
	}
	if err := r.Fit(e.steps.Model.Info()); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	if n := len(ids); r.Whole() && n > e.steps.Chunk && n <= e.Context() {
		return fmt.Errorf("engine: %d tokens are read in one step, which has %d at most: %w", n, e.steps.Chunk, ErrContext)
	}
	j := &states{e: e, ids: ids, row: forest.Row{To: r.Exit, Want: forest.Want{State: r.State || r.Layers == nil && !r.Stream, Embedding: r.Embeds}}, most: e.steps.Chunk, whole: r.Whole()}
	for _, l := range r.Layers {
		j.row.Want.Hidden = j.row.Want.Hidden.With(l)
	}
	if r.Stream {
		j.row.Want.Hidden = j.row.Want.Hidden.With(r.Exit - 1)
	}
	j.row.Block, j.row.Causal = r.Block(), r.Causal
	j.values = func(dst []float32, r *compute.Result) []float32 {
		for _, h := range r.Hidden {
			dst = append(dst, h...)
		}
		return append(dst, r.State...)
	}
	return e.rows(ctx, j, write)
}

// Logits computes a text of its own and calls write with the logits behind each token from index first
// on, in order; a row is valid during the call. The cache is not searched for a prefix, whose rows would give none. Errors:
// [ErrContext] with both numbers, [ErrBusy], ctx's, the model's, write's.
func (e *Engine) Logits(ctx context.Context, ids []token.ID, first int, write func(row []float32) error) error {
	if err := errors.Join(e.CheckGenerates(), e.checkNext(), e.CheckSource("a text alone has no logits")); err != nil {
		return err
	}
	j := &states{e: e, ids: ids, first: first, row: forest.Row{Want: forest.Want{Logits: true}}, most: min(e.steps.Chunk, logitsRows)}
	j.values = func(dst []float32, r *compute.Result) []float32 { return append(dst, r.Logits...) }
	return e.rows(ctx, j, write)
}

// Adapt makes a set of adapters that of the texts that [Engine.States] and [Engine.Logits] compute; nil: none.
func (e *Engine) Adapt(a *adapters.Set) { e.own.Store(a) }

// rows does a states job, one step after the other, and hands its rows to write between them.
func (e *Engine) rows(ctx context.Context, j *states, write func(row []float32) error) (err error) {
	if len(j.ids) > e.Context() {
		return fmt.Errorf("engine: %d tokens do not fit: %w of %d tokens", len(j.ids), ErrContext, e.Context())
	}
	if err := e.steps.Open(&j.trunk, e.steps.MaxOpen); err != nil {
		return err
	}
	j.trunk.Terms.Adapters = e.own.Load()
	j.trunk.Terms.Activate(j.ids)
	j.trunk.Pinned, j.trunk.Terms.Salt = true, rand.Text() // the text may have had a salt: no other finds its pages
	defer func() { err = errors.Join(err, j.trunk.Close()) }()
	for at := 0; at < len(j.ids); {
		if err := j.trunk.Do(ctx, j); err != nil {
			return err
		}
		n := j.trunk.Rows
		if given := at + n - max(at, j.first); given > 0 {
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
func (j *states) Need() (step.Need, error) {
	at := j.trunk.Len()
	n := step.Need{Prompt: len(j.ids) - at, PageTokens: len(j.ids), WindowTokens: min(len(j.ids), at+j.e.steps.Chunk)}
	switch {
	case j.whole:
		n.Rows, n.Prompt = n.Prompt, 0
	case at < j.first:
		n.Prompt = min(n.Prompt, j.first-at)
	default:
		n.Prompt = min(n.Prompt, j.most)
	}
	return n, nil
}

// Place implements [step.Job].
func (j *states) Place(st *step.Step) (err error) {
	at := j.trunk.Len()
	j.end, err = st.Path(st.Rows(), func(i int) forest.Row {
		r := j.row
		if at+i < j.first {
			r = forest.Row{}
		}
		r.ID, r.Transient = j.ids[at+i], i < j.trunk.Rows-1
		return r
	})
	return err
}

// Take implements [step.Job].
func (j *states) Take(st *step.Step) (done bool, err error) {
	j.out = j.out[:0]
	for i := range j.trunk.Rows {
		j.out = j.values(j.out, st.Result(i))
	}
	if j.row.To > 0 {
		return true, nil // rows that stopped early are no text; they go with the sequence
	}
	return true, j.e.steps.Cache.Commit(j.trunk.Seq, j.end)
}
