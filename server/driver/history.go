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
// bytes; the oldest go first. It is safe for concurrent use. The zero value is empty.
type History struct {
	mu      sync.Mutex
	entries map[historyKey]*list.Element
	order   list.List // the oldest first
	bytes   int
}

type historyKey struct{ owner, id string }

type historyEntry struct {
	key   historyKey
	value any
	bytes int
}

// Put keeps a value that takes a number of bytes. One that takes more than all may is not kept.
func (h *History) Put(owner, id string, value any, bytes int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := historyKey{owner, id}
	h.drop(key)
	if bytes > HistoryBytes {
		return
	}
	if h.entries == nil {
		h.entries = map[historyKey]*list.Element{}
	}
	h.entries[key] = h.order.PushBack(&historyEntry{key, value, bytes})
	h.bytes += bytes
	for len(h.entries) > HistoryEntries || h.bytes > HistoryBytes {
		h.drop(h.order.Front().Value.(*historyEntry).key)
	}
}

// Get returns a value; the reader must not change it.
func (h *History) Get(owner, id string) (value any, found bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, found := h.entries[historyKey{owner, id}]
	if !found {
		return nil, false
	}
	return e.Value.(*historyEntry).value, true
}

// Drop forgets a value, and reports whether it was there.
func (h *History) Drop(owner, id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.drop(historyKey{owner, id})
}

func (h *History) drop(key historyKey) bool {
	e, found := h.entries[key]
	if !found {
		return false
	}
	h.bytes -= e.Value.(*historyEntry).bytes
	h.order.Remove(e)
	delete(h.entries, key)
	return true
}
