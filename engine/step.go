package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"grove/compute"
	"grove/engine/plan"
	"grove/forest"
	"grove/internal/guard"
	"grove/internal/mmap"
	"grove/kv"
	"grove/text/token"
)

// job is what one caller wants of the model's next steps: a prompt's rows, a round of drafts, rows for a drafter, a text's
// states, a probe. The engine calls it under its lock, whoever leads; one file a kind.
type job interface {
	// begin prepares the trunk, before it has a slot: it commits what an earlier round left.
	begin() error
	// need says what the job needs of the next step. The trunk has a slot.
	need() (need, error)
	// place adds the job's rows to the step, as many as the scheduler gave it.
	place(st *step) error
	// take reads the rows' results and commits, drops or keeps their nodes; done says that no further step is needed.
	take(st *step) (done bool, err error)
	// simpler asks for less after a step failed by itself, and reports whether there is less to ask for.
	simpler() bool
}

// need is what a job needs of a step.
type need struct {
	rows    int           // that it needs at least: it gets these, or waits
	decodes bool          // of these, one gives a token: it is not put off for prompts
	drafts  *plan.Planner // chooses further rows, which compete by what they promise; nil: there are none
	prompt  int           // further rows, of which any number helps
	text    []token.ID    // that the prompt rows compute, whose pages others may take over
	ahead   int           // tokens that pages are reserved for
	near    int           // the same for layers with a window, which pass pages on
	take    func() error  // takes pages in another way; nil: in this
	alone   bool          // the step is for this job alone
}

// step is one forward pass and the trunks that share it, kept between steps for its room.
type step struct {
	e       *Engine
	called  []*trunk // whose callers wait
	parts   []*trunk // of these, those that may have rows; then those that have
	rounds  []*trunk // of these, those with drafts to share rows among
	plans   []*plan.Planner
	clock   float64 // of the trunk that got prefill rows last
	ctx     owners
	current *trunk        // whose rows are placed or taken
	size    plan.StepSize // of the rows that were placed; Depth is their sum
	partial bool          // a row skips layers
	seconds float64       // that the pass took
}

// owners is the context of a step: it has ended when those of all its trunks have.
type owners struct {
	context.Context
	parts []*trunk
}

// Err implements [context.Context].
func (o *owners) Err() (err error) {
	for _, t := range o.parts {
		if err = t.caller.Gone(); err == nil {
			return nil
		}
	}
	return err
}

// makeStep makes a step of the jobs whose callers wait: it collects them, schedules their rows, runs these, and hands
// out the results. Where nothing can be done it returns after something has happened. The caller leads.
func (e *Engine) makeStep(lead *trunk) {
	e.queue.Gather()
	events, worked := e.tryStep()
	if !worked {
		e.queue.Sleep(lead, events, idleGrace)
	}
}

func (e *Engine) tryStep() (events int, worked bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	st := &e.step
	st.called, events = e.queue.Callers(st.called[:0], e.admitted)
	ended := e.collect(st)
	if len(st.parts) == 0 {
		return events, ended
	}
	e.schedule(st)
	e.perform(st, st.parts)
	st.parts = st.parts[:0]
	return events, true
}

// collect ends the calls whose contexts have ended and picks the trunks that have a slot and pages, the first in rank
// first. It reports whether a call has ended.
func (e *Engine) collect(st *step) (ended bool) {
	e.owe(st.called)
	slices.SortFunc(st.called, rank)
	st.parts = st.parts[:0]
	for _, t := range st.called {
		err := t.caller.Gone()
		if err == nil {
			err = guard.Call(t.job.begin)
		}
		fits, had := false, t.seq >= 0
		if err == nil {
			fits, err = e.fit(t)
		}
		older := func(o *trunk) bool { return o.waits && o.arrival < t.arrival }
		if t.waits = !fits; fits && !had && slices.ContainsFunc(st.called, older) {
			e.passed++
		}
		switch {
		case err != nil:
			e.queue.Finish(t, err)
			ended = true
		case fits && t.need.rows+t.need.prompt == 0: // it wants a slot and pages alone
			_, err := t.job.take(st)
			e.queue.Finish(t, err)
			ended = true
		case fits:
			st.parts = append(st.parts, t)
		}
	}
	return ended
}

// fit sees to a trunk's slot and pages: for all of a prompt, so that one is not begun that cannot be ended. It
// reports whether there are any; if not, the trunk waits. By itself a trunk has room for a context.
func (e *Engine) fit(t *trunk) (bool, error) {
	if e.admit(t) != nil {
		return false, nil
	}
	err := e.feed(t)
	if err == nil {
		t.need, err = t.job.need()
	}
	if err != nil {
		return false, err
	}
	take := t.need.take
	if take == nil {
		take = func() error { return e.cache.Reserve(t.seq, t.need.ahead, t.need.near) }
	}
	err = e.reserve(t, take)
	if errors.Is(err, kv.ErrFull) && len(e.admitted) > 1 {
		return false, nil
	}
	return err == nil, err
}

// perform runs a step of the trunks' rows and hands out what came of it. Where it fails, each trunk's rows
// are run by themselves, so that a fault is only its own; and then less of them, if the job can do with less.
func (e *Engine) perform(st *step, parts []*trunk) {
	start := time.Now()
	err := e.forward(st, parts)
	if err == nil {
		e.queue.Took(time.Since(start))
		for _, t := range parts {
			e.deliver(st, t)
		}
		if !parts[0].need.alone { // a probe is nobody's work
			rows, pages := len(e.exec.Step.Rows()), e.cache.Usage()
			e.load.Note(func(l *Load) { l.Steps, l.Rows, l.Pages = l.Steps+1, l.Rows+rows, pages })
		}
		e.exec.Step.Reset()
		return
	}
	if len(parts) > 1 {
		e.load.Note(func(l *Load) { l.Failed++ })
	}
	for i, t := range parts {
		switch {
		case t.caller.Gone() != nil:
			e.queue.Finish(t, t.caller.Gone())
		case len(parts) > 1:
			e.perform(st, parts[i:i+1])
		case t.job.simpler():
			e.perform(st, parts)
		default:
			e.queue.Finish(t, err)
		}
	}
}

// forward places the parts' rows and passes them through the model. On error nothing of the step is left.
func (e *Engine) forward(st *step, parts []*trunk) error {
	st.size, st.partial = plan.StepSize{}, false
	for _, t := range parts {
		st.current, t.first = t, len(e.exec.Step.Rows())
		if err := guard.Call(func() error { return t.job.place(st) }); err != nil {
			e.exec.Step.Abort()
			return err
		}
		t.rows = len(e.exec.Step.Rows()) - t.first
	}
	st.ctx.parts = parts
	start := time.Now()
	err := mmap.Catch(e.run)
	if check := e.model.Info().Check; err == nil && check != nil {
		err = check()
	}
	if err != nil {
		e.exec.Step.Abort()
		return err
	}
	st.seconds = time.Since(start).Seconds()
	e.observe(st)
	return nil
}

// observe corrects what is known of the cost of steps by one that ran all layers.
func (e *Engine) observe(st *step) {
	if !st.partial {
		size := st.size
		size.Mean()
		size.Experts = e.exec.Touched()
		e.costs.Observe(size, st.seconds)
	}
}

// deliver hands a trunk the results of its rows, and ends the call where that is all. The rows of one whose
// context has ended are dropped.
func (e *Engine) deliver(st *step, t *trunk) {
	err, done := t.caller.Gone(), true
	if err == nil {
		st.current = t
		err = guard.Call(func() (err error) {
			done, err = t.job.take(st)
			return err
		})
	}
	if err != nil {
		t.drop()
	}
	if err != nil || done {
		t.timed = false
		e.queue.Finish(t, err)
	}
}

// add adds a row of the current trunk to the step.
func (st *step) add(r forest.Row) (forest.Node, error) {
	e, t := st.e, st.current
	r.Seq = t.seq
	e.adapt(t, &r)
	n, err := e.exec.Step.Add(r)
	if err != nil {
		return n, err
	}
	st.size.Add(1, t.length())
	if r.Want.Head() {
		st.size.Logits++
	}
	st.partial = st.partial || r.To != 0 || r.From != 0 || r.Skip.Len() > 0
	return n, nil
}

// path adds tokens behind the current trunk's end, all of them as row says.
func (st *step) path(n int, row func(i int) forest.Row) (end forest.Node, err error) {
	for i := range n {
		r := row(i)
		r.Parent = end
		if end, err = st.add(r); err != nil {
			return end, err
		}
	}
	return end, nil
}

// result returns what the current trunk's row of a number gave.
func (st *step) result(row int) *compute.Result { return st.e.exec.Result(st.current.first + row) }

// placed returns the current trunk's row of a number.
func (st *step) placed(row int) *forest.Placed { return &st.e.exec.Step.Rows()[st.current.first+row] }
