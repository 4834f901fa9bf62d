package step

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"grove/internal/compute"
	"grove/internal/engine/plan"
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/mmap"
	"grove/internal/text/token"
)

// Job is one caller's work in the model's next steps: a prompt's rows, a round of drafts, rows for a drafter, a text's
// states, a probe. It is called under the maker's lock, whoever leads.
type Job interface {
	// Need says what the job needs of the next step. The trunk has a slot. It first commits what an earlier round left.
	Need() (Need, error)
	// Place adds the job's rows to the step, as many as the scheduler gave it.
	Place(st *Step) error
	// Take reads the rows' results and commits, drops or keeps their nodes; done says that no further step is needed.
	Take(st *Step) (done bool, err error)
}

// Need lists the rows and the pages that a job needs of a step.
type Need struct {
	Rows         int           // that it needs at least: it gets these, or waits
	Decodes      bool          // of these, one gives a token: it is not put off for prompts
	Drafts       *plan.Planner // chooses further rows, which compete by what they promise; nil: there are none
	Prompt       int           // further rows, of which any number helps
	Text         []token.ID    // that the prompt rows compute, whose pages others may take over
	PageTokens   int           // tokens that pages are reserved for
	WindowTokens int           // the same for layers with a window, which pass pages on
	TakePages    func() error  // takes pages in another way; nil: in this
	Alone        bool          // the step is for this job alone
}

// Step is one forward pass and the trunks that share it, kept between steps for its room. Jobs use it during [Job.Place] and [Job.Take].
type Step struct {
	maker   *Maker
	called  []*Trunk // whose callers wait
	parts   []*Trunk // of these, those that may have rows; then those that have
	rounds  []*Trunk // of these, those with drafts to share rows among
	plans   []*plan.Planner
	clock   float64 // of the trunk that got prefill rows last
	ctx     owners
	current *Trunk        // whose rows are placed or taken
	size    plan.StepSize // of the rows that were placed; Depth is their sum
	partial bool          // a row skips layers
	seconds float64       // that the pass took
	asks    asks
}

// owners is the context of a step: it has ended when those of all its trunks have.
type owners struct {
	context.Context
	parts []*Trunk
}

// Err implements [context.Context].
func (o *owners) Err() (err error) {
	for _, t := range o.parts {
		if err = t.caller.Err(); err == nil {
			return nil
		}
	}
	return err
}

// makeStep makes a step of the jobs whose callers wait: it collects them, schedules their rows, runs these, and hands
// out the results. Where nothing can be done it returns after something has happened. The caller leads.
func (m *Maker) makeStep(lead *Trunk) {
	m.queue.AwaitReturning()
	events, worked := m.tryStep()
	if !worked {
		m.queue.Sleep(lead, events, idleGrace)
	}
}

func (m *Maker) tryStep() (events int, worked bool) {
	m.Lock()
	defer m.Unlock()
	st := &m.step
	st.called, events = m.queue.Callers(st.called[:0], m.admitted)
	ended := m.collect(st)
	if len(st.parts) == 0 {
		return events, ended
	}
	m.schedule(st)
	m.perform(st, st.parts)
	st.parts = st.parts[:0]
	return events, true
}

// collect ends the calls whose contexts have ended and picks the trunks that have a slot and pages, the first in rank
// first. It reports whether a call has ended.
func (m *Maker) collect(st *Step) (ended bool) {
	m.owe(st.called)
	slices.SortFunc(st.called, rank)
	m.takeTurns(st.called)
	st.parts, m.reserving = st.parts[:0], false
	for _, t := range st.called {
		fits, had, err := false, t.Seq >= 0, t.caller.Err()
		if err == nil {
			fits, err = m.fit(t)
		}
		older := func(o *Trunk) bool { return o.waits && o.arrival < t.arrival }
		if t.waits = !fits; fits && !had && slices.ContainsFunc(st.called, older) {
			m.passed++
		}
		switch {
		case err != nil:
			m.queue.Finish(t, err)
			ended = true
		case fits && t.need.Rows+t.need.Prompt == 0: // it wants a slot and pages alone
			_, err := t.job.Take(st)
			m.queue.Finish(t, err)
			ended = true
		case fits:
			st.parts = append(st.parts, t)
		}
	}
	return ended
}

// fit sees to a trunk's slot and pages: for all of a prompt, so that one is not begun that cannot be ended. It
// reports whether there are any; if not, the trunk waits. By itself a trunk has room for a context.
func (m *Maker) fit(t *Trunk) (bool, error) {
	had := t.Seq >= 0
	if !had && (m.reserving || m.Admit(t) != nil) {
		m.reserving = m.reserving || t.beside > 0 // those behind it in the queue leave the free slots to it
		return false, nil
	}
	if !had {
		m.order.Took(t.Owner)
	}
	err := m.feed(t)
	if err == nil {
		t.need, err = t.job.Need()
	}
	if err != nil {
		return false, err
	}
	take := t.need.TakePages
	if take == nil {
		take = func() error { return m.Cache.Reserve(t.Seq, t.need.PageTokens, t.need.WindowTokens) }
	}
	err = m.Reserve(t, take)
	if errors.Is(err, kv.ErrFull) && len(m.admitted) > 1 {
		return false, nil
	}
	return err == nil, err
}

// perform runs a step of the trunks' rows and hands out what came of it. Where it fails, each trunk's rows
// are run by themselves, so that a fault is only its own; and then without drafts.
func (m *Maker) perform(st *Step, parts []*Trunk) {
	start := time.Now()
	err := m.forward(st, parts)
	if err == nil {
		m.queue.Observe(time.Since(start))
		for _, t := range parts {
			m.deliver(st, t)
		}
		if !parts[0].need.Alone { // a probe is nobody's work
			rows, pages := len(m.Exec.Step.Rows()), m.Cache.Usage()
			m.Load.Note(func(l *Load) { l.Steps, l.Rows, l.Pages = l.Steps+1, l.Rows+rows, pages })
		}
		m.Exec.Step.Reset()
		st.asks.reset()
		return
	}
	if len(parts) > 1 {
		m.Load.Note(func(l *Load) { l.Failed++ })
	}
	for i, t := range parts {
		switch {
		case t.caller.Err() != nil:
			m.queue.Finish(t, t.caller.Err())
		case len(parts) > 1:
			m.perform(st, parts[i:i+1])
		case t.need.Drafts != nil && t.need.Drafts.Limit(0) > 0:
			m.perform(st, parts)
		default:
			m.queue.Finish(t, err)
		}
	}
}

// forward places the parts' rows and passes them through the model. On error nothing of the step is left.
func (m *Maker) forward(st *Step, parts []*Trunk) error {
	st.size, st.partial = plan.StepSize{}, false
	st.asks.reset()
	for _, t := range parts {
		st.current, t.first = t, len(st.asks.rows)
		if err := Guarded(func() error { return t.job.Place(st) }); err != nil {
			m.Exec.Step.Abort()
			return err
		}
		t.Rows = len(st.asks.rows) - t.first
	}
	st.ctx.parts = parts
	start := time.Now()
	err := mmap.Catch(m.run)
	if check := m.Model.Info().Check; err == nil && check != nil {
		err = check()
	}
	if err != nil {
		m.Exec.Step.Abort()
		return err
	}
	st.seconds = time.Since(start).Seconds()
	m.observe(st)
	m.dropAsks(st)
	return nil
}

// dropAsks ends the masks that asked for next tokens.
func (m *Maker) dropAsks(st *Step) {
	for _, t := range st.ctx.parts {
		for i := t.first; i < t.first+t.Rows; i++ {
			if at := st.asks.masks[i]; at != none {
				_ = m.Cache.Drop(t.Seq, m.Exec.Step.Rows()[at].Node) // it lives: this cannot fail
			}
		}
	}
}

// observe corrects what is known of the cost of steps by one that ran all layers.
func (m *Maker) observe(st *Step) {
	if !st.partial {
		size := st.size
		size.Mean()
		size.Experts = m.Exec.Touched()
		m.Costs.Observe(size, st.seconds)
	}
}

// deliver hands a trunk the results of its rows, and ends the call where that is all. The rows of one whose
// context has ended are dropped.
func (m *Maker) deliver(st *Step, t *Trunk) {
	err, done := t.caller.Err(), true
	if err == nil {
		st.current = t
		err = Guarded(func() (err error) {
			done, err = t.job.Take(st)
			return err
		})
	}
	if err != nil {
		t.Drop()
	}
	if err != nil || done {
		t.timed = false
		m.queue.Finish(t, err)
	}
}

// Add adds a row of the current trunk to the step.
func (st *Step) Add(r forest.Row) (forest.Node, error) {
	m, t := st.maker, st.current
	r.Seq = t.Seq
	m.adapt(t, &r)
	parts := r.SkipAttention.Union(r.SkipFeedForward).Len() > 0
	if parts && m.Model.Info().AttentionShare == 0 {
		return forest.Trunk, fmt.Errorf("engine: a row that skips parts of layers; %s runs layers as a whole", m.Model.Info().Arch)
	}
	n, more, err := st.asks.add(m.Exec.Step, r)
	if err != nil {
		return n, err
	}
	st.size.Add(1+more, t.Len())
	if r.Want.Head() {
		st.size.Logits++
	}
	st.partial = st.partial || r.To != 0 || r.From != 0 || r.Skip.Len() > 0 || r.Substitute || parts
	return n, nil
}

// Path adds tokens behind the current trunk's end, all of them as row says.
func (st *Step) Path(n int, row func(i int) forest.Row) (end forest.Node, err error) {
	for i := range n {
		r := row(i)
		r.Parent = end
		if end, err = st.Add(r); err != nil {
			return end, err
		}
	}
	return end, nil
}

// Result returns what the current trunk's row of a number gave.
func (st *Step) Result(row int) *compute.Result {
	return st.asks.result(st.maker.Exec, st.current.first+row)
}

// Placed returns the current trunk's row of a number.
func (st *Step) Placed(row int) *forest.Placed {
	return &st.maker.Exec.Step.Rows()[st.asks.rows[st.current.first+row]]
}

// Rows returns how many rows the scheduler gave the current trunk, or, in [Job.Take], how many it placed.
func (st *Step) Rows() int { return st.current.Rows }

// Seconds returns how long the pass took, in [Job.Take].
func (st *Step) Seconds() float64 { return st.seconds }

// Partial says that the step's time tells nothing of steps of its size.
func (st *Step) Partial() { st.partial = true }
