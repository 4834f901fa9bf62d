package bench

import (
	"context"
	"os"

	"grove/internal/engine"
	"grove/internal/machine"
	"grove/internal/par"
	"grove/internal/par/schedule"
	"grove/internal/stat"
)

// ScalingOptions is the options of [Model.Scaling].
type ScalingOptions struct {
	Rows      []int   // sizes of steps
	Threads   []int   // numbers of threads
	Depth     int     // tokens of the trunk before the rows
	Repeat    int     // turns; 0: 5
	Simulate  bool    // predict the steps, on more threads than the process may use too
	Bandwidth float64 // that the memory of the predicted machine has, in bytes a second; 0: as measured
}

// scaled is a number of threads in the measurement of one size of step.
type scaled struct {
	threads      int
	real, traced *engine.Engine // nil: it is not measured, not simulated
	trace        *par.Trace
	pools        []*par.Pool
	seconds      stat.Sample
	steps        []schedule.Step
}

// Scaling measures steps on the numbers of threads that the process has processors for, and predicts them on any number.
func (m *Model) Scaling(ctx context.Context, o ScalingOptions, progress Progress) (*schedule.Report, error) {
	if o.Repeat == 0 {
		o.Repeat = 5
	}
	r := &schedule.Report{Title: m.Title()}
	if o.Simulate {
		r.Machine = m.machine(o)
	}
	all, err := m.scaled(o)
	defer func() {
		for _, s := range all {
			for _, p := range s.pools {
				p.Close()
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	for i, rows := range o.Rows {
		for turn := range o.Repeat + 1 { // the first warms up and does not count
			for _, s := range all {
				if err := s.turn(ctx, engine.Probe{Rows: rows, Depth: o.Depth, Layers: len(m.model.Info().Layers), Logits: rows}, turn > 0); err != nil {
					return nil, err
				}
			}
			progress.show(i*(o.Repeat+1)+turn+1, len(o.Rows)*(o.Repeat+1))
		}
		for _, s := range all {
			r.Add(rows, s.threads, s.seconds, s.steps)
			s.seconds, s.steps = nil, nil
		}
	}
	return r, nil
}

// PairRows are the sizes of steps that [Model.Pair] predicts: those between are taken to lie between.
var PairRows = []int{1, 2, 3, 5, 9, 17}

// Pair predicts drafting by a model before the steps and beside them, for drafts that are accepted with a probability.
func (m *Model) Pair(ctx context.Context, draft *Model, accept float64, o ScalingOptions, progress Progress) (p *schedule.Pair, err error) {
	p, o.Simulate, o.Rows = &schedule.Pair{Accept: accept}, true, PairRows
	if p.Target, err = m.Scaling(ctx, o, progress); err != nil {
		return nil, err
	}
	o.Rows = PairRows[:1]
	p.Draft, err = draft.Scaling(ctx, o, progress)
	return p, err
}

// scaled opens engines for the numbers of threads. The caller closes them, also behind an error.
func (m *Model) scaled(o ScalingOptions) (all []*scaled, err error) {
	for _, n := range o.Threads {
		s := &scaled{threads: n}
		all = append(all, s)
		if n <= par.Threads() {
			if s.real, err = s.open(m, par.New(n)); err != nil {
				return all, err
			}
		}
		if o.Simulate {
			pool, trace := par.NewTraced(n)
			s.trace = trace
			if s.traced, err = s.open(m, pool); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

func (s *scaled) open(m *Model, pool *par.Pool) (*engine.Engine, error) {
	s.pools = append(s.pools, pool)
	return engine.New(m.model, pool, m.config)
}

// turn runs a step once on each engine, and keeps its times where it counts.
func (s *scaled) turn(ctx context.Context, p engine.Probe, counts bool) error {
	if s.real != nil {
		seconds, _, err := s.real.Probe(ctx, p, 1)
		if err != nil {
			return err
		}
		if counts {
			s.seconds = append(s.seconds, seconds[0])
		}
	}
	if s.traced == nil {
		return nil
	}
	s.trace.Reset()
	seconds, _, err := s.traced.Probe(ctx, p, 1)
	if err != nil || !counts {
		return err
	}
	s.steps = append(s.steps, schedule.Of(s.trace.Runs, seconds[0]))
	return nil
}

// machine measures what the threads of a step share.
func (m *Model) machine(o ScalingOptions) *schedule.Machine {
	info := m.model.Info()
	c := &schedule.Machine{Slowdown: 1, Bandwidth: o.Bandwidth, Nodes: machine.MemoryNodes(os.DirFS("/"))}
	c.Handoff, c.Claim = schedule.Measure()
	rate := 0.0 // of one thread
	for n := 1; n <= min(2, par.Threads()); n++ {
		pool := par.New(n)
		l := newLimits(pool, max(info.Bytes-info.IdleBytes, kernelBytes), info.Type)
		for range o.Repeat + 1 {
			l.turn()
		}
		pool.Close()
		c.Reads = append(c.Reads, l.bandwidth())
		if n == 1 {
			rate = l.rate()
		} else {
			c.Slowdown = max(1, 2*rate/l.rate())
		}
	}
	return c
}
