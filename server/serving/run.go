package serving

import (
	"context"
	"errors"
	"sync"
	"time"

	"grove"
	"grove/engine"
	"grove/server/wire"
	"grove/text/token"
)

// A Job is the answers that a request asks for: n to each prompt, those to one prompt side by side.
type Job struct {
	Answers []*grove.Generation
	host    *Host
	id      string // of the request
	n       int
	timed   bool            // each token comes with timings
	ctx     context.Context // ends with the client's, the pool, or the job
	cancel  context.CancelCauseFunc
	timeout context.CancelFunc
}

// Order is what a request wants computed.
type Order struct {
	ID       string          // of the request
	Requests []grove.Request // one for each prompt
	N        int             // answers to each
	Timed    bool            // each token comes with timings
	Timeout  time.Duration   // 0: none
	Session  string          // name of a file that keeps what is computed; "": none
}

// Prepare makes a job, which the caller closes. Nothing is computed; what is wrong with a request is found here.
func (h *Host) Prepare(ctx context.Context, o Order) (*Job, error) {
	if len(o.Requests) == 0 {
		return nil, wire.Refuse("prompt", "there is no prompt")
	}
	if o.N < 1 || o.N > wire.MaxChoices {
		return nil, wire.Refuse("n", "n is %d; it must be from 1 to %d", o.N, wire.MaxChoices)
	}
	if total := o.N * len(o.Requests); total > wire.MaxAnswers {
		return nil, wire.Refuse("n", "%d prompts with %d answers each; at most %d answers", len(o.Requests), o.N, wire.MaxAnswers)
	}
	if err := h.pool.keep(&o); err != nil {
		return nil, err
	}
	j := &Job{host: h, id: o.ID, n: o.N, timed: o.Timed, timeout: func() {}}
	if o.Timeout > 0 {
		ctx, j.timeout = context.WithTimeout(ctx, o.Timeout)
	}
	j.ctx, j.cancel = h.pool.Within(ctx)
	for _, r := range o.Requests {
		for i := range o.N {
			r.SampleIndex = i
			g, err := h.Model.Generate(j.ctx, r)
			if err != nil {
				j.Close()
				return nil, wire.RefusalOf(err)
			}
			seed := g.Stats().Seed
			r.Seed = &seed // of all answers to the prompt: their numbers set them apart
			j.Answers = append(j.Answers, g)
		}
	}
	return j, nil
}

// Close ends what is left of a job.
func (j *Job) Close() {
	j.cancel(nil)
	j.timeout()
}

// Event is news of an answer, in order: its tokens, then that it is done.
type Event struct {
	Answer  int // -1: none has news; the time of a sign of life has come
	Token   grove.Token
	Timings *Timings // so far; nil: not asked for
	Done    bool
	err     error
}

// Run computes a job and calls emit with its news, from one goroutine. It ends with the first error, of an answer, of
// emit, or of the job's context; then nothing of the job goes on.
func (j *Job) Run(emit func(Event) error) error {
	h := j.host
	workers := min(len(j.Answers), h.Info.Parallel)
	if err := h.take(workers); err != nil {
		return err
	}
	events := make(chan Event)
	next := make(chan int, len(j.Answers))
	for i := range j.Answers {
		next <- i
	}
	close(next)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			defer h.give(1)
			for i := range next {
				j.compute(i, events)
			}
		})
	}
	err := j.follow(events, emit)
	j.cancel(err)
	all.Wait()
	return err
}

// follow passes news on until all answers are done.
func (j *Job) follow(events <-chan Event, emit func(Event) error) error {
	every := j.host.pool.config.KeepAlive
	life := time.NewTicker(every)
	defer life.Stop()
	for left := len(j.Answers); left > 0; {
		e := Event{Answer: -1}
		select {
		case e = <-events:
			life.Reset(every)
		case <-life.C:
		case <-j.ctx.Done():
			return context.Cause(j.ctx)
		}
		if e.err != nil {
			return e.err
		}
		if e.Done {
			left--
		}
		if err := emit(e); err != nil {
			return err
		}
	}
	return nil
}

// compute computes an answer and sends its news.
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

// generate is compute without the last word. A panic fails the job alone.
func (j *Job) generate(i int, send func(Event) bool) (err error) {
	g, m := j.Answers[i], j.host.pool.metrics
	slot := &Slot{Request: j.id, Prompt: len(g.Prompt())}
	j.host.enter(slot)
	defer j.host.leave(slot)
	start := time.Now()
	defer func() {
		if fault := recover(); fault != nil {
			j.host.pool.Fault(fault)
			err = wire.ErrInternal
		}
		m.end(g.Stats(), time.Since(start), err)
	}()
	pace := m.watch()
	guessed := 0
	for t, err := range g.Tokens() {
		if errors.Is(err, engine.ErrSession) {
			j.host.pool.config.Log.Error("session", "model", j.host.Name, "error", err)
		}
		if err != nil {
			return causeOf(j.ctx, err)
		}
		e := Event{Token: t}
		if t.ID != token.None {
			pace.token()
			j.host.count(slot)
			if g.Drafted() {
				guessed++
			}
			if j.timed {
				e.Timings = new(Timings)
				e.Timings.add(g.Stats())
				e.Timings.DraftAccepted = guessed
				e.Timings.finish()
			}
		}
		if !send(e) {
			return context.Cause(j.ctx)
		}
	}
	return nil
}
