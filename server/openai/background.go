package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// The bounds of answers in the background.
const (
	maxTasks      = 64      // under way
	maxOwnTasks   = 16      // of them, those of one key
	maxTaskEvents = 4 << 20 // bytes of events that are kept of each
)

// aliveTime is how often a stream that waits for events gets a comment.
const aliveTime = 5 * time.Second

// errCancelled ends an answer in the background.
var errCancelled = errors.New("the response was cancelled")

// tasks counts the answers in the background that are under way.
type tasks struct {
	mu  sync.Mutex
	all int
	own map[string]int // by their owners
}

// task is an answer in the background. Its events are kept where the request asked for a stream.
type task struct {
	owner   string
	streams bool
	cancel  context.CancelCauseFunc
	begun   chan struct{} // closed when the answer has an id, or has ended
	done    chan struct{} // closed when it has ended
	answer  taskAnswer
	header  http.Header // that the request asks for, once it has begun
	err     error       // by which it ended before it began

	mu      sync.Mutex
	body    json.RawMessage // as it stands
	events  []taskEvent
	dropped int           // events before those that are kept
	bytes   int           // of those that are kept
	changed chan struct{} // closed when there is more
}

// taskAnswer is the answer that a task computes.
type taskAnswer interface {
	// response returns the answer as it stands.
	response() map[string]any
	// breakOff ends the answer by an error: it has failed, or was cancelled.
	breakOff(fault *wire.Error, cancelled bool) error
}

type taskEvent struct {
	kind string
	body json.RawMessage
}

// respond handles POST /v1/responses.
func (a *tasks) respond(x *driver.Request) error {
	var q responsesRequest
	if err := x.Read(&q); err != nil {
		return err
	}
	if !q.Background {
		return x.Generate(&q, driver.Events)
	}
	t, err := a.start(x, &q)
	if err != nil {
		return err
	}
	select {
	case <-t.begun:
	case <-x.R.Context().Done(): // nobody has the id
		t.cancel(errCancelled)
		return context.Cause(x.R.Context())
	}
	if t.err != nil {
		return t.err
	}
	for name, values := range t.header {
		if x.W.Header()[name] == nil {
			x.W.Header()[name] = values
		}
	}
	if t.streams {
		return t.follow(x, 0)
	}
	return x.Reply(t.now())
}

// start begins an answer in the background.
func (a *tasks) start(x *driver.Request, q *responsesRequest) (*task, error) {
	t := &task{owner: owner(x), streams: q.Stream, begun: make(chan struct{}), done: make(chan struct{}), changed: make(chan struct{})}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all >= maxTasks || a.own[t.owner] >= maxOwnTasks {
		e := *wire.ErrBusy
		e.Message = fmt.Sprintf("too many responses are in the background: %d of a key, %d of all, at most", maxOwnTasks, maxTasks)
		return nil, &e
	}
	if a.own == nil {
		a.own = map[string]int{}
	}
	a.all++
	a.own[t.owner]++
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(x.R.Context()))
	t.cancel = cancel
	q.made.task, q.Stream = t, false
	r := x.R.Clone(ctx)
	r.Body = http.NoBody
	go a.run(x.Server, r, q, x.Detach())
	return t, nil
}

// run computes the answer as one to a request of its own, whose client reads nothing.
func (a *tasks) run(s *driver.Server, r *http.Request, q *responsesRequest, body *serving.Held) {
	t := q.made.task
	var fault error
	answered := false
	defer func() {
		a.mu.Lock()
		a.all--
		if a.own[t.owner]--; a.own[t.owner] == 0 {
			delete(a.own, t.owner)
		}
		a.mu.Unlock()
		t.cancel(nil)
		close(t.done)
	}()
	route := driver.Route{Handle: func(x *driver.Request) error {
		x.Adopt(body)
		fault = x.Generate(q, driver.Events)
		answered = true
		return fault
	}}
	s.Answer(nobody{http.Header{}}, r, route, func(*driver.Request) error { return nil })
	if !answered {
		fault = wire.ErrInternal // it panicked
	}
	switch {
	case t.answer == nil:
		t.err = fault
		close(t.begun)
	case fault != nil:
		_ = t.answer.breakOff(wire.ErrorOf(fault), context.Cause(r.Context()) == errCancelled) // the task shows its last state then
	}
}

// nobody is the client of an answer in the background.
type nobody struct{ header http.Header }

// Header implements [http.ResponseWriter].
func (n nobody) Header() http.Header { return n.header }

// Write implements [http.ResponseWriter].
func (n nobody) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements [http.ResponseWriter].
func (n nobody) WriteHeader(int) {}

// begin gives the answer its id. The store has it from now on.
func (t *task) begin(e *responseEncoder) error {
	t.answer, t.header = e, e.W.Header().Clone()
	if err := t.set(); err != nil {
		return err
	}
	e.Server.History.Put(t.owner, "resp_"+e.ID, t, len(t.body))
	close(t.begun)
	return nil
}

// set shows the answer as it stands.
func (t *task) set() error {
	body, err := wire.Marshal(t.answer.response())
	if err == nil {
		t.show(body)
	}
	return err
}

func (t *task) show(body json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.body = body
}

// now returns the answer as it stands.
func (t *task) now() json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.body
}

// breakOff implements [taskAnswer].
func (e *responseEncoder) breakOff(fault *wire.Error, cancelled bool) error {
	t := e.q.made.task
	if e.status = "cancelled"; !cancelled {
		e.status, e.failure = "failed", map[string]string{"code": fault.Label(), "message": fault.Message}
	}
	for _, m := range e.items {
		if m.Status == "in_progress" {
			m.Status = "incomplete"
		}
	}
	if err := t.set(); err != nil {
		return err
	}
	e.Server.History.Put(t.owner, "resp_"+e.ID, &storedResponse{body: t.now(), task: t}, len(t.body)+t.bytes)
	return e.emit(event{"response." + e.status, map[string]any{"response": t.now()}})
}

// add keeps an event.
func (t *task) add(kind string, fields map[string]any) error {
	if !t.streams {
		return nil
	}
	body, err := wire.Marshal(fields)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, taskEvent{kind, body})
	for t.bytes += len(body); t.bytes > maxTaskEvents && len(t.events) > 1; t.dropped++ {
		t.bytes -= len(t.events[0].body)
		t.events = t.events[1:]
	}
	close(t.changed)
	t.changed = make(chan struct{})
	return nil
}

// from returns the events from a number on, and a channel that is closed when there are more; false: the event is not kept any more.
func (t *task) from(n int) (events []taskEvent, more <-chan struct{}, kept bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n < t.dropped {
		return nil, nil, false
	}
	return t.events[min(n-t.dropped, len(t.events)):], t.changed, true
}

// follow sends the events from a number on, until the last.
func (t *task) follow(x *driver.Request, next int) (err error) {
	out := driver.NewStream(x, driver.Events)
	defer func() {
		if fault := out.Close(); err == nil {
			err = fault
		}
	}()
	alive := time.NewTicker(aliveTime)
	defer alive.Stop()
	for ended := false; ; {
		events, more, kept := t.from(next)
		if !kept {
			return wire.Refuse("starting_after", "starting_after: the events before %d are not kept any more; read the response without stream", next+1)
		}
		for _, e := range events {
			if err := out.Named(e.kind, e.body); err != nil {
				return err
			}
		}
		next += len(events)
		switch {
		case len(events) > 0:
			continue
		case ended:
			return nil
		}
		select {
		case <-more:
		case <-t.done:
			ended = true
		case <-alive.C:
			if err := out.Alive(); err != nil {
				return err
			}
		case <-x.R.Context().Done():
			return context.Cause(x.R.Context())
		}
	}
}

// shown sends the answer as it stands, or its events where the address asks for them.
func (t *task) shown(x *driver.Request) error {
	query := x.R.URL.Query()
	if stream, _ := strconv.ParseBool(query.Get("stream")); !stream {
		return x.Reply(t.now())
	}
	next := 0
	if after := query.Get("starting_after"); after != "" {
		n, err := strconv.ParseUint(after, 10, 31)
		if err != nil {
			return wire.Refuse("starting_after", "starting_after is %q; it must be the number of an event", wire.Clip(after))
		}
		next = int(n) + 1
	}
	if !t.streams {
		return wire.Refuse("stream", "stream: the response was asked for without stream, so that its events are not kept")
	}
	return t.follow(x, next)
}

// cancelResponse handles POST /v1/responses/{id}/cancel. An answer that has ended stays as it is.
func cancelResponse(x *driver.Request) error {
	r, err := stored(x, x.R.PathValue("id"), "")
	switch {
	case err != nil:
		return err
	case r.task == nil:
		return wire.Refuse("", "the response %q was not asked for with background; close its connection to cancel it", wire.Clip(x.R.PathValue("id")))
	}
	if err := r.task.stop(x); err != nil {
		return err
	}
	return x.Reply(r.task.now())
}

// stop cancels the answer and waits until it has ended.
func (t *task) stop(x *driver.Request) error {
	t.cancel(errCancelled)
	select {
	case <-t.done:
		return nil
	case <-x.R.Context().Done():
		return context.Cause(x.R.Context())
	}
}
