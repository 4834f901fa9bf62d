// timing.go measures what steps cost on this machine.

package engine

import (
	"context"
	"errors"
	"time"

	"grove/internal/compute"
	"grove/internal/engine/plan"
	"grove/internal/engine/step"
	"grove/internal/fileio"
	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/machine"
	"grove/internal/text/token"
)

// probe is the job that runs a step for its time alone.
type probe struct {
	m       *step.Maker
	vocab   int
	trunk   step.Trunk
	what    plan.Probe
	groups  []int32 // of the vocabulary that the head computes; nil: all
	seconds float64
	touched int
}

// TimingProbe runs steps of one kind, times over, and returns the seconds of each, and how many experts the last
// one touched in all layers together. The keys that rows see are numbers of no meaning. The slice is the
// caller's. Errors: ctx's, the model's.
func TimingProbe(ctx context.Context, m *step.Maker, p plan.Probe, times int) (seconds []float64, touched int, err error) {
	j := &probe{m: m, vocab: m.Model.Info().Vocabulary, what: p}
	if all := (j.vocab + compute.SubsetGroup - 1) / compute.SubsetGroup; p.Tokens > 0 && p.Tokens < j.vocab {
		n := (p.Tokens + compute.SubsetGroup - 1) / compute.SubsetGroup
		for i := range n {
			j.groups = append(j.groups, int32(i*all/n))
		}
	}
	j.trunk.Terms.Salt = "probe"
	if err := m.Open(&j.trunk, m.MaxOpen+1); err != nil { // it is needed before the first sequence can draft
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
		n.TakePages = func() error { return j.m.Cache.Pad(j.trunk.Seq, j.what.Depth) }
	}
	return n, nil
}

// Place implements [step.Job].
func (j *probe) Place(st *step.Step) error {
	p := j.what
	run, want := forest.LayerRange(p.First, p.First+p.Layers), forest.Want{}
	skip := forest.LayerRange(0, j.m.Cache.Forest.Layers()).Minus(run)
	if p.Logits == 0 {
		want.Hidden = run // so that every row runs all of them
	}
	_, err := st.Path(p.Rows, func(i int) forest.Row {
		want.Logits, want.Subset = i >= p.Rows-p.Logits, j.groups
		return forest.Row{ID: token.ID(i * 7919 % j.vocab), Skip: skip, Want: want, Transient: true}
	})
	st.Partial() // its keys have no meaning: it corrects nothing
	return err
}

// Take implements [step.Job].
func (j *probe) Take(st *step.Step) (done bool, err error) {
	j.seconds, j.touched = st.Seconds(), j.m.Exec.Touched()
	j.trunk.Drop()
	return true, nil
}

// Tune measures the cost of steps in a time that is bounded for any model: it runs a window of layers, the next one each time, and
// scales to all. The maker's steps are planned by it from then on. context is how many tokens a text has at most. Errors: ctx's, the
// model's.
func Tune(ctx context.Context, m *step.Maker, context int, budget time.Duration) (*plan.Cost, error) {
	info := m.Model.Info()
	z := plan.Sizes{Tokens: info.Vocabulary, Layers: m.Cache.Forest.Layers(), Rows: min(context, m.Chunk), Context: context}
	// An expert is read at the rate of a step of one row, which is the rate of memory.
	read := info.Bytes - info.IdleBytes - info.ExpertBytes*(info.Experts-info.ExpertsPerToken)*info.Mixtures
	z.Expert = float64(info.ExpertBytes) / float64(max(1, read))
	c, err := plan.Tune(z, budget, func(p plan.Probe) (float64, int, error) {
		seconds, touched, err := TimingProbe(ctx, m, p, 1)
		if err != nil {
			return 0, 0, err
		}
		return seconds[0], touched, nil
	})
	m.Lock()
	m.Exec.DropOutputs() // those of steps that were measured are larger than those of rounds
	m.Unlock()
	if err != nil {
		return nil, err
	}
	m.Costs.Set(c)
	return c, nil
}

// TimingPath names the file in the user's cache directory that keeps the cost of a maker's steps: by the model's form and a sample of its
// weights, the processor, the threads, the kernels and the cache type.
func TimingPath(m *step.Maker, threads int) (string, error) {
	return fileio.CachePath("cost", m.Model.Info().SampleDigest, machine.CPU(), threads, kernel.Implementation(), compute.NumericsVersion, m.Cache.Config().Type)
}
