package engine

import (
	"context"
	"errors"

	"grove/forest"
	"grove/text/token"
)

// probe is the job that runs a step for its time alone.
type probe struct {
	trunk
	what    Probe
	seconds float64
	touched int
}

// Probe runs steps of one kind, times over, and returns the seconds of each, and how many experts the last
// one touched in all layers together. The keys that rows see are numbers of no meaning. The slice is the
// caller's.
func (e *Engine) Probe(ctx context.Context, p Probe, times int) (seconds []float64, touched int, err error) {
	if err := e.Generates(); err != nil {
		return nil, 0, err
	}
	j := &probe{what: p}
	j.terms.Salt = "probe"
	if err := e.open(&j.trunk, e.most+1); err != nil { // it is needed before the first sequence can draft
		return nil, 0, err
	}
	j.pinned = true
	defer func() { err = errors.Join(err, j.close()) }()
	seconds = make([]float64, 0, times)
	for range times {
		if err := j.do(ctx, j); err != nil {
			return nil, 0, err
		}
		seconds = append(seconds, j.seconds)
	}
	return seconds, j.touched, nil
}

func (*probe) begin() error { return nil }

func (j *probe) need() (need, error) {
	n := need{rows: j.what.Rows, alone: true}
	if j.length() == 0 {
		n.take = func() error { return j.e.cache.Pad(j.seq, j.what.Depth) }
	}
	return n, nil
}

func (j *probe) place(st *step) error {
	p := j.what
	all := j.e.cache.Forest.Layers()
	skip := forest.LayerRange(0, all).Minus(forest.LayerRange(p.First, p.First+p.Layers))
	_, err := st.path(p.Rows, func(i int) forest.Row {
		return forest.Row{ID: token.ID(i * 7919 % j.e.vocab), Skip: skip, Want: forest.Want{Logits: i >= p.Rows-p.Logits}, Passing: true}
	})
	st.partial = true // its keys have no meaning: it corrects nothing
	return err
}

func (j *probe) take(st *step) (done bool, err error) {
	j.seconds, j.touched = st.seconds, j.e.exec.Touched()
	j.drop()
	return true, nil
}

func (*probe) simpler() bool { return false }
