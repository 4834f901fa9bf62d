package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"grove"
	"grove/internal/text/token"
	"grove/server/access"
	"grove/server/traces"
	"grove/server/wire"
)

// Spec says which answers a job computes.
type Spec struct {
	RequestID string          // of the HTTP request, for the list of slots and for traces
	Operation string          // for traces: [traces.Chat]; "": [traces.Completion]
	Prompts   []grove.Request // one for each prompt
	N         int             // answers to each
	Timed     bool            // each token comes with timings
	Watched   bool            // events tell how far a canvas is
	Searching bool            // events tell how far a search is
	Timeout   time.Duration   // 0: none
	Session   string          // name of the file that keeps the keys and values; "": none

	// Cut makes a function for each answer. It takes the tokens of the answer and reports whether this ends behind one; nil: none does.
	Cut func() func(grove.Token) bool
}

// Job computes the answers to a request: N to each prompt, those to one prompt side by side.
type Job struct {
	Answers []*grove.Generation
	spec    Spec
	ids     [][]token.ID // the tokens of each answer
	model   *OpenModel
	ctx     context.Context // ends with the client's, the pool, or the job
	cancel  context.CancelCauseFunc
	unsaved error
	timeout context.CancelFunc

	working atomic.Int64 // workers that have not ended
	lent    int          // places that are given back while the client takes nothing
}

// Prepare checks a request and makes its job, which the caller closes. Nothing is computed yet.
func (h *OpenModel) Prepare(ctx context.Context, r Spec) (*Job, error) {
	n := len(r.Prompts)
	switch {
	case n == 0:
		return nil, wire.Refuse("prompt", "there is no prompt")
	case r.N < 1 || r.N > wire.MaxChoices:
		return nil, wire.Refuse("n", "n is %d; it must be from 1 to %d", r.N, wire.MaxChoices)
	case r.N*n > wire.MaxAnswers:
		return nil, wire.Refuse("n", "%d prompts with %d answers each; at most %d answers", n, r.N, wire.MaxAnswers)
	}
	caller := access.CallerOf(ctx)
	if err := h.pool.keep(caller, &r); err != nil {
		return nil, err
	}
	priority := access.Urgency(ctx, -r.Prompts[0].Priority)
	if err := caller.MayAsk(priority); err != nil {
		return nil, err
	}
	j := &Job{model: h, spec: r, timeout: func() {}, ids: make([][]token.ID, n*r.N)}
	if r.Timeout > 0 {
		ctx, j.timeout = context.WithTimeout(ctx, r.Timeout)
	}
	j.ctx, j.cancel = h.pool.Within(ctx)
	outside := outsideOf(ctx)
	if outside != nil {
		outside.Computes(h)
	}
	for _, p := range r.Prompts {
		if outside != nil {
			p.CacheSalt = outside.Salt(p.CacheSalt)
		}
		p.CacheSalt, p.Priority = caller.Salt(p.CacheSalt), -priority
		for i := range r.N {
			p.SampleIndex = i
			if outside != nil {
				p.Drafts = outside.Drafts(len(j.Answers))
			}
			g, err := h.Model.Generate(j.ctx, p)
			if err != nil {
				j.Close()
				return nil, wire.RefusalOf(err)
			}
			seed := g.Stats().Seed
			p.Seed = &seed // all answers to the prompt share it: the sample index sets them apart
			if !p.Heal && !p.HealExact {
				p.PromptIDs = g.Prompt()
			}
			j.Answers = append(j.Answers, g)
		}
	}
	return j, nil
}

// keep sets the file of the session that a request names, if it names one.
func (p *Pool) keep(c *access.Caller, r *Spec) (err error) {
	if r.Session == "" {
		return nil
	}
	path, err := p.config.Sessions.Keep(c, r.Session)
	var known *wire.Error
	switch {
	case err != nil && !errors.As(err, &known):
		p.config.Log.Error("a session cannot be opened", "key", c.Name(), "error", err)
		return fmt.Errorf("%w: %w", grove.ErrSession, err)
	case err != nil:
		return err
	case r.N != 1 || len(r.Prompts) != 1:
		return wire.Refuse("session", "session: %d prompts with %d answers each; a session keeps one answer", len(r.Prompts), r.N)
	}
	r.Prompts[0].Session = path
	return nil
}

// Tokens returns the tokens of an answer that are computed. The caller must not change them.
func (j *Job) Tokens(answer int) []token.ID { return j.ids[answer] }

// Close cancels the answers that have not ended.
func (j *Job) Close() {
	j.cancel(nil)
	j.timeout()
}

// Event is a token of an answer, or its end.
type Event struct {
	Answer  int // -1: no answer has an event, and [Config.KeepAlive] has passed
	Token   grove.Token
	Timings *Timings              // up to the token; nil: not asked for
	Done    bool                  // the answer has ended
	Canvas  []grove.CanvasRun     // of a model of masked diffusion, before a pass; nil: the event is no such one
	Search  *grove.SearchProgress // nil: the event is none of a search
	err     error
}

// searchEvery is the least time between two events of a search.
const searchEvery = 250 * time.Millisecond

// Unsaved returns the error by which the session of the answer could not be kept. It is known once [Job.Run] has returned.
func (j *Job) Unsaved() error { return j.unsaved }

// CheckQueue returns the error by which [Job.Run] would refuse the job now: the queue is full, or the server stops. It reserves nothing.
func (j *Job) CheckQueue() error {
	switch {
	case j.model.pool.Ending():
		return wire.ErrStopping
	case j.model.places.Load()+int64(j.workers()) > j.model.most():
		return wire.ErrBusy
	}
	return nil
}

// Pause tells that the client takes no events for now, or takes them again. Meanwhile the answers wait without places, so that others are
// taken; once the client takes events again, there may be more answers than places. Only emit of [Job.Run] calls it.
func (j *Job) Pause(paused bool) {
	if !paused {
		j.model.places.Add(int64(j.lent))
		j.lent = 0
		return
	}
	j.lent = int(j.working.Load())
	j.model.release(j.lent)
}

// workers is the number of answers that are computed at a time.
func (j *Job) workers() int { return min(len(j.Answers), j.model.Info.Parallel) }

// Run computes the answers and calls emit with their events, from one goroutine and in the order of each answer. It ends with
// the first error: of an answer, of emit, or of the job's context. Nothing of the job runs when it returns.
func (j *Job) Run(emit func(Event) error) (err error) {
	workers := j.workers()
	if err := j.model.admit(workers); err != nil {
		return err
	}
	events := make(chan Event)
	next := make(chan int, len(j.Answers))
	for i := range j.Answers {
		next <- i
	}
	close(next)
	var all sync.WaitGroup
	j.working.Store(int64(workers))
	for range workers {
		all.Go(func() {
			defer j.model.release(1)
			defer j.working.Add(-1)
			for i := range next {
				j.compute(i, events)
			}
		})
	}
	defer func() { // also where emit panics
		j.cancel(err)
		all.Wait()
		tokens := j.Usage().TotalTokens
		access.CallerOf(j.ctx).Spend(tokens)
		if outside := outsideOf(j.ctx); outside != nil {
			outside.Spent(tokens)
		}
	}()
	return j.follow(events, emit)
}

// follow passes events on until all answers have ended.
func (j *Job) follow(events <-chan Event, emit func(Event) error) error {
	every := j.model.pool.config.KeepAlive
	alive := time.NewTicker(every)
	defer alive.Stop()
	for left := len(j.Answers); left > 0; {
		e := Event{Answer: -1}
		select {
		case e = <-events:
			alive.Reset(every)
		case <-alive.C:
		case <-j.ctx.Done():
			return context.Cause(j.ctx)
		}
		switch {
		case e.err != nil:
			return e.err
		case e.Done:
			left--
		case e.Answer >= 0 && e.Token.ID != token.None:
			j.ids[e.Answer] = append(j.ids[e.Answer], e.Token.ID)
		}
		if err := emit(e); err != nil {
			return err
		}
	}
	return nil
}

// compute computes an answer and sends its events.
func (j *Job) compute(i int, events chan<- Event) {
	send := func(e Event) bool {
		e.Answer = i
		select {
		case events <- e:
			return true
		case <-j.ctx.Done():
			return false
		}
	}
	if j.ctx.Err() != nil {
		return
	}
	send(Event{Done: true, err: j.generate(i, send)})
}

// generate computes an answer and sends its tokens. A panic fails the job alone.
func (j *Job) generate(i int, send func(Event) bool) (err error) {
	g, m := j.Answers[i], j.model.pool.metrics
	slot := &Slot{Request: j.spec.RequestID, Owner: access.CallerOf(j.ctx).Folder(), Prompt: len(g.Prompt())}
	j.model.enter(slot)
	defer j.model.leave(slot)
	start := time.Now()
	defer func() {
		m.end(j.ctx, g.Stats(), time.Since(start), err)
		traces.Report(j.ctx, func() traces.Answer { return j.traced(g, start, err) })
	}()
	defer j.model.pool.Guard(j.ctx, &err)
	latency := m.watch(j.ctx)
	drafted, cut := 0, func(grove.Token) bool { return false }
	if j.spec.Cut != nil {
		cut = j.spec.Cut()
	}
	if j.spec.Watched {
		g.WatchCanvas(func(c []grove.CanvasRun) { send(Event{Token: grove.Token{ID: token.None}, Canvas: c}) })
	}
	if j.spec.Searching {
		var next time.Time
		g.WatchSearch(func(p grove.SearchProgress) {
			if now := time.Now(); !now.Before(next) {
				next = now.Add(searchEvery)
				send(Event{Token: grove.Token{ID: token.None}, Search: &p})
			}
		})
	}
	for t, err := range g.Tokens() {
		if errors.Is(err, grove.ErrSession) {
			j.model.pool.config.Log.ErrorContext(j.ctx, "a session failed", "model", j.model.Name, "error", err)
			if g.Stats().Finish != "" { // the answer is whole
				j.unsaved = err
				return nil
			}
		}
		if err != nil {
			return CauseOf(j.ctx, err)
		}
		e := Event{Token: t}
		if t.ID != token.None {
			latency.token()
			j.model.count(slot)
			if g.Drafted() {
				drafted++
			}
			if j.spec.Timed {
				e.Timings = new(Timings)
				e.Timings.add(g.Stats())
				e.Timings.DraftAccepted = drafted
				e.Timings.finish()
			}
		}
		if !send(e) {
			return context.Cause(j.ctx)
		}
		if cut(t) {
			g.Stop()
		}
	}
	return nil
}

// traced returns what traces tell of an answer that ended with err.
func (j *Job) traced(g *grove.Generation, start time.Time, err error) traces.Answer {
	a := traces.Answer{
		Operation: cmp.Or(j.spec.Operation, traces.Completion), Model: j.model.Name, ID: j.spec.RequestID, Request: g.Request(), Stats: g.Stats(), Start: start,
	}
	if a.Reason = Reason(a.Stats.Finish); err != nil {
		a.Fault = wire.ErrorOf(err).Label()
	}
	return a
}
