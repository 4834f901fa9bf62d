package driver

import (
	"container/list"
	"sync"
)

// The bounds of a [History].
const (
	HistoryEntries = 1024
	HistoryBytes   = 64 << 20
)

// History keeps what later requests of the same owner may refer to. It has at most [HistoryEntries] entries and [HistoryBytes]
// bytes; beyond either, the owner who has the most of it loses the oldest of its own, so that nobody who has less than a fair share
// loses by others. It is safe for concurrent use. The zero value is empty.
type History struct {
	mu             sync.Mutex
	owners         map[string]*historyOwner
	entries, bytes int
}

type historyOwner struct {
	entries map[string]*list.Element
	order   list.List // the oldest first
	bytes   int
}

type historyEntry struct {
	id    string
	value any
	bytes int
}

// Put keeps a value that takes a number of bytes. One that takes more than all may is not kept.
func (h *History) Put(owner, id string, value any, bytes int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(owner, id)
	if bytes > HistoryBytes {
		return
	}
	if h.owners == nil {
		h.owners = map[string]*historyOwner{}
	}
	o := h.owners[owner]
	if o == nil {
		o = &historyOwner{entries: map[string]*list.Element{}}
		h.owners[owner] = o
	}
	o.entries[id] = o.order.PushBack(&historyEntry{id, value, bytes})
	o.bytes += bytes
	h.entries, h.bytes = h.entries+1, h.bytes+bytes
	for h.bytes > HistoryBytes {
		h.shrink(owner, func(o *historyOwner) int { return o.bytes })
	}
	for h.entries > HistoryEntries {
		h.shrink(owner, func(o *historyOwner) int { return len(o.entries) })
	}
}

// shrink drops the oldest value of the owner of whom there is the most, which of equals is the one who puts.
func (h *History) shrink(most string, size func(*historyOwner) int) {
	for owner, o := range h.owners {
		if size(o) > size(h.owners[most]) {
			most = owner
		}
	}
	h.drop(most, h.owners[most].order.Front().Value.(*historyEntry).id)
}

// Get returns a value; the reader must not change it.
func (h *History) Get(owner, id string) (value any, found bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.owners[owner]
	if o == nil || o.entries[id] == nil {
		return nil, false
	}
	return o.entries[id].Value.(*historyEntry).value, true
}

// Drop forgets a value, and reports whether it was there.
func (h *History) Drop(owner, id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.drop(owner, id)
}

func (h *History) drop(owner, id string) bool {
	o := h.owners[owner]
	if o == nil || o.entries[id] == nil {
		return false
	}
	e := o.order.Remove(o.entries[id]).(*historyEntry)
	delete(o.entries, id)
	o.bytes -= e.bytes
	h.entries, h.bytes = h.entries-1, h.bytes-e.bytes
	if len(o.entries) == 0 {
		delete(h.owners, owner)
	}
	return true
}
