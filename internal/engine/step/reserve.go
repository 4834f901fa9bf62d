// reserve.go gives trunks slots: several at once to those whose forks must all have one, and in turns to the owners of those that wait.

package step

import (
	"fmt"
)

// free returns how many slots nobody has. The caller holds the maker's lock.
func (m *Maker) free() int { return m.Seqs - len(m.admitted) - m.kept }

// busy returns an [ErrBusy] where no slot can be had.
func (m *Maker) busy(is bool) error {
	if !is {
		return nil
	}
	return fmt.Errorf("engine: %d sequences have a slot: %w", len(m.admitted)+m.kept, ErrBusy)
}

// clear reports whether n slots are free, once those of trunks are taken whose callers are away. It takes none where they are not enough.
// The caller holds the maker's lock.
func (m *Maker) clear(n int) bool {
	lent := m.free()
	for _, t := range m.admitted {
		if lent < n && m.idle(t) {
			lent += 1 + t.kept
		}
	}
	for lent >= n && m.free() < n {
		if !m.vacate() {
			return false
		}
	}
	return lent >= n
}

// keep gives a trunk with a slot n slots for its forks, which are free. The caller holds the maker's lock.
func (m *Maker) keep(t *Trunk, n int) {
	t.kept, m.kept, t.beside = t.kept+n, m.kept+n, t.beside-n
}

// ReserveSlots lets a trunk have n slots for its forks, those that it keeps included. Where as many are not free, it gives its own back, so that two trunks that reserve never wait for
// each other, and its next job waits for all of them in the queue.
func (m *Maker) ReserveSlots(t *Trunk, n int) error {
	m.Lock()
	defer m.Unlock()
	t.beside = max(0, n-t.kept)
	switch {
	case t.Seq < 0, t.beside == 0:
		return nil
	case !m.reserving && t.beside <= m.free():
		m.keep(t, t.beside)
		return nil
	}
	t.Preempted = true
	t.beside += t.kept
	err := m.release(t)
	m.Load.Note(func(l *Load) { l.Preempted++ })
	m.queue.Notify()
	return err
}

// Kept returns how many slots a trunk has for its forks.
func (m *Maker) Kept(t *Trunk) int {
	m.Lock()
	defer m.Unlock()
	return t.kept
}

// TakeSlot takes a slot for a fork of a trunk: one that the trunk keeps, or one that is free, for which nobody waits with others. Errors: [ErrBusy]. The caller holds the
// maker's lock, and binds the slot before it gives that back.
func (m *Maker) TakeSlot(t *Trunk) error {
	if t.kept > 0 {
		t.kept, m.kept = t.kept-1, m.kept-1
		return nil
	}
	return m.busy(m.reserving || m.free() <= 0)
}

// takeTurns puts those of the callers that wait for a slot in the order in which they get one, into the places that they have among the others: owners with few slots first, within
// a priority. Where all are of one owner, they stay as they are.
func (m *Maker) takeTurns(called []*Trunk) {
	several := false
	first := (*Trunk)(nil)
	for _, t := range called {
		if t.Seq < 0 && first == nil {
			first = t
		}
		several = several || t.Seq < 0 && t.Owner != first.Owner
	}
	if !several {
		return
	}
	m.order.Begin()
	for _, t := range m.admitted {
		m.order.Serves(t.Owner)
	}
	m.waiting = m.waiting[:0]
	for _, t := range called {
		if t.Seq < 0 {
			m.order.Waits(t.Owner, t.priority(), len(m.waiting))
			m.waiting = append(m.waiting, t)
		}
	}
	at := 0
	m.order.Sorted(func(i int) {
		for called[at].Seq >= 0 {
			at++
		}
		called[at] = m.waiting[i]
		at++
	})
}
