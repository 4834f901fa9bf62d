package fill

import (
	"context"
	"fmt"
	"math"

	"grove/internal/engine/step"
	"grove/internal/forest"
)

// tokens is the job that computes the tokens of a text that are not computed, keeps them, and leaves the logits behind the last one. It may take several steps.
type tokens struct {
	t   *LatentText
	end forest.Node
}

// Need implements [step.Job].
func (j *tokens) Need() (step.Need, error) {
	t := j.t
	t.trunk.Drop()
	n := step.Need{PageTokens: t.most}
	if !t.latents {
		length, err := t.steps.Cache.Reuse(t.trunk.Seq, t.ids)
		if err != nil {
			return n, err
		}
		t.computed, n.Text = length, t.ids
	}
	if n.Prompt = len(t.ids) - t.computed; n.Prompt == 1 {
		n.Rows, n.Prompt, n.Decodes = 1, 0, true
	}
	n.WindowTokens = min(t.most, t.computed+t.steps.Chunk)
	return n, nil
}

// Place implements [step.Job].
func (j *tokens) Place(st *step.Step) (err error) {
	t, rows := j.t, st.Rows()
	j.end, err = st.Path(rows, func(i int) forest.Row {
		at := t.computed + i
		return forest.Row{ID: t.ids[at], Transient: i < rows-1, Want: forest.Want{Logits: at == len(t.ids)-1}}
	})
	return err
}

// Take implements [step.Job].
func (j *tokens) Take(st *step.Step) (done bool, err error) {
	t, rows := j.t, st.Rows()
	if done = t.computed+rows == len(t.ids); done {
		copy(t.logits, st.Result(rows-1).Logits)
	}
	if err := t.steps.Cache.Commit(t.trunk.Seq, j.end); err != nil {
		return true, err
	}
	t.computed += rows
	return done, nil
}

// block is the job that runs a block behind a text, and keeps it or leaves its states.
type block struct {
	t      *LatentText
	inputs [][]float32
	store  []float32 // of inputs
	causal bool
	keep   bool
	width  int
	states []float32 // row after row, of a pass that is not kept
}

// run runs a block at a time.
func (j *block) run(ctx context.Context, b *LatentBlock, time float64, keep bool) error {
	j.width, j.causal, j.keep = j.t.steps.Model.Info().Width, b.Causal, keep
	j.inputs = j.inputs[:0]
	if n := len(b.Latents) * j.width; len(j.store) < n {
		j.store = make([]float32, n)
	}
	for i, l := range b.Latents {
		in := l
		if b.Embed != nil {
			in = j.store[i*j.width : (i+1)*j.width]
			clear(in)
			b.Embed(in, l, time)
		}
		for _, v := range in {
			if v != v || math.IsInf(float64(v), 0) {
				return fmt.Errorf("latent: the input of row %d at time %.3g has a value of %v; all must be finite", i, time, v)
			}
		}
		j.inputs = append(j.inputs, in)
	}
	return j.t.trunk.Do(ctx, j)
}

// state returns what a row of the last pass that was not kept gave.
func (j *block) state(row int) []float32 { return j.states[row*j.width : (row+1)*j.width] }

// Need implements [step.Job].
func (j *block) Need() (step.Need, error) {
	t := j.t
	t.trunk.Drop()
	n := len(j.inputs)
	return step.Need{Rows: n, PageTokens: t.most, WindowTokens: min(t.most, t.trunk.Len()+n)}, nil
}

// Place implements [step.Job].
func (j *block) Place(st *step.Step) (err error) {
	last := len(j.inputs) - 1
	j.t.tokens.end, err = st.Path(len(j.inputs), func(i int) forest.Row {
		r := forest.Row{Vector: j.inputs[i], Transient: i < last || !j.keep, Want: forest.Want{State: !j.keep, Logits: j.keep && i == last}}
		if !j.causal {
			r.Block = 1
		}
		return r
	})
	return err
}

// Take implements [step.Job].
func (j *block) Take(st *step.Step) (done bool, err error) {
	t, n := j.t, len(j.inputs)
	if j.keep {
		copy(t.logits, st.Result(n-1).Logits)
		return true, t.steps.Cache.Commit(t.trunk.Seq, t.tokens.end)
	}
	j.states = j.states[:0]
	for i := range n {
		j.states = append(j.states, st.Result(i).State...)
	}
	t.trunk.Drop()
	return true, nil
}
