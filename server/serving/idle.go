package serving

import (
	"cmp"
	"time"
)

// rest notes the time of a use, and closes the model after the idle time unless it is used again. The caller holds the lock.
func (p *Pool) rest(e *entry) {
	e.last = time.Now()
	idle := p.idle(e)
	if e.users > 0 || idle < 0 {
		return
	}
	if e.closing == nil {
		e.closing = time.AfterFunc(idle, func() { p.expire(e) })
	} else {
		e.closing.Reset(idle)
	}
}

// expire closes a model whose idle time has passed. One that was used again is closed after a later time.
func (p *Pool) expire(e *entry) {
	p.mu.Lock()
	idle, since := p.idle(e), e.last
	p.mu.Unlock()
	if idle >= 0 && time.Since(since) >= idle {
		_ = p.unload(e, since) // it logs its error
	}
}

// idle returns how long an unused model stays open; negative: for ever. The caller holds the lock.
func (p *Pool) idle(e *entry) time.Duration {
	switch {
	case e.keep != 0:
		return e.keep
	case p.config.Idle == 0:
		return -1
	}
	return p.config.Idle
}

// Keep sets how long a model stays open when it is unused, in place of the idle time of all models; negative: for ever. It holds
// from the end of the request on, until the model is closed.
func (p *Pool) Keep(name string, idle time.Duration) error {
	e, err := p.find(name)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e.keep = cmp.Or(idle, time.Nanosecond)
	return nil
}
