package serving

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"grove"
	"grove/server/wire"
)

// memoryTime is how long a model usually waits for memory that other models use.
const memoryTime = 30 * time.Second

// opening is an attempt to open a model.
type opening struct {
	over  chan struct{} // closed when the model is open or has failed to open
	give  func()        // gives the attempt up
	asked int           // requests that wait; the pool's lock guards this
	open  bool          // the model is open, and those who asked count as its users
	err   error         // why it is not
}

// waiting is a model that waits until others are unused, so that they can be closed.
type waiting struct {
	model *entry
	over  chan struct{} // closed when it waits no more
}

var (
	// errGone reports a model that was deleted while a request asked for it.
	errGone = &wire.Error{
		Status: http.StatusNotFound, Type: wire.TypeInvalid, Param: "model", Code: "model_not_found", Message: "the model was deleted",
	}
	// errNobody reports a model that was not opened, since no request waits for it any more.
	errNobody = errors.New("serving: nobody waits for the model")
)

// use waits until a model is open, and returns it.
func (p *Pool) use(ctx context.Context, e *entry) (*OpenModel, func(), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.yield(ctx, e); err != nil {
		return nil, nil, err
	}
	for entered := false; !entered; {
		if e.model != nil {
			e.users++
			break
		}
		if e.loading == nil {
			switch {
			case p.ending.Err() != nil:
				return nil, nil, wire.ErrStopping
			case e.gone:
				return nil, nil, errGone
			}
			opens, give := context.WithCancel(p.ending)
			e.loading = &opening{over: make(chan struct{}), give: give}
			go p.load(opens, e)
		}
		var err error
		if entered, err = p.follow(ctx, e); err != nil {
			return nil, nil, err
		}
	}
	return e.model, sync.OnceFunc(func() { p.leave(e) }), nil
}

// yield lets a model that waits for memory go before a request for an open one, which would use its model without end. A request
// yields once. The caller holds the lock.
func (p *Pool) yield(ctx context.Context, e *entry) error {
	w := p.waits
	if w == nil || w.model == e || e.model == nil {
		return nil
	}
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-w.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follow waits until the opening of a model has ended, and reports whether the caller is a user of the model now. Errors are the opening's
// and those of ctx. The last request that leaves ends the opening. The caller holds the lock.
func (p *Pool) follow(ctx context.Context, e *entry) (entered bool, err error) {
	o := e.loading
	o.asked++
	p.mu.Unlock()
	select {
	case <-o.over:
	case <-ctx.Done():
	}
	p.mu.Lock()
	if o.asked--; o.asked == 0 {
		o.give()
	}
	switch err = ctx.Err(); {
	case o.open && err != nil:
		e.users--
		p.rest(e)
		p.free()
	case !o.open && err == nil && !errors.Is(o.err, errNobody): // else those before this request have left, and it tries again
		err = o.err
	}
	return o.open, err
}

// load opens a model in its turn and wakes the requests that wait for it.
func (p *Pool) load(ctx context.Context, e *entry) {
	var m *grove.Model
	var err error
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
		m, err = p.fit(ctx, e)
		if err == nil {
			p.restore(e, m)
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	switch {
	case err != nil && p.ending.Err() != nil:
		err = wire.ErrStopping
	case err != nil && ctx.Err() != nil:
		err = errNobody
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.loading.err = err; err == nil {
		e.model = newOpenModel(p, e.Entry, m)
		e.bytes += uint64(e.model.Memory())
		e.users, e.loading.open = e.users+e.loading.asked, true
		p.rest(e)
	}
	close(e.loading.over)
	e.loading = nil
}

// restore gives a model the adapters that it had when it was closed, with their ids and scales.
func (p *Pool) restore(e *entry, m *grove.Model) {
	p.mu.Lock()
	all := e.adapters
	p.mu.Unlock()
	if all == nil {
		return
	}
	same := func(a grove.Adapter) func(grove.Adapter) bool {
		return func(b grove.Adapter) bool { return a.ID == b.ID && a.Name == b.Name && a.Path == b.Path }
	}
	failed := func(name string, err error) {
		if err != nil {
			p.config.Log.Error("an adapter is not as it was when the model was closed", "model", e.Name, "adapter", name, "error", err)
		}
	}
	for _, a := range m.Adapters() {
		if !slices.ContainsFunc(all, same(a)) {
			failed(a.Name, m.UnloadAdapter(a.Name))
		}
	}
	open := m.Adapters()
	var scales []grove.AdapterScale
	for _, a := range all {
		if !slices.ContainsFunc(open, same(a)) {
			if _, err := m.LoadAdapter(grove.AdapterFile{Path: a.Path, Name: a.Name, ID: a.ID}); err != nil {
				failed(a.Name, err)
				continue
			}
		}
		scales = append(scales, grove.AdapterScale{ID: a.ID, Scale: a.Scale})
	}
	failed("", m.ScaleAdapters(scales))
}

// fit opens a model. Where it does not fit the memory, unused models are closed, the longest unused first; where all others are in use,
// it waits until one is not.
func (p *Pool) fit(ctx context.Context, e *entry) (m *grove.Model, err error) {
	late := time.NewTimer(p.config.Wait)
	defer late.Stop()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		start := time.Now()
		if m, err = p.open(ctx, e); err == nil {
			p.config.Log.Info("model opened", "model", e.Name, "ms", time.Since(start).Milliseconds())
			return m, nil
		}
		if p.config.Memory == 0 || !errors.Is(err, grove.ErrMemory) {
			return nil, err
		}
		if p.makeRoom() {
			continue
		}
		if len(p.Open()) == 0 && p.left() == p.config.Memory-p.reserve() {
			return nil, err // alone, it does not fit
		}
		if err := p.await(ctx, e, late.C); err != nil {
			return nil, err
		}
	}
}

// await waits until a model that was in use is closed.
func (p *Pool) await(ctx context.Context, e *entry, late <-chan time.Time) error {
	w := &waiting{e, make(chan struct{})}
	before := p.left()
	p.mu.Lock()
	p.waits = w
	p.mu.Unlock()
	p.config.Log.Info("a model waits for memory that others use", "model", e.Name)
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waits = nil
		close(w.over)
	}()
	for !p.makeRoom() && p.left() <= before {
		select {
		case <-p.freed:
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return &wire.Error{
				Status: http.StatusServiceUnavailable, Retry: 5, Type: wire.TypeUnavailable, Param: "model", Code: "memory_full",
				Message: fmt.Sprintf("the model %q does not fit into memory beside the models that are in use; try again later", e.Name),
			}
		}
	}
	return nil
}

// free says that a model may have become unused or closed.
func (p *Pool) free() {
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

// open opens a model in the memory that the others leave. A panic is an error.
func (p *Pool) open(ctx context.Context, e *entry) (m *grove.Model, err error) {
	defer p.Guard(p.ending, &err)
	return e.Open(ctx, p.left())
}

// left returns the bytes that the open models leave; 0: there is no bound.
func (p *Pool) left() uint64 {
	if p.config.Memory == 0 {
		return 0
	}
	left := p.config.Memory - p.reserve()
	return left - min(left-1, p.models())
}

// models returns the bytes of the open models.
func (p *Pool) models() (n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.entries {
		n += e.bytes
	}
	return n
}

// makeRoom closes the model that is unused for the longest time, and reports whether there was one.
func (p *Pool) makeRoom() bool {
	p.mu.Lock()
	var oldest *entry
	for _, e := range p.entries {
		if e.model != nil && e.users == 0 && (oldest == nil || e.last.Before(oldest.last)) {
			oldest = e
		}
	}
	p.mu.Unlock()
	return oldest != nil && p.unload(oldest, time.Now()) == nil
}
