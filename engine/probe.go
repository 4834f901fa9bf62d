package engine

import (
	"context"
	"errors"

	"grove/compute"
	"grove/engine/step"
	"grove/forest"
	"grove/text/token"
)

// probe is the job that runs a step for its time alone.
type probe struct {
	e       *Engine
	trunk   step.Trunk
	what    Probe
	groups  []int32 // of the vocabulary that the head computes; nil: all
	seconds float64
	touched int
}

// Probe runs steps of one kind, times over, and returns the seconds of each, and how many experts the last
// one touched in all layers together. The keys that rows see are numbers of no meaning. The slice is the
// caller's.
func (e *Engine) Probe(ctx context.Context, p Probe, times int) (seconds []float64, touched int, err error) {
	if err := e.CheckGenerates(); err != nil {
		return nil, 0, err
	}
	j := &probe{e: e, what: p}
	if all := (e.vocab + compute.SubsetGroup - 1) / compute.SubsetGroup; p.Tokens > 0 && p.Tokens < e.vocab {
		n := (p.Tokens + compute.SubsetGroup - 1) / compute.SubsetGroup
		for i := range n {
			j.groups = append(j.groups, int32(i*all/n))
		}
	}
	j.trunk.Terms.Salt = "probe"
	if err := e.steps.Open(&j.trunk, e.steps.MaxOpen+1); err != nil { // it is needed before the first sequence can draft
		return nil, 0, err
	}
	j.trunk.Pinned = true
	defer func() { err = errors.Join(err, j.trunk.Close()) }()
	seconds = make([]float64, 0, times)
	for range times {
		if err := j.trunk.Do(ctx, j); err != nil {
			return nil, 0, err
		}
		seconds = append(seconds, j.seconds)
	}
	return seconds, j.touched, nil
}

// Need implements [step.Job].
func (j *probe) Need() (step.Need, error) {
	n := step.Need{Rows: j.what.Rows, Alone: true}
	if j.trunk.Len() == 0 {
		n.TakePages = func() error { return j.e.steps.Cache.Pad(j.trunk.Seq, j.what.Depth) }
	}
	return n, nil
}

// Place implements [step.Job].
func (j *probe) Place(st *step.Step) error {
	p := j.what
	run, want := forest.LayerRange(p.First, p.First+p.Layers), forest.Want{}
	skip := forest.LayerRange(0, j.e.steps.Cache.Forest.Layers()).Minus(run)
	if p.Logits == 0 {
		want.Hidden = run // so that every row runs all of them
	}
	_, err := st.Path(p.Rows, func(i int) forest.Row {
		want.Logits, want.Subset = i >= p.Rows-p.Logits, j.groups
		return forest.Row{ID: token.ID(i * 7919 % j.e.vocab), Skip: skip, Want: want, Transient: true}
	})
	st.Partial() // its keys have no meaning: it corrects nothing
	return err
}

// Take implements [step.Job].
func (j *probe) Take(st *step.Step) (done bool, err error) {
	j.seconds, j.touched = st.Seconds(), j.e.steps.Exec.Touched()
	j.trunk.Drop()
	return true, nil
}
