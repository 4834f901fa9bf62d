package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"grove"
	"grove/token"
)

// A job is the answers that a request asks for: n to each prompt, those to one prompt side by side.
type job struct {
	host    *host
	request string // its id
	answers []*answer
	ctx     context.Context // ends with the client's, the server, or the job
	cancel  context.CancelCauseFunc
}

// close ends what is left of a job.
func (j *job) close() { j.cancel(nil) }

// answer is one answer on its way.
type answer struct {
	generation *grove.Generation
	prompt     *answer       // the first answer to the same prompt, which computes it; itself
	computed   chan struct{} // closed when the prompt is, or never will be
}

// prepare makes a job of requests, which the caller closes. Nothing is computed; what is wrong with a request is found
// here.
func (s *Server) prepare(ctx context.Context, h *host, id string, requests []grove.Request, n int) (*job, error) {
	if len(requests) == 0 {
		return nil, refuse("prompt", "there is no prompt")
	}
	if n < 1 || n > maxChoices {
		return nil, refuse("n", "n is %d; it must be from 1 to %d", n, maxChoices)
	}
	if total := n * len(requests); total > maxAnswers {
		return nil, refuse("n", "%d prompts with %d answers each; at most %d answers", len(requests), n, maxAnswers)
	}
	j := &job{host: h, request: id}
	j.ctx, j.cancel = s.within(ctx)
	for _, r := range requests {
		first := &answer{computed: make(chan struct{})}
		for i := range n {
			a := &answer{prompt: first}
			if i == 0 {
				a = first
				a.prompt = a
			}
			r.Choice = i
			g, err := h.model.Generate(j.ctx, r)
			if err != nil {
				j.close()
				return nil, asRequestError(err)
			}
			seed := g.Stats().Seed
			r.Seed = &seed // of all answers to the prompt: their numbers set them apart
			a.generation = g
			j.answers = append(j.answers, a)
		}
	}
	return j, nil
}

// within returns a context that ends with a client's, or when the server does.
func (s *Server) within(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ending, func() { cancel(errStopping) })
	return ctx, func(cause error) {
		stop()
		cancel(cause)
	}
}

// asRequestError returns the answer for an error of a request that was not begun: what it does not name otherwise is
// the request's fault.
func asRequestError(err error) *apiError {
	e := asAPIError(err)
	if e.status == 500 {
		return refuse("", "%v", err)
	}
	return e
}

// event is news of an answer, in order: its tokens, then that it is done, or an error.
type event struct {
	answer int // -1: none has news; the time of a sign of life has come
	token  grove.Token
	done   bool
	err    error
}

// run computes a job and calls emit with its news, from one goroutine. It ends with the first error, of an answer, of
// emit, or of the job's context; then nothing of the job goes on.
func (s *Server) run(j *job, emit func(event) error) error {
	if err := s.admit(j.host); err != nil {
		return err
	}
	events := make(chan event)
	next := make(chan int, len(j.answers))
	for i := range j.answers {
		next <- i
	}
	close(next)
	var workers sync.WaitGroup
	admitted := sync.OnceFunc(s.leaveQueue)
	for range min(len(j.answers), len(j.host.slots)) {
		workers.Go(func() {
			for i := range next {
				s.compute(j, i, admitted, events)
			}
		})
	}
	err := s.follow(j.ctx, len(j.answers), events, emit)
	j.cancel(err)
	workers.Wait()
	admitted()
	return err
}

// follow passes news on until all answers are done.
func (s *Server) follow(ctx context.Context, left int, events <-chan event, emit func(event) error) error {
	life := time.NewTicker(s.config.KeepAlive)
	defer life.Stop()
	for left > 0 {
		e := event{answer: -1}
		select {
		case e = <-events:
			life.Reset(s.config.KeepAlive)
		case <-life.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if e.err != nil {
			return e.err
		}
		if e.done {
			left--
		}
		if err := emit(e); err != nil {
			return err
		}
	}
	return nil
}

// compute computes an answer in a slot and sends its news.
func (s *Server) compute(j *job, i int, admitted func(), events chan<- event) {
	send := func(e event) bool {
		e.answer = i
		select {
		case events <- e:
			return true
		case <-j.ctx.Done():
			return false
		}
	}
	a := j.answers[i]
	if err := s.generate(j, a, admitted, func(t grove.Token) bool { return send(event{token: t}) }); err != nil {
		send(event{err: err})
		return
	}
	send(event{done: true})
}

// generate is compute without a word. A panic fails the answer alone.
func (s *Server) generate(j *job, a *answer, admitted func(), send func(grove.Token) bool) (err error) {
	h, ctx := j.host, j.ctx
	if a.prompt == a {
		defer closeOnce(a.computed)
	} else {
		select {
		case <-a.prompt.computed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	at, err := h.take(ctx, j.request, a.generation.Stats().PromptTokens)
	if err != nil {
		return err
	}
	defer h.give(at)
	admitted()
	s.metrics.begin()
	start := time.Now()
	defer func() {
		if fault := recover(); fault != nil {
			s.fault(fault)
			err = errInternal
		}
		s.metrics.end(a.generation.Stats(), time.Since(start), err)
	}()
	stats := s.metrics.watch()
	for t, err := range a.generation.Tokens() {
		if err != nil {
			if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
				return cause
			}
			return err
		}
		if t.ID != token.None {
			stats.token()
			h.count(at)
		}
		if a.prompt == a {
			closeOnce(a.computed)
		}
		if !send(t) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// closeOnce closes a channel that one goroutine alone closes.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// fault keeps what a panic left behind.
func (s *Server) fault(fault any) {
	s.metrics.faults.Inc()
	s.config.Log.Error("internal error", "fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
}

// admit lets a request wait for its turn, unless too many do.
func (s *Server) admit(h *host) error {
	if s.ending.Err() != nil {
		return errStopping
	}
	if int(s.waiting.Add(1)) > s.config.Queue+len(h.free) {
		s.leaveQueue()
		return errBusy
	}
	return nil
}

func (s *Server) leaveQueue() { s.waiting.Add(-1) }

// slot runs f, which computes something else than an answer, in a slot.
func (s *Server) slot(ctx context.Context, h *host, id string, f func(ctx context.Context) error) error {
	if err := s.admit(h); err != nil {
		return err
	}
	ctx, cancel := s.within(ctx)
	defer cancel(nil)
	at, err := h.take(ctx, id, 0)
	s.leaveQueue()
	if err != nil {
		return err
	}
	defer h.give(at)
	if err := f(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
			return cause
		}
		return err
	}
	return nil
}
