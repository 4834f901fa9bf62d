// quota.go shares an amount, such as bytes of memory, among holders that wait for it.

package serving

import (
	"context"
	"slices"
	"sync"
)

// Quota is an amount. A half of it is for all holders, a quarter besides for those that hold little, and the last for the oldest that
// waits, so that it can always go on. It is safe for concurrent use.
type Quota struct {
	most   func() int64
	little int64

	mu    sync.Mutex
	used  int64
	queue []*claim
	first *QuotaHeld // the oldest that waits, or has waited and holds more than it gave back since
}

// claim is a holder that waits.
type claim struct {
	held  *QuotaHeld
	n     int64
	ready chan struct{}
}

// NewQuota returns a quota of most, which may change. Holders of little, or less, do not wait for others that wait.
func NewQuota(most func() int64, little int64) *Quota { return &Quota{most: most, little: little} }

// Each returns the most that one holder may have.
func (q *Quota) Each() int64 { return q.most() / 4 }

// QuotaHeld is the part of one holder. It is for one goroutine.
type QuotaHeld struct {
	quota *Quota
	n     int64
}

// Hold returns a holder of nothing.
func (q *Quota) Hold() *QuotaHeld { return &QuotaHeld{quota: q} }

// Set waits until the holder may have n in all, [Quota.Each] at most. Errors: the cause of ctx's end.
func (h *QuotaHeld) Set(ctx context.Context, n int64) error {
	q, c := h.quota, &claim{h, n, make(chan struct{})}
	q.mu.Lock()
	if (len(q.queue) == 0 || q.first == h || n <= q.little) && q.grant(c, q.most()) {
		q.mu.Unlock()
		return nil
	}
	q.queue = append(q.queue, c)
	q.wake()
	q.mu.Unlock()
	select {
	case <-c.ready:
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.queue, c)
	if i < 0 {
		return nil // it has it
	}
	q.queue = slices.Delete(q.queue, i, i+1)
	q.leave(h)
	return context.Cause(ctx)
}

// Shrink gives back all but n.
func (h *QuotaHeld) Shrink(n int64) {
	q := h.quota
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used += n - h.n
	h.n = n
	q.leave(h)
}

// leave ends what a holder has as the oldest that waits. The caller holds the lock.
func (q *Quota) leave(h *QuotaHeld) {
	if q.first == h {
		q.first = nil
	}
	q.wake()
}

// grant gives a holder what it waits for, where there is so much. The caller holds the lock.
func (q *Quota) grant(c *claim, most int64) bool {
	switch {
	case q.first == c.held:
	case c.n <= q.little:
		most -= most / 4
	default:
		most /= 2
	}
	more := c.n - c.held.n
	if more > 0 && q.used+more > most {
		return false
	}
	q.used, c.held.n = q.used+more, c.n
	return true
}

// wake gives to holders that wait, the oldest first. The caller holds the lock.
func (q *Quota) wake() {
	most, waits := q.most(), false
	q.queue = slices.DeleteFunc(q.queue, func(c *claim) bool {
		if q.first == nil {
			q.first = c.held
		}
		if waits && q.first != c.held || !q.grant(c, most) {
			waits = true // those behind it wait for it
			return false
		}
		close(c.ready)
		return true
	})
}
